"""The rows of the command palette and of the list of notices."""

from __future__ import annotations

from collections.abc import Sequence

from tui_agent.store.state import Notice
from tui_agent.ui.actions import ACTIONS, ANYWHERE, Action
from tui_agent.ui.dialogs.chooser import ChooserRow
from tui_agent.ui.keys.keymap import Keys
from tui_agent.ui.sink import parts

_COLOURS = {"info": "$muted", "warning": "$warning", "error": "$error"}


def rows(words: str, keys: Keys, pane: str) -> list[ChooserRow]:
    """Every action whose words hold what is typed, word by word; those of the pane with the focus first."""
    wanted = words.lower().split()
    found = [action for action in ACTIONS.values() if all(word in _searched(action) for word in wanted)]
    found.sort(key=lambda action: (action.pane != pane, action.pane != ANYWHERE))
    return [
        ChooserRow(
            action.id,
            parts(
                (f"{action.words:<48}", "$text"),
                (f"{keys.all_shown(action.id):<14}", "$accent"),
                (action.pane, "$faint"),
            ),
        )
        for action in found
    ]


def notice_rows(words: str, notices: Sequence[Notice]) -> list[ChooserRow]:
    """The notices that hold what is typed, the newest first."""
    found = [notice for notice in reversed(notices) if words.lower() in notice.text.lower()]
    return [
        ChooserRow(str(notice.number), parts((f"{notice.level:<8}", _COLOURS[notice.level]), notice.text))
        for notice in found
    ]


def _searched(action: Action) -> str:
    return f"{action.words} {action.pane} {action.id}".lower()
