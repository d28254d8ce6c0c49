"""A text to be written or changed, over the screen: what a hunk adds, a place of a conflict, a commit's message."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widget import Widget
from textual.widgets import Static

from tui_agent.ui.sink import label
from tui_agent.ui.widgets.text_area import WritingArea


class TextDialog(ModalScreen[str | None], inherit_bindings=False):
    """Gives the text as it was left, or None where the person leaves it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss(None)", show=False, priority=True),
        Binding("f2,ctrl+enter", "keep", show=False, priority=True),
    ]
    DEFAULT_CSS = """
    TextDialog {
        align: center top; background: $background 40%;
        & > Vertical { width: 100; max-width: 94%; height: 70%; margin-top: 2; background: $overlay; padding: 1 2; }
        & .title { height: 1; color: $accent; text-style: bold; }
        & .hint { height: 1; color: $muted; }
        & WritingArea { height: 1fr; margin: 1 0; }
    }
    """

    def __init__(self, title: str, text: str, *, keep: str = "keep", wrap: bool = False) -> None:
        super().__init__()
        self._title = title
        self._text = text
        self._keep = keep
        self._wrap = wrap

    def compose(self) -> Iterable[Widget]:
        with Vertical():
            yield Static(label(self._title), classes="title", markup=False)
            yield WritingArea(self._text, soft_wrap=self._wrap, tab_behavior="indent")
            yield Static(label(f"F2 {self._keep}   Esc leave it as it was"), classes="hint", markup=False)

    def on_mount(self) -> None:
        self.query_one(WritingArea).focus()

    def action_keep(self) -> None:
        self.dismiss(self.query_one(WritingArea).text)
