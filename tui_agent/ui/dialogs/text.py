"""A text to be written or changed, over the screen: what a hunk adds, a place of a conflict, a summary."""

from __future__ import annotations

from collections.abc import Awaitable, Iterable
from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Static

from tui_agent.ui.dialogs.dialog import Dialog
from tui_agent.ui.editor.kept_text import KeptArea
from tui_agent.ui.sink import label

if TYPE_CHECKING:
    from tui_agent.session.session import Session


class TextDialog(Dialog[str | None], inherit_bindings=False):
    """Gives the text as it was left, or None where the person leaves it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", show=False, priority=True),
        Binding("f2,ctrl+enter,ctrl+g", "keep", show=False, priority=True),
    ]
    DEFAULT_CSS = """
    TextDialog {
        align: center top; background: $background 40%;
        & > Vertical { width: 100; max-width: 94%; height: 70%; margin-top: 2; background: $overlay; padding: 1 2; }
        & .title { height: 1; color: $accent; text-style: bold; }
        & .hint { height: 1; color: $muted; }
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
        """A text that is yet to come closes the dialog where it comes to nothing (None). Keys wait for it.

        `kept` says at which place of a session it is kept while it is written; without it nobody needs it later.
        """
        super().__init__()
        self._title = title
        self._text = text
        self._keep = keep
        self._wrap = wrap
        self._kept = kept
        #: The text as it was before the person wrote, and whether leaving it was asked for.
        self._before = text if isinstance(text, str) else ""
        self._leaving = False

    def compose(self) -> Iterable[Widget]:
        with Vertical():
            yield Static(label(self._title), classes="title", markup=False)
            text = self._text if isinstance(self._text, str) else ""
            yield KeptArea(text, soft_wrap=self._wrap, tab_behavior="indent")
            yield Static(self._hint(), classes="hint", markup=False)

    def on_mount(self) -> None:
        area = self.query_one(KeptArea)
        area.focus()
        if not isinstance(self._text, str):
            self.fill(self._get(self._text))
        elif self._kept is not None:
            area.text = area.keep_at(*self._kept, self._before)

    async def _get(self, text: Awaitable[str | None]) -> None:
        found, area = await text, self.query_one(KeptArea)
        if found is None:
            self.dismiss(None)
        elif not area.text:
            self._before = found
            area.text = area.keep_at(*self._kept, found) if self._kept is not None else found

    def action_leave(self) -> None:
        """What was written would be lost: that takes a second press."""
        area = self.query_one(KeptArea)
        if self._leaving or area.text == self._before:
            area.give_up()
            self.dismiss(None)
        else:
            self._leaving = True
            self.query_one(".hint", Static).update(
                label(f"Esc again drops what you wrote   F2 {self._keep}", "$warning")
            )

    def on_text_area_changed(self) -> None:
        if self._leaving:
            self._leaving = False
            self.query_one(".hint", Static).update(self._hint())

    def _hint(self) -> Content:
        return label(f"Ctrl+G {self._keep}   Esc cancel")

    def action_keep(self) -> None:
        area = self.query_one(KeptArea)
        area.give_up()  # the session is asked for what is made of it before that is on disk
        self.dismiss(area.text)
