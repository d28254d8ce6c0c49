"""Parses texts with tree-sitter within a time limit.

Some texts take quadratic time: 20,000 comment lines in Python take 7 s. A parser that is given the whole
text holds the GIL; a parser that requests it in pieces does not.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from time import thread_time
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from tree_sitter import Language, Parser, Query, Tree

_PIECE: Final = 4096


class _Source:
    """Provides a text to a parser and its tree; ends early if `given_up` returns True."""

    def __init__(self, text: bytes, seconds: float, unwanted: Callable[[], bool] | None) -> None:
        self._text = text
        self._until = thread_time() + seconds
        self._unwanted = unwanted
        self.given_up = self.parsed = False

    def __call__(self, offset: int, _: object = None) -> bytes:
        return b"" if self.over() else self._text[offset : offset + _PIECE]

    def over(self, *_: object) -> bool:
        if not self.parsed and not self.given_up:
            self.given_up = thread_time() > self._until or bool(self._unwanted and self._unwanted())
        return self.given_up

    def finish(self) -> None:
        self.parsed, self._unwanted = True, None


def parse(
    parser: Parser,
    text: bytes,
    seconds: float,
    old: Tree | None = None,
    unwanted: Callable[[], bool] | None = None,
) -> Tree | None:
    """None after `seconds` of the thread's processor time, or if `unwanted` returns True."""
    source = _Source(text, seconds, unwanted)
    before = (old,) if old is not None else ()
    try:
        tree = parser.parse(source, *before, progress_callback=source.over)
    except ValueError:
        if not source.given_up:
            raise
        tree = None
    source.finish()
    if source.given_up:
        parser.reset()
        return None
    return tree


@cache
def prepared(language: Language, query: str) -> Query:
    """A cached query; compiling one takes 20 ms."""
    from tree_sitter import Query

    return Query(language, query)
