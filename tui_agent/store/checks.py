"""Checks of what is proposed: what they found, and on exactly which content."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Literal, NamedTuple

from msgspec import Struct, field

from tui_agent.edits.change import Change
from tui_agent.files.text import md5
from tui_agent.settings.schema import CheckCommand
from tui_agent.store.commands import Where
from tui_agent.store.files import Buffer

CheckState = Literal["passed", "failed", "stopped"]
#: How a check is shown; "stale" where the content is another than the one that it ran on.
CheckLook = Literal["passed", "failed", "stopped", "stale", "running"]
#: What a check ran on: the version of each change and of each unsaved text, by the change's id or the file's path.
Content = dict[str, str]

MARKS: Mapping[CheckLook, str] = {"passed": "✓", "failed": "✗", "stopped": "■", "stale": "≠", "running": "…"}


class Place(NamedTuple):
    """Where something failed: a relative path, and a line from 1."""

    path: str
    line: int


class CheckResult(Struct, frozen=True):
    """A check that ended.

    state: "failed" only if the change brought a failure. passed, failed: how many, None where the runner does not say.
    new, old: failures that the change brought, and those that the folder has without it; None where that is not
    known. new_names, old_names, flaky: names of these, and of failures that a second run did not have. repair: how
    often the model had been asked again before. run: the id of its command, "" where it was not begun. where: in a
    view of what is proposed, or in the folder itself.
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

    @property
    def amount(self) -> str:
        """`12 passed 3.2 s`, or what failed: `2 new failures, 1 old`."""
        if self.state == "failed":
            if self.old and self.new:
                return f"{self.new} new failure{'' if self.new == 1 else 's'}, {self.old} old"
            return str(self.failed or "")
        if self.old or self.flaky or (self.new == 0 and self.old is None):
            apart = ["it failed before"] if self.old is None else [f"{self.old} old"] if self.old else []
            apart += [f"{len(self.flaky)} flaky"] if self.flaky else []
            return f"no new failures ({', '.join(apart)})"
        passed = [f"{self.passed} passed"] if self.passed is not None else []
        return " ".join([*passed, f"{self.seconds:.1f} s"])


class ChecksSlice(Struct, frozen=True):
    """The newest round: the names of those that are still to end, the first of which runs, and what the others found.

    outdated: why no result holds any more, of what the content of changes and buffers does not say. refused: why none
    of them could be run. offered: checks that were found, and that the person has not decided about.
    """

    running: tuple[str, ...] = ()
    results: tuple[CheckResult, ...] = ()
    repair: int = 0
    where: Where = "trial"
    outdated: str = ""
    refused: str = ""
    offered: tuple[CheckCommand, ...] = ()


class CheckMark(NamedTuple):
    """One check as it is shown: `✓ pytest 12 passed 3.2 s`."""

    look: CheckLook
    words: str
    name: str


def content_of(changes: Iterable[Change], buffers: Iterable[Buffer], among: Collection[str] = ()) -> Content:
    """What files would be with all that waits, unsaved text included.

    Of changes that were applied meanwhile, those `among` these ids count as if they still waited.
    """
    content = {
        change.id: f"{change.path}>{change.rename_to}:{change.version}:{_taken(change)}"
        for change in changes
        if change.is_open or (change.state == "applied" and change.id in among)
    }
    return content | {buffer.path: _hash(buffer.text) for buffer in buffers if buffer.unsaved}


def _taken(change: Change) -> str:
    """Which of its hunks are in place."""
    return "".join("-" if hunk == "skipped" else "+" for hunk in change.hunks)


@lru_cache(maxsize=64)
def _hash(text: str) -> str:
    return md5(text.encode("utf-8", "surrogatepass"))


def applied_content(applies: int, undone: int) -> Content:
    """What checks in the folder itself ran on: as many applies, so many of them undone."""
    return {"applied": f"{applies}-{undone}"}


def marks(checks: ChecksSlice, holding: Sequence[bool]) -> list[CheckMark]:
    """Each check of the newest round as it is shown; `holding` says of each result whether it still holds."""
    found = []
    for result, holds in zip(checks.results, holding, strict=True):
        if not holds and result.state != "stopped":
            found.append(CheckMark("stale", f"{MARKS['stale']} {result.name} stale", result.name))
            continue
        amount = "stopped" if result.state == "stopped" else result.amount
        words = f"{MARKS[result.state]} {result.name} {amount}".rstrip()
        found.append(CheckMark(result.state, words, result.name))
    return [*found, *(CheckMark("running", f"{MARKS['running']} {name}", name) for name in checks.running)]


#: More checks than this are told together where they all passed.
MOST_APART = 2


def in_short(found: Sequence[CheckMark]) -> list[CheckMark]:
    """The same for a line of its own: of many, those that passed are one."""
    passed = [mark for mark in found if mark.look == "passed"]
    if len(found) <= MOST_APART or len(passed) < 2:
        return [*found]
    together = CheckMark("passed", f"{MARKS['passed']} {len(passed)} checks", "")
    return [*(mark for mark in found if mark.look != "passed"), together]
