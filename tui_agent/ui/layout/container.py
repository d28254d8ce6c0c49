"""Places each pane and its title, and applies the user's layout changes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, ClassVar, Self

from msgspec.structs import replace
from rich.cells import cell_len
from textual import events
from textual.content import Content
from textual.geometry import NULL_OFFSET, NULL_SPACING, Region, Size
from textual.layout import ArrangeResult, Layout, WidgetPlacement
from textual.message import Message
from textual.screen import Screen
from textual.timer import Timer
from textual.widget import Widget

from tui_agent.store.layout import LayoutSlice
from tui_agent.ui.keys.keyboard import Typed
from tui_agent.ui.keys.leader import is_modifier
from tui_agent.ui.layout.areas import AT_FIRST, IN_USE, STEPS, Area, Axis, Needs, areas, needs_of, resized
from tui_agent.ui.panes import PANES
from tui_agent.ui.safe_text import label
from tui_agent.ui.widgets.line_view import fit
from tui_agent.ui.widgets.pane import Pane

if TYPE_CHECKING:
    from tui_agent.session.session import Session
    from tui_agent.store.state import State

#: State symbols in titles, with their colours.
_COLOURS = {"●": "accent", "⚠": "warning", "?": "warning", "✗": "failed", "◌": "warning"}
_MARKS = re.compile(rf" [{''.join(_COLOURS)}]\d*")
_COUNTED = re.compile(rf"\S+( [\d,/]+\b| [{''.join(_COLOURS)}]\d*)*")


def _counts(title: str, letters: int | None = None) -> str:
    found = _COUNTED.match(title)
    name, space, counts = (found[0] if found else title).partition(" ")
    return name[:letters] + space + counts


#: Cells between two titles, and how titles are written, from the best to one for very few cells.
_FORMS = (
    *(
        (3, str),
        (2, str),
        (3, lambda title: title.rpartition(" · ")[0] or title),
        (3, _counts),
        (2, _counts),
        (1, _counts),
    ),
    *((1, partial(_counts, letters=letters)) for letters in (6, 4, 3, 2, 1)),
)


class TabLine(Widget):
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
        #: Pane of the pressed title, which may move before the release.
        self._pressed = ""

    def show(self, tabs: list[tuple[str, str | Content]], front: str, focus: str) -> None:
        """`tabs` are (pane, title) pairs; `front` is the visible pane, `focus` the focused one."""
        focused = front == focus
        if (tabs, front, focused) == (self._tabs, self._front, self._focused):
            return
        self._tabs, self._front, self._focused = tabs, front, focused
        self.refresh()

    def render(self) -> Content:
        gap, labels = self._fitted()
        return Content(" " * gap).join(labels)

    def _fitted(self) -> tuple[int, list[Content]]:
        """The gap, and titles that fit: all drop their details, then the gap, then letters of names; counts remain."""
        titles = [title.plain if isinstance(title, Content) else title for _, title in self._tabs]
        titles = [
            title if pane == self._front else title.partition(" · ")[0]
            for (pane, _), title in zip(self._tabs, titles, strict=True)
        ]
        if len(titles) == 1:
            return 1, [self._label(self._tabs[0][0], fit(titles[0], self.size.width))]
        gap, words = 1, titles
        for gap, form in _FORMS:
            words = [form(title) for title in titles]
            if sum(map(cell_len, words)) + gap * (len(words) - 1) <= self.size.width:
                break
        return gap, [self._label(pane, text) for (pane, _), text in zip(self._tabs, words, strict=True)]

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
        gap, labels = self._fitted()
        for (pane, _), shown in zip(self._tabs, labels, strict=True):
            x -= shown.cell_length + gap
            if x < 0:
                self._pressed = pane
                return

    def on_click(self) -> None:
        if self._pressed:
            self.post_message(self.TabPressed(self._pressed))


ROWS_BELOW = 1


class Blank(Widget):
    """Placeholder in the first frame."""

    DEFAULT_CSS = "Blank { background: $surface; color: $text; border-left: wide $edge; padding: 0 1; }"

    def __init__(self, pane: str) -> None:
        super().__init__(id=f"blank-{pane}")

    def render(self) -> Content:
        """Without `render`, a widget draws its own name."""
        return Content()


class RegionLayout(Layout):
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
    class Dragged(Message):
        """The part after a pane was dragged by `cells`, at the gap beside it or the title below it."""

        def __init__(self, pane: str, axis: Axis, cells: int) -> None:
            super().__init__()
            self.pane = pane
            self.axis: Axis = axis
            self.cells = cells

    DEFAULT_CSS = "PaneContainer { width: 1fr; height: 1fr; background: $background; }"

    def __init__(self) -> None:
        super().__init__(id="workspace")
        #: Mounted panes, and placeholders of visible ones.
        self._by_id: dict[str, Widget] = {}
        self._composed = False
        self._lines: list[TabLine] = []
        self._arrangement = LayoutSlice()
        self.needs: Needs = AT_FIRST
        self._in_places = RegionLayout()
        self._found: list[Area] = []
        #: Arguments of the cached `areas`, which titles, sizes and layout request.
        self._asked: tuple[Size, LayoutSlice, Needs, bool] | None = None
        self._areas: list[Area] = []
        self.one_at_a_time = False
        #: Pane before the dragged gap or above the dragged title, and the axis.
        self._held = ""
        self._axis: Axis = "width"

    def compose(self) -> Iterable[Widget]:
        # Without the container's size, so that the first frame is drawn once.
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
        """A layout change repaints only the panes it affects."""
        return super().refresh(*regions, repaint=repaint and not layout, layout=layout, recompose=recompose)

    async def put(self, pane: Pane) -> None:
        """Replaces the placeholder, so that no other pane is redrawn."""
        blank = self._by_id.get(pane.ID)
        pane.display = blank is not None and blank.display
        self._by_id[pane.ID] = pane
        with self.app.batch_update():
            await self.mount(pane, after=blank)
            if blank is not None:
                await blank.remove()
        self.arranged(self._arrangement)

    def pane(self, name: str) -> Pane | None:
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
                # Avoids restyling the pane's whole subtree.
                self.app.stylesheet.update_nodes(pane.query_children("FileTabs"))
        self._title_lines(found)
        if found != self._found:
            self._found = found
            self.refresh()
            self._lines[0].refresh(
                layout=True
            )  # a cached arrangement is reused until a child requests a new one

    def regions(self, size: Size) -> dict[Widget, Region]:
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
            titles = [
                (name, pane.title_text if (pane := self.pane(name)) else PANES[name].title)
                for name in place.panes
            ]
            line.show(titles, place.front, self._arrangement.focus)
        for line in self._lines[len(found) :]:
            line.display = False


#: Work panes, and the centre's pane for each.
WORK = {"chat": "chat", "review": "review", "buffers": "review", "todos": "chat", "subtasks": "chat"}
#: Seconds without a key that count as a pause in typing.
PAUSE = 0.8
#: Keys of text input besides printable keys.
_WRITING = frozenset({"backspace", "delete", "left", "right"})
#: Input whose effect depends on screen positions.
_BY_PLACE = (
    events.Key,
    events.Paste,
    events.MouseDown,
    events.MouseUp,
    events.MouseScrollDown,
    events.MouseScrollUp,
)


class Arrangement:
    def __init__(self, container: PaneContainer, focus: Callable[[str], None]) -> None:
        self._container = container
        self._focus = focus
        self.session: Session | None = None

    @property
    def layout(self) -> LayoutSlice:
        return self.session.state.layout if self.session else LayoutSlice()

    @property
    def commands(self) -> Mapping[str, Callable[[], object]]:
        return {
            **{f"pane.{name}": partial(self._come_to, name) for name in PANES},
            "pane.next": partial(self._step, 1),
            "pane.previous": partial(self._step, -1),
            "pane.zoom": lambda: self._arrange(
                replace(self.layout, zoomed="" if self.layout.zoomed else self.layout.focus)
            ),
            "pane.hide": self._hide,
            "pane.show_all": lambda: self._arrange(replace(self.layout, zoomed="", hidden=(), sizes={})),
            "pane.wider": partial(self._lengthen, "width", 1),
            "pane.narrower": partial(self._lengthen, "width", -1),
            "pane.taller": partial(self._lengthen, "height", 1),
            "pane.shorter": partial(self._lengthen, "height", -1),
        }

    def _come_to(self, name: str) -> None:
        if (pane := self._container.pane(name)) is not None:
            pane.lead()
        self._focus(name)

    @property
    def needs(self) -> Needs:
        """May be newer than the screen."""
        return needs_of(self.session.state) if self.session else AT_FIRST

    def catch_up(self) -> bool:
        needs = self.needs
        if needs == self._container.needs:
            return False
        self._container.arranged(self.layout, needs)
        return True

    def bring_to_front(self, name: str, *, follow: bool = True) -> None:
        """Without `follow` nothing becomes wider, so that a click ends where it began."""
        layout = self.layout
        if follow and name in WORK:
            layout = replace(layout, tabs={**layout.tabs, IN_USE: WORK[name]})
        hidden = tuple(pane for pane in layout.hidden if pane != name)
        layout = replace(layout, focus=name, hidden=hidden, zoomed=name if layout.zoomed else "")
        tabs = {
            area.key: name
            for area in areas(self._container.size, layout, self.needs)
            if name in area.panes and not layout.zoomed
        }
        self._arrange(replace(layout, tabs={**layout.tabs, **tabs}))

    def suggest(self, name: str) -> None:
        """Brings a pane to the front unless the user works in its place."""
        layout = self.layout
        for area in areas(self._container.size, layout, self.needs):
            if name in area.panes and layout.focus not in area.panes:
                self._arrange(replace(layout, tabs={**layout.tabs, area.key: name}), self._container.needs)

    def resize(self, pane: str, axis: Axis, cells: int) -> None:
        needs = self.needs
        self._arrange(resized(self._container.size, self.layout, pane, axis, cells, needs), needs)

    def _arrange(self, layout: LayoutSlice, needs: Needs | None = None) -> None:
        if self.session and layout != self.layout:
            self.session.set_layout(layout)
        self._container.arranged(layout, self.needs if needs is None else needs)

    def _lengthen(self, axis: Axis, steps: int) -> None:
        self.resize(self.layout.focus, axis, steps * STEPS[axis])

    def _step(self, step: int) -> None:
        shown = [name for name in PANES if name not in self.layout.hidden]
        focus = self.layout.focus
        at = shown.index(focus) if focus in shown else 0
        self._focus(shown[(at + step) % len(shown)])

    def _hide(self) -> None:
        layout = self.layout
        if layout.focus != "chat":
            self._arrange(replace(layout, zoomed="", hidden=(*layout.hidden, layout.focus)))
            self._focus("chat")

    def unzoom(self) -> None:
        self._arrange(replace(self.layout, zoomed=""))

    def go_to_the_chat(self) -> None:
        self._focus("chat")


class RoomMaker:
    """Makes room for non-empty panes, later while the user types."""

    SLICES: ClassVar[tuple[str, ...]] = (
        "turn",
        "plan",
        "known",
        "buffers.tabs",
        "review",
        "todos",
        "subtasks",
    )

    def __init__(self, screen: Screen[None], arrangement: Arrangement) -> None:
        self._screen = screen
        self._arrangement = arrangement
        self._typed = float("-inf")
        self._timer: Timer | None = None

    def show(self, state: State) -> None:
        left = self._typed + PAUSE - monotonic()
        if self._timer is not None:
            self._timer.stop()
            self._timer = None
        if left <= 0 or self._screen.app.screen is not self._screen:
            self._arrangement.catch_up()
        else:
            self._timer = self._screen.set_timer(left, lambda: self.show(state))

    def make(self, event: Typed) -> bool:
        if isinstance(event, events.Paste) or (
            isinstance(event, events.Key)
            and (event.is_printable or event.key in _WRITING or is_modifier(event))
        ):
            from textual.widgets import Input, TextArea  # loaded if a text widget has the focus

            if isinstance(self._screen.focused, TextArea | Input):
                self._typed = monotonic()
                return False
        return isinstance(event, _BY_PLACE) and self._arrangement.catch_up()
