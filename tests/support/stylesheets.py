"""Style sheets of Textual, parsed once in a process for all applications with the same variables.

An eighth of what a test computes until its screen is in place. What is parsed is not changed by who uses it: Textual
itself gives one stylesheet's rules to every widget.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from textual.css.model import RuleSet
from textual.css.stylesheet import Stylesheet

_begin, _set_variables = Stylesheet.__init__, Stylesheet.set_variables


def share() -> None:
    """Have all stylesheets of this process with the same variables keep in one place what they parse."""
    Stylesheet.__init__ = _begin_shared  # ty: ignore[invalid-assignment]
    Stylesheet.set_variables = _set_variables_shared  # ty: ignore[invalid-assignment]


def _begin_shared(sheet: Any, *, variables: dict[str, str] | None = None) -> None:
    _begin(sheet, variables=variables)
    sheet._parse_cache = _parsed(frozenset(sheet._variables.items()))


def _set_variables_shared(sheet: Any, variables: dict[str, str]) -> None:
    sheet._parse_cache = {}  # is emptied
    _set_variables(sheet, variables)
    sheet._parse_cache = _parsed(frozenset(variables.items()))


@cache
def _parsed(variables: frozenset[tuple[str, str]]) -> dict[tuple[object, ...], list[RuleSet]]:
    return {}
