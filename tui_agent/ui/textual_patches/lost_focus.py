"""The focus if the widget that has it is removed or hidden.

Defect: Textual gives it to the widget that was next to it, whatever pane that is in.

Figure: none; without it the focus may leave the pane where the person is.

Checked with: Textual 8.2.8.

Upstream report: "A screen could say which widget has the focus next, if the one that has it is removed."
"""

from __future__ import annotations

from textual.screen import Screen, ScreenResultType
from textual.widget import Widget

from tui_agent.ui.textual_patches.guard import missing, plain_unless


@plain_unless("lost focus", missing(Screen, _reset_focus="self widget avoiding"))
class LostFocusScreen(Screen[ScreenResultType]):
    def _focus_instead(self) -> Widget | None:
        """The widget that has the focus next; None if Textual decides."""
        raise NotImplementedError

    def _reset_focus(self, widget: Widget, avoiding: list[Widget] | None = None) -> None:
        entry = self._focus_instead()
        if self.focused is widget and entry and entry.focusable and entry not in (widget, *(avoiding or ())):
            self.set_focus(entry)
        else:
            super()._reset_focus(widget, avoiding)
