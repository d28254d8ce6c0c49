"""Places to write in whose text is kept while it is written, as that of the chat's input is: a kill costs no more than
the last second of it, and the place has it again when it is opened."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual import on
from textual.widgets import Input, TextArea

from tui_agent.ui.editor.writing_area import WritingArea

if TYPE_CHECKING:
    from tui_agent.session.session import Session


class Keeping:
    """What a widget needs to keep its text: a session, the place in it, and the text that the place had at first."""

    _session: Session | None = None
    _place = ""
    _before = ""

    def keep_at(self, session: Session, place: str, before: str = "") -> str:
        """Keep what is written from now on at this place, unless it is `before`; what was kept there, else `before`."""
        self._session, self._place, self._before = session, place, before
        return session.state.input.typed.get(place, before)

    def keep(self, text: str) -> None:
        """The text is now this."""
        if self._session is not None and self._place:
            self._session.chat.set_typed(self._place, "" if text == self._before else text)

    def give_up(self) -> None:
        """What was written was put to its use, or is not wanted."""
        self.keep(self._before)
        self._place = ""


class KeptInput(Keeping, Input):
    """A line whose text is kept."""

    @on(Input.Changed)
    def _keep_line(self, event: Input.Changed) -> None:
        if event.input is self:
            self.keep(event.value)


class KeptArea(Keeping, WritingArea):
    """A text that is kept."""

    @on(TextArea.Changed)
    def _keep_text(self) -> None:
        self.keep(self.text)
