"""Lists of actions, keys, themes, messages, and symbols of a file."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence

from textual.app import App

from tui_agent.session.session import Session
from tui_agent.ui.actions import ACTIONS, ANYWHERE, APP, TYPED, Action, actions_of
from tui_agent.ui.dialogs.chooser import MOST, Chooser, ChooserRow
from tui_agent.ui.host import Host
from tui_agent.ui.keys.keymap import Keys
from tui_agent.ui.panes import PANES
from tui_agent.ui.safe_text import parts
from tui_agent.ui.themes import names as theme_names
from tui_agent.ui.widgets.line_view import column
from tui_agent.workspace.syntax_trees import Symbol, symbol_at, symbols

_COLOURS = {"info": "$muted", "warning": "$warning", "error": "$error"}


def palette_rows(
    words: str, keys: Keys, pane: str, recent: Sequence[str], why_not: Callable[[str], str], room: int
) -> list[ChooserRow]:
    order = {name: at for at, name in enumerate(recent)}
    found = [action for action in ACTIONS.values() if _holds(action, words)]
    found.sort(key=lambda it: (order.get(it.id, MOST), it.pane != pane, it.pane != ANYWHERE))
    everywhere = {it.words for it in found if it.pane == ANYWHERE}
    once: dict[str, Action] = {}
    for action in found:
        once.setdefault(action.words if action.words in everywhere else action.id, action)
    rows = []
    for action in once.values():
        why = why_not(action.id)
        where = PANES[action.pane].title if action.pane in PANES else ""
        pieces = parts(
            (column(action.words, room - 34), "$muted" if why else "$text"),
            (f" {_shown(action, keys)} ", "$muted" if why else "$accent"),
            (why or ("recent" if action.id in order else where), "$warning" if why else "$muted"),
        )
        rows.append(ChooserRow(action.id, pieces))
    return rows


def own_rows(words: str, names: Mapping[str, tuple[str, str]], room: int) -> list[ChooserRow]:
    return [
        ChooserRow(
            f"/{name}",
            parts((column(f"/{name}  {said}", room - 34), "$text"), (f" {column(origin, 30)}", "$muted")),
        )
        for name, (said, origin) in names.items()
        if words.lower() in f"/{name} {said}".lower()
    ]


def place_rows(
    words: str, keys: Keys, pane: str, why_not: Callable[[str], str], room: int
) -> list[ChooserRow]:
    found = [action for action in actions_of(pane) if _holds(action, words) and not why_not(action.id)]
    return [
        ChooserRow(it.id, parts((column(it.words, room - 14), "$text"), (f" {_shown(it, keys)}", "$accent")))
        for it in found
    ]


def _shown(action: Action, keys: Keys) -> str:
    return column(keys.shown(action.id) or TYPED.get(action.id, ""), 13)


def help_rows(words: str, keys: Keys, first: str, room: int) -> list[ChooserRow]:
    places = dict.fromkeys((first, APP, ANYWHERE, *PANES))
    return [
        ChooserRow(
            action.id,
            parts(
                (f"{column(keys.all_shown(action.id) or TYPED.get(action.id, ''), 22)} ", "$accent"),
                (column(action.words, room - 34), "$text"),
                (f" {PANES[place].title if place in PANES else 'anywhere'}", "$muted"),
            ),
        )
        for place in places
        for action in actions_of(place)
        if _holds(action, words, keys.all_shown(action.id))
    ]


async def choose_theme(app: Host) -> str:
    """Previews the highlighted theme. Returns the chosen one, or ""."""
    before = app.theme
    names = sorted(theme_names(app.theme_folders), key=lambda name: name != before)

    def rows(words: str) -> list[ChooserRow]:
        return [
            ChooserRow(name, parts(f"{name:<20}", ("in use" if name == before else "", "$muted")))
            for name in names
            if words.lower() in name
        ]

    chosen = await app.push_screen_wait(Chooser("Theme", rows, seen=app.use_theme))
    app.use_theme(chosen or before)
    return chosen or ""


def _holds(action: Action, words: str, more: str = "") -> bool:
    searched = f"{action.words} {action.pane} {action.id} {more}".lower()
    return all(word in searched for word in words.lower().split())


async def show_notices(app: App[object], session: Session) -> None:
    def rows(words: str) -> list[ChooserRow]:
        return [
            ChooserRow(str(notice.number), parts((f"{notice.level:<8}", _COLOURS[notice.level]), notice.text))
            for notice in reversed(session.state.notices.items)
            if words.lower() in notice.text.lower()
        ]

    await app.push_screen_wait(Chooser("Messages", rows, following=session.subscribe))


#: Maximum symbols shown; a filter finds the rest.
MOST_SYMBOLS = 2_000
#: Cells per nesting level, and after a name.
_STEP, _BEHIND = 2, 19


def symbol_chooser(path: str, lines: Sequence[str], row: int, room: int) -> Chooser:
    found: list[Symbol] = []

    async def get() -> None:
        made = await asyncio.to_thread(lambda: symbols(path, "\n".join(lines)))
        found.extend(made or ())
        if made is None:
            chooser.retitle("Go to symbol: this file takes too long to parse")
        elif not made:
            chooser.retitle("Go to symbol: there are no symbols here")

    def rows(typed: str) -> list[ChooserRow]:
        words = typed.lower().split()
        return [
            ChooserRow(
                _value(symbol),
                parts(
                    (column(" " * (_STEP * symbol.depth) + symbol.name, room - _BEHIND), "$text"),
                    (f" {symbol.kind:<11}{symbol.row + 1:>6}", "$muted"),
                ),
            )
            for symbol in found
            if all(word in symbol.name.lower() for word in words)
        ]

    chooser = Chooser(
        "Go to symbol",
        rows,
        getting=get(),
        first=lambda: _value(found[symbol_at(found, row)]) if found else "",
        most=MOST_SYMBOLS,
    )
    return chooser


def _value(symbol: Symbol) -> str:
    return f"{symbol.row}:{symbol.column}"
