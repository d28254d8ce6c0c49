"""Running and finished commands, as displayed, and results of checks with the exact content they ran on."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Literal, NamedTuple

from msgspec import Struct, field

from tui_agent.edits.change import Change
from tui_agent.settings.schema import CheckCommand
from tui_agent.store.files import Buffer, hash_of_text

#: Results in memory; the chat contains all.
KEPT = 50

#: In a view with discarded writes, or in the user's folder.
Where = Literal["trial", "workspace"]
Isolated = Literal["overlay", "bubblewrap", "landlock", "sandbox-exec", "place", "none"]
#: They discard all effects and need no approval.
FULL_VIEWS: frozenset[Isolated] = frozenset({"overlay", "bubblewrap"})
By = Literal["person", "model", "check"]


class RunningCommand(Struct, frozen=True):
    """background: a server that runs beside other commands. preparing: since when its view is prepared.
    place: "" on this machine.
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
    place: str = ""


class CommandResult(Struct, frozen=True):
    """status: exit status, or minus the signal number. how: "exit" for a normal exit. output: head and tail,
    with `cut` lines between them omitted. blob: the stored output. pending: paths with proposed content.
    cause: of a failure that is not the proposal's; excused: no file change could fix it. report: contents
    missing from the view. place: "" on this machine.
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
    coloured: str = ""
    background: bool = False
    cause: str = ""
    excused: bool = False
    report: tuple[str, ...] = ()
    place: str = ""

    @property
    def ok(self) -> bool:
        return self.status == 0 and self.how == "exit"

    @property
    def ending(self) -> str:
        return f"exit {self.status}" if self.how == "exit" else self.how

    @property
    def printed(self) -> str:
        return f"$ {self.command}\n{self.output.rstrip()}".rstrip()


class CommandsSlice(Struct, frozen=True):
    """Running in starting order; results newest last."""

    running: tuple[RunningCommand, ...] = ()
    results: tuple[CommandResult, ...] = ()
    total: int = 0

    def result(self, command: str) -> CommandResult | None:
        return next((one for one in reversed(self.results) if one.id == command), None)


CheckState = Literal["passed", "failed", "missing", "stopped"]
#: "stale" if the content has changed since.
CheckLook = Literal["passed", "failed", "missing", "stopped", "stale", "running"]
#: Versions of changes and unsaved texts a check ran on, by change id or path.
Content = dict[str, str]

MARKS: Mapping[CheckLook, str] = {
    "passed": "✓",
    "failed": "✗",
    "missing": "–",
    "stopped": "■",
    "stale": "≠",
    "running": "…",
}


class Place(NamedTuple):
    path: str
    line: int


class CheckResult(Struct, frozen=True):
    """state: "failed" only for failures introduced by the change, "missing" if its program is missing
    without the change too. passed, failed: counts, None if not reported. new, old: failures with and
    without the change; None if unknown. flaky: failures that a second run did not reproduce. said: name
    and assertion at each of the places. repair: earlier repair requests. run: id of the command, "" if
    not started.
    """

    name: str
    state: CheckState
    passed: int | None = None
    failed: int | None = None
    seconds: float = 0.0
    repair: int = 0
    places: tuple[Place, ...] = ()
    run: str = ""
    where: Where = "trial"
    content: Content = field(default_factory=dict)
    new: int | None = None
    old: int | None = None
    new_names: tuple[str, ...] = ()
    old_names: tuple[str, ...] = ()
    flaky: tuple[str, ...] = ()
    said: tuple[str, ...] = ()

    @property
    def amount(self) -> str:
        """`12 passed 3.2 s`, or `2 new failures, 1 old`."""
        if self.state == "missing":
            return "program missing"
        if self.state == "failed":
            if self.old and self.new:
                return f"{self.new} new failure{'' if self.new == 1 else 's'}, {self.old} old"
            return f"{self.failed} failure{'' if self.failed == 1 else 's'}" if self.failed else ""
        if self.old or self.flaky or (self.new == 0 and self.old is None):
            apart = ["it failed before"] if self.old is None else [f"{self.old} old"] if self.old else []
            apart += [f"{len(self.flaky)} flaky"] if self.flaky else []
            return f"no new failures ({', '.join(apart)})"
        passed = [f"{self.passed} passed"] if self.passed is not None else []
        return " ".join([*passed, f"{self.seconds:.1f} s"])


class ChecksSlice(Struct, frozen=True):
    """The running check first, and results of the latest round. outdated: why all results are stale, if not
    expressed by the content. refused: why no check could run. offered: detected checks the user has not
    decided about.
    """

    running: tuple[str, ...] = ()
    results: tuple[CheckResult, ...] = ()
    repair: int = 0
    where: Where = "trial"
    outdated: str = ""
    refused: str = ""
    offered: tuple[CheckCommand, ...] = ()


class CheckMark(NamedTuple):
    look: CheckLook
    words: str
    name: str


def content_of(changes: Iterable[Change], buffers: Iterable[Buffer], among: Collection[str] = ()) -> Content:
    """Changes applied since count as open if their ids are in `among`."""
    content = {}
    for change in changes:
        if change.is_open or (change.state == "applied" and change.id in among):
            taken = "".join("-" if hunk == "skipped" else "+" for hunk in change.hunks)
            content[change.id] = f"{change.path}>{change.rename_to}:{change.version}:{taken}"
    return content | {buffer.path: hash_of_text(buffer.text) for buffer in buffers if buffer.unsaved}


def marks(checks: ChecksSlice, holding: Sequence[bool]) -> list[CheckMark]:
    found = []
    for result, holds in zip(checks.results, holding, strict=True):
        if not holds and result.state != "stopped":
            found.append(CheckMark("stale", f"{MARKS['stale']} {result.name} stale", result.name))
            continue
        amount = "stopped" if result.state == "stopped" else result.amount
        words = f"{MARKS[result.state]} {result.name} {amount}".rstrip()
        found.append(CheckMark(result.state, words, result.name))
    return [*found, *(CheckMark("running", f"{MARKS['running']} {name}", name) for name in checks.running)]


#: More passed checks are shown as one.
MOST_APART = 2


def in_short(found: Sequence[CheckMark]) -> list[CheckMark]:
    passed = [mark for mark in found if mark.look == "passed"]
    if len(found) <= MOST_APART or len(passed) < 2:
        return [*found]
    together = CheckMark("passed", f"{MARKS['passed']} {len(passed)} checks", "")
    return [*(mark for mark in found if mark.look != "passed"), together]
