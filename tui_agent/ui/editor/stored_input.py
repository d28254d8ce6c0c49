"""Input widgets with a draft in the session. A killed program loses at most the last second of typing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual import on
from textual.widgets import Input, TextArea

from tui_agent.ui.editor.writing_area import WritingArea

if TYPE_CHECKING:
    from tui_agent.session.session import Session


class StoresDraft:
    """Saves a widget's text as a draft, unless it equals the initial text."""

    _session: Session | None = None
    _place = ""
    _before = ""

    def keep_at(self, session: Session, place: str, before: str = "") -> str:
        """Starts saving under the key `place`. Returns the saved draft, or `before` if none exists."""
        self._session, self._place, self._before = session, place, before
        return session.state.input.typed.get(place, before)

    def keep(self, text: str) -> None:
        if self._session is not None and self._place:
            self._session.chat.set_typed(self._place, "" if text == self._before else text)

    def give_up(self) -> None:
        """Deletes the draft and stops saving."""
        self.keep(self._before)
        self._place = ""


class KeptInput(StoresDraft, Input):
    @on(Input.Changed)
    def _keep_line(self, event: Input.Changed) -> None:
        if event.input is self:
            self.keep(event.value)


class KeptArea(StoresDraft, WritingArea):
    @on(TextArea.Changed)
    def _keep_text(self) -> None:
        self.keep(self.text)
