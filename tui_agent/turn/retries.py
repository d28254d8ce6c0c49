"""Changes that could not be taken: the model is asked again for them in the same turn, a few times only."""

from __future__ import annotations

from collections.abc import Sequence

from tui_agent.edits.change import Change
from tui_agent.store import events as e
from tui_agent.tools.context import Emit
from tui_agent.tools.files import load_files
from tui_agent.turn.context import TurnContext
from tui_agent.turn.request import Draft

#: How often a turn asks again for what has no certain place, and for what conflicts.
MOST_FAILED = 1
MOST_CONFLICTS = 2


class Retries:
    """How often the model was asked again in this turn, and for what.

    `told` says that the model is owed the reasons of the first conflicts already.
    """

    def __init__(self, *, told: bool = False) -> None:
        self._told = told
        self._failed = 0
        #: The conflicts that the model is asked about now, and how often it was asked about their files, by path.
        self._now: dict[str, str] = {}
        self._asked: dict[str, int] = {}

    def note(self, context: TurnContext) -> None:
        """What this says about the changes of the reply that came."""
        review = context.state().review
        context.progress.settled_paths = frozenset(
            path
            for path, change_id in self._now.items()
            if (change := review.change(change_id)) is not None and change.state != "conflict"
        )
        context.progress.asked = dict(self._asked)

    async def ask_again(self, context: TurnContext, changes: Sequence[Change], emit: Emit) -> Draft | None:
        """The next request as one for those of the changes that failed or conflict; None where none may be asked
        for, or was often enough.

        Why each was not taken is owed to the model already; the files of those that conflict are read again.
        """
        failed = [change for change in changes if change.state == "failed" and self._failed < MOST_FAILED]
        self._failed += bool(failed)
        conflicts = [change for change in changes if may_ask_again(change)]
        if not failed and not conflicts:
            return None
        self._now = {change.path: change.id for change in conflicts}
        self._asked |= {change.path: change.asked + 1 for change in conflicts}
        for change in conflicts if not self._told else ():
            await emit(e.ModelOwesNews(f"Your change to {change.path} could not be merged: {change.reason}."))
        self._told = False
        paths = [path for path in self._now if context.workspace.index.contains(path)]
        loaded = await load_files(context, paths, "request", (), emit)
        names = ", ".join(dict.fromkeys(change.path for change in (*failed, *conflicts)))
        why = (
            "the change could not be placed with certainty"
            if failed
            else "the file has changed where it was to be changed"
        )
        await emit(e.NoticeGiven("info", f"Asking the model again for {names}: {why}"))
        query = (
            f"Not taken: {names}; the reasons are above. Resend the changes to these files, each file's "
            "changes complete, against the newest version of the file. All your other changes are kept."
        )
        return Draft(query, loaded=loaded)


def may_ask_again(change: Change) -> bool:
    """Whether the model may be asked (again) for a change that conflicts: what the person or a sub-task had a part in
    is for the person to settle."""
    mine = not change.by_hand and not change.tasks
    return change.state == "conflict" and mine and change.asked < MOST_CONFLICTS
