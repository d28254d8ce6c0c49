"""Symbol list of a file: classes, functions, headings."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from tui_agent.ui.dialogs.chooser import Chooser, ChooserRow
from tui_agent.ui.safe_text import parts
from tui_agent.ui.widgets.line_view import column
from tui_agent.workspace.symbols import Symbol, symbol_at, symbols

#: Maximum number of symbols shown; a filter finds the rest.
MOST_SYMBOLS = 2_000
#: Cells per nesting level, and after a name.
_STEP, _BEHIND = 2, 19


def symbol_chooser(path: str, lines: Sequence[str], row: int, room: int) -> Chooser:
    """Returns the selection as zero-based `row:column`; the initial symbol is the one that contains `row`.

    `room` is the row width in cells.
    """
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
        return [_row(symbol, room) for symbol in found if all(word in symbol.name.lower() for word in words)]

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


def _row(symbol: Symbol, room: int) -> ChooserRow:
    name = " " * (_STEP * symbol.depth) + symbol.name
    return ChooserRow(
        _value(symbol),
        parts(
            (column(name, room - _BEHIND), "$text"),
            (f" {symbol.kind:<11}", "$muted"),
            (f"{symbol.row + 1:>6}", "$muted"),
        ),
    )
