"""Container of all panes: positions each pane and its title line at any screen size."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import partial
from typing import Self

from msgspec.structs import replace
from rich.cells import cell_len
from textual import events
from textual.content import Content
from textual.geometry import NULL_OFFSET, NULL_SPACING, Region, Size
from textual.layout import ArrangeResult, Layout, WidgetPlacement
from textual.message import Message
from textual.widget import Widget

from tui_agent.store.layout import LayoutSlice
from tui_agent.ui.layout.areas import Area, Axis, areas
from tui_agent.ui.layout.space_needs import AT_FIRST, Needs
from tui_agent.ui.panes import PANES
from tui_agent.ui.safe_text import label
from tui_agent.ui.widgets.line_view import fit
from tui_agent.ui.widgets.pane import Pane

#: Cells between two titles.
_GAP = 3
#: State symbols in titles, with their colours.
_COLOURS = {"●": "accent", "⚠": "warning", "?": "warning", "✗": "failed", "◌": "warning"}
_MARKS = re.compile(rf" [{''.join(_COLOURS)}]\d*")
_COUNTED = re.compile(rf"\S+( [\d,/]+\b| [{''.join(_COLOURS)}]\d*)*")


def _whole(title: str) -> str:
    return title


def _counts(title: str) -> str:
    found = _COUNTED.match(title)
    return found[0] if found else title


def _cut(letters: int, title: str) -> str:
    name, space, counts = _counts(title).partition(" ")
    return name[:letters] + space + counts


_SHORTER = [partial(_cut, letters) for letters in (6, 4, 3, 2, 1)]


class TabLine(Widget):
    """A row of pane titles; clicking one requests its pane."""

    DEFAULT_CSS = """
    TabLine { height: 1; background: $background; color: $muted; padding: 0 1 0 2; }
    """

    class TabPressed(Message):
        def __init__(self, pane: str) -> None:
            super().__init__()
            self.pane = pane

    def __init__(self) -> None:
        super().__init__()
        self._tabs: list[tuple[str, str | Content]] = []
        self._front = ""
        self._focused = False
        #: Pane whose title received the mouse press; titles may move before the release.
        self._pressed = ""

    def show(self, tabs: list[tuple[str, str | Content]], front: str, focus: str) -> None:
        """`tabs` are (pane, title) pairs; `front` is the visible pane, `focus` the focused one."""
        focused = front == focus
        if (tabs, front, focused) == (self._tabs, self._front, self._focused):
            return
        self._tabs, self._front, self._focused = tabs, front, focused
        self.refresh()

    def render(self) -> Content:
        return Content(" " * self._gap).join(self._labels())

    @property
    def _gap(self) -> int:
        needed = sum(len(title) + _GAP for _, title in self._tabs) - _GAP
        return _GAP if needed <= self.size.width else 1

    def _labels(self) -> list[Content]:
        """If they do not fit, all drop their details, then shorten their names; counts remain."""
        titles = [title.plain if isinstance(title, Content) else title for _, title in self._tabs]
        if len(titles) == 1:
            return [self._label(self._tabs[0][0], fit(titles[0], self.size.width))]
        room = self.size.width - self._gap * (len(titles) - 1)
        for shorter in (_whole, _counts, *_SHORTER):
            words = [shorter(title) for title in titles]
            if sum(map(cell_len, words)) <= room:
                break
        return [self._label(pane, text) for (pane, _), text in zip(self._tabs, words, strict=True)]

    def _label(self, pane: str, text: str) -> Content:
        front = pane == self._front
        style = "$muted" if not front else "bold $accent" if self._focused else "bold $text"
        words = label(text, style)
        for found in _MARKS.finditer(words.plain.partition(" · ")[0]):
            words = words.stylize(f"${_COLOURS[found[0].strip()[0]]}", *found.span())
        return words

    def on_mouse_down(self, event: events.MouseDown) -> None:
        self._pressed = ""
        x = event.get_content_offset_capture(self).x
        for (pane, _), shown in zip(self._tabs, self._labels(), strict=True):
            x -= shown.cell_length + self._gap
            if x < 0:
                self._pressed = pane
                return

    def on_click(self) -> None:
        if self._pressed:
            self.post_message(self.TabPressed(self._pressed))


#: Screen rows below the workspace: the status line.
ROWS_BELOW = 1


class Blank(Widget):
    """Placeholder for a pane, so that the first frame can be drawn before panes are mounted."""

    DEFAULT_CSS = "Blank { background: $surface; color: $text; border-left: wide $edge; padding: 0 1; }"

    def __init__(self, pane: str) -> None:
        super().__init__(id=f"blank-{pane}")

    def render(self) -> Content:
        """Empty: without `render`, a widget draws its own name."""
        return Content()


class RegionLayout(Layout):
    """Positions children at the workspace's regions."""

    name = "places"

    def arrange(
        self, parent: Widget, children: list[Widget], size: Size, greedy: bool = True
    ) -> ArrangeResult:
        assert isinstance(parent, PaneContainer)
        regions = parent.regions(size)
        return [
            WidgetPlacement(regions[child], NULL_OFFSET, NULL_SPACING, child)
            for child in children
            if child in regions
        ]


class PaneContainer(Widget):
    """Holds all panes; only front panes are displayed."""

    class Dragged(Message):
        """The part after a pane was dragged by a number of cells, by the gap beside it or the title below
        it."""

        def __init__(self, pane: str, axis: Axis, cells: int) -> None:
            super().__init__()
            self.pane = pane
            self.axis: Axis = axis
            self.cells = cells

    DEFAULT_CSS = "PaneContainer { width: 1fr; height: 1fr; background: $background; }"

    def __init__(self) -> None:
        super().__init__(id="workspace")
        #: Mounted panes, and placeholders for visible panes not yet mounted.
        self._by_id: dict[str, Widget] = {}
        self._composed = False
        self._lines: list[TabLine] = []
        self._arrangement = LayoutSlice()
        self.needs: Needs = AT_FIRST
        self._in_places = RegionLayout()
        self._found: list[Area] = []
        #: Arguments of the cached `areas` result: titles, sizes and layout all request it for the same state.
        self._asked: tuple[Size, LayoutSlice, Needs, bool] | None = None
        self._areas: list[Area] = []
        #: Whether a single pane fills the container.
        self.one_at_a_time = False
        #: Pane before the dragged gap or above the dragged title, and the drag axis.
        self._held = ""
        self._axis: Axis = "width"

    def compose(self) -> Iterable[Widget]:
        # Arranged before the container has a size, so that the first frame is drawn once, titles included.
        self._place_areas(self.areas(self.app.size - Size(0, ROWS_BELOW)))
        self._composed = True
        yield from self._lines
        yield from self._by_id.values()

    @property
    def layout(self) -> Layout:
        return self._in_places

    def refresh(
        self, *regions: Region, repaint: bool = True, layout: bool = False, recompose: bool = False
    ) -> Self:
        """A layout change repaints only the panes it affects; the container itself is just the background."""
        return super().refresh(*regions, repaint=repaint and not layout, layout=layout, recompose=recompose)

    async def put(self, pane: Pane) -> None:
        """Mount a pane, replacing its placeholder in position so that no other pane is redrawn."""
        blank = self._by_id.get(pane.ID)
        pane.display = blank is not None and blank.display
        self._by_id[pane.ID] = pane
        with self.app.batch_update():
            await self.mount(pane, after=blank)
            if blank is not None:
                await blank.remove()
        self.arranged(self._arrangement)

    def pane(self, name: str) -> Pane | None:
        """The mounted pane, or `None`."""
        found = self._by_id.get(name)
        return found if isinstance(found, Pane) else None

    @property
    def panes(self) -> list[Pane]:
        return [pane for name in PANES if (pane := self.pane(name)) is not None]

    def front_panes(self) -> list[str]:
        return [place.front for place in self.areas(self.size) if place.front]

    def areas(self, size: Size) -> list[Area]:
        layout = self._arrangement
        asked = (size, layout, self.needs, self.one_at_a_time)
        if asked != self._asked:
            if self.one_at_a_time:
                layout = replace(layout, zoomed=layout.focus)
            self._asked, self._areas = asked, areas(size, layout, self.needs)
        return self._areas

    def arranged(self, layout: LayoutSlice, needs: Needs | None = None) -> None:
        self._arrangement = layout
        self.needs = self.needs if needs is None else needs
        if self.size:
            self._place_areas(self.areas(self.size))

    def _place_areas(self, found: list[Area]) -> None:
        fronts = {place.front for place in found if place.front}
        for name in fronts - self._by_id.keys():
            self._by_id[name] = Blank(name)
            if self._composed:
                self.mount(self._by_id[name])
        for name, widget in self._by_id.items():
            widget.display = name in fronts
        for place in found:
            pane, shared = self._by_id.get(place.front), len(place.panes) > 1
            if pane is not None and pane.has_class("-shared") != shared:
                pane.set_class(shared, "-shared", update=False)
                # Avoids Textual's restyling of the pane's whole subtree.
                self.app.stylesheet.update_nodes(pane.query_children("FileTabs"))
        self._title_lines(found)
        if found != self._found:
            self._found = found
            self.refresh()
            self._lines[0].refresh(
                layout=True
            )  # a cached arrangement is reused until a child requests a new one

    def regions(self, size: Size) -> dict[Widget, Region]:
        """The region of each displayed child."""
        found: dict[Widget, Region] = {}
        places = self.areas(size)
        found.update(zip(self._lines, (place.header for place in places), strict=False))
        for place in places:
            if place.front in self._by_id:
                found[self._by_id[place.front]] = place.body
        return found

    def on_mouse_down(self, event: events.MouseDown) -> None:
        x, y = event.screen_x, event.screen_y
        self._held = next(
            (p.front for p in self._found if p.body.right == x and p.header.y <= y < p.body.bottom), ""
        )
        below = any(p.front and p.header.contains(x, y) for p in self._found)
        over = (p.front for p in self._found if p.body.bottom == y and p.body.x <= x < p.body.right)
        self._axis = "width" if self._held else "height"
        self._held = self._held or (next(over, "") if below else "")
        if self._held and self._axis == "width":
            self.capture_mouse()

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """A title drag starts with the first move; until then the press may be a click."""
        held = next((place for place in self._found if self._held and self._held == place.front), None)
        if held is None:
            return
        wide = self._axis == "width"
        cells = event.screen_x - held.body.right if wide else event.screen_y - held.body.bottom
        if cells:
            if not wide:
                self.capture_mouse()
            self.post_message(self.Dragged(self._held, self._axis, cells))

    def on_mouse_up(self) -> None:
        if self._held:
            self._held = ""
            self.release_mouse()

    def on_resize(self, event: events.Resize) -> None:
        self.arranged(self._arrangement)

    def on_pane_retitled(self, message: Pane.Retitled) -> None:
        message.stop()
        self._title_lines(self.areas(self.size))

    def _title_lines(self, found: list[Area]) -> None:
        added = [TabLine() for _ in found[len(self._lines) :]]
        self._lines += added
        if self._composed:
            self.mount(*added)
        for line, place in zip(self._lines, found, strict=False):
            line.display = place.header.height > 0
            line.show(
                [(name, self._title(name)) for name in place.panes], place.front, self._arrangement.focus
            )
        for line in self._lines[len(found) :]:
            line.display = False

    def _title(self, name: str) -> str | Content:
        pane = self.pane(name)
        return pane.title_text if pane else PANES[name].title
