"""A text editor dialog for a hunk, a conflict place or a summary."""

from __future__ import annotations

from collections.abc import Awaitable, Iterable
from typing import TYPE_CHECKING

from textual import events, on
from textual.content import Content
from textual.widget import Widget

from tui_agent.ui.dialogs.form import Form
from tui_agent.ui.editor.stored_input import KeptArea
from tui_agent.ui.safe_text import label

if TYPE_CHECKING:
    from tui_agent.session.session import Session


class TextDialog(Form[str | None]):
    """Returns the text, or `None` if cancelled."""

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
        """`text` can be awaitable: keys wait for it, and a `None` result closes the dialog.

        `kept` is the session and place that stores the draft.
        """
        super().__init__(title)
        self._text = text
        self.keeps = keep
        self._wrap = wrap
        self._kept = kept
        self.before = text if isinstance(text, str) else ""

    def body(self) -> Iterable[Widget]:
        yield KeptArea(self.before, soft_wrap=self._wrap, tab_behavior="indent")

    def hint(self) -> Content:
        return label(self.keys_for(("form.keep", self.keeps), ("dialog.close", "cancel")))

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
