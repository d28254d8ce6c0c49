"""Running and finished commands, as displayed."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

#: Maximum number of results in memory; the chat contains all.
KEPT = 50

#: In a view with discarded writes, or in the user's folder.
Where = Literal["trial", "workspace"]
#: Isolation of a command from the machine.
Isolated = Literal["overlay", "bubblewrap", "landlock", "sandbox-exec", "none"]
#: Isolations that discard all effects and need no approval.
FULL_VIEWS: frozenset[Isolated] = frozenset({"overlay", "bubblewrap"})
By = Literal["person", "model", "check"]


class RunningCommand(Struct, frozen=True):
    """A running command. `line` is its last output line; `since` is in seconds since 1970.

    background: a server that runs beside other commands. preparing: not started yet; its view is being
    prepared since then.
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
    preparing: bool = False


class CommandResult(Struct, frozen=True):
    """The result of a finished command.

    status: exit status, or minus the signal number. how: the cause of the end, "exit" for a normal exit.
    output: head and tail of the output. cut: number of omitted lines between them. blob: the stored
    output. changed: modified paths. pending: paths with proposed content. cause: the failure's cause if it
    is not the proposal, "" if unknown; excused: no file change could fix it. report: contents missing from
    the view, if it failed.
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
    #: The output with colours, "" if it had none.
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
        """`exit 1`, or another end such as `stopped`."""
        return f"exit {self.status}" if self.how == "exit" else self.how


class CommandsSlice(Struct, frozen=True):
    """Running commands in starting order, and the newest results, newest last."""

    running: tuple[RunningCommand, ...] = ()
    results: tuple[CommandResult, ...] = ()
    total: int = 0
