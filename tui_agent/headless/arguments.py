"""Shared command-line options, the validation of folders, files and lines, and shell completion of values.

Each fault is a `UsageError`.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal, get_args

import click
from click.shell_completion import CompletionItem, get_completion_class
from msgspec import Struct

from tui_agent.errors import UsageError
from tui_agent.files.numbers import whole_number
from tui_agent.files.operating_system import read_start
from tui_agent.files.text import escaped
from tui_agent.processes.environment import avoid_programs_in
from tui_agent.settings.files import nearest, reason_of

SHELLS = ("bash", "zsh", "fish")
#: By which a shell asks for completions; click derives it from the program's name.
VARIABLE = "_TUI_AGENT_COMPLETE"
MOST_SESSIONS = 50


def script(shell: str) -> str:
    """Raises `UsageError` if an installed bash is too old."""
    found = get_completion_class(shell)
    assert found is not None, shell
    try:
        return found(click.Group("tui-agent"), {}, "tui-agent", VARIABLE).source()
    except RuntimeError as error:
        raise UsageError(str(error).rstrip("."), "update bash, or use zsh or fish") from None


def files(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    return [CompletionItem(incomplete, type="file")]


def folders(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    return [CompletionItem(incomplete, type="dir")]


def sessions(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Offers `last` and ids of this workspace's sessions, with the first request of each as help."""
    from tui_agent.log.catalog import list_sessions
    from tui_agent.settings.folders import user_folders

    folder = Path(context.params.get("workspace") or ".").expanduser().resolve()
    entries = list_sessions(user_folders().data, folder)[:MOST_SESSIONS]
    known = {
        "last": "the newest session",
        **{entry.id: escaped(entry.name or entry.first_request) for entry in entries},
    }
    return _matching(known.items(), incomplete)


def models(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from tui_agent.model.model_table import table

    return _matching(
        ((f"{provider}/{name}", "") for provider, names in table().models.items() for name in names),
        incomplete,
    )


def themes(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from tui_agent.settings.folders import themes_folder, user_folders

    places = (themes_folder(), user_folders().config / "themes")
    names = {path.stem for place in places for path in place.glob("*.toml")}
    return _matching(((name, "") for name in sorted(names)), incomplete)


def settings(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from tui_agent.settings.schema import entries

    key = incomplete.partition("=")[0]
    if (entry := entries().get(key)) is not None and "=" in incomplete:
        values = ("true", "false") if entry.type is bool else get_args(entry.type)
        return _matching(((f"{key}={one}", "") for one in values if isinstance(one, str)), incomplete)
    return _matching(((f"{key}=", "") for key in entries()), incomplete)


def _matching(known: Iterable[tuple[str, str]], incomplete: str) -> list[CompletionItem]:
    return [
        CompletionItem(name, help=" ".join(words.split())[:80])
        for name, words in known
        if name.startswith(incomplete)
    ]


MOST_PROMPT_BYTES = 16 * 1024 * 1024
#: Files above which opening a folder needs confirmation; seconds for counting them.
MOST_FILES = 200_000
MOST_ATTEMPTS = 8
COUNT_WITHIN = 1.0

set_option = click.option(
    "--set",
    "settings",
    metavar="KEY=VALUE",
    shell_complete=settings,
    multiple=True,
    help="Override a setting for this run; can be repeated.",
)
model_option = click.option(
    "--model",
    metavar="NAME",
    shell_complete=models,
    help="Model, as provider/name (litellm's names).",
)
planner_option = click.option(
    "--planner-model",
    metavar="NAME|none",
    shell_complete=models,
    help="Model for planning; none for the built-in planner.",
)
record_option = click.option(
    "--record",
    metavar="FILE",
    shell_complete=files,
    help="Record all requests and replies in FILE.",
)
replay_option = click.option(
    "--replay",
    metavar="FILE",
    shell_complete=files,
    help="Use recorded replies, without network.",
)
workspace_option = click.option(
    "--workspace",
    metavar="DIR",
    shell_complete=folders,
    default=".",
    help="Workspace folder (default: current folder).",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
all_option = click.option("--all", "everywhere", is_flag=True, help="Include all workspaces.")

_COMMAND = re.compile(r"[A-Za-z][A-Za-z0-9]*(?:[-_][A-Za-z0-9]+)*")
_LINES = re.compile(r"(?P<path>.+?):(?P<first>\d{1,9})(?:-(?P<last>\d{1,9}))?", re.DOTALL)


def workspace_folder(path: str) -> Path:
    """Resolves an existing, listable folder. Ignores programs inside it."""
    if not path:
        raise UsageError("the name of the folder is empty", "name a folder, or omit it for the current one")
    shown = escaped(path)
    try:
        folder = Path(path).expanduser().resolve(strict=True)
        with os.scandir(folder):
            avoid_programs_in(str(folder))
            return folder
    except FileNotFoundError:
        raise UsageError(
            f"there is no folder {shown}", "name an existing folder, or create it first"
        ) from None
    except NotADirectoryError:
        above = escaped(os.path.dirname(path.rstrip("/")) or ".")
        raise UsageError(f"{shown} is a file", f"name its folder: {above}") from None
    except PermissionError:
        raise UsageError(
            f"the folder {shown} may not be read", "ask its owner for access, or name another folder"
        ) from None
    except (OSError, RuntimeError) as error:
        why = reason_of(error) if isinstance(error, OSError) else "its links form a loop"
        raise UsageError(f"the folder {shown} cannot be opened ({why})", "name another") from None


def why_ask_first(folder: Path) -> str:
    """Returns why opening an unnamed folder needs confirmation, such as "… is your home folder", or ""."""
    from tui_agent.workspace.listing import holds_more

    shown = escaped(str(folder))
    if folder == folder.parent:
        return f"{shown} is the root of the file system"
    if str(folder) == os.path.realpath(os.path.expanduser("~")):
        return f"{shown} is your home folder"
    if os.path.exists(folder / ".git"):
        try:
            header = read_start(folder / ".git" / "index", 12)
        except OSError:
            tracked = 0
        else:
            tracked = int.from_bytes(header[8:]) if header.startswith(b"DIRC") else 0
        many = tracked > MOST_FILES
    else:
        many = holds_more(str(folder), MOST_FILES, COUNT_WITHIN)
    return f"{shown} contains more than {MOST_FILES:,} files" if many else ""


def attempts(written: str) -> tuple[str, ...]:
    """Returns names of agents separated by commas, or as many "" as the number says; none for "". Raises
    `UsageError`.
    """
    if not written:
        return ()
    names = tuple(name.strip() for name in written.split(","))
    if written.isdecimal():
        names = ("",) * whole_number(written, most=99)
    elif "" in names:
        raise UsageError("--best has a name that is empty", "write --best claude,codex or --best 3")
    if not 2 <= len(names) <= MOST_ATTEMPTS:
        raise UsageError(
            f"--best needs 2 to {MOST_ATTEMPTS} attempts", "write --best claude,codex or --best 3"
        )
    return names


def file_below(workspace: Path, name: str) -> str:
    path = Path(os.path.normpath(workspace / Path(name).expanduser()))
    if not path.is_relative_to(workspace):
        raise UsageError(f"{escaped(name)} is outside the workspace", f"name a file below {workspace}")
    if not path.is_file():
        kind = "is a folder" if path.is_dir() else "does not exist"
        raise UsageError(f"{escaped(name)} {kind}", f"name a file below {workspace}")
    return path.relative_to(workspace).as_posix()


def open_file(workspace: Path, words: str) -> OpenOption:
    """Parses `FILE[:LINE[-LINE]]`; an existing file with that exact name takes precedence."""
    found = _LINES.fullmatch(words)
    if found is None or (workspace / words).is_file():
        return OpenOption(file_below(workspace, words))
    first = whole_number(found["first"])
    last = whole_number(found["last"]) if found["last"] else first
    if not 1 <= first <= last:
        raise UsageError(
            f"{escaped(words)} names no lines", "write FILE:LINE or FILE:LINE-LINE, counted from 1"
        )
    return OpenOption(file_below(workspace, found["path"]), first, last)


def recording(path: str | None) -> Path | None:
    if path is None:
        return None
    if not os.path.isfile(path):
        raise UsageError(f"there is no recording {escaped(path)}", "name a file created with --record")
    return Path(path).resolve()


def new_file(path: str | None) -> Path | None:
    """The file of `--record`, `--output` or `--bundle`; its folder must exist."""
    if path is None:
        return None
    target = Path(path).resolve()
    if not target.parent.is_dir() or (target.exists() and not target.is_file()):
        raise UsageError(f"{escaped(path)} cannot be written", "name a file in a folder that exists")
    return target


def session_id(name: str) -> str:
    """`last` is the newest session of the current folder. Raises `SessionError`."""
    from tui_agent.log.storage import LAST, find
    from tui_agent.settings.folders import user_folders

    return find(user_folders().data, name, workspace_folder(".")).name if name == LAST else name


def prompt_words(words: str) -> str:
    """Reads the request `-` from standard input."""
    if words == "-":
        if sys.stdin is None:
            raise UsageError("standard input is closed", "write the request as PROMPT")
        try:
            data = sys.stdin.buffer.read(MOST_PROMPT_BYTES + 1)
        except OSError as error:
            raise UsageError(
                f"standard input cannot be read ({reason_of(error)})", "pipe the request to it"
            ) from None
        if len(data) > MOST_PROMPT_BYTES:
            raise UsageError(
                f"the request has more than {MOST_PROMPT_BYTES:,} bytes",
                "name a file in it with @ instead of sending it",
            )
        try:
            words = data.decode("utf-8-sig")
        except UnicodeDecodeError:
            raise UsageError("standard input is not UTF-8 text", "send the request as UTF-8") from None
    if not words.strip():
        raise UsageError("the request is empty", "write the request as PROMPT")
    return words


def overrides(settings: Sequence[str], named: Iterable[tuple[str, str | None]] = ()) -> tuple[str, ...]:
    """Returns `--set` values as `KEY=VALUE`, then the options that override them."""
    return (*settings, *(f"{key}={value}" for key, value in named if value is not None))


class OpenOption(Struct, frozen=True):
    """`--open FILE[:LINE[-LINE]]`: a path below the workspace, with a cursor line or a selection.

    Lines count from 1; `first` is 0 if omitted, and `last` equals `first` without a selection.
    """

    path: str
    first: int = 0
    last: int = 0


class RunOptions(Struct, frozen=True):
    """Options of `tui-agent run`.

    `overrides` are settings as `KEY=VALUE`, including `--model`, `--planner-model` and `--protocol`.
    `session` is "" for a new session, `last`, or an id. `trust` trusts the workspace's configuration for
    this run only. `attach` are paths below the workspace. `agent` does the turn, unless "". `best` are
    agents that attempt the prompt beside each other, "" for the model; empty for a turn.
    """

    prompt: str
    workspace: Path
    session: str = ""
    overrides: tuple[str, ...] = ()
    trust: bool = False
    replay: Path | None = None
    record: Path | None = None
    open: tuple[OpenOption, ...] = ()
    attach: tuple[str, ...] = ()
    apply: Literal["none", "all", "checked"] = "none"
    agent: str = ""
    best: tuple[str, ...] = ()
    as_json: bool = False


class ScreenOptions(Struct, frozen=True):
    """Options of `tui-agent [PATH]`. `resume` is an id, "" for the session picker, or None; `overrides`
    include `--theme`.

    `named`: the user passed the folder explicitly. `agent` is the command that is shown first, in a view.
    `in_background` opens without a terminal, `sets_up` with the setup.
    """

    workspace: Path
    named: bool = True
    resume: str | None = None
    continue_newest: bool = False
    overrides: tuple[str, ...] = ()
    replay: Path | None = None
    record: Path | None = None
    agent: tuple[str, ...] = ()
    in_background: bool = False
    sets_up: bool = False


class CommandGroup(click.Group):
    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__(*args, **{"no_args_is_help": False, **kwargs})  # ty: ignore[invalid-argument-type]

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if name in self.commands or name.startswith("-"):
            return super().resolve_command(ctx, args)
        near = nearest(name, self.commands)
        remedy = (
            f"did you mean `{ctx.command_path} {near}`?"
            if near
            else f"write one of {', '.join(self.commands)}"
        )
        raise UsageError(f"`{ctx.command_path}` has no command {escaped(name)}", remedy)


def command_first(command: str) -> tuple[str, str]:
    return "the command must precede its options", f"write `tui-agent {command} …`"


def is_like_a_command(word: str) -> bool:
    """Whether a word without a path was likely meant as a command: short, without a dot or slash."""
    return len(word) <= 24 and bool(_COMMAND.fullmatch(word)) and not os.path.lexists(word)


def no_command(word: str, commands: Iterable[str], meant: str = "") -> tuple[str, str]:
    what = f"no command {escaped(word)}; commands are {', '.join(commands)}"
    if meant:
        return what, f"did you mean `tui-agent {meant}`?"
    return what, "write one of them, or the name of a folder that exists"


def click_error_text(error: click.ClickException) -> tuple[str, str]:
    context: click.Context | None = getattr(error, "ctx", None)
    group = context.command if context else None
    command = context.command_path.removesuffix(" open") if context else "tui-agent"
    remedy = f"`{command} --help` lists the options"
    message = error.format_message().rstrip(".").replace("\n", " ")
    match error:
        case click.NoSuchOption(option_name=name):
            params = context.command.get_params(context) if context else []
            near = nearest(name, [one for param in params for one in param.opts if one.startswith("--")])
            return f"`{command}` has no option {escaped(name)}", f"did you mean {near}?" if near else remedy
        case click.UsageError() if message == "Missing command" and isinstance(group, click.Group):
            return f"`{command}` needs a command", f"write one of {', '.join(group.commands)}"
        case click.UsageError() if "unexpected extra argument" in message:
            path = str(context.params.get("path") or "") if context else ""
            if context and context.parent and path in getattr(context.parent.command, "commands", ()):
                return command_first(path)
            parent = context.parent.command if context and context.parent else None
            if isinstance(parent, click.Group) and is_like_a_command(path):
                commands = [name for name, it in parent.commands.items() if not it.hidden]
                return no_command(path, commands, nearest(path, commands))
            return escaped(message[:1].lower() + message[1:]), "quote arguments that contain spaces"
        case _:
            return escaped(message[:1].lower() + message[1:]), remedy
