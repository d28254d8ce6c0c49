"""Events of commands: started, printing, ended; and of checks, each of which is a command."""

from __future__ import annotations

from tui_agent.settings.schema import CheckCommand
from tui_agent.store.checks import CheckResult
from tui_agent.store.commands import By, CommandResult, Isolated, Where
from tui_agent.store.event import Lasting, Passing


class CommandStarted(Lasting, frozen=True):
    """A command was started at `at`, in seconds since 1970."""

    id: str
    command: str
    by: By
    where: Where
    isolated: Isolated
    at: float
    background: bool = False


class CommandPrinted(Passing, frozen=True):
    """A command has printed so many bytes by now; its last line."""

    id: str
    line: str
    printed: int


class CommandEnded(Lasting, frozen=True):
    """A command ended, or what ran at a crash is known not to run any more."""

    result: CommandResult


class ChecksStarted(Lasting, frozen=True):
    """A round of checks began, by their names in the order in which they run.

    adds: what others found of the same content stays.
    """

    names: tuple[str, ...]
    repair: int = 0
    where: Where = "trial"
    adds: bool = False


class CheckEnded(Lasting, frozen=True):
    """A check of the round ended."""

    result: CheckResult


class ChecksRefused(Lasting, frozen=True):
    """What is left of the round cannot be run."""

    why: str


class ChecksOutdated(Passing, frozen=True):
    """The folder is another than the one that the checks ran on."""

    why: str


class ChecksOffered(Passing, frozen=True):
    """Checks were found that the person may accept; none: the person has decided."""

    checks: tuple[CheckCommand, ...]
