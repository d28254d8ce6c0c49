"""One line of keys and labels, also clickable."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from rich.cells import cell_len
from rich.segment import Segment
from textual import events
from textual.message import Message
from textual.strip import Strip

from tui_agent.ui.widgets.line_view import LineView


class Hint(NamedTuple):
    """Id of an action and its label; the id is empty for plain text."""

    action: str
    text: str


class HintLine(LineView, can_focus=False):
    """Shows `a apply  s skip` with the current keys; a click runs the action."""

    DEFAULT_CSS = "HintLine { height: 1; overflow: hidden; scrollbar-gutter: auto; }"

    class Pressed(Message):
        """The user clicked the action with this id."""

        def __init__(self, action: str) -> None:
            super().__init__()
            self.action = action

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._words: tuple[Hint, ...] = ()

    def set_words(self, words: Sequence[Hint]) -> None:
        if tuple(words) != self._words:
            self._words = tuple(words)
            self.refresh()

    def render_line(self, y: int) -> Strip:
        segments = [Segment(" ", self.ink(""))]
        for hint, key, _ in self._placed() if y == 0 else ():
            if key:
                segments.append(Segment(f"{key} ", self.ink("accent")))
            segments.append(Segment(f"{hint.text}  ", self.ink("muted")))
        return Strip(segments).crop_extend(0, self.across, self.ink(""))

    def on_click(self, event: events.Click) -> None:
        action = next((hint.action for hint, _, end in self._placed() if event.x < end), "")
        if action:
            event.stop()
            self.post_message(self.Pressed(action))

    def _placed(self) -> Iterator[tuple[Hint, str, int]]:
        at, width = 1, self.across
        for hint in self._words:
            key = self._key(hint.action)
            size = cell_len(key) + bool(key) + cell_len(hint.text) + 2
            if at + size - 2 > width:
                break
            at += size
            yield hint, key, at - 1

    def _key(self, action: str) -> str:
        keys = getattr(self.app, "keys", None)
        return keys.shown(action) if action and keys is not None else ""
