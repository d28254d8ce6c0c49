"""A session that another process writes: here it is only looked at."""

from __future__ import annotations

from typing import NoReturn

from tui_agent.errors import SessionError
from tui_agent.session.session import Session
from tui_agent.store import events as e

#: What would change the session or the workspace; the rest of a session's methods only look, or pass.
REFUSED = (
    "submit",
    "go_on",
    "choose_model",
    "edit_summary",
    "set_queue",
    "answer",
    "apply",
    "skip",
    "undo",
    "redo",
    "take_back",
    "settle",
    "edit_hunk",
    "comment",
    "commit",
    "add_todo",
    "edit_todo",
    "toggle_todo",
    "remove_todo",
    "move_todo",
    "skip_subtask",
    "save_buffer",
)


class ReadOnlySession(Session):
    """Shows a session as its log has it now. It takes no lock and has no log."""

    async def take_up(self) -> None:
        """Read the open files; a turn that runs elsewhere is not ended here."""
        self.journal.tell(e.PhaseChanged("idle"))
        await self._editing.restore()


async def _refuse(self: Session, *_: object, **__: object) -> NoReturn:
    raise SessionError(
        f"The session {self.state.session.id} is open elsewhere, here it can only be read",
        "close it there, or fork it",
    )


for _name in REFUSED:
    setattr(ReadOnlySession, _name, _refuse)
