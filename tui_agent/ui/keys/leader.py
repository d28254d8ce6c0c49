"""The leader: after its key, the next one is the second of two; what can follow is shown to a person who hesitates."""

from __future__ import annotations

from collections.abc import Mapping

from textual import events
from textual._keyboard_protocol import MODIFIER_FUNCTIONAL_KEYS
from textual.content import Content
from textual.timer import Timer
from textual.widgets import Static

from tui_agent.ui.actions import Action
from tui_agent.ui.keys.keymap import spelled
from tui_agent.ui.sink import parts

#: Seconds after the leader's key in which the menu does not cover anything yet.
SHOWN_AFTER = 0.25


class Leader(Static):
    """Lies over the workspace while it waits for the second key."""

    DEFAULT_CSS = """
    Leader {
        layer: menu; dock: bottom; width: 100%; height: auto; max-height: 60%;
        background: $overlay; padding: 1 2; margin-bottom: 1;
    }
    """

    def __init__(self) -> None:
        super().__init__("", markup=False)
        self.display = False
        #: What each second key does, while one is waited for.
        self.waiting: Mapping[str, Action] | None = None
        self._timer: Timer | None = None

    def begin(self, actions: Mapping[str, Action]) -> None:
        """The leader's key was pressed."""
        self.waiting = actions
        self._timer = self.set_timer(SHOWN_AFTER, self._show)

    def end(self) -> None:
        self.waiting = None
        self.display = False
        if self._timer is not None:
            self._timer.stop()

    def action_of(self, event: events.Key) -> Action | None:
        """What a key means as the second one; None where it means nothing."""
        for name in (event.key, *event.aliases, event.character or ""):
            for key in (name, f"shift+{name.lower()}" if name.isupper() else name):
                if self.waiting and key in self.waiting:
                    return self.waiting[key]
        return None

    def on_click(self) -> None:
        self.end()

    def _show(self) -> None:
        if self.waiting:
            self.update(self._table(self.waiting))
            self.display = True

    def _table(self, actions: Mapping[str, Action]) -> Content:
        """Two or three columns of `key words`, by the width there is."""
        cells = [
            parts((f"{spelled(key):>3} ", "bold $accent"), action.words) for key, action in actions.items()
        ]
        width = max((cell.cell_length for cell in cells), default=0) + 3
        columns = max(1, min(3, (self.app.size.width - 4) // width))
        rows = -(-len(cells) // columns)
        lines = []
        for row in range(rows):
            line = Content()
            for cell in cells[row::rows]:
                line += cell.pad_right(width - cell.cell_length)
            lines.append(line)
        return Content("\n").join(lines)


def is_modifier(event: events.Key) -> bool:
    """Whether a terminal told of a modifier alone, such as Shift on its way to a capital letter."""
    return event.key.rpartition("+")[2] in MODIFIER_FUNCTIONAL_KEYS
