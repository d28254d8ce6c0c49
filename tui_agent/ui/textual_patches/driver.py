"""Access to an application's driver for output other than frames.

Defect: only the private driver writes a title, a bell or copied text to the terminal. Without the patch
the terminal has no title, and the program cannot be suspended.

Upstream report: "`App.driver` could be public, as `Driver.write` is."
"""

from __future__ import annotations

from typing import Any

from textual.app import App
from textual.driver import Driver

from tui_agent.ui.textual_patches.guard import missing, usable


def driver_of(app: App[Any]) -> Driver | None:
    """`None` before the screen exists, or if the name is missing."""
    return app._driver if usable("driver", missing(App, "_driver")) else None
