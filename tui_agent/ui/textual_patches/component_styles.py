"""The styles of a widget's component classes, worked out when something is first drawn with them.

Defect: Textual looks up the rules of every component class of a widget as often as those of the widget itself: three of
four look-ups of a start, and most of a change of the focus, for widgets that nobody sees.

Figure: processor time until the first paint and until ready for keys.

Checked with: Textual 8.2.8.

Upstream report: "`Stylesheet.apply` processes all component classes of a node each time. `get_component_styles` could
do so for the class that it is asked for, and `_process_component_classes` only for those that were asked for before."
"""

from __future__ import annotations

from typing import Any

from textual.css.stylesheet import Stylesheet
from textual.dom import DOMNode

from tui_agent.ui.textual_patches.guard import missing, usable

_styles_of = DOMNode.get_component_styles


def apply() -> bool:
    known = usable(
        "component styles",
        missing(Stylesheet, _process_component_classes="self node"),
        missing(DOMNode, "_component_styles _get_component_classes", _attach="self parent"),
        missing(DOMNode, get_component_styles="self names"),
    )
    if known:
        Stylesheet._process_component_classes = _style_again  # ty: ignore[invalid-assignment]
        DOMNode.get_component_styles = _style_and_get  # ty: ignore[invalid-assignment]
    return known


def _style_again(stylesheet: Stylesheet, node: DOMNode) -> None:
    """The rules may be others: what the node was drawn with is looked up again, and the node drawn again."""
    before = list(node._component_styles)
    node._component_styles.clear()
    for component in before:
        _style(stylesheet, node, component)
    if before:
        node.refresh()


def _style_and_get(node: DOMNode, *names: str) -> Any:
    """Raises `KeyError` for a name that is not among the node's component classes, as Textual does."""
    for name in names:
        if name not in node._component_styles and name in node._get_component_classes():
            _style(node.app.stylesheet, node, name)
    return _styles_of(node, *names)


def _style(stylesheet: Stylesheet, node: DOMNode, component: str) -> None:
    """Rules reach a component as they would a child of the node with this class."""
    child = DOMNode(classes=component)
    child._attach(node)
    stylesheet.apply(child)
    node._component_styles[component] = child.styles
