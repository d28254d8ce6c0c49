"""Computes the styles of a widget's component classes on first use.

Defect: Textual applies the rules of every component class with those of the widget: three of four rule
look-ups at startup and most of a focus change, even for invisible widgets.

Figure: processor time until the first paint and until ready for keys.

Upstream report: "`get_component_styles` could process only the requested class, and `_process_component_classes` only
previously requested ones."
"""

from __future__ import annotations

from typing import Any

from textual.css.stylesheet import Stylesheet
from textual.dom import DOMNode

from tui_agent.ui.textual_patches.guard import missing, usable


def apply() -> bool:
    known = usable(
        "component styles",
        missing(Stylesheet, _process_component_classes="self node"),
        missing(DOMNode, "_component_styles _get_component_classes", _attach="self parent"),
        missing(DOMNode, get_component_styles="self names"),
    )
    if not known:
        return False
    styles_of = DOMNode.get_component_styles

    def style(stylesheet: Stylesheet, node: DOMNode, component: str) -> None:
        child = DOMNode(classes=component)
        child._attach(node)
        stylesheet.apply(child)
        node._component_styles[component] = child.styles

    def style_again(stylesheet: Stylesheet, node: DOMNode) -> None:
        before = list(node._component_styles)
        node._component_styles.clear()
        for component in before:
            style(stylesheet, node, component)
        if before:
            node.refresh()

    def style_and_get(node: DOMNode, *names: str) -> Any:
        for name in names:
            if name not in node._component_styles and name in node._get_component_classes():
                style(node.app.stylesheet, node, name)
        return styles_of(node, *names)

    Stylesheet._process_component_classes = style_again  # ty: ignore[invalid-assignment]
    DOMNode.get_component_styles = style_and_get  # ty: ignore[invalid-assignment]
    return True
