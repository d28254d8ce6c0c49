"""Limits restyling on focus changes to the affected widgets.

Defect: Textual restyles the whole pane on each focus change, even if the focus remains in the pane.

Figure: a change of the focus; 10 to 16 ms for an editor without the patch.

Upstream report: "`Screen._update_focus_styles` could style only nodes whose rules use `:focus-within`."
"""

from __future__ import annotations

from textual.dom import DOMNode
from textual.screen import Screen, ScreenResultType
from textual.widget import Widget

from tui_agent.ui.textual_patches.guard import missing, plain_unless


@plain_unless(
    "focus styles",
    missing(Screen, _update_focus_styles="self focused blurred"),
    missing(DOMNode, "_has_focus_within"),
)
class FocusStylesScreen(Screen[ScreenResultType]):
    def _update_focus_styles(self, focused: Widget | None = None, blurred: Widget | None = None) -> None:
        into, out_of = (set(one.ancestors_with_self) if one else set() for one in (focused, blurred))
        styled: set[DOMNode] = set()
        for node in into ^ out_of:
            if node._has_focus_within:
                styled.update(one for one in node.walk_children(with_self=True) if one._has_focus_within)
        self.app.stylesheet.update_nodes(styled, animate=True)
