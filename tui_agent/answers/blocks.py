"""Search/replace blocks: the markers that open, divide and close one, each in its exact form and place."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from msgspec import Struct

from tui_agent.answers.values import SearchReplace

_OPEN = re.compile(r"(<{5,9}|-{5,9}) ?SEARCH>?[ \t]*$")
_CLOSE = re.compile(r"(>{5,9}|\+{5,9}) ?REPLACE[ \t]*$")
_CLOSES = {"<": ">", "-": "+"}
#: A marker of this family or of another tool's, in whatever form.
_ANY = re.compile(
    r"[ \t]*(?:[<>]{5,9}[ \t]*[A-Za-z]|[<>|]{7}[ \t]*$|[-=+]{5,9}[ \t]*(?:SEARCH|REPLACE|ORIGINAL|UPDATED)\b)"
)
_OPENS_ANY = re.compile(r"[ \t]*(?:<{5,9}[ \t]*[A-Za-z]|-{5,9}[ \t]*(?:SEARCH|ORIGINAL)\b)")
#: What some tools write below the opening marker: the line number, and a rule.
_HINT = re.compile(r":(?:start|end)_line:[ \t]*\d+[ \t]*$")
_RULE = "-------"


class Block(Struct, frozen=True):
    """One block: what it says, or why it cannot be read; `end` is the line after its last one.

    `open` says that no marker closed it: then `end` is where the search for one ended.
    """

    end: int
    edit: SearchReplace | None = None
    fault: str = ""
    open: bool = False


def begins(line: str) -> bool:
    return _OPEN.match(line) is not None


def resembles(line: str) -> bool:
    """Whether a line looks like the opening marker of a block, whoever's and however it is written."""
    return _OPENS_ANY.match(line) is not None


def has_marker(line: str) -> bool:
    """Whether a line looks like any marker of a block, or of a conflict."""
    return _ANY.match(line) is not None


def read(lines: Sequence[str], at: int, marked: Iterable[int]) -> Block:
    """The block that is opened in line `at`; `marked` are the lines below that may hold a marker, in order.

    The divider is a line of as many `=` as the opening marker has signs. Two of them, or a conflict's markers
    inside the block, leave open which text is searched for: then it is refused.
    """
    opening = _OPEN.match(lines[at])
    assert opening is not None
    sign, size = opening[1][0], len(opening[1])
    dividers: list[int] = []
    fault = ""
    last = at
    for number in marked:
        line = lines[number]
        last = number
        if _OPEN.match(line):
            return Block(number, None, "the block before it was not finished", True)
        closing = _CLOSE.match(line)
        if closing:
            if closing[1][0] != _CLOSES[sign] or len(closing[1]) != size:
                fault = fault or "its last marker does not fit its first"
            return _closed(lines, at, dividers, number, fault)
        if line.rstrip() == "=" * size:
            dividers.append(number)
        elif has_marker(line):
            fault = fault or "it holds the markers of a conflict, or of another block"
    return Block(last + 1, None, "a block was not finished", True)


def _closed(lines: Sequence[str], at: int, dividers: list[int], end: int, fault: str) -> Block:
    if not fault and len(dividers) != 1:
        many = "it holds more than one line that could divide it"
        fault = many if dividers else "no line in the exact form divides it"
    if fault:
        return Block(end + 1, None, fault)
    [divider] = dividers
    begin = at + 1
    while begin < divider and _HINT.match(lines[begin]):
        begin += 1
    if begin > at + 1 and begin < divider and lines[begin].rstrip() == _RULE:
        begin += 1
    return Block(end + 1, SearchReplace(_text(lines, begin, divider), _text(lines, divider + 1, end)))


def _text(lines: Sequence[str], begin: int, end: int) -> str:
    return "".join(lines[number] + "\n" for number in range(begin, end))
