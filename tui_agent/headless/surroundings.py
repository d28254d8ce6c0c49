"""What tui-agent runs in: Python, packages, git, the terminal, and which keys are set."""

from __future__ import annotations

import os
import platform
import re
import shutil
import sys
from collections.abc import Mapping
from importlib import metadata

from msgspec import Struct

from tui_agent.errors import ChildFailed
from tui_agent.git.process import run_git
from tui_agent.model.providers import PROVIDERS

_NAME = re.compile(r"[A-Za-z0-9._-]+")
_GIT_TIMEOUT = 5.0


class TerminalReport(Struct, frozen=True):
    """`colours` is how many the environment promises; `columns` and `lines` are 0 if output is not a terminal."""

    name: str
    is_terminal: bool
    columns: int
    lines: int
    colours: int
    encoding: str
    multiplexer: str = ""

    def in_words(self) -> str:
        size = f"{self.columns}×{self.lines}" if self.is_terminal else "output is not a terminal"
        inside = f", inside {self.multiplexer}" if self.multiplexer else ""
        colours = f"{self.colours:,} colours" if self.colours else "no colour"
        return f"terminal {self.name or 'of no name'}, {size}, {colours}, {self.encoding}{inside}"


class Machine(Struct, frozen=True):
    """`packages` are those that tui-agent is built on, with their versions, None where one is missing."""

    python: str
    platform: str
    packages: dict[str, str | None]
    git: str
    terminal: TerminalReport
    problems: tuple[str, ...]


def surroundings() -> Machine:
    """Look at the machine; takes as long as `git --version`."""
    installed, git = packages(), git_version()
    problems = [
        f"the package {name} is missing: install tui-agent again" for name, at in installed.items() if not at
    ]
    if not git:
        problems.append("git was not found: install it, changes are merged and kept with it")
    return Machine(
        python=platform.python_version(),
        platform=f"{platform.system()} {platform.machine()}",
        packages=installed,
        git=git,
        terminal=terminal(os.environ),
        problems=tuple(problems),
    )


def packages() -> dict[str, str | None]:
    """The versions of what the installed tui-agent requires, extras aside."""
    try:
        required = metadata.requires("tui-agent") or []
    except metadata.PackageNotFoundError:
        return {"tui-agent": None}
    names = [found.group() for line in required if "extra ==" not in line and (found := _NAME.match(line))]
    return {name: _version(name) for name in names}


def git_version() -> str:
    """`git version 2.39.5`, or nothing where there is no git that answers."""
    try:
        done = run_git(os.getcwd(), ("--version",), {}, seconds=_GIT_TIMEOUT)
    except ChildFailed:
        return ""
    return done.text if done.ok else ""


def terminal(environ: Mapping[str, str]) -> TerminalReport:
    """The terminal, as the environment and standard output tell of it."""
    is_terminal = sys.stdout.isatty()
    columns, lines = shutil.get_terminal_size((0, 0)) if is_terminal else (0, 0)
    return TerminalReport(
        name=environ.get("TERM", ""),
        is_terminal=is_terminal,
        columns=columns,
        lines=lines,
        colours=_colours(environ),
        encoding=(sys.stdout.encoding or "").lower(),
        multiplexer="tmux" if environ.get("TMUX") else "screen" if environ.get("STY") else "",
    )


def key_names(environ: Mapping[str, str] | None = None) -> tuple[str, ...]:
    """The names of the variables that are set and hold a provider's key; never what they hold."""
    environ = os.environ if environ is None else environ
    names = (name for provider in PROVIDERS for name in provider.keys)
    return tuple(dict.fromkeys(name for name in names if environ.get(name)))


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _colours(environ: Mapping[str, str]) -> int:
    term = environ.get("TERM", "")
    if environ.get("NO_COLOR") or term in ("", "dumb"):
        return 0
    if environ.get("COLORTERM", "").lower() in ("truecolor", "24bit"):
        return 16_777_216
    return 256 if "256color" in term else 16
