"""Repeated requests for rejected changes in the same turn, limited in number."""

from __future__ import annotations

from collections.abc import Sequence

from tui_agent.edits.change import Change
from tui_agent.store import events as e
from tui_agent.tools.context import Emit
from tui_agent.tools.load_files import load_files
from tui_agent.turn.context import TurnContext
from tui_agent.turn.request import Draft

#: Maximum number of repeated requests for unplaceable and for conflicting changes.
MOST_FAILED = 1
MOST_CONFLICTS = 2


class Retries:
    """Repeated requests of this turn.

    `told`: the reasons of the first conflicts are already queued for the model.
    """

    def __init__(self, *, told: bool = False) -> None:
        self._told = told
        self._failed = 0
        #: Ids of the conflicts in the current request, by path.
        self._now: dict[str, str] = {}
        self._asked: dict[str, int] = {}

    def note(self, context: TurnContext) -> None:
        """Updates the context's progress after a reply."""
        review = context.state().review
        context.progress.settled_paths = frozenset(
            path
            for path, change_id in self._now.items()
            if (change := review.change(change_id)) is not None and change.state != "conflict"
        )
        context.progress.asked = dict(self._asked)

    async def ask_again(self, context: TurnContext, changes: Sequence[Change], emit: Emit) -> Draft | None:
        """A request for the failed and conflicting changes, or None if none may be requested again.

        The rejection reasons are already queued for the model; conflicting files are reloaded.
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
        why = "the place of the change is ambiguous" if failed else "the same lines of the file have changed"
        await emit(e.NoticeGiven("info", f"Asking the model again for {names}: {why}"))
        query = (
            f"Not taken: {names}; the reasons are above. Resend the changes to these files, each file's "
            "changes complete, against the newest version of the file. All your other changes are kept."
        )
        return Draft(query, loaded=loaded)


def may_ask_again(change: Change) -> bool:
    """Conflicts with the user's or a sub-task's edits are left to the user."""
    mine = not change.by_hand and not change.tasks
    return change.state == "conflict" and mine and change.asked < MOST_CONFLICTS
