"""Events of commands: started, printing, ended."""

from __future__ import annotations

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


class CommandPrinted(Passing, frozen=True):
    """A command has printed so many bytes by now; its last line."""

    id: str
    line: str
    printed: int


class CommandEnded(Lasting, frozen=True):
    """A command ended, or what ran at a crash is known not to run any more."""

    result: CommandResult
