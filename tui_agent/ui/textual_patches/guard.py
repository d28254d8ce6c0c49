"""Checks that the private names required by a patch exist with the expected signatures."""

from __future__ import annotations

import inspect
import logging
import os
from collections.abc import Callable
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any, TypeVar

_log = logging.getLogger(__name__)
SWITCH = "TUI_AGENT_PATCHES"
_Class = TypeVar("_Class", bound=type)


@cache  # some patches ask at each key and frame, and the log has one line for each
def usable(patch: str, *problems: str) -> bool:
    """Whether a patch is usable, given the results of `missing`; the debug log has the reasons."""
    problem = "switched off" if os.environ.get(SWITCH) == "none" else next(filter(None, problems), "")
    if problem:
        _log.warning("Textual is not patched, %s: %s", patch, problem)
    return not problem


def plain_unless(patch: str, *problems: str) -> Callable[[_Class], _Class]:
    """Class decorator that removes overrides of Textual's private methods if the patch is unusable."""

    def of(patched: _Class) -> _Class:
        if not usable(patch, *problems):
            for name in dict(vars(patched)):
                private = name.startswith("_") and not name.startswith("__")
                if private and any(hasattr(base, name) for base in patched.__mro__[1:]):
                    delattr(patched, name)
        return patched

    return of


def module_of(name: str) -> ModuleType | None:
    """`None` if a required private module or name is missing."""
    try:
        return import_module(f"{__package__}.{name}")
    except (ImportError, AttributeError) as error:
        usable(name.replace("_", " "), str(error))
        return None


@cache
def missing(owner: type, attributes: str = "", **methods: str) -> str:
    """Describes the missing members of a class, or returns "". `attributes` are space-separated names set or
    declared by the class.
    """
    for name, parameters in methods.items():
        function = getattr(owner, name, None)
        if function is None or " ".join(inspect.signature(function).parameters) != parameters:
            return f"{owner.__name__}.{name} does not take {parameters}"
    wanted = attributes.split()
    for one in owner.__mro__:
        members = dict(vars(one))  # a thread that imports can add some
        wanted = [
            name for name in wanted if name not in members and name not in getattr(one, "__slots__", ())
        ]
        for value in members.values():
            if not wanted:
                return ""
            code: Any = getattr(inspect.unwrap(value) if callable(value) else value, "__code__", None)
            wanted = [name for name in wanted if not code or name not in code.co_names]
    return f"{owner.__name__} has no {wanted[0]}" if wanted else ""
