"""The line above a place on the screen: the titles of the panes that share it, the one in front marked."""

from __future__ import annotations

from textual import events
from textual.content import Content
from textual.message import Message
from textual.widget import Widget

from tui_agent.ui.sink import parts


class TabLine(Widget):
    """Titles side by side; a click on one asks for its pane."""

    DEFAULT_CSS = """
    TabLine { height: 1; background: $surface; color: $muted; border-left: wide $surface; padding: 0 1; }
    TabLine.-focused { border-left: wide $accent; }
    """

    class Chosen(Message):
        def __init__(self, pane: str) -> None:
            super().__init__()
            self.pane = pane

    def __init__(self) -> None:
        super().__init__()
        self._tabs: list[tuple[str, str | Content]] = []
        self._front = ""
        self._focused = False

    def show(self, tabs: list[tuple[str, str | Content]], front: str, focus: str) -> None:
        """`tabs` are (pane, title); `front` is the one in front, `focus` the pane that has the focus."""
        focused = front == focus
        if (tabs, front, focused) == (self._tabs, self._front, self._focused):
            return
        self._tabs, self._front, self._focused = tabs, front, focused
        self.set_class(focused, "-focused")
        self.refresh()

    def render(self) -> Content:
        return Content("   ").join(self._label(pane, title) for pane, title in self._tabs)

    def _label(self, pane: str, title: str | Content) -> Content:
        if isinstance(title, Content) and pane == self._front:
            return title
        text = title.plain if isinstance(title, Content) else title
        if len(self._tabs) > 4 and pane != self._front:
            text = text.partition(" ")[0] if self.size.width < _width(self._tabs) else text
        if pane != self._front:
            return parts((text, "$muted"))
        return parts((text, "bold $accent" if self._focused else "bold $text"))

    def on_click(self, event: events.Click) -> None:
        x = event.get_content_offset_capture(self).x
        for pane, title in self._tabs:
            x -= self._label(pane, title).cell_length + 3
            if x < 0:
                self.post_message(self.Chosen(pane))
                return


def _width(tabs: list[tuple[str, str | Content]]) -> int:
    """Cells that all titles need side by side."""
    return sum(len(title) + 3 for _, title in tabs)
