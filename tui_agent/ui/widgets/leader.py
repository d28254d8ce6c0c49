"""After the leader key: what can follow, shown until a key is pressed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from textual import events
from textual.content import Content
from textual.screen import ModalScreen
from textual.widget import Widget
from textual.widgets import Static

from tui_agent.ui.actions import Action
from tui_agent.ui.keys import spelled
from tui_agent.ui.sink import parts


class Leader(ModalScreen[str | None], inherit_bindings=False):
    """Gives the id of the action whose key was pressed; any other key closes it."""

    DEFAULT_CSS = """
    Leader {
        align: left bottom; background: transparent;
        & > Static { width: 100%; height: auto; max-height: 60%; background: $overlay; padding: 1 2; margin-bottom: 1; }
    }
    """

    def __init__(self, actions: Mapping[str, Action]) -> None:
        super().__init__()
        self._actions = actions

    def compose(self) -> Iterable[Widget]:
        yield Static(self._table(), markup=False)

    def on_key(self, event: events.Key) -> None:
        event.stop()
        for name in (event.key, *event.aliases, event.character or ""):
            for key in (name, f"shift+{name.lower()}" if name.isupper() else name):
                if key in self._actions:
                    self.dismiss(self._actions[key].id)
                    return
        self.dismiss(None)

    def on_click(self) -> None:
        self.dismiss(None)

    def _table(self) -> Content:
        """Two or three columns of `key words`, by the width there is."""
        cells = [
            parts((f"{spelled(key):>3} ", "bold $accent"), action.words)
            for key, action in self._actions.items()
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
