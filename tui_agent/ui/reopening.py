"""Reopens unfinished text fields after a resume, except prompt and editor."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from tui_agent.files.numbers import whole_number
from tui_agent.ui.dialogs import subtasks
from tui_agent.ui.keys.keyboard import WAITING
from tui_agent.ui.panes.chat import ChatPane
from tui_agent.ui.panes.review import ReviewPane
from tui_agent.ui.panes.review_rows import ReviewPosition
from tui_agent.ui.panes.todos import TodosPane
from tui_agent.ui.screen import keys_wait

if TYPE_CHECKING:
    from tui_agent.session.session import Session
    from tui_agent.ui.screen import WorkspaceScreen

_CALLED = {
    "answer": "an answer to a question",
    "check": "the command of a check",
    "commit": "a commit message",
    "comment": "a comment on a change",
    "hunk": "an edited change",
    "inbox": "an answer to another session",
    "memory": "the next request",
    "merge": "a conflict of a merge",
    "place": "a conflict",
    "replace": "a replacement",
    "subtask": "a sub-task",
    "summary": "the summary",
    "todo": "a todo",
}


async def reopen(screen: WorkspaceScreen, session: Session, kept: Collection[str], at_work: bool) -> None:
    """Opens the newest of the `kept` fields and lists the others in a notice; lists all if the user is
    `at_work`, because a dialog would take the keys.
    """
    others = [place for place in kept if place in session.state.input.typed and place != WAITING]
    if others and not at_work:
        with keys_wait(screen):
            if await _open(screen, session, others[-1]):
                others.pop()
    kinds = (place.replace(" ", ":").partition(":")[0] for place in others)
    names = dict.fromkeys(_CALLED.get(kind, "a text") for kind in kinds)
    if names:
        await session.notice(f"Unsaved text was kept and returns when you reopen it: {', '.join(names)}")


async def _open(screen: WorkspaceScreen, session: Session, place: str) -> bool:
    kind, _, about = place.partition(":")
    match kind:
        case "answer":  # its turn has ended
            screen.query_one(ChatPane).prompt.insert_before(session.state.input.typed[place])
            session.chat.set_typed(place, "")
        case "commit":
            await screen.do("changes.commit")
        case "summary":
            await screen.do("session.summary")
        case "memory":
            await screen.do("chat.go_on")
        case _ if place.startswith("check "):
            await screen.do("checks.accept")
        case "subtask" if about.startswith(":"):
            await screen.do_in("subtasks", "add")
        case "subtask":
            task = session.state.subtasks.get(about.partition(":")[0])
            if task is None:
                return False
            screen.focus_pane("subtasks")
            screen.run_worker(subtasks.edit(screen.app, session, task), group="subtask")
        case "replace":
            if not session.state.buffers.active:
                return False
            screen.focus_pane("buffers")
            await screen.do_in("buffers", "replace")
        case "todo":
            screen.focus_pane("todos")
            screen.query_one(TodosPane).write_again(about)
        case "comment" | "hunk" | "place":
            change, _, hunk = about.rpartition(":")
            pane, number = screen.query_one(ReviewPane), whole_number(hunk, 0)  # "None" for a whole change
            if number < 0 or all(one.id != change for one in pane.changes):
                return False
            screen.focus_pane("review")
            pane.go(ReviewPosition(change, 0 if kind == "place" else number))
            if kind == "comment":
                pane.commands["comment"]()
                return True
            await pane.body.fetch(next(one for one in pane.changes if one.id == change))
            choosing = pane.body.choosing
            if (choosing is None) != (kind == "hunk"):
                return False
            if choosing is not None:
                if number >= choosing.count:
                    return False
                choosing.place = number
            pane.commands["edit"]()
            return screen.app.screen is not screen
        case "merge":
            path = about.rpartition(":")[0]
            if session.state.buffers.get(path) is None:
                return False
            await session.files.open(path)
            await screen.do("buffers.merge")
        case _:
            return False
    return True
