"""The leader key, the first of two, and its delayed menu of second keys."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import zip_longest
from textwrap import wrap

from textual import events
from textual.content import Content
from textual.timer import Timer
from textual.widgets import Static

from tui_agent.ui.actions import Action
from tui_agent.ui.keys.keymap import spelled
from tui_agent.ui.panes import PANES
from tui_agent.ui.safe_text import parts
from tui_agent.ui.textual_patches.sequences import MODIFIER_FUNCTIONAL_KEYS

#: Seconds between the leader key and its menu.
SHOWN_AFTER = 0.3
PAGE = "tab"
#: Minimum cells of a column, and the menu's maximum share of the screen's rows.
_COLUMN, _SHARE = 34, 0.75
#: By first part of the action id.
_GROUPS = {
    "changes": "Changes",
    "checks": "Changes",
    "commands": "Changes",
    "turn": "Changes",
    "session": "Session",
    "buffers": "Editor",
    "chat": "Chat",
    "pane": "Panes",
    "app": "Program",
}
_GOING = "Go to"


class Leader(Static):
    """Does not change the focus."""

    DEFAULT_CSS = """
    Leader {
        layer: menu; dock: bottom; width: 100%; height: auto;
        background: $overlay; padding: 0 2; margin-bottom: 1;
    }
    """

    def __init__(self) -> None:
        super().__init__("", markup=False)
        self.display = False
        self.waiting: Mapping[str, Action] | None = None
        self._shown: Mapping[str, Action] = {}
        self._page = 0
        self._timer: Timer | None = None

    def begin(self, actions: Mapping[str, Action], offered: Mapping[str, Action] | None = None) -> None:
        self.waiting = actions
        self._shown = actions if offered is None else offered
        self._page = 0
        self._timer = self.set_timer(SHOWN_AFTER, self._show)

    def end(self) -> None:
        self.waiting = None
        self.display = False
        if self._timer is not None:
            self._timer.stop()

    def turn_page(self) -> None:
        self._page += self.display
        self._show()

    def action_of(self, event: events.Key) -> Action | None:
        for name in (event.key, *event.aliases, event.character or ""):
            for key in (name, f"shift+{name.lower()}" if name.isupper() else name):
                if self.waiting and key in self.waiting:
                    return self.waiting[key]
        return None

    def on_click(self) -> None:
        self.end()

    def _show(self) -> None:
        if self.waiting:
            width, height = self.app.size
            pages = menu_pages(self._shown, width - 4, max(int(height * _SHARE) - 2, 4))
            page = self._page % len(pages)
            said = f"Page {page + 1} of {len(pages)}: {spelled(PAGE)} shows the next   "
            foot = parts(
                (said if len(pages) > 1 else "", "$accent"), (f"{spelled('escape')} leaves", "$muted")
            )
            self.update(Content("\n").join([*pages[page], foot]))
            self.display = True


def menu_pages(actions: Mapping[str, Action], width: int, height: int) -> list[list[Content]]:
    groups: dict[str, list[tuple[str, str]]] = {name: [] for name in (_GOING, *_GROUPS.values())}
    for key, action in actions.items():
        going = action.id.startswith("pane.") and action.name in PANES
        group = _GOING if going else _GROUPS.get(action.id.partition(".")[0], "Program")
        words = PANES[action.name].title if going else re.split("[:,;]", action.words, maxsplit=1)[0]
        groups[group].append((spelled(key), words))
    across = max(1, min(3, width // _COLUMN))
    each = width // across
    columns: list[list[Content]] = [[]]
    for name, items in groups.items():
        heading = parts((name, "bold $muted"))
        for number, (key, words) in enumerate(items):
            first, *rest = wrap(words, max(each - 7, 10))
            cell = [
                parts((f"{key:>4} ", "bold $accent"), first),
                *(parts(f"     {line}") for line in rest),
            ]
            head = [heading] if number == 0 or not columns[-1] else []
            if columns[-1] and len(columns[-1]) + len(head) + len(cell) > height:
                columns.append([])
                head = [heading]
            columns[-1] += [*head, *cell]
    pages = [columns[at : at + across] for at in range(0, len(columns), across)]
    return [
        [
            Content().join(cell.pad_right(max(each - cell.cell_length, 0)) for cell in row)
            for row in zip_longest(*page, fillvalue=Content())
        ]
        for page in pages
    ]


def is_modifier(event: events.Key) -> bool:
    return event.key.rpartition("+")[2] in MODIFIER_FUNCTIONAL_KEYS
