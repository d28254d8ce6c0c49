"""The documents behind an editor: every character is kept as it is, and a key costs what its line costs."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator, Sequence
from heapq import nlargest
from time import thread_time
from typing import Any, TypeVar

from rich.cells import cell_len
from textual.document._document import Document, DocumentBase, EditResult, Location
from textual.document._syntax_aware_document import SyntaxAwareDocument
from textual.document._wrapped_document import WrappedDocument
from textual.expand_tabs import get_tab_widths
from textual.widgets import _text_area
from tree_sitter import Language, Parser, Query, Tree

from tui_agent.workspace.syntax_trees import parse, prepared

_Row = TypeVar("_Row")

#: So many of the longest lines, by characters, are measured in cells.
_MEASURED = 64
#: Seconds of processor time for a first parse that the screen waits for, and for all others of one text that took
#: longer than `SLOW`: where the first takes long for its length, so does each one after an edit.
AT_ONCE, GIVEN_UP_AFTER, SLOW = 0.01, 2.0, 0.2


class Verbatim(str):
    """A text as a document of Textual's takes it apart: at `ending` and nowhere else.

    Textual would end a line at a form feed, a Unicode separator and any of the line endings, and put all of them
    together again with one and the same.
    """

    ending: str
    #: Its lines, where it was taken apart before.
    _lines: Sequence[str] = ()

    @classmethod
    def of(cls, text: str, ending: str) -> Verbatim:
        if isinstance(text, cls) and text.ending == ending:
            return text
        pieces = cls(text)
        pieces.ending = ending
        return pieces

    @classmethod
    def pasted(cls, text: str, ending: str, tab_width: int) -> tuple[Verbatim, int]:
        """What is pasted, with the line ending that a text has, taken apart; and the cells of its widest line."""
        text = text.replace("\r\n", "\n").replace("\r", "\n")
        pieces = cls.of(text if ending == "\n" else text.replace("\n", ending), ending)
        pieces._lines = lines = text.split("\n")
        return pieces, widest(lines, tab_width)

    def splitlines(self, keepends: bool = False) -> list[str]:
        return list(self._lines) or (self.split(self.ending) if self else [])

    def endswith(self, *_: object) -> bool:
        """Textual asks whether an empty line is missing at the end: it is there."""
        return False

    def __contains__(self, part: object) -> bool:
        """Textual asks which ending the lines have."""
        return part == self.ending


class ExactDocument(Document):
    def replace_range(self, start: Location, end: Location, text: str) -> EditResult:
        return super().replace_range(start, end, Verbatim.of(text, self.newline))


class CodeDocument(SyntaxAwareDocument):
    """Moves its syntax tree along with each edit, and leaves it to the editor when it is parsed again: that takes
    50 ms in a file of 5,000 lines, and Textual's own way, which asks for each line several times, twice as long.

    What is not parsed within a frame has the tree of an empty text at first, and is parsed in a thread.
    """

    def __init__(self, text: str, language: Language) -> None:
        Document.__init__(self, text)
        self.language = language
        self._parser = Parser(language)
        #: Edits so far, and those that the tree knows of: -1 while it is that of no text.
        self.edits, self.parsed = 0, -1
        #: Whether parsing took too long: the text has no colours but those that it had.
        self.given_up = False
        #: Seconds that slow parses took; and, while one is under way, the edits since it began.
        self._spent = 0.0
        self._since: list[dict[str, Any]] | None = None
        tree = parse(self._parser, self.text.encode(errors="replace"), AT_ONCE)
        if tree is not None:
            self.parsed = 0
        self._syntax_tree = tree or self._parser.parse(b"")

    def replace_range(self, start: Location, end: Location, text: str) -> EditResult:
        top, bottom = sorted((start, end))
        first = self._bytes_before(top)
        last = first + len(self.get_text_range(top, bottom).encode(errors="replace"))
        points = self._location_to_point(top), self._location_to_point(bottom)
        result = Document.replace_range(self, start, end, Verbatim.of(text, self.newline))
        edit = {
            "start_byte": first,
            "old_end_byte": last,
            "new_end_byte": first + len(text.encode(errors="replace")),
            "start_point": points[0],
            "old_end_point": points[1],
            "new_end_point": self._location_to_point(result.end_location),
        }
        if self._syntax_tree is not None and self.parsed >= 0:
            self._syntax_tree.edit(**edit)
        if self._since is not None:
            self._since.append(edit)
        self.edits += 1
        return result

    def release(self) -> None:
        """It is no longer shown: its tree and it hold each other in a way that is never collected."""
        self._syntax_tree = None

    def prepare_query(self, query: str) -> Query | None:
        return prepared(self.language, query)

    def _bytes_before(self, place: Location) -> int:
        row, column = place
        above = self.newline.join([*self._lines[:row], self._lines[row][:column]])
        return len(above) if above.isascii() else len(above.encode(errors="replace"))

    async def parse(self) -> bool:
        """Parse the text as it is now, in a thread; whether there is no more to do for the text as it is then.

        What is typed meanwhile does not begin it again: the tree moves along with those edits once it is there.
        """
        if self.given_up or self._syntax_tree is None or self._since is not None:
            return True
        edits, text = self.edits, self.text.encode(errors="replace")
        old = self._syntax_tree.copy() if self.parsed >= 0 else None
        self._since = since = []
        left = GIVEN_UP_AFTER - self._spent

        def timed() -> tuple[Tree | None, float]:
            begun = thread_time()
            parser = Parser(self.language)  # of its own: the screen may parse another text meanwhile
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
    """The lines of a text that is too long to be shown whole, taken apart `PART` at a time when they are asked for."""

    PART = 10_000
    _PART_OF_TEXT = re.compile(rf"(?:[^\n]*+\n){{{PART}}}")

    def __init__(self, text: str) -> None:
        self._text = text
        self._count = text.count("\n") + 1
        #: Where each part begins, as far as that was asked for; the newest part; and all, where all were asked for.
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
    """What ends the lines of a text that is edited: the one ending that all of them have, else the line feed."""
    feeds = text.count("\n")
    if not feeds:
        return "\r" if "\r" in text else "\n"
    return "\r\n" if text.count("\r\n") == feeds else "\n"


class _Rows(Sequence[_Row]):
    """Something for each line of a document, made when it is asked for."""

    def __init__(self, document: DocumentBase, made: Callable[[int], _Row]) -> None:
        self._document = document
        self._made = made

    def __len__(self) -> int:
        return self._document.line_count

    def __getitem__(self, row: Any) -> Any:
        """Of one line: no part of it is asked for."""
        return self._made(range(len(self))[row])


class CountedDocument(WrappedDocument):
    """Textual keeps four lists with an entry for each line, moves those below an edit, and counts all for each line
    that it draws. Where nothing is wrapped, row and line are one: nothing is kept, and nothing is moved."""

    def wrap(self, width: int, tab_width: int | None = None) -> None:
        if width:
            super().wrap(width, tab_width)
            return
        self._width, self._tab_width = 0, tab_width or self._tab_width
        document, tab = self.document, self._tab_width
        rows: dict[str, Sequence[Any]] = {
            "_wrap_offsets": _Rows(document, lambda _: []),
            "_offset_to_line_info": _Rows(document, lambda row: (row, 0)),
            "_line_index_to_offsets": _Rows(document, lambda row: [row]),
            "_tab_width_cache": _Rows(
                document, lambda row: [width for _, width in get_tab_widths(document.get_line(row), tab)]
            ),
        }
        self.__dict__.update(rows)

    @property
    def height(self) -> int:
        return len(self._offset_to_line_info)

    def wrap_range(self, start: Location, old_end: Location, new_end: Location) -> None:
        if self._width:
            super().wrap_range(start, old_end, new_end)


# The names by which Textual's editor makes its wrapping, and a document with colours.
vars(_text_area)["WrappedDocument"] = CountedDocument
vars(_text_area)["SyntaxAwareDocument"] = CodeDocument


def widest(lines: list[str], tab_width: int) -> int:
    """Cells of the widest line, of which not all are measured after each key; wide letters count double."""
    longest = nlargest(_MEASURED, lines, key=len)
    return max((cell_len(line.expandtabs(tab_width)) for line in longest), default=0)
