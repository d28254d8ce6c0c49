"""Files seen by the model, their validity, and a timeline of the current one."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property, partial
from typing import ClassVar, NamedTuple

from textual.app import ComposeResult
from textual.widget import Widget

from tui_agent.context.known_files import KnownFile, Touch, freshness_mark
from tui_agent.files.text import size_in_words
from tui_agent.session.session import Session
from tui_agent.store.files import BuffersSlice, KnownSlice, with_unsaved
from tui_agent.store.state import State
from tui_agent.ui.safe_text import label
from tui_agent.ui.widgets.line_view import Line, LineView, Piece, Row, Rows, column, note
from tui_agent.ui.widgets.pane import Pane, open_file

_LEAST_FILE = 28
_GAP = 2
#: Maximum cells that the first column gains, for user-assigned file names.
_MORE = 14


class KnownColumn(NamedTuple):
    heading: str
    width: int
    words: Callable[[KnownFile], str]


def modified_since(file: KnownFile) -> str:
    return freshness_mark(file).replace("\ufe0f", "")


#: Dropped from the right on narrow panes.
COLUMNS = (
    KnownColumn("Modified since", 16, modified_since),
    KnownColumn("Last seen", 9, lambda file: f"turn {file.seen_turn}" if file.seen_turn else "not seen"),
    KnownColumn("Hash", 12, lambda file: file.md5[:12]),
    KnownColumn("Seen", 5, lambda file: "whole" if file.whole else "part"),
    KnownColumn("Size", 8, lambda file: size_in_words(file.size)),
    KnownColumn("Loaded by", 9, lambda file: file.loaded_by),
)


def columns_for(width: int) -> tuple[KnownColumn, ...]:
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
    if not columns:
        return Line((Piece("  File", "muted"),), (Piece("Turn ", "muted"),))
    cells = _cells("File", [each.heading for each in columns], columns, width)
    return Line(tuple(Piece(text, "muted") for text in cells))


def known_rows(files: Iterable[KnownFile], width: int) -> list[Row]:
    columns = columns_for(width)
    ordered = sorted(
        files,
        key=lambda file: (
            0 if file.stale else 1 if file.freshness == "edited" else 2,
            -file.seen_turn,
            file.path,
        ),
    )
    return [Row(file.path, partial(_row, file, columns, width)) for file in ordered]


def _row(file: KnownFile, columns: tuple[KnownColumn, ...], width: int) -> Line:
    if not columns:
        mark = Piece("  " if file.freshness == "fresh" else "⚠ ", "stale")
        return Line(
            (mark, Piece(file.path, "", "start")), (Piece(f"{file.seen_turn or 'not seen'}", "muted"),)
        )
    name, *cells = _cells(file.path, [each.words(file) for each in columns], columns, width)
    inks = ["muted" if file.freshness == "fresh" else "stale", *["muted"] * (len(cells) - 1)]
    pieces = [Piece(text, ink) for text, ink in zip(cells, inks, strict=True)]
    return Line((Piece(name, "stale" if file.stale else ""), *pieces))


def _cells(name: str, words: list[str], columns: tuple[KnownColumn, ...], width: int) -> list[str]:
    room = width - sum(each.width + _GAP for each in columns)
    cells = [" " * _GAP + column(text, each.width) for text, each in zip(words, columns, strict=True)]
    return [column(name, max(room, 1), "start"), *cells]


SHOWN = 200


def timeline_rows(path: str, touches: Iterable[Touch]) -> list[Row]:
    """`touches` covers all files, oldest first."""
    found = [touch for touch in touches if touch.path == path]
    if not found:
        return []
    heading = Line((Piece("Timeline  ", "muted"), Piece(path, "", "start")))
    newest, newest_first = found[-1], reversed(found[-SHOWN:])
    times = (("read", newest.read_at), ("edited", newest.edited_at), ("outside", newest.outside_at))
    latest = " · ".join(f"{name} {clock(at)}" for name, at in times if at)
    return [
        Row("", heading),
        *([note(latest)] if latest else []),
        *(Row("", partial(_line, touch)) for touch in newest_first),
    ]


def _line(touch: Touch) -> Line:
    ink = "muted" if touch.active else "stale"
    mark = "  " if touch.active else "⚠ "
    at = Piece(clock(touch.at), ink)
    hashed = Piece(f"{touch.md5[:8]}  {at.text}", ink)
    return Line((Piece(f"{mark}turn {touch.turn:<3} {touch.kind}", ink, "end"),), (hashed, at, Piece("")))


def clock(at: float) -> str:
    """Local time of day; "" if unknown."""
    return time.strftime("%H:%M:%S", time.localtime(at)) if at else ""


#: Minimum rows for a timeline beside the table; it uses a third.
ROOM_FROM = 12
_EMPTY = "Files that the model has read, and whether they have changed since."


class KnownPane(Pane):
    ID = "known"
    SLICES: ClassVar[tuple[str, ...]] = ("known", "buffers.tabs")

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._known, self._buffers = KnownSlice(), BuffersSlice()
        self._at_length = False
        self._room = 0

    @cached_property
    def commands(self) -> Mapping[str, Callable[[], object]]:
        return {
            "open": lambda: open_file(self, self._files.cursor),
            "timeline": self._toggle_timeline,
        }

    def compose(self) -> ComposeResult:
        head = Rows(id="headings")
        head.can_focus = False
        yield head
        yield Rows(id="files")
        timeline = Rows(id="timeline")
        timeline.can_focus = False
        yield timeline

    @property
    def entry(self) -> Widget:
        return self._files

    def show(self, state: State) -> None:
        self._known, self._buffers = state.known, state.buffers
        self._draw()

    def _toggle_timeline(self) -> None:
        self._at_length = not self._at_length
        self._show_timeline()

    def on_line_view_chosen(self, event: LineView.Chosen) -> None:
        event.stop()
        open_file(self, self._files.cursor)

    def on_line_view_moved(self, event: LineView.Moved) -> None:
        event.stop()
        self._show_timeline()

    def on_resize(self) -> None:
        self._draw()

    @property
    def _files(self) -> Rows:
        return self.query_one("#files", Rows)

    def _draw(self) -> None:
        files = list(with_unsaved(self._known, self._buffers).values())
        stale = sum(file.stale for file in files)
        count = f" {len(files)}" if files else ""
        warning = f" ⚠{stale}" if stale else ""
        self.title_text = label(f"{self.TITLE}{count}{warning}")
        width = max(self.size.width - 2, 1)
        rows = known_rows(files, width)
        if gone := len(self._known.dropped):
            rows.append(Row("", Line((Piece(f"{gone} more, seen longest ago, are skipped.", "muted"),))))
        self._files.set_rows(rows or [note(_EMPTY)])
        headings = self.query_one("#headings", Rows)
        headings.display = bool(files)
        headings.set_rows([Row("", heading(width))] if files else [])
        self._show_timeline()

    def _show_timeline(self) -> None:
        timeline = self.query_one("#timeline", Rows)
        rows = timeline_rows(self._files.cursor, self._known.touches)
        room = min(self.size.height // 3, len(rows)) if self.size.height >= ROOM_FROM else 0
        if self._at_length and rows:
            room = max(self.size.height - 2, 0)
        timeline.display = room > 0
        timeline.set_rows(rows)
        if room != self._room:
            self._room = room
            timeline.styles.height = room
            self._files.keep_in_view()
