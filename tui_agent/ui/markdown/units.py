"""Top-level Markdown blocks: splitting, completeness, possible changes while streaming."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from markdown_it.common.utils import normalizeReference
from markdown_it.token import Token
from msgspec import Struct

from tui_agent.ui.markdown.rendering import MOST_COLUMNS, MOST_NESTED

#: Opening line of a code block: indentation, fence, language.
FENCE = re.compile(r"( {0,3})(`{3,}|~{3,})(.*)")
_LABEL = re.compile(r"\[([^\[\]]+)\]")


class Unit(Struct):
    """A top-level block, or part of a top-level list: tokens, first line, line after the last.

    Each unindented list item starts a unit; `sign` distinguishes lists.
    """

    tokens: list[Token]
    start: int
    end: int
    sign: str = ""

    @property
    def kind(self) -> str:
        return self.tokens[0].type

    @property
    def opens(self) -> bool:
        return self.kind != "list_item_open"

    @property
    def too_deep(self) -> bool:
        """Whether the parser omitted nested content."""
        return any(token.level >= MOST_NESTED - 1 for token in self.tokens)


def units_of(tokens: Sequence[Token], source: Sequence[str]) -> list[Unit]:
    """Splits tokens into top-level blocks, and lists before their unindented items."""
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
    """Whether `unit` is a code block without its closing fence. While the text grows, the opening line must
    be complete."""
    if unit.kind != "fence" or (growing and unit.start >= len(source) - 1):
        return False
    found = FENCE.match(source[unit.start])
    return found is not None and not (unit.end - 1 > unit.start and closes(source[unit.end - 1], found[2]))


def may_change(units: Sequence[Unit], source: Sequence[str]) -> int:
    """Returns the number of last blocks that more text may change: one, or two with an incomplete line
    below."""
    if len(units) > 1 and source[-1] and units[-1].start >= len(source) - 2:
        return 2
    return min(len(units), 1)


def closes(line: str, sign: str) -> bool:
    bare = line.strip(" \t")
    return len(line) - len(line.lstrip(" ")) <= 3 and len(bare) >= len(sign) and set(bare) == {sign[0]}


def complete_rows(unit: Unit, source: Sequence[str], skip: int) -> Unit | None:
    """Returns the complete rows of a table, or `None` if all of them are settled."""
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
    """Returns the names in brackets."""
    return {
        normalizeReference(label)
        for token in tokens
        if token.type == "inline" and "[" in token.content
        for label in _LABEL.findall(token.content)
    }
