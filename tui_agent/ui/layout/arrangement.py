"""The layout as the person changes it: which pane is in front, zoomed or hidden, and how long each is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from msgspec.structs import replace

from tui_agent.store.state import LayoutSlice
from tui_agent.ui.layout.areas import STEPS, Axis, areas, resized
from tui_agent.ui.layout.container import PaneContainer
from tui_agent.ui.panes import PANES

if TYPE_CHECKING:
    from tui_agent.session.session import Session


class Arrangement:
    """Changes the layout that the session keeps, and shows it. `focus` leads the person to a pane."""

    def __init__(self, container: PaneContainer, focus: Callable[[str], None]) -> None:
        self._container = container
        self._focus = focus
        self.session: Session | None = None

    @property
    def layout(self) -> LayoutSlice:
        return self.session.state.layout if self.session else LayoutSlice()

    @property
    def commands(self) -> Mapping[str, Callable[[], object]]:
        """What each action about panes calls, by its id."""
        return {
            **{f"pane.{name}": partial(self._focus, name) for name in PANES},
            "pane.next": partial(self._step, 1),
            "pane.previous": partial(self._step, -1),
            "pane.zoom": self._zoom,
            "pane.hide": self._hide,
            "pane.show_all": lambda: self._arrange(replace(self.layout, zoomed="", hidden=(), sizes={})),
            "pane.wider": partial(self._lengthen, "width", 1),
            "pane.narrower": partial(self._lengthen, "width", -1),
            "pane.taller": partial(self._lengthen, "height", 1),
            "pane.shorter": partial(self._lengthen, "height", -1),
        }

    def bring_to_front(self, name: str) -> None:
        """Show a pane in front of the others in its place, as the one with the focus."""
        layout = self.layout
        hidden = tuple(pane for pane in layout.hidden if pane != name)
        layout = replace(layout, focus=name, hidden=hidden, zoomed=name if layout.zoomed else "")
        tabs = {
            area.key: name
            for area in areas(self._container.size, layout)
            if name in area.panes and not layout.zoomed
        }
        self._arrange(replace(layout, tabs={**layout.tabs, **tabs}))

    def suggest(self, name: str) -> None:
        """Put a pane in front in its place, unless the person is at work in that place."""
        layout = self.layout
        for area in areas(self._container.size, layout):
            if name in area.panes and layout.focus not in area.panes:
                self._arrange(replace(layout, tabs={**layout.tabs, area.key: name}))

    def resize(self, pane: str, axis: Axis, cells: int) -> None:
        self._arrange(resized(self._container.size, self.layout, pane, axis, cells))

    def _arrange(self, layout: LayoutSlice) -> None:
        if self.session and layout != self.layout:
            self.session.set_layout(layout)
        self._container.arranged(layout)

    def _lengthen(self, axis: Axis, steps: int) -> None:
        self.resize(self.layout.focus, axis, steps * STEPS[axis])

    def _step(self, step: int) -> None:
        shown = [name for name in PANES if name not in self.layout.hidden]
        focus = self.layout.focus
        at = shown.index(focus) if focus in shown else 0
        self._focus(shown[(at + step) % len(shown)])

    def _zoom(self) -> None:
        self._arrange(replace(self.layout, zoomed="" if self.layout.zoomed else self.layout.focus))

    def _hide(self) -> None:
        layout = self.layout
        if layout.focus != "chat":
            self._arrange(replace(layout, zoomed="", hidden=(*layout.hidden, layout.focus)))
            self._focus("chat")

    def unzoom(self) -> None:
        self._arrange(replace(self.layout, zoomed=""))

    def go_to_the_chat(self) -> None:
        self._focus("chat")
