"""What Textual imports and the screen never uses, left out of its start: a command palette, in whose place ours is, and
the widgets that only it needs."""

from __future__ import annotations

import sys
from types import ModuleType


class _Placeholders(ModuleType):
    """A module with a class of each name that is asked for."""

    def __getattr__(self, name: str) -> type:
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (), {})


def import_without_palette() -> None:
    """Import `textual.app`. Whoever imports `textual.command` later gets it."""
    name = "textual.command"
    if "textual.app" in sys.modules or name in sys.modules:
        return
    sys.modules[name] = _Placeholders(name)
    try:
        import textual.app  # noqa: F401
    finally:
        del sys.modules[name]
