"""A place to write in: Textual's TextArea with keys that terminals leave alone, and text shown through the sink."""

from __future__ import annotations

from rich.text import Text
from textual.binding import Binding, BindingType
from textual.widgets import TextArea

from tui_agent.ui.sink import clean

#: Keys of Textual's own that select all or a line; they are ours for moving between panes.
_NOT_OURS = {"f6", "f7", "ctrl+a"}


def _editing_keys() -> list[BindingType]:
    found: list[BindingType] = []
    for binding in TextArea.BINDINGS:
        assert isinstance(binding, Binding)
        keys = [key for key in binding.key.split(",") if key not in _NOT_OURS]
        if keys:
            found.append(Binding(",".join(keys), binding.action, binding.description, show=False))
    return found


class WritingArea(TextArea, inherit_bindings=False):
    """The cursor does not blink, since nothing moves on the screen while nothing happens."""

    BINDINGS = _editing_keys()
    DEFAULT_CSS = """
    WritingArea {
        border: none; padding: 0; background: $surface; color: $text;
        &:focus { border: none; background-tint: transparent; }
        & .text-area--cursor { background: $cursor; color: $background; }
        & .text-area--cursor-line { background: $surface; }
        & .text-area--gutter { color: $faint; background: $surface; }
        & .text-area--cursor-gutter { color: $muted; background: $surface; }
        & .text-area--selection { background: $selection; }
        & .text-area--placeholder { color: $faint; }
    }
    """

    def on_mount(self) -> None:
        self.cursor_blink = False

    def get_line(self, line_index: int) -> Text:
        return Text(clean(self.document.get_line(line_index)), end="", no_wrap=True)
