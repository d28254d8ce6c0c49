"""Commands that ran or run, as the panes show them."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

#: How many results stay in memory; the chat has them all.
KEPT = 50

#: Where a command ran: in a view whose writes were thrown away, or in the person's folder.
Where = Literal["trial", "workspace"]
#: What kept it apart from the machine.
Isolated = Literal["overlay", "bubblewrap", "landlock", "sandbox-exec", "none"]
#: Of these nothing outlives the run, so that nothing need be asked.
FULL_VIEWS: frozenset[Isolated] = frozenset({"overlay", "bubblewrap"})
By = Literal["person", "model", "check"]


class RunningCommand(Struct, frozen=True):
    """A command that runs. `line` is the last that it printed; `since` is in seconds since 1970.

    background: it is a server, which others run beside.
    """

    id: str
    command: str
    by: By
    where: Where
    isolated: Isolated
    since: float
    line: str = ""
    printed: int = 0
    background: bool = False


class CommandResult(Struct, frozen=True):
    """A command that ended.

    status: its exit status; minus the number of a signal. how: what ended it, "exit" is its own end.
    output: head and tail of what it printed, as text. cut: lines left out between them. blob: all that is kept.
    changed: paths that it left in another state. pending: paths that were in place with what was proposed.
    cause: what its failure comes from if not from what is proposed, "" if that is not known; excused: no change of the
    files could put it right. report: what its view lacked, if it failed.
    """

    id: str
    command: str
    by: By
    where: Where
    isolated: Isolated
    status: int
    how: str
    seconds: float
    output: str = ""
    cut: int = 0
    blob: str = ""
    changed: tuple[str, ...] = ()
    pending: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    #: Of the output as it was coloured, "" where it was not.
    coloured: str = ""
    background: bool = False
    cause: str = ""
    excused: bool = False
    report: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        return self.status == 0 and self.how == "exit"

    @property
    def ending(self) -> str:
        """`exit 1`, or what ended it: `stopped`."""
        return f"exit {self.status}" if self.how == "exit" else self.how


class CommandsSlice(Struct, frozen=True):
    """Those that run, in the order in which they were started, and the newest results, the newest last."""

    running: tuple[RunningCommand, ...] = ()
    results: tuple[CommandResult, ...] = ()
    total: int = 0
