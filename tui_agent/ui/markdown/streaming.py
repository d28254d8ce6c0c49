"""Incremental Markdown reader: complete blocks are drawn once, the last block again. An open block grows by
lines, list items or table rows.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from markdown_it.common.utils import normalizeReference
from markdown_it.token import Token
from msgspec import Struct
from textual.content import Content

from tui_agent.files.text import clean
from tui_agent.processes.background import pause
from tui_agent.ui.markdown.rendering import (
    MOST_COLUMNS,
    MOST_IN_LINE,
    MOST_NESTED,
    PARSER,
    Blocks,
    ListContext,
    UnhighlightedCode,
    cut,
    head_of,
    marked,
)
from tui_agent.ui.markdown.text_lines import AnyLine, Table, TableLine, TextLine

#: Opening line of a code block: indentation, fence, language.
FENCE = re.compile(r"( {0,3})(`{3,}|~{3,})(.*)")
_LABEL = re.compile(r"\[([^\[\]]+)\]")


class Unit(Struct):
    """A top-level block or unindented list item: tokens, first line, line after the last. `sign`
    distinguishes lists.
    """

    tokens: list[Token]
    start: int
    end: int
    sign: str = ""

    @property
    def kind(self) -> str:
        return self.tokens[0].type

    @property
    def too_deep(self) -> bool:
        return any(token.level >= MOST_NESTED - 1 for token in self.tokens)


def units_of(tokens: Sequence[Token], source: Sequence[str]) -> list[Unit]:
    units: list[Unit] = []
    at = 0
    while at < len(tokens):
        token, end = tokens[at], at
        while token.nesting and not (tokens[end].level == 0 and tokens[end].nesting < 0):
            end += 1
        start, stop = token.map or (0, 0)
        if token.type in ("bullet_list_open", "ordered_list_open"):
            items = [
                number
                for number in range(at + 2, end)
                if (one := tokens[number]).type == "list_item_open"
                and one.level == 1
                and one.map
                and source[one.map[0]][:1] not in ("", " ", "\t")
            ]
            firsts = [start, *((tokens[number].map or (0, 0))[0] for number in items)]
            edges, lines = pairwise([at, *items, end + 1]), pairwise([*firsts, stop])
            sign = token.type[0] + token.markup
            units += [
                Unit(list(tokens[left:right]), top, bottom, sign)
                for (left, right), (top, bottom) in zip(edges, lines, strict=True)
            ]
        else:
            units.append(Unit(list(tokens[at : end + 1]), start, stop))
        at = end + 1
    return units


def is_open_fence(unit: Unit, source: Sequence[str], growing: bool) -> bool:
    """While the text grows, the opening line must be complete."""
    if unit.kind != "fence" or (growing and unit.start >= len(source) - 1):
        return False
    found = FENCE.match(source[unit.start])
    return found is not None and not (unit.end - 1 > unit.start and closes(source[unit.end - 1], found[2]))


def may_change(units: Sequence[Unit], source: Sequence[str]) -> int:
    """Number of last blocks that more text may change."""
    if len(units) > 1 and source[-1] and units[-1].start >= len(source) - 2:
        return 2
    return min(len(units), 1)


def closes(line: str, sign: str) -> bool:
    bare = line.strip(" \t")
    return len(line) - len(line.lstrip(" ")) <= 3 and len(bare) >= len(sign) and set(bare) == {sign[0]}


def complete_rows(unit: Unit, source: Sequence[str], skip: int) -> Unit | None:
    """The complete rows of a table, or `None` if all of them are settled."""
    if unit.kind != "table_open" or unit.too_deep:
        return None
    last = len(source) - 1
    rows = [
        (at, token.map[0]) for at, token in enumerate(unit.tokens) if token.type == "tr_open" and token.map
    ]
    if unit.start + 1 >= last or sum(token.type == "th_open" for token in unit.tokens) > MOST_COLUMNS:
        return None
    cut_at = next((at for at, line in rows if line >= last), len(unit.tokens))
    end = max([unit.start + 2, *(line + 1 for _, line in rows if line < last)])
    return (
        Unit([*unit.tokens[:cut_at], Token("table_close", "table", -1)], unit.start, end)
        if end > skip
        else None
    )


def labels_of(tokens: Sequence[Token]) -> set[str]:
    return {
        normalizeReference(label)
        for token in tokens
        if token.type == "inline" and "[" in token.content
        for label in _LABEL.findall(token.content)
    }


#: Limits of a drawn message.
MOST_LINES = 20_000
MOST_CHARACTERS = 2_000_000
#: Initial characters of a parsed part.
WINDOW = 64_000

TOO_DEEP = "Shown as plain text: its Markdown is too long or nested too deeply."
TOO_LONG = "The rest of this message is not shown here; copy it, or read it with `tui-agent sessions show`."

_LONG = re.compile(rf"^.{{{MOST_IN_LINE + 1},}}$", re.MULTILINE)


class DrawnLines(Struct, frozen=True):
    """The first `kept` lines are unchanged since the last reading."""

    lines: tuple[AnyLine, ...] = ()
    kept: int = 0


class _Fence(Struct):
    """`first` is the index of the first line."""

    sign: str
    indent: int
    info: str
    first: int
    code: list[str]


class _Rows(Struct):
    """An open table: source of its two header lines, index of its first line, column widths."""

    head: str
    first: int
    table: Table


class Reading:
    """Call `read` in a thread for long additions."""

    def __init__(self, *, parsed: bool = True) -> None:
        self._parsed = parsed
        self._text = ""
        self._ended = False
        self._links: dict[str, Any] = {}
        self._start_over()

    def _start_over(self) -> None:
        self._read = 0
        self._settled: list[AnyLine] = []
        self._kept = 0
        self._within: ListContext | None = None
        self._fence: _Fence | None = None
        self._rows: _Rows | None = None
        self._plain = self._tail_plain = False
        #: Drawn names in brackets without a link definition so far.
        self._labels: set[str] = set()
        self.uncoloured: list[UnhighlightedCode] = []

    def read(self, text: str, *, growing: bool = False) -> DrawnLines:
        notes = [TOO_LONG] if len(text) > MOST_CHARACTERS else []
        text = text[:MOST_CHARACTERS]
        if not text.startswith(self._text) or (self._ended and text != self._text):
            self._links = {}
            self._start_over()
        self._text, self._ended = text, not growing
        self._kept, self._tail_plain = len(self._settled), False
        tail = self._go_on(growing)
        lines = [*self._settled, *tail]
        if len(lines) > MOST_LINES:
            notes = [TOO_LONG]
        notes += [TOO_DEEP] if self._plain or self._tail_plain else []
        lines[MOST_LINES:] = []
        lines += [TextLine(Content.styled(note, "$muted")) for note in notes]
        return DrawnLines(tuple(lines), min(self._kept, len(self._settled), MOST_LINES))

    def colour(self, of: UnhighlightedCode, contents: Sequence[Content], before: DrawnLines) -> DrawnLines:
        """`before` with highlighted code, or unchanged if the code has disappeared."""
        if of not in self.uncoloured:
            return before
        self.uncoloured.remove(of)
        fresh = list(marked(contents, of.first, of.hang, code=True))
        self._settled[of.line : of.line + len(fresh)] = fresh
        shown = fresh[: max(MOST_LINES - of.line, 0)]
        if not shown:
            return before
        below = before.lines[of.line + len(shown) :]
        return DrawnLines((*before.lines[: of.line], *shown, *below), min(of.line, before.kept))

    def _go_on(self, growing: bool) -> list[AnyLine]:
        if not self._parsed:
            rest = self._text[self._read :]
            end = rest.rfind("\n") + 1 if growing else len(rest)
            self._read += end
            if end:
                self._settled += _plain_lines(rest[:end].removesuffix("\n") if growing else rest)
            return _plain_lines(rest[end:]) if growing else []
        window = WINDOW
        while len(self._settled) <= MOST_LINES:
            if self._fence is not None:
                fence = self._fence
                if self._read_code(fence, growing):
                    continue
                line = clean(self._text[self._read :])
                may_close = fence.code and (not line or set(line.strip()) == {fence.sign[0]})
                return [] if may_close else [TextLine(part, code=True) for part in cut(Content(line))]
            before, left = self._read, len(self._text) - self._read
            if not left:
                return []
            rest = self._text[before : before + window]
            long = _LONG.search(rest)
            if long is not None and not long.start():
                if growing and self._text.find("\n", before) < 0:
                    return self._long_line(self._text[before:])
                self._settled += self._long_line(self._next_line())
                self._plain, self._within, self._rows = True, None, None
                continue
            part = clean(rest[: long.start()] if long else rest)
            tail = self._read_blocks(part, long is None and (growing or left > window))
            if self._read == before and self._fence is None:
                if left <= window:
                    return tail
                window *= 2
        return []

    def _next_line(self) -> str:
        end = self._text.find("\n", self._read)
        end = len(self._text) if end < 0 else end
        line, self._read = self._text[self._read : end], min(end + 1, len(self._text))
        return line.removesuffix("\r")

    def _read_blocks(self, part: str, growing: bool) -> list[AnyLine]:
        """Settles the complete blocks and rows of `part`. Returns the lines of the open blocks, or none if
        the next call reads the rest.
        """
        head = self._rows.head if self._rows else ""
        skip = head.count("\n")
        source = (head + part).split("\n")
        env: dict[str, Any] = {"references": dict(self._links)}
        units = units_of(PARSER.parse(head + part, env), source)
        fence = units[-1] if units and is_open_fence(units[-1], source, growing) else None
        waiting = 0 if not growing or fence is not None else may_change(units, source)
        open_ = units[len(units) - waiting :]
        rows = complete_rows(open_[0], source, skip) if len(open_) == 1 else None
        closed = units[: len(units) - waiting - (fence is not None)]
        if fence is not None:
            end = fence.start
        elif open_:
            end = rows.end if rows else open_[0].start
        else:
            end = skip if growing else len(source) - (source[-1] == "")
        known_to = end if growing else len(source)
        links = {
            name: link
            for name, link in env["references"].items()
            if name not in self._links and link["map"][0] < known_to
        }
        self._links |= links
        if not self._labels.isdisjoint(links):
            self._start_over()
            return []
        if end <= skip and open_:
            if open_[0].start >= skip:
                self._rows = None
            return self._open_blocks(open_, source, env["references"])
        self._settle([*closed, rows] if rows else closed, source, skip, open_[0] if open_ else None)
        for _ in range(end - skip):
            self._next_line()
        if fence is not None:
            info = fence.tokens[0].info
            opening = FENCE.match(source[fence.start])
            assert opening is not None
            if self._settled:
                self._settled.append(TextLine(Content()))
            self._fence = _Fence(opening[2], len(opening[1]), info, len(self._settled), [])
            self._settled.append(head_of(info))
            self._next_line()
        return []

    def _settle(self, units: Sequence[Unit], source: Sequence[str], skip: int, open_: Unit | None) -> None:
        drawer = self._drawer(source, units[0] if units else None, self._links)
        for unit in units:
            pause()
            if skip and not unit.start and (there := self._rows) is not None:
                rows = drawer.rows(unit.tokens)[1:]
                table = Table.of(rows, there.table)
                if table != there.table:  # wider columns
                    there.table = table
                    self._kept = min(self._kept, there.first)
                    self._settled[there.first :] = [
                        TableLine(table, line.cells, line.first)
                        for line in self._settled[there.first :]
                        if isinstance(line, TableLine)
                    ]
                self._settled += [TableLine(table, row) for row in rows]
            else:
                self._settled += _drawn(drawer, unit, source, len(self._settled))
            self._labels |= labels_of(unit.tokens) - self._links.keys()
        self.uncoloured += drawer.uncoloured
        self._plain = self._plain or drawer.plain
        self._within = None
        if open_ is not None and open_.sign and open_.kind == "list_item_open":
            self._within = ListContext(drawer.number, open_.sign, not source[open_.start - 1].strip())
        if open_ is None or open_.kind != "table_open" or not skip or open_.start:
            self._rows = None
            last = units[-1] if units and open_ is not None and units[-1].start == open_.start else None
            if last is not None and last.kind == "table_open":
                first = len(self._settled) - sum(token.type == "tr_open" for token in last.tokens)
                head = "".join(f"{text}\n" for text in source[last.start : last.start + 2])
                if isinstance(line := self._settled[first], TableLine):
                    self._rows = _Rows(head, first, line.table)

    def _drawer(self, source: Sequence[str], first: Unit | None, links: dict[str, Any]) -> Blocks:
        within = self._within
        if within is not None and (first is None or first.start or first.sign != within.sign):
            within = None
        return Blocks(source, links, bool(self._settled), within)

    def _open_blocks(
        self, units: Sequence[Unit], source: Sequence[str], links: dict[str, Any]
    ) -> list[AnyLine]:
        drawer = self._drawer(source, units[0], links)
        lines: list[AnyLine] = []
        for unit in units:
            if self._rows is not None and not unit.start:
                lines += [TableLine(self._rows.table, row) for row in drawer.rows(unit.tokens)[1:]]
            else:
                lines += _drawn(drawer, unit, source, 0, colours=False)
        self._tail_plain = drawer.plain
        return lines

    def _read_code(self, fence: _Fence, growing: bool) -> bool:
        """Returns whether the block has ended."""
        while True:
            if growing and self._text.find("\n", self._read) < 0:
                return False
            if self._read >= len(self._text):
                break
            pause()
            line = clean(self._next_line())
            if closes(line, fence.sign):
                break
            line = line[min(fence.indent, len(line) - len(line.lstrip(" "))) :]
            fence.code.append(line)
            self._settled += [TextLine(part, code=True) for part in cut(Content(line))]
        drawer = Blocks((), {}, False, None)
        self._settled[fence.first :] = drawer.code("\n".join(fence.code), fence.info, fence.first)
        self.uncoloured += drawer.uncoloured
        self._kept = min(self._kept, fence.first)
        self._fence = None
        return True

    def _long_line(self, line: str) -> list[AnyLine]:
        self._tail_plain = True
        return [*([TextLine(Content())] if self._settled else []), *_plain_lines(line)]


def _plain_lines(text: str) -> list[AnyLine]:
    text = clean(f"{text}\n").removesuffix("\n")
    return [TextLine(part) for line in text.split("\n") for part in cut(Content(line))]


def _drawn(drawer: Blocks, unit: Unit, source: Sequence[str], at: int, colours: bool = True) -> list[AnyLine]:
    if unit.too_deep:
        drawer.skip(unit.tokens)
        return [*drawer.text("\n".join(source[unit.start : unit.end]).rstrip("\n"))]
    return [*drawer.lines(unit.tokens, at, colours)]
