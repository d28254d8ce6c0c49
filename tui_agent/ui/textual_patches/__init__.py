"""Patches of Textual that use its private names, one file each, checked with Textual 8.2.8.

Each file states the defect, the figure it improves and an upstream report. A patch first verifies the
required names and signatures (`guard.py`). If they differ, it is skipped with a line in the debug log,
and the program runs on plain Textual, only slower. `TUI_AGENT_PATCHES=none` skips all patches.
"""

from __future__ import annotations

from functools import cache

from tui_agent.ui.textual_patches.guard import module_of

#: Patches of Textual's own classes. The others are base classes of our widgets with their own fallback.
PATCHES = ("component_styles", "notices", "strip_caches", "styles_cache", "tall_widgets", "timers")


@cache
def apply() -> list[str]:
    """Applies the usable patches, once per process."""
    return [name for name in PATCHES if (module := module_of(name)) is not None and module.apply()]
