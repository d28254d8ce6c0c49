"""Known files as a table: as many columns as there is room for."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import NamedTuple

from tui_agent.context.known import KnownFile, freshness_mark
from tui_agent.files.sizes import size_in_words
from tui_agent.ui.widgets.lines import Line, Piece, column
from tui_agent.ui.widgets.rows import Row

_LEAST_FILE = 28
_GAP = 2
#: What the first column may take of the room that is left, for a name that a file was given.
_MORE = 14


class KnownColumn(NamedTuple):
    """A column beside the file's name: its heading, its width in cells, and what it says of a file."""

    heading: str
    width: int
    words: Callable[[KnownFile], str]


def modified_since(file: KnownFile) -> str:
    """What has become of the file since it was seen: the words that the model is told, in one cell's width."""
    return freshness_mark(file).replace("\ufe0f", "")


#: In the order in which they are given up from the right.
COLUMNS = (
    KnownColumn("Modified since", 16, modified_since),
    KnownColumn("Last seen", 9, lambda file: f"turn {file.seen_turn}" if file.seen_turn else "never"),
    KnownColumn("Hash", 12, lambda file: file.md5[:12]),
    KnownColumn("Seen", 5, lambda file: "whole" if file.whole else "part"),
    KnownColumn("Size", 8, lambda file: size_in_words(file.size)),
    KnownColumn("Loaded by", 9, lambda file: file.loaded_by),
)


def columns_for(width: int) -> tuple[KnownColumn, ...]:
    """The columns that fit beside a file name of at least a readable width."""
    room = width - _LEAST_FILE
    fitting: list[KnownColumn] = []
    for each in COLUMNS:
        if room < each.width + _GAP:
            break
        room -= each.width + _GAP
        fitting.append(each)
    if fitting:
        wider = fitting[0].width + min(room // 2, _MORE)
        fitting[0] = fitting[0]._replace(width=wider)
    return tuple(fitting)


def heading(width: int) -> Line:
    columns = columns_for(width)
    return Line(
        tuple(Piece(text, "muted") for text in _cells("File", [each.heading for each in columns], width))
    )


def known_rows(files: Iterable[KnownFile], width: int) -> list[Row]:
    """A row for each file, its path as the key: stale ones first, then those seen last."""
    columns = columns_for(width)
    ordered = sorted(files, key=lambda file: (_rank(file), -file.seen_turn, file.path))
    return [Row(file.path, partial(_row, file, columns, width)) for file in ordered]


def _rank(file: KnownFile) -> int:
    """Stale files first, then those that the agent itself changed, then those that are as they were seen."""
    return 0 if file.stale else 1 if file.freshness == "edited" else 2


def _row(file: KnownFile, columns: tuple[KnownColumn, ...], width: int) -> Line:
    if not columns:
        mark = Piece("  " if file.freshness == "fresh" else "⚠ ", "stale")
        return Line((mark, Piece(file.path, "", "start")), (Piece(f"{file.seen_turn or 'never'}", "muted"),))
    name, *cells = _cells(file.path, [each.words(file) for each in columns], width)
    inks = ["muted" if file.freshness == "fresh" else "stale", *["muted"] * (len(cells) - 1)]
    pieces = [Piece(text, ink) for text, ink in zip(cells, inks, strict=True)]
    return Line((Piece(name, "stale" if file.stale else ""), *pieces))


def _cells(name: str, words: list[str], width: int) -> list[str]:
    columns = columns_for(width)
    room = width - sum(each.width + _GAP for each in columns)
    cells = [" " * _GAP + column(text, each.width) for text, each in zip(words, columns, strict=True)]
    return [column(name, max(room, 1), "start"), *cells]
