"""Regular expressions that are compiled at their first use: a start imports over a hundred that it does not need, and
compiling them takes 26 ms of processor time."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from functools import cached_property


class Late:
    """A regular expression by its source. Its methods are those of a compiled one, which `compiled` is.

    A fault in the source raises `re.error` at the first use. Each method is looked up once and then an attribute of
    the instance, so that a call costs what a call of the compiled expression costs.
    """

    def __init__(self, pattern: str, flags: int = 0) -> None:
        self.pattern = pattern
        self._flags = flags

    @cached_property
    def compiled(self) -> re.Pattern[str]:
        return re.compile(self.pattern, self._flags)

    @cached_property
    def match(self) -> Callable[..., re.Match[str] | None]:
        return self.compiled.match

    @cached_property
    def fullmatch(self) -> Callable[..., re.Match[str] | None]:
        return self.compiled.fullmatch

    @cached_property
    def search(self) -> Callable[..., re.Match[str] | None]:
        return self.compiled.search

    @cached_property
    def finditer(self) -> Callable[..., Iterator[re.Match[str]]]:
        return self.compiled.finditer

    @cached_property
    def findall(self) -> Callable[..., list]:
        return self.compiled.findall

    @cached_property
    def split(self) -> Callable[..., list]:
        return self.compiled.split

    @cached_property
    def sub(self) -> Callable[..., str]:
        return self.compiled.sub


def late(pattern: str, flags: int = 0) -> Late:
    return Late(pattern, flags)


def compile_in(*packages: str, between: Callable[[], object] = lambda: None) -> None:
    """Compile those of the modules of these packages that are imported, for a moment in which nobody waits; `between`
    is called before each."""
    for name, module in sys.modules.copy().items():  # one step: other threads import meanwhile
        if name.startswith(packages):
            for value in vars(module).copy().values():
                if isinstance(value, Late):
                    between()
                    _ = value.compiled
