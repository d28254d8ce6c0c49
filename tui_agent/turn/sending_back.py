"""What could not be taken goes back to the model in the same turn, a few times only, and then to the person."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import dataclass, field

from tui_agent.edits.change import Change
from tui_agent.store import events as e
from tui_agent.turn.desk import Desk, Gathered
from tui_agent.turn.reading import load_files

#: How often a turn asks again for what has no certain place, and for what conflicts.
MOST_FAILED = 1
MOST_CONFLICTS = 2


@dataclass
class SendingBack:
    """What was proposed and could not be taken, and how often the model was asked again."""

    failed: list[Change] = field(default_factory=list)
    conflicts: list[Change] = field(default_factory=list)
    #: Whether the model is owed the reasons already.
    told: bool = False
    asked_failed: int = 0
    #: The conflicts that the model is asked about now, and how often it was asked about their files, by path.
    again: dict[str, str] = field(default_factory=dict)
    asked: dict[str, int] = field(default_factory=dict)

    def is_settled(self, desk: Desk, path: str) -> bool:
        """Whether the person has decided meanwhile about a conflict that the model was asked about."""
        change = desk.state().review.change(self.again.get(path, ""))
        return change is not None and change.state != "conflict"

    def note(self, change: Change) -> None:
        """A change was proposed; only one whose text could be right is worth asking again."""
        if change.state == "conflict":
            self.conflicts.append(change)
        elif change.state == "failed":
            self.failed.append(change)

    async def ask_again(self, desk: Desk, gathered: Gathered) -> AsyncGenerator[e.Event, None]:
        """Make the next request one for these changes; nothing happens where it was asked often enough.

        Why each was not taken is owed to the model already; the files of those that conflict are read again.
        """
        failed, conflicts = self._take()
        if not failed and not conflicts:
            return
        paths = list(dict.fromkeys(change.path for change in conflicts))
        self.again = {change.path: change.id for change in conflicts}
        self.asked |= {change.path: change.asked + 1 for change in conflicts}
        for change in conflicts if not self.told else ():
            yield e.ModelOwesNews(f"Your change to {change.path} could not be merged: {change.reason}.")
        self.told = False
        async for event in load_files(desk, gathered, _there(desk, paths), "request"):
            yield event
        names = ", ".join(dict.fromkeys(change.path for change in (*failed, *conflicts)))
        gathered.query = (
            f"Not taken: {names}; the reasons are above. Resend the changes to these files, each file's "
            "changes complete, against the newest version of the file. All your other changes are kept."
        )
        why = (
            "the change had no certain place" if failed else "the file has changed where it was to be changed"
        )
        yield e.NoticeGiven("info", f"Asking the model again for {names}: {why}")

    def _take(self) -> tuple[list[Change], list[Change]]:
        failed, self.failed = self.failed, []
        conflicts, self.conflicts = self.conflicts, []
        if self.asked_failed >= MOST_FAILED:
            failed = []
        self.asked_failed += bool(failed)
        return failed, [change for change in conflicts if may_ask_again(change)]


def may_ask_again(change: Change) -> bool:
    """Whether the model may be asked (again) for a change that conflicts: what the person or a sub-task had a part in
    is for the person to settle."""
    mine = not change.by_hand and not change.tasks
    return change.state == "conflict" and mine and change.asked < MOST_CONFLICTS


def _there(desk: Desk, paths: list[str]) -> list[str]:
    return [path for path in paths if desk.workspace.index.contains(path)]
