"""The driver of an application, for what the terminal is told besides the picture.

Defect: an application can write a title, a bell or a copied text to its terminal only by its private driver.

Figure: none; without it the terminal has no title, and the program is not suspended.

Checked with: Textual 8.2.8.

Upstream report: "`App.driver` could be public, as `Driver.write` is."
"""

from __future__ import annotations

from typing import Any

from textual.app import App
from textual.driver import Driver

from tui_agent.ui.textual_patches.guard import missing, usable


def driver_of(app: App[Any]) -> Driver | None:
    """None before the screen is there, or if there is no such name."""
    return app._driver if usable("driver", missing(App, "_driver")) else None
