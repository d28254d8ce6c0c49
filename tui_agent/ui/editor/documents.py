"""Documents of an editor: exact characters, and edits at the cost of their lines."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator, Sequence
from heapq import nlargest
from time import thread_time
from typing import Any

from rich.cells import cell_len
from textual.geometry import Size
from textual.widgets.text_area import DocumentBase, EditResult, Location
from tree_sitter import Language, Node, Parser, Query, QueryCursor, Tree

from tui_agent.workspace.syntax_trees import parse

#: Maximum lines that every key measures again.
MEASURED_WHOLE = 500
#: Number of longest lines, by characters, whose cells are measured.
_MEASURED = 64
#: Seconds of processor time: limit of the first parse, which blocks the screen; limit of all slow parses of a
#: text; duration of a slow parse. If the first parse is slow, the text is slow after each edit.
AT_ONCE, GIVEN_UP_AFTER, SLOW = 0.01, 2.0, 0.2


class ExactDocument(DocumentBase):
    """One kind of line ending, otherwise exact characters. Textual's documents also break lines at form
    feeds and Unicode separators.
    """

    def __init__(self, text: str = "") -> None:
        self._newline = ending_of(text)
        self._rows = text.split(self._newline)
        #: In characters.
        self.length = len(text)
        #: The next insertion: text, lines, cells of the widest line.
        self._ahead: tuple[str, list[str], int] | None = None
        #: Tab width and cells of the widest line; first row, last row and prepared cells of each later edit.
        self._widest: tuple[int, int] | None = None
        self._touched: list[tuple[int, int, int]] = []

    @property
    def text(self) -> str:
        return self._newline.join(self._rows)

    @property
    def newline(self) -> Any:
        return self._newline

    @property
    def lines(self) -> list[str]:
        return self._rows

    @property
    def line_count(self) -> int:
        return len(self._rows)

    @property
    def start(self) -> Location:
        return 0, 0

    @property
    def end(self) -> Location:
        return len(self._rows) - 1, len(self._rows[-1])

    def __getitem__(self, line_index: Any) -> Any:
        return self._rows[line_index]

    def get_line(self, index: int) -> str:
        return self._rows[index]

    def get_text_range(self, start: Location, end: Location) -> str:
        (top, left), (bottom, right) = sorted((start, end))
        rows = self._rows
        if top == bottom:
            return rows[top][left:right] if top < len(rows) else ""
        if bottom >= len(rows):
            return self._newline.join([rows[top][left:], *rows[top + 1 :]]) if top < len(rows) else ""
        return self._newline.join([rows[top][left:], *rows[top + 1 : bottom], rows[bottom][:right]])

    def get_size(self, indent_width: int) -> Size:
        """A long text is measured only at its edits and never becomes narrower."""
        known = self._widest
        whole = len(self._rows) <= MEASURED_WHOLE or len(self._touched) > 1
        if known is None or known[0] != indent_width or whole:
            cells = widest(self._rows, indent_width)
        else:
            cells = known[1]
            for first, last, ahead in self._touched:
                rows = self._rows[first : min(last, len(self._rows) - 1) + 1]
                rows = [rows[0], rows[-1]] if ahead and rows else rows
                cells = max(cells, ahead, widest(rows, indent_width))
        self._widest = indent_width, cells
        self._touched.clear()
        return Size(cells, len(self._rows))

    def prepare(self, text: str, tab_width: int) -> str:
        """Blocking. Returns `text` with the document's line endings, split and measured for its insertion."""
        text = text.replace("\r\n", "\n").replace("\r", "\n")
        lines = text.split("\n")
        text = text.replace("\n", self._newline)
        self._ahead = text, lines, widest(lines, tab_width)
        return text

    def replace_range(self, start: Location, end: Location, text: str) -> EditResult:
        (top, left), (bottom, right) = sorted((start, end))
        rows, ahead, self._ahead = self._rows, self._ahead, None
        made = ahead is not None and ahead[0] is text
        lines = list(ahead[1]) if ahead and made else text.split(self._newline)
        replaced = self.get_text_range((top, left), (bottom, right))
        before = rows[top][:left] if top < len(rows) else ""
        behind = rows[bottom][right:] if bottom < len(rows) else ""
        lines[0] = before + lines[0]
        place = top + len(lines) - 1, len(lines[-1])
        lines[-1] += behind
        rows[top : bottom + 1] = lines
        self.length += len(text) - len(replaced)
        self._touched.append((top, place[0], ahead[2] if ahead and made else 0))
        return EditResult(place, replaced)


class CodeDocument(ExactDocument):
    """Edits shift the syntax tree; the editor decides when to parse again, in a thread."""

    def __init__(self, text: str, language: Language, query: Query | None = None) -> None:
        super().__init__(text)
        self.language = language
        self.query = query
        self._parser = Parser(language)
        #: Number of edits, now and at the last parse (-1: none).
        self.edits, self.parsed = 0, -1
        #: Whether parsing exceeded its limit; the last colours stay.
        self.given_up = False
        #: Seconds of slow parses, and the edits since the start of the running one.
        self._spent = 0.0
        self._since: list[dict[str, Any]] | None = None
        tree = parse(self._parser, self.text.encode(errors="replace"), AT_ONCE)
        if tree is not None:
            self.parsed = 0
        self._syntax_tree: Tree | None = tree or self._parser.parse(b"")

    def replace_range(self, start: Location, end: Location, text: str) -> EditResult:
        top, bottom = sorted((start, end))
        before = self.newline.join([*self.lines[: top[0]], self.lines[top[0]][: top[1]]])
        first = len(before) if before.isascii() else len(before.encode(errors="replace"))
        last = first + len(self.get_text_range(top, bottom).encode(errors="replace"))
        points = self.point(top), self.point(bottom)
        result = super().replace_range(start, end, text)
        edit = {
            "start_byte": first,
            "old_end_byte": last,
            "new_end_byte": first + len(text.encode(errors="replace")),
            "start_point": points[0],
            "old_end_point": points[1],
            "new_end_point": self.point(result.end_location),
        }
        if self._syntax_tree is not None and self.parsed >= 0:
            self._syntax_tree.edit(**edit)
        if self._since is not None:
            self._since.append(edit)
        self.edits += 1
        return result

    def release(self) -> None:
        """Breaks the reference cycle of tree and document, which the garbage collector does not see."""
        self._syntax_tree = None

    def query_syntax_tree(
        self,
        query: Query,
        start_point: tuple[int, int] | None = None,
        end_point: tuple[int, int] | None = None,
    ) -> dict[str, list[Node]]:
        if self._syntax_tree is None:
            return {}
        cursor = QueryCursor(query)
        if start_point is not None and end_point is not None:
            cursor.set_point_range(start_point, end_point)
        return cursor.captures(self._syntax_tree.root_node)

    def point(self, place: Location) -> tuple[int, int]:
        """Row, and column in bytes."""
        row, column = place
        line = self.lines[row][:column] if row < self.line_count else ""
        return row, column if line.isascii() else len(line.encode(errors="replace"))

    async def parse(self) -> bool:
        """Parses in a thread and applies edits in between. Returns whether the tree is current or abandoned."""
        if self.given_up or self._syntax_tree is None or self._since is not None:
            return True
        edits, text = self.edits, self.text.encode(errors="replace")
        old = self._syntax_tree.copy() if self.parsed >= 0 else None
        self._since = since = []
        left = GIVEN_UP_AFTER - self._spent

        def timed() -> tuple[Tree | None, float]:
            begun = thread_time()
            parser = Parser(self.language)  # not shared: the screen may be parsing
            return parse(parser, text, left, old, lambda: self._syntax_tree is None), thread_time() - begun

        try:
            tree, took = await asyncio.to_thread(timed)
        finally:
            self._since = None
        if self._syntax_tree is not None:
            self._spent += took if took > SLOW else 0.0
            self.given_up = tree is None or self._spent >= GIVEN_UP_AFTER
            if tree is not None:
                for edit in since:
                    tree.edit(**edit)
                self._syntax_tree, self.parsed = tree, edits
        return self.given_up or self.edits == edits


class PartedLines(Sequence[str]):
    """Splits a long text on demand in parts of `PART` lines."""

    PART = 10_000
    _PART_OF_TEXT = re.compile(rf"(?:[^\n]*+\n){{{PART}}}")

    def __init__(self, text: str) -> None:
        self._text = text
        self._count = text.count("\n") + 1
        #: Offsets of the known parts, the last part in use, and all lines after an iteration.
        self._starts = [0]
        self._newest: tuple[int, list[str]] | None = None
        self._all: list[str] | None = None

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[str]:
        if self._all is None:
            self._all = self._text.split("\n")
        return iter(self._all)

    def __getitem__(self, row: Any) -> Any:
        rows = range(self._count)[row]
        if isinstance(rows, int):
            return self._part(rows // self.PART)[rows % self.PART]
        parts = range(rows.start // self.PART, -(-rows.stop // self.PART))
        lines = [line for number in parts for line in self._part(number)]
        before = parts.start * self.PART
        return lines[rows.start - before : rows.stop - before : rows.step]

    def _part(self, number: int) -> list[str]:
        if self._newest is None or self._newest[0] != number:
            while len(self._starts) <= number + 1:
                found = self._PART_OF_TEXT.match(self._text, self._starts[-1])
                self._starts.append(found.end() if found else len(self._text) + 1)
            start, end = self._starts[number : number + 2]
            self._newest = number, self._text[start : end - 1].split("\n")
        return self._newest[1]


def ending_of(text: str) -> str:
    """A line feed if endings are mixed."""
    feeds = text.count("\n")
    if not feeds:
        return "\r" if "\r" in text else "\n"
    return "\r\n" if text.count("\r\n") == feeds else "\n"


def dedented(line: str, width: int) -> str:
    return line[1:] if line.startswith("\t") else line[min(len(line) - len(line.lstrip(" ")), width) :]


def widest(lines: list[str], tab_width: int) -> int:
    longest = nlargest(_MEASURED, lines, key=len)
    return max((cell_len(line.expandtabs(tab_width)) for line in longest), default=0)
