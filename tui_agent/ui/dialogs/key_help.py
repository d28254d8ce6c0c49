"""All keys, by the place where they count, from the table of actions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Static

from tui_agent.ui.actions import ANYWHERE, APP, PANES, actions_of
from tui_agent.ui.dialogs.dialog import Dialog
from tui_agent.ui.keys.keymap import Keys
from tui_agent.ui.sink import parts

_TITLES = {ANYWHERE: "Anywhere", "subtasks": "Sub-tasks", "buffers": "Editor"}


class KeyHelp(Dialog[None], inherit_bindings=False):
    """Scrolls; Esc, `q` or the key for help closes it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,question_mark,f1,enter", "dismiss(None)", show=False)
    ]
    DEFAULT_CSS = """
    KeyHelp {
        align: center middle; background: $background 40%;
        & > VerticalScroll {
            width: 84; max-width: 96%; height: 90%;
            background: $overlay; padding: 1 2; scrollbar-size-vertical: 1;
        }
        & Static { height: auto; }
    }
    """

    def __init__(self, keys: Keys, first: str) -> None:
        """`first` is the pane whose keys are at the top."""
        super().__init__()
        self._keys = keys
        self._first = first

    def compose(self) -> Iterable[Widget]:
        with VerticalScroll():
            yield Static(self._table(), markup=False)

    def _table(self) -> Content:
        places = dict.fromkeys((self._first, ANYWHERE, *PANES))
        lines: list[Content] = []
        for place in places:
            rows = actions_of(APP) + actions_of(ANYWHERE) if place == ANYWHERE else actions_of(place)
            lines.append(parts((_TITLES.get(place, place.capitalize()), "bold $accent")))
            lines += [
                parts((f"  {self._keys.all_shown(action.id):<16}", "$text"), (f" {action.words}", "$muted"))
                for action in rows
            ]
            lines.append(parts(""))
        return Content("\n").join(lines)
