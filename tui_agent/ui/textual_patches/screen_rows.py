"""The rows of one screen as they are drawn, for the plain screen.

Defect: Textual has no public way to ask for what a screen shows; `export_screenshot` makes a picture.

Figure: none; without it there is no plain screen for screen readers.

Checked with: Textual 8.2.8.

Upstream report: "A public `Screen.render_strips()` would give programs for screen readers the text that is shown."
"""

from __future__ import annotations

from typing import Any

from textual._context import visible_screen_stack
from textual.screen import Screen
from textual.strip import Strip


def rows_of(screen: Screen[Any]) -> list[Strip]:
    """The rows of this screen alone, without those that lie behind it."""
    visible_screen_stack.set([])
    return screen._compositor.render_strips()
