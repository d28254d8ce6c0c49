"""A place: how a command, a script and a copy of the folder reach it."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path

from tui_agent.errors import SessionError
from tui_agent.files.masking import masked
from tui_agent.files.numbers import whole_number
from tui_agent.sandbox.environment import NO_KEYBOARD
from tui_agent.settings.schema import PlaceSettings

#: Variable with the name of the run, inherited by all that a worker starts.
RUN = "TUI_AGENT_RUN"
#: Variable of a process that forks workers, which `mark` replaces by `RUN`: both are equally long.
ROOM = "TUI_AGENT_FOR"
#: The field of /proc/self/stat with the start of the environment; see proc_pid_stat(5).
_ENVIRONMENT = 50
VIEW, COMMAND = "{view}", "{command}"
#: Options of ssh with an argument.
_WITH_ARGUMENT = frozenset("BbcDEeFIiJLlmOopQRSWw")
#: No question on the terminal; a lost line is noticed within 15 s; a shared connection (ControlMaster) is a process of
#: its own, so that no command waits for the others. The user's own options take precedence.
_SSH = tuple(
    word
    for option in ("BatchMode=yes", "ServerAliveInterval=5", "ServerAliveCountMax=3", "ControlPersist=60")
    for word in ("-o", option)
)
_SECRET = (
    "*KEY",
    "*KEY_*",
    "*KEYS",
    "*TOKEN*",
    "*SECRET*",
    "*PASSWORD*",
    "*PASSWD*",
    "*CREDENTIAL*",
    "TUI_AGENT_*",
)


@dataclass(frozen=True)
class CommandPlace:
    settings: PlaceSettings
    words: tuple[str, ...]

    @property
    def name(self) -> str:
        return self.settings.name

    @property
    def is_far(self) -> bool:
        """Whether the copy is sent there, instead of a folder of this machine."""
        return self.settings.copy != "mount"

    @property
    def fills_view(self) -> bool:
        return any(VIEW in word for word in self.words)

    @cached_property
    def ssh(self) -> tuple[str, ...]:
        """The words up to the host, or () without ssh."""
        if os.path.basename(self.words[0]) != "ssh":
            return ()
        at = 1
        while at < len(self.words) and self.words[at].startswith("-"):
            letter = self.words[at][-1]
            at += 2 if letter in _WITH_ARGUMENT and len(self.words[at]) == 2 else 1
        return (*self.words[:at], *_SSH, *self.words[at : at + 1])

    def argv(self, script: str, view: str, first: str = "") -> list[str]:
        """Returns arguments that run a shell script in the place. `view` is the path of the copy. Over ssh, the host
        runs the script `first` before the program that it is to start there.
        """
        remote = bool(self.ssh)
        words = self.words[len(self.ssh) - len(_SSH) :] if remote else self.words
        found = [*self.ssh, *([f"sh -c {shlex.quote(first)} &&"] if first else [])]
        for word in words:
            if word == COMMAND:
                direct = remote and len(found) == len(self.ssh)
                found += _script(script, found[-1], remote=remote, direct=direct)
            else:
                found.append(word.replace(VIEW, shlex.quote(view) if remote else view))
        return found

    def transport(self, script: str) -> list[str]:
        """Returns arguments that run a script in the place itself; over ssh, on its host."""
        return (
            [*self.ssh, *_script(script, "", remote=True, direct=True)] if self.ssh else self.argv(script, "")
        )


def _script(script: str, before: str, *, remote: bool, direct: bool = False) -> list[str]:
    """One argument for a shell that is named before it; otherwise with a shell of its own. Quoted for the
    shell of a remote login, which parses the arguments again, and which it replaces if `direct`.
    """
    has_shell = before.startswith("-") and before.endswith("c")
    if remote:
        own = "exec sh -c " if direct else "sh -c "
        return [f"{'' if has_shell else own}{shlex.quote(script)}"]
    return [script] if has_shell else ["sh", "-c", script]


def place_of(settings: PlaceSettings) -> CommandPlace:
    """Raises `SessionError` for an invalid command line, and for a place that only sub-tasks can use."""
    remedy = f"correct `run` of the place {settings.name}"
    if settings.kind == "dask":
        raise SessionError(f"Only sub-tasks run in {settings.name}", 'name a place of kind "command"')
    try:
        words = tuple(shlex.split(settings.run))
    except ValueError as error:
        raise SessionError(f"The place {settings.name} cannot be used: {error}", remedy) from error
    if words.count(COMMAND) != 1 or any(COMMAND in word and word != COMMAND for word in words):
        raise SessionError(
            f"The place {settings.name} cannot be used: {COMMAND} has to be one word of `run`", remedy
        )
    place = CommandPlace(settings, words)
    if not place.words[0] or place.words[0] in (COMMAND, VIEW):
        raise SessionError(f"The place {settings.name} cannot be used: `run` names no program", remedy)
    if place.ssh and not place.is_far:
        raise SessionError(
            f"The place {settings.name} cannot be used: ssh reaches no folder of this machine",
            'write copy = "rsync" or copy = "bundle"',
        )
    if place.is_far and place.fills_view and not place.ssh:
        raise SessionError(
            f"The place {settings.name} cannot be used: {VIEW} is a path of this machine, and the copy is there",
            f'leave {VIEW} out, or write copy = "mount"',
        )
    return place


def engine_environment(environ: Mapping[str, str], told: Collection[str] = ()) -> dict[str, str]:
    """Returns the variables of the program that reaches a place, which may copy all of them there: without
    keys, except names in `told`.
    """
    kept = {
        name: value
        for name, value in environ.items()
        if name in told
        or (not any(fnmatchcase(name.upper(), one) for one in _SECRET) and masked(value) == value)
    }
    return {**kept, **NO_KEYBOARD, "SSH_ASKPASS": "false", "SSH_ASKPASS_REQUIRE": "never"}


def split_place(command: str) -> tuple[str, str]:
    """Splits `@app pytest -q` into ("app", "pytest -q"); ("", command) without a place."""
    if not command.startswith("@"):
        return "", command
    name, _, rest = command[1:].partition(" ")
    return name, rest.strip()


def named(places: Sequence[PlaceSettings], name: str) -> CommandPlace:
    """Raises `SessionError`."""
    return place_of(settings_named(places, name))


def settings_named(places: Sequence[PlaceSettings], name: str) -> PlaceSettings:
    """Raises `SessionError`."""
    for one in places:
        if one.name == name:
            return one
    known = ", ".join(one.name for one in places)
    raise SessionError(
        f"There is no place {name}" if name else "There is no place after the @",
        f"choose one of {known}" if known else "add [[places]] to settings.toml",
    )


def home_of(run: str) -> Path:
    """A worker's folder; the script of a place removes it too."""
    return Path(os.environ.get("TMPDIR") or "/tmp", f"tui-agent-worker-{run}")


def mark(run: str) -> None:
    """Names the run in the environment of this fork, also in that which /proc shows. `run` is as long as the value of
    `ROOM`."""
    os.environ[RUN] = run
    with suppress(OSError, ValueError):
        at = Path("/proc/self/environ").read_bytes().index(f"{ROOM}=".encode())
        fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()  # fields from the third on
        with open("/proc/self/mem", "r+b", buffering=0) as memory:
            memory.seek(whole_number(fields[_ENVIRONMENT - 3]) + at)
            memory.write(f"{RUN}={run}".encode())
    os.environ.pop(ROOM, None)


def processes_of(run: str) -> list[int]:
    """Returns the other processes of the run, if /proc lists them. Blocking."""
    mark, found = f"{RUN}={run}\0".encode(), []
    for path in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):
            pid = int(path.parent.name)
            if pid != os.getpid() and mark in path.read_bytes() + b"\0":
                found.append(pid)
    return found


def end_all(run: str) -> None:
    """Ends the other processes of the run, and removes its folder. Blocking."""
    for pid in processes_of(run):
        with suppress(OSError):
            os.kill(pid, signal.SIGKILL)
    shutil.rmtree(home_of(run), ignore_errors=True)
