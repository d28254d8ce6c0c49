"""What can be done, to be found: the rows of the palette, the help with all keys, the notices."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar

from textual.app import App
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Static

from tui_agent.session.session import Session
from tui_agent.store.state import Notice
from tui_agent.ui.actions import ACTIONS, ANYWHERE, APP, Action, actions_of
from tui_agent.ui.dialogs.chooser import Chooser, ChooserRow
from tui_agent.ui.dialogs.dialog import Dialog
from tui_agent.ui.keys.keymap import Keys
from tui_agent.ui.panes import PANES
from tui_agent.ui.sink import parts

_COLOURS = {"info": "$muted", "warning": "$warning", "error": "$error"}


def palette_rows(words: str, keys: Keys, pane: str) -> list[ChooserRow]:
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


def theme_rows(words: str, names: Sequence[str], now: str) -> list[ChooserRow]:
    """The themes whose names hold what is typed, the one in use first."""
    found = [name for name in names if words.lower() in name]
    found.sort(key=lambda name: name != now)
    return [
        ChooserRow(name, parts(f"{name:<20}", ("in use" if name == now else "", "$muted"))) for name in found
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
            lines.append(parts((PANES[place].title if place in PANES else "Anywhere", "bold $accent")))
            lines += [
                parts((f"  {self._keys.all_shown(action.id):<16}", "$text"), (f" {action.words}", "$muted"))
                for action in rows
            ]
            lines.append(parts(""))
        return Content("\n").join(lines)


async def show_notices(app: App[object], session: Session) -> None:
    """Show the notices, and those that come meanwhile."""

    def rows(words: str) -> list[ChooserRow]:
        return notice_rows(words, session.state.notices.items)

    await app.push_screen_wait(Chooser("Notices", rows, following=session.subscribe))
