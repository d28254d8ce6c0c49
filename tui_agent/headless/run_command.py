"""`tui-agent run`: arguments, and processes started in parallel with the imports."""

from __future__ import annotations

import asyncio
from typing import Any

import click
from click.core import ParameterSource

from tui_agent.errors import UsageError
from tui_agent.headless import arguments
from tui_agent.headless.arguments import RunOptions
from tui_agent.model import model_table
from tui_agent.model.child_model import model_process
from tui_agent.model.rules import providers
from tui_agent.processes.child import ChildProcess
from tui_agent.settings import trust
from tui_agent.settings.folders import user_folders
from tui_agent.workspace.early_start import EarlyChild, workspace_child


@click.command()
@click.argument("prompt")
@arguments.workspace_option
@click.option(
    "--session",
    metavar="ID|last",
    shell_complete=arguments.sessions,
    default="",
    help="Continue a session instead of starting one.",
)
@arguments.model_option
@arguments.planner_option
@click.option(
    "--protocol", type=click.Choice(["auto", "tools", "structured"]), help="Reply format of the model."
)
@click.option(
    "--open",
    "opened",
    metavar="FILE[:LINE[-LINE]]",
    shell_complete=arguments.files,
    multiple=True,
    help="Open file; the first is active. Can be repeated.",
)
@click.option(
    "--attach",
    metavar="FILE",
    shell_complete=arguments.files,
    multiple=True,
    help="Attach a file, as @FILE does. Can be repeated.",
)
@click.option(
    "--apply",
    type=click.Choice(["none", "all", "checked"]),
    default="none",
    help="Apply all changes, or only if every check passes (checked). Default: none.",
)
@click.option(
    "--checks",
    type=click.Choice(["none", "proposed"]),
    help="Run checks on proposed changes, or none. Default: the setting checks.run.",
)
@click.option(
    "--agent", metavar="NAME", default="", help="Agent that runs the turn in a view: claude, codex, …"
)
@click.option(
    "--best",
    metavar="NAMES|NUMBER",
    default="",
    help="Compare attempts of agents (claude,codex) or models, or NUMBER attempts of the model, each in its own view. "
    "--apply takes the first attempt without a failed check.",
)
@arguments.record_option
@arguments.replay_option
@arguments.set_option
@click.option("--trust", is_flag=True, help="Trust the workspace's .tui-agent/ for this run.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON lines only.")
def run(
    prompt: str,
    workspace: str,
    session: str,
    model: str | None,
    planner_model: str | None,
    protocol: str | None,
    checks: str | None,
    opened: tuple[str, ...],
    attach: tuple[str, ...],
    record: str | None,
    replay: str | None,
    settings: tuple[str, ...],
    best: str,
    **flags: Any,
) -> int:
    """Run one turn non-interactively. If PROMPT is -, read it from standard input."""
    folder = arguments.workspace_folder(workspace)
    source = click.get_current_context().get_parameter_source("workspace")
    here = source is ParameterSource.DEFAULT and not session
    if here and (why := arguments.why_ask_first(folder)):
        raise UsageError(why, "name a folder with --workspace")
    if checks == "none" and flags["apply"] == "checked":
        raise UsageError("--apply checked and --checks none cannot be combined", "use one of them")
    if best and (flags["agent"] or opened or attach):
        raise UsageError("--best cannot be combined with --agent, --open and --attach", "leave them out")
    named = (
        ("model", model),
        ("planner_model", planner_model),
        ("protocol", protocol),
        ("checks.run", checks),
    )
    options = RunOptions(
        workspace=folder,
        session=session,
        overrides=arguments.overrides(settings, named),
        open=tuple(arguments.open_file(folder, words) for words in opened),
        attach=tuple(arguments.file_below(folder, name) for name in attach),
        replay=arguments.recording(replay),
        record=arguments.new_file(record),
        prompt=arguments.prompt_words(prompt),
        best=arguments.attempts(best),
        **flags,
    )
    ahead, model_ahead = _processes(options)
    both = (ahead.process if ahead is not None else None, model_ahead)
    processes = [process for process in both if process is not None]
    with asyncio.Runner() as loop:
        try:
            for process in processes:
                loop.run(process.start())
            from tui_agent.headless import run as body  # while the processes start

            return loop.run(body.run(options, ahead, model_ahead))
        finally:
            for process in processes:
                loop.run(process.close())


def _processes(options: RunOptions) -> tuple[EarlyChild | None, ChildProcess | None]:
    workspace = model = None
    if not options.session and not options.trust:
        filters = trust.trusted_filters(options.workspace, user_folders())
        workspace = EarlyChild(options.workspace, filters, workspace_child(filters))
        workspace.process.fork()
    if options.replay is None:
        model_table.table()  # Both processes need the tables.
        providers()
        model = model_process()
        model.fork()
    return workspace, model
