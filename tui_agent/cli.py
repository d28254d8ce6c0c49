"""The command line: opens the screen or runs a command. Imports lazily."""

from __future__ import annotations

import gc
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tui_agent import __version__
from tui_agent.control.connections import is_of_session, sockets_folder
from tui_agent.errors import TuiAgentError, UsageError
from tui_agent.files.text import escaped
from tui_agent.headless import arguments, output
from tui_agent.headless.arguments import ScreenOptions, click_error_text
from tui_agent.headless.output import OutputLost, open_streams, silence
from tui_agent.settings.files import nearest

if TYPE_CHECKING:
    from tui_agent.workspace.early_start import EarlyChild

INTERRUPTED = 130
#: Seconds from a complete screen to the start of a host, and bytes of its command line for the title of
#: sessions.
KEEP_READY_AFTER, ROOM_FOR_TITLE = 2.0, 200
_WITHOUT_A_SCREEN = "use `tui-agent run PROMPT`"
_EPILOG = "`tui-agent COMMAND --help` describes a command. --debug prints unredacted log records."


def open_screen(options: ScreenOptions) -> int:
    """Returns the exit status."""
    if not options.in_background:
        needs_a_terminal()
        why = "" if options.named else arguments.why_ask_first(options.workspace)
        if why and not click.confirm(f"{why}: all its files would be listed and watched. Open it?"):
            output.error("nothing was opened: start tui-agent in a project folder, or name one")
            return 1
        if (running := _offered(options)) is not None:
            from tui_agent.control import sockets

            return sockets.attach(running, sys.stderr.write)
    gc.disable()  # a third of the start would go into it; the complete screen switches it on
    import asyncio

    from tui_agent import debug_log
    from tui_agent.settings import trust
    from tui_agent.settings.folders import user_folders
    from tui_agent.workspace.early_start import start_ahead

    screen = screen_arguments(options)
    filters = trust.trusted_filters(options.workspace, user_folders())
    loop = asyncio.Runner()
    # It gets ready on another core while this one imports and draws the screen.
    ahead = loop.run(start_ahead(options.workspace, filters))
    from tui_agent.ui.run import run_app

    with debug_log.defer_output():
        return run_app(
            partial(screen.pop("open_session"), ahead=ahead),
            **screen,
            loop=loop,
            at_last=ahead.process.close,
            serve=_serve_and_keep_ready,
        )


def screen_arguments(options: ScreenOptions) -> dict[str, Any]:
    """Returns the arguments that the settings of the user and the folder imply."""
    from tui_agent.settings import loading, trust
    from tui_agent.settings.folders import user_folders

    folders = user_folders()
    session = "last" if options.continue_newest else options.resume or ""
    trusted = trust.is_trusted(options.workspace, folders)
    loaded = loading.load(folders, options.workspace, trusted, options.overrides)
    settings = loaded.settings
    own = (options.workspace / loading.WORKSPACE_FOLDER,) if trusted else ()
    return {
        "open_session": partial(_open, options, session),
        "theme": settings.theme,
        "keys": settings.keys,
        "plain": settings.screen.plain or is_dumb(),
        "follows_background": "theme" not in loaded.sources,
        "begin_with": options.agent,
        "first_action": "session.setup" if options.sets_up else "",
        "folders": (folders.config, *own),
        "reopen": partial(_reopened, options),
        "pick_from": (folders.data, options.workspace) if options.resume == "" else None,
    }


def serve(session: Any, terminals: Any) -> Any:
    """Opened when the screen is complete."""
    from tui_agent.control.server import ControlServer
    from tui_agent.headless.event_lines import lines_with_end

    return ControlServer(session, terminals, lines_with_end)


def _serve_and_keep_ready(session: Any, terminals: Any) -> Any:
    import asyncio

    if session.loaded.settings.start.keep_ready and "CI" not in os.environ:
        idle = session.loaded.settings.start.idle
        asyncio.get_running_loop().call_later(KEEP_READY_AFTER, _start_host, idle)
    return serve(session, terminals)


def _start_host(idle: int) -> None:
    words = [sys.executable, "-P", "-m", "tui_agent.start", str(idle), " " * ROOM_FOR_TITLE]
    null, size = subprocess.DEVNULL, shutil.get_terminal_size()
    variables = os.environ | {"COLUMNS": str(size.columns), "LINES": str(size.lines)}
    with suppress(OSError):
        subprocess.Popen(
            words, cwd="/", env=variables, stdin=null, stdout=null, stderr=null, start_new_session=True
        )


def _offered(options: ScreenOptions) -> Any:
    others = (options.resume is not None, options.continue_newest, options.agent, options.replay)
    if any(others) or options.sets_up:
        return None
    with suppress(TuiAgentError, OSError):
        folder = sockets_folder()
        if not folder or not any(map(is_of_session, os.listdir(folder))):
            return None
        from tui_agent.headless.running_sessions import detached_in

        for place, state in detached_in(options.workspace):
            named = state["name"] or state["id"]
            if click.confirm(
                f"{named} runs here without a terminal ({state['state']}). Open it?", default=True
            ):
                return place
    return None


async def _open(
    options: ScreenOptions,
    session: str,
    draft: str = "",
    ahead: EarlyChild | None = None,
) -> Any:
    """Its modules are imported only after the first frame."""
    from tui_agent.session.opening import Opening, open_session

    try:
        current_folder = Path.cwd()
    except FileNotFoundError:
        current_folder = None
    return await open_session(
        Opening(
            workspace=options.workspace,
            session=session,
            overrides=options.overrides,
            replay=options.replay,
            record=options.record,
            started_from=current_folder,
            interactive=True,
            draft=draft,
        ),
        ahead=ahead,
    )


async def _reopened(options: ScreenOptions, choice: Any) -> Any:
    if choice.rehearsal:
        from tui_agent.rehearsal.demo import rehearsal

        return await rehearsal()
    session = await _open(options, choice.session, choice.draft)
    if not choice.session:
        session.hooks.source = "clear"
    return session


def open_rehearsal(plain: bool = False) -> int:
    """`plain` is the rehearsal's screen."""
    needs_a_terminal()
    gc.disable()
    from tui_agent import debug_log
    from tui_agent.rehearsal.demo import run_demo

    with debug_log.defer_output():
        return run_demo(plain or is_dumb())


def is_dumb() -> bool:
    """Whether the terminal shows only lines of text."""
    return os.environ.get("TERM") == "dumb"


def needs_a_terminal() -> None:
    """Raises `UsageError`."""
    for stream, name in ((sys.stdin, "input"), (sys.stdout, "output")):
        if not stream.isatty():
            raise UsageError(
                f"the full screen needs a terminal, and standard {name} is not one", _WITHOUT_A_SCREEN
            )
    term = os.environ.get("TERM", "")
    if term in ("", "unknown"):
        told = f"TERM is {escaped(term)}" if term else "TERM is not set"
        raise UsageError(
            f"this terminal cannot show a full screen ({told})",
            f"set TERM to the type of your terminal, such as xterm-256color, or {_WITHOUT_A_SCREEN}",
        )


def main(argv: Sequence[str]) -> int:
    """Returns the exit status. Errors are one sentence on standard error."""
    end_of_options = argv.index("--") if "--" in argv else len(argv)
    options, rest = argv[:end_of_options], argv[end_of_options:]
    debug = "--debug" in options
    words = [*(word for word in options if word != "--debug"), *rest]
    open_streams()
    # Output continues if the terminal's encoding lacks a character, or a file's name is not text.
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")
    end = None
    if debug:
        from tui_agent import debug_log

        end = debug_log.show(output.record)
    try:
        status = int(tui_agent.main(words, prog_name="tui-agent", standalone_mode=False, obj=debug) or 0)
        sys.stdout.flush()
        return status
    except BrokenPipeError:
        silence()
        _trace(debug)
        return 1
    except OutputLost as lost:
        silence()
        _print_error(lost.what, lost.remedy, debug)
        return lost.exit_status
    except click.ClickException as error:
        _print_error(*click_error_text(error), debug)
        return 2
    except TuiAgentError as error:
        _print_error(error.what, error.remedy, debug)
        return error.exit_status
    except (KeyboardInterrupt, click.Abort):
        _print_error("interrupted", "your work is saved", debug)
        return INTERRUPTED
    except Exception as error:
        from tui_agent.debug_log import fault

        found = fault("unexpected error", error)
        _print_error(found.what, found.remedy)
        return found.exit_status
    finally:
        if end is not None:
            end()


class _CommandLine(click.Group):
    """Words that name no command belong to `open`: `tui-agent [OPTIONS] [PATH]`."""

    def invoke(self, ctx: click.Context) -> Any:
        from tui_agent import debug_log
        from tui_agent.settings.folders import user_folders

        debug_log.start(user_folders().state, verbose=bool(ctx.obj))
        return super().invoke(ctx)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if ctx.resilient_parsing and not args:
            return super().parse_args(ctx, args)
        first = args[0] if args else ""
        own = first in self.commands or first in ("--version", *ctx.help_option_names)
        return super().parse_args(ctx, args if own else ["open", *args])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[Any]:
        """Completes commands, options of the program, folders."""
        opening = self.commands["open"]
        paths = [] if incomplete.startswith("-") else arguments.folders(ctx, opening.params[0], incomplete)
        # Folders first: bash's script forgets the words before them.
        return [*paths, *super().shell_complete(ctx, incomplete), *opening.shell_complete(ctx, incomplete)]

    def format_usage(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        formatter.write_usage("tui-agent", "[OPTIONS] [PATH]")
        formatter.write_usage("tui-agent", "COMMAND …", prefix="       ")

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        opening = self.commands["open"]
        shown = (
            param.get_help_record(ctx)
            for param in (*opening.params, *self.params)
            if isinstance(param, click.Option)
        )
        with formatter.section("Options"):
            formatter.write_dl([record for record in shown if record])
        self.format_commands(ctx, formatter)


class _OpenCommand(click.Command):
    """Never typed: its help is that of the program."""

    def get_help(self, ctx: click.Context) -> str:
        return ctx.parent.get_help() if ctx.parent else super().get_help(ctx)


@click.group(
    cls=_CommandLine,
    epilog=_EPILOG,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name="tui-agent", message="%(prog)s %(version)s")
def tui_agent() -> None:
    """Change a code base together with a language model, in the terminal.

    Opens the folder PATH (default: current folder) full screen. Nothing is written until you apply it.
    """


_plain_option = click.option(
    "--plain", is_flag=True, help="Plain text for screen readers; automatic if TERM=dumb."
)


@tui_agent.command("open", cls=_OpenCommand, hidden=True)
@click.argument("path", required=False, shell_complete=arguments.folders)
@click.option(
    "--resume",
    metavar="[ID]",
    is_flag=False,
    flag_value="",
    shell_complete=arguments.sessions,
    help="Resume the session ID, or choose one.",
)
@click.option(
    "--continue", "continue_newest", is_flag=True, help="Continue the latest session of this folder."
)
@arguments.model_option
@arguments.planner_option
@click.option(
    "--theme",
    metavar="NAME",
    shell_complete=arguments.themes,
    help="Colour theme: dark, light, … or your own.",
)
@_plain_option
@click.option("--bg", "prompt", metavar="PROMPT", help="Start a session in the background and send PROMPT.")
@arguments.set_option
@arguments.record_option
@arguments.replay_option
def open_(path: str | None, resume: str | None, **options: Any) -> int:
    opening = options_of(path, resume, options)
    if options["prompt"] is None:
        return open_screen(opening)
    from tui_agent.headless.running_sessions import begin

    return begin(options["prompt"], lambda: open_screen(opening))


def options_of(path: str | None, resume: str | None, options: dict[str, Any]) -> ScreenOptions:
    """Raises `UsageError`."""
    if path is None and resume and os.path.isdir(resume):
        path, resume = resume, ""
    if resume is not None and options["continue_newest"]:
        raise UsageError("--resume and --continue cannot be combined", "give one of them")
    named = [(key, options[key]) for key in ("model", "planner_model", "theme")]
    named.append(("screen.plain", "true" if options["plain"] else None))
    if options["prompt"] is not None and resume == "":
        raise UsageError("--resume without an id needs a terminal", "name the session, or omit --bg")
    folder = "." if path is None else path
    near = "" if os.path.exists(folder) or "/" in folder else nearest(folder, _shown_commands())
    if near and near == folder:
        raise UsageError(*arguments.command_first(near))
    if near or arguments.is_like_a_command(folder):
        raise UsageError(*arguments.no_command(folder, _shown_commands(), near))
    return ScreenOptions(
        workspace=arguments.workspace_folder(folder),
        named=path is not None or resume is not None or options["continue_newest"],
        resume=resume,
        continue_newest=options["continue_newest"],
        overrides=arguments.overrides(options["settings"], named),
        replay=arguments.recording(options["replay"]),
        record=arguments.new_file(options["record"]),
        in_background=options["prompt"] is not None,
    )


@tui_agent.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@arguments.workspace_option
@arguments.set_option
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED, metavar="-- COMMAND [ARGUMENT]…")
def view(command: tuple[str, ...], workspace: str, settings: tuple[str, ...]) -> int:
    """Run another agent, or any program, full screen in an isolated view of the folder.

    Ctrl+] opens the review of its changes; /agent returns to it. Only changes that you apply are written to the
    folder. The program can connect only to the hosts of its profile.
    """
    return open_screen(
        ScreenOptions(
            workspace=arguments.workspace_folder(workspace),
            overrides=arguments.overrides(settings, []),
            agent=command,
        )
    )


@tui_agent.command()
@_plain_option
def demo(plain: bool) -> int:
    """Try the program with recorded replies; needs no network and no API key."""
    return open_rehearsal(plain)


@tui_agent.command()
@click.argument("path", default=".", shell_complete=arguments.folders)
@arguments.set_option
def setup(path: str, settings: tuple[str, ...]) -> int:
    """Set up model, checks and theme on the screen.

    Each step can be skipped. Nothing is saved without confirmation.
    """
    return open_screen(
        ScreenOptions(
            workspace=arguments.workspace_folder(path),
            overrides=arguments.overrides(settings, []),
            sets_up=True,
        )
    )


class LateCommand(click.Command):
    """Imported when it is called or its own help is requested."""

    def __init__(self, name: str, module: str, words: str) -> None:
        super().__init__(name, short_help=words)
        self._module = module

    def imported(self) -> click.Command:
        return getattr(import_module(f"tui_agent.headless.{self._module}"), self.name or "")

    def make_context(self, info_name: str | None, args: list[str], *rest: Any, **extra: Any) -> click.Context:
        return self.imported().make_context(info_name, args, *rest, **extra)


#: Name, module in `headless`, first sentence of the help.
for command in (
    ("run", "run_command", "Run one turn non-interactively."),
    ("apply", "review", "Apply the changes with these ids, or all pending ones."),
    ("skip", "review", "Skip the changes with these ids, or all pending ones."),
    ("undo", "review", "Undo the last apply, or its changes with these ids."),
    ("redo", "review", "Redo the changes of the last undo."),
    ("stats", "sessions", "Show statistics of turns, files and changes."),
    ("doctor", "doctor", "Check the installation: programs, API keys, servers, sandbox."),
    ("login", "login_command", "Log in to a service to use its models without an API key."),
    ("logout", "login_command", "Log out of a service."),
    ("mcp", "mcp_command", "List, test, enable, log in to and import MCP servers."),
    ("places", "places_command", "List and test places: containers and hosts that run commands."),
    ("worker", "places_command", "Run one sub-task for a session (internal)."),
    ("hooks", "hooks_command", "List hooks, and enable those of a Claude Code settings.json."),
    ("trust", "trust_command", "Trust a workspace's .tui-agent/ folder."),
    ("completion", "shell_command", "Print the completion script for a shell."),
    ("manual", "shell_command", "Print the manual page."),
    ("config", "config_command", "Show and check the configuration."),
    ("ps", "running_sessions", "List running sessions."),
    ("attach", "running_sessions", "Open a running session in this terminal."),
    ("stop", "running_sessions", "End a running session. Its data is kept."),
    ("logs", "running_sessions", "Show the events of a running session."),
    ("answer", "running_sessions", "Answer the question of a running session."),
    ("acp", "acp_command", "Serve sessions to an editor over the Agent Client Protocol (ACP)."),
    ("serve", "serve_command", "Open the screen in a browser."),
    ("ssh", "running_sessions", "Open the session of a folder on another machine."),
    ("sessions", "sessions", "List, read, search, export, fork and delete sessions."),
):
    tui_agent.add_command(LateCommand(*command))


def _shown_commands() -> list[str]:
    return [name for name, found in tui_agent.commands.items() if not found.hidden]


def _trace(debug: bool) -> None:
    if debug:
        import logging

        logging.getLogger(__name__).debug("the command ended", exc_info=True)


def _print_error(what: str, remedy: str, debug: bool = False) -> None:
    _trace(debug)
    with suppress(OSError):
        output.error(f"{what}: {remedy}")
        sys.stderr.flush()
