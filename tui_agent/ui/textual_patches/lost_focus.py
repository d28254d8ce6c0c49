"""Chooses the next focus after removal or hiding of the focused widget.

Defect: Textual focuses the adjacent widget, even in another pane. Without the patch keys may go to that pane.

Upstream report: "A screen could choose the next focus when the focused widget is removed."
"""

from __future__ import annotations

from textual.screen import Screen, ScreenResultType
from textual.widget import Widget

from tui_agent.ui.textual_patches.guard import missing, plain_unless


@plain_unless("lost focus", missing(Screen, _reset_focus="self widget avoiding"))
class LostFocusScreen(Screen[ScreenResultType]):
    def _focus_instead(self) -> Widget | None:
        raise NotImplementedError

    def _reset_focus(self, widget: Widget, avoiding: list[Widget] | None = None) -> None:
        entry = self._focus_instead()
        if self.focused is widget and entry and entry.focusable and entry not in (widget, *(avoiding or ())):
            self.set_focus(entry)
        else:
            super()._reset_focus(widget, avoiding)
