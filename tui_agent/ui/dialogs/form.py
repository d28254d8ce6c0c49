"""Dialogs with text input or checkboxes and a save key."""

from __future__ import annotations

from collections.abc import Awaitable, Collection, Iterable
from typing import TYPE_CHECKING

from textual import events, on
from textual.content import Content
from textual.screen import ScreenResultType
from textual.widget import Widget
from textual.widgets import TextArea

from tui_agent.errors import TuiAgentError
from tui_agent.ui.dialogs.dialog import Dialog
from tui_agent.ui.editor.writing_area import KeptArea, KeptInput
from tui_agent.ui.safe_text import label, plain
from tui_agent.ui.widgets.line_view import LineView, Piece, Rows

if TYPE_CHECKING:
    from tui_agent.session.session import Session


class Form(Dialog[ScreenResultType]):
    """Returns the result of `keep`; a refusal keeps the form open. Its text is saved until then. With
    `asks_twice`, closing with changes needs a second press.
    """

    ID = "text"
    asks_twice = False
    DEFAULT_CSS = """
    Form {
        & KeptInput { border: none; height: 1; padding: 0 1; margin-bottom: 1; background: $surface; }
    }
    """

    def __init__(self, heading: str) -> None:
        super().__init__(heading)
        self.before = ""
        self._leaving = False
        self.ticked: set[str] = set()

    async def keep(self) -> ScreenResultType | None:
        """Raises `TuiAgentError` to refuse the input."""
        raise NotImplementedError

    async def action_keep(self) -> None:
        try:
            kept = await self.keep()
        except TuiAgentError as error:
            self.say(plain(str(error), "$error"))
        else:
            self._end(kept)

    def _end(self, result: ScreenResultType | None = None) -> None:
        for place in (*self.query(KeptInput), *self.query(KeptArea)):
            place.give_up()
        self.dismiss(result)

    def action_close(self) -> None:
        written = next((area.text for area in self.query(KeptArea)), "")
        if self._leaving or not self.asks_twice or written == self.before:
            self._end()
        else:
            self._leaving = True
            again = self.keys_for(("dialog.close", "again discards your text"), ("form.keep", self.keeps))
            self.say(label(again, "$warning"))

    #: Effect of the save key, for the warning.
    keeps = "keep"

    @on(TextArea.Changed)
    def _text_changed(self) -> None:
        if self._leaving:
            self._leaving = False
            self.say()

    def action_next_field(self, step: int) -> None:
        self.focus_next() if step > 0 else self.focus_previous()

    def tickable(self) -> Collection[str]:
        return ()

    def draw(self) -> None:
        pass

    @on(LineView.Marked)
    @on(LineView.Chosen)
    def _row_pressed(self, event: LineView.Marked | LineView.Chosen) -> None:
        event.stop()
        self.action_tick(event.key)

    def action_tick(self, key: str = "") -> None:
        if key := key or self.query_one(Rows).cursor:
            self.ticked ^= {key}
            self.draw()

    def action_tick_all(self) -> None:
        every = set(self.tickable())
        self.ticked = set() if self.ticked == every else every
        self.draw()


def tick_box(ticked: bool) -> Piece:
    return Piece("[x] " if ticked else "[ ] ", "accent" if ticked else "muted")


class TextDialog(Form[str | None]):
    asks_twice = True
    DEFAULT_CSS = """
    TextDialog {
        & > Vertical { width: 100; max-width: 94%; height: 70%; margin-top: 2; }
        & KeptArea { height: 1fr; margin: 1 0; }
    }
    """

    def __init__(
        self,
        title: str,
        text: str | Awaitable[str | None],
        *,
        keep: str = "keep",
        wrap: bool = False,
        kept: tuple[Session, str] | None = None,
    ) -> None:
        """Keys wait for an awaitable `text`; `None` closes the dialog. `kept` is the draft's session and
        place. Read-only if `keep` is "".
        """
        super().__init__(title)
        self._text = text
        self.keeps = keep
        self._wrap = wrap
        self._kept = kept
        self.before = text if isinstance(text, str) else ""

    def body(self) -> Iterable[Widget]:
        wrap, fixed = self._wrap, not self.keeps
        yield KeptArea(self.before, soft_wrap=wrap, tab_behavior="indent", read_only=fixed)

    def hint(self) -> Content:
        keys = (("form.keep", self.keeps), ("dialog.close", "cancel"))
        return label(self.keys_for(*keys if self.keeps else [("dialog.close", "back")]))

    @on(events.Mount)
    def _mounted(self) -> None:
        area = self.query_one(KeptArea)
        area.focus()
        if not isinstance(self._text, str):
            self.fill(self._get(self._text))
        elif self._kept is not None:
            area.text = area.keep_at(*self._kept, self.before)

    async def _get(self, text: Awaitable[str | None]) -> None:
        found, area = await text, self.query_one(KeptArea)
        if found is None:
            self.dismiss(None)
        elif not area.text:
            self.before = found
            area.text = area.keep_at(*self._kept, found) if self._kept is not None else found

    async def keep(self) -> str:
        return self.query_one(KeptArea).text
