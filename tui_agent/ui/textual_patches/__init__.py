"""Patches of Textual: all that relies on its private names, one file each, and only here.

Each file states the defect, the figure it improves, the versions it was checked with, and the text of a report
upstream. Each looks first whether the names that it needs are there and take what they take (`guard.py`); if not, it is
skipped with one line in the debug log, and the program runs on plain Textual, only slower. `TUI_AGENT_PATCHES=none`
skips all of them.
"""

from __future__ import annotations

from functools import cache

from tui_agent.ui.textual_patches.guard import module_of

#: Those that change Textual's own classes; the others are bases of widgets of ours, which fall back by themselves.
PATCHES = ("component_styles", "notices", "strip_caches", "styles_cache", "tall_widgets")


@cache
def apply() -> list[str]:
    """Apply each that can be, once in the life of the process; the names of those that are in force."""
    return [name for name in PATCHES if (module := module_of(name)) is not None and module.apply()]
