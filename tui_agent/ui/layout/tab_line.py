"""The line above a place on the screen: the titles of the panes that share it, the one in front marked."""

from __future__ import annotations

from textual import events
from textual.content import Content
from textual.message import Message
from textual.widget import Widget

from tui_agent.ui.sink import label

#: Cells between two titles, and the fewest of the one in front.
_GAP, _LEAST = 3, 8


class TabLine(Widget):
    """Titles side by side; a click on one asks for its pane."""

    DEFAULT_CSS = """
    TabLine { height: 1; background: $background; color: $muted; padding: 0 1 0 2; }
    """

    class TabPressed(Message):
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
        return Content(" " * self._gap).join(self._labels())

    @property
    def _gap(self) -> int:
        """Cells between two titles: fewer where there is little room."""
        return _GAP if self._needed() <= self.size.width else 1

    def _labels(self) -> list[Content]:
        """A label for each tab; where they do not fit, the others lose their counts, then the front one its end."""
        labels = [self._label(pane, title) for pane, title in self._tabs]
        over = sum(label.cell_length + self._gap for label in labels) - self._gap - self.size.width
        if over <= 0 or len(labels) == 1:
            return labels
        front = next((at for at, (pane, _) in enumerate(self._tabs) if pane == self._front), 0)
        labels[front] = labels[front].truncate(max(labels[front].cell_length - over, _LEAST), ellipsis=True)
        return labels

    def _label(self, pane: str, title: str | Content) -> Content:
        words = title if isinstance(title, Content) else label(title)
        if pane == self._front:
            return words.stylize_before("bold $accent" if self._focused else "bold $text")
        text = words.plain
        if len(self._tabs) > 1 and self.size.width < self._needed():
            text = text.partition(" ")[0]
        return label(text, "$muted")

    def _needed(self) -> int:
        """Cells that all titles need side by side."""
        return sum(len(title) + _GAP for _, title in self._tabs) - _GAP

    def on_click(self, event: events.Click) -> None:
        x = event.get_content_offset_capture(self).x
        for (pane, _), shown in zip(self._tabs, self._labels(), strict=True):
            x -= shown.cell_length + self._gap
            if x < 0:
                self.post_message(self.TabPressed(pane))
                return
