"""What could not be taken goes back to the model in the same turn, a few times only, and then to the person."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import dataclass, field

from tui_agent.edits.change import Change
from tui_agent.store import events as e
from tui_agent.turn.desk import Desk, Gathered
from tui_agent.turn.reading import load_files

#: How often a turn asks again for what has no certain place (E2), and for what conflicts (E3).
MOST_FAILED = 1
MOST_CONFLICTS = 2


@dataclass
class SendingBack:
    """What the last reply proposed that could not be taken, and how often the model was asked again."""

    failed: list[Change] = field(default_factory=list)
    conflicts: list[Change] = field(default_factory=list)
    asked_failed: int = 0
    asked_conflicts: int = 0

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
        for change in conflicts:
            yield e.ModelOwesNews(f"Your change to {change.path} could not be merged: {change.reason}.")
        async for event in load_files(desk, gathered, _there(desk, paths), "request"):
            yield event
        names = ", ".join(dict.fromkeys(change.path for change in (*failed, *conflicts)))
        gathered.query = (
            f"Not taken: {names}; the reasons stand above. Send the changes to these files anew, each file's "
            "changes complete, against the newest version of the file. All your other changes are kept."
        )
        yield e.NoticeGiven("info", f"Asking the model again for {names}: the change had no certain place")

    def _take(self) -> tuple[list[Change], list[Change]]:
        failed, self.failed = self.failed, []
        conflicts, self.conflicts = self.conflicts, []
        if self.asked_failed >= MOST_FAILED:
            failed = []
        if self.asked_conflicts >= MOST_CONFLICTS:
            conflicts = []
        self.asked_failed += bool(failed)
        self.asked_conflicts += bool(conflicts)
        return failed, conflicts


def _there(desk: Desk, paths: list[str]) -> list[str]:
    return [path for path in paths if desk.workspace.index.contains(path)]
