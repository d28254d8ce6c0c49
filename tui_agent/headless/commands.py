"""The commands that need no screen, as click sees them; what they do is in the modules they call."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from tui_agent.errors import UsageError
from tui_agent.headless import arguments
from tui_agent.headless.arguments import CommandGroup, DecideOptions, RunOptions

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]

set_option = click.option(
    "--set", "settings", metavar="KEY=VALUE", multiple=True, help="Any setting; can be repeated."
)
model_option = click.option("--model", metavar="NAME", help="The model that answers, by its litellm name.")
planner_option = click.option(
    "--planner-model", metavar="NAME|none", help="The model that plans, or none for the built-in planner."
)
plain_option = click.option(
    "--plain", is_flag=True, help="Lines of text for a screen reader; so by itself with TERM=dumb."
)
record_option = click.option("--record", metavar="FILE", help="Keep every exchange with the model in FILE.")
replay_option = click.option("--replay", metavar="FILE", help="Answer from a recording, without any network.")
workspace_option = click.option(
    "--workspace", metavar="DIR", default=".", help="The folder to work in (default: here)."
)
json_option = click.option("--json", "as_json", is_flag=True, help="JSON instead of words.")
all_option = click.option("--all", "everywhere", is_flag=True, help="Of all workspaces, not just this one.")


@click.command()
@click.argument("prompt")
@workspace_option
@click.option(
    "--session", metavar="ID|last", default="", help="Continue a session instead of starting a new one."
)
@model_option
@planner_option
@click.option(
    "--protocol", type=click.Choice(["auto", "tools", "structured"]), help="How the model is to answer."
)
@click.option(
    "--open", "opened", metavar="FILE[:LINE[-LINE]]", multiple=True, help="An open file; the first is active."
)
@click.option("--attach", metavar="FILE", multiple=True, help="Show the model this file, as @FILE does.")
@click.option(
    "--apply",
    type=click.Choice(["none", "all", "checked"]),
    default="none",
    help="Write the proposed changes, all or nothing; checked: only where every check passed. Else they stay pending.",
)
@click.option(
    "--checks", type=click.Choice(["none", "proposed"]), help="Whether to run the checks on what is proposed."
)
@record_option
@replay_option
@set_option
@click.option("--trust", is_flag=True, help="Use what the workspace's .tui-agent/ brings, in this run.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line, and nothing else.")
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
    **flags: Any,
) -> int:
    """Run one turn without a screen. PROMPT is the request; - reads it from standard input."""
    folder = arguments.workspace_folder(workspace)
    if not session and (why := _why_not_here(folder)):
        raise UsageError(why, "name a folder with --workspace, also if it is to be this one")
    if checks == "none" and flags["apply"] == "checked":
        raise UsageError("--apply checked and --checks none were both given", "use one of them")
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
        **flags,
    )
    from tui_agent.headless.ahead import started

    with started(options) as ahead:
        from tui_agent.headless import run as body

        return body.run(options, ahead)


def _why_not_here(folder: Path) -> str:
    """Why nothing is run in the folder that the program was started in, unless it is named; else ""."""
    context = click.get_current_context()
    given = context.get_parameter_source("workspace") is not ParameterSource.DEFAULT
    return "" if given else arguments.why_ask_first(folder)


def _decision(name: Any, words: str) -> click.Command:
    """The command that takes one decision about changes."""

    @click.command(name, help=words)
    @click.argument("changes", metavar="[CHANGE]...", nargs=-1)
    @click.option(
        "--session", metavar="ID|last", required=True, help="The session that the changes belong to."
    )
    @workspace_option
    def decide(changes: tuple[str, ...], session: str, workspace: str) -> int:
        from tui_agent.headless import review

        folder = arguments.workspace_folder(workspace)
        return review.decide(DecideOptions(name, session, folder, changes))

    return decide


@click.command()
@click.option(
    "--session",
    default="",
    metavar="ID|last",
    help="One session; without this, those of this workspace.",
)
@all_option
@json_option
@click.option("--plot", is_flag=True, help="Draw bars, each figure against its goal.")
def stats(session: str, everywhere: bool, as_json: bool, plot: bool) -> int:
    """Count questions, failed loads, refused changes and turns."""
    from tui_agent.headless import sessions

    if session and everywhere:
        raise UsageError("--session and --all were both given", "use one of them")
    if as_json and plot:
        raise UsageError("--json and --plot were both given", "use one of them")
    form = "json" if as_json else "plot" if plot else "words"
    one = arguments.session_id(session)
    return sessions.stats(arguments.workspace_folder("."), one, everywhere, form)


@click.command()
@json_option
@click.option(
    "--bundle", metavar="FILE", help="Pack log, settings and versions for a bug report, without secrets."
)
def doctor(as_json: bool, bundle: str | None) -> int:
    """Show what is installed, what is found and what is missing."""
    from tui_agent.headless import doctor as body

    return body.doctor(arguments.workspace_folder("."), as_json=as_json, bundle=arguments.new_file(bundle))


@click.command()
@click.argument("path", default=".")
@click.option("--list", "listed", is_flag=True, help="List the workspaces that are trusted.")
@click.option("--revoke", is_flag=True, help="Revoke the trust.")
@click.option("--yes", is_flag=True, help="Trust it without a terminal, where it is only printed otherwise.")
def trust(path: str, listed: bool, revoke: bool, yes: bool) -> int:
    """Let a workspace use what its .tui-agent/ brings.

    That is settings, prompts, keys and themes, of the folder PATH (default: here), as they are there now.
    """
    from tui_agent.headless import trust_command

    if listed:
        return trust_command.show()
    return trust_command.revoke(path) if revoke else trust_command.give(arguments.workspace_folder(path), yes)


@click.command()
@click.argument("name", metavar="copilot|chatgpt|openrouter|status")
@json_option
def login(name: str, as_json: bool) -> int:
    """Log in at a service whose subscription or account pays for a model.

    `copilot` (GitHub Copilot) and `chatgpt` (ChatGPT) show a code to enter at a page of the service; `openrouter` shows
    a page that leads back here. `status` lists the logins; --json is for it alone.
    """
    from tui_agent.headless import login_command

    if name == "status":
        return login_command.status(as_json)
    if as_json:
        raise UsageError("--json is for `tui-agent login status` alone", "leave it out")
    return login_command.log_in(name)


@click.command()
@click.argument("name", metavar="copilot|chatgpt|openrouter")
def logout(name: str) -> int:
    """Forget the login at a service."""
    from tui_agent.headless import login_command

    return login_command.log_out(name)


@click.group(cls=CommandGroup)
def config() -> None:
    """Show where the configuration is and what is in force."""


@config.command()
def path() -> int:
    """Show where each configuration file is."""
    from tui_agent.headless import config_command

    return config_command.paths(arguments.workspace_folder("."))


@config.command()
@set_option
def show(settings: tuple[str, ...]) -> int:
    """Show every setting in force here, and where it comes from."""
    from tui_agent.headless import config_command

    return config_command.show(arguments.workspace_folder("."), settings)


@config.command()
def check() -> int:
    """Name everything that is wrong; status 2 if anything is."""
    from tui_agent.headless import config_command

    return config_command.check(arguments.workspace_folder("."))


COMMANDS: tuple[click.Command, ...] = (
    run,
    _decision("apply", "Write pending changes: those named, or all."),
    _decision("skip", "Put pending changes aside: those named, or all."),
    _decision("undo", "Take back the last apply, or the named changes of it."),
    _decision("redo", "Do again what the last undo took back."),
    stats,
    doctor,
    login,
    logout,
    trust,
    config,
)
