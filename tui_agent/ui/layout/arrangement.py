"""User changes to the layout: front, zoomed and hidden panes, and sizes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, ClassVar

from msgspec.structs import replace
from textual import events
from textual.screen import Screen
from textual.timer import Timer

from tui_agent.store.layout import LayoutSlice
from tui_agent.ui.keys.keyboard import Typed
from tui_agent.ui.keys.leader import is_modifier
from tui_agent.ui.layout.areas import IN_USE, STEPS, Axis, areas, resized
from tui_agent.ui.layout.container import PaneContainer
from tui_agent.ui.layout.space_needs import AT_FIRST, Needs, needs_of
from tui_agent.ui.panes import PANES

if TYPE_CHECKING:
    from tui_agent.session.session import Session
    from tui_agent.store.state import State

#: Panes that are worked in, and the pane whose column is the centre then.
WORK = {"chat": "chat", "review": "review", "buffers": "review", "todos": "chat", "subtasks": "chat"}
#: Seconds without a key press that count as a pause in typing.
PAUSE = 0.8
#: Non-printable keys that edit text or move the cursor in it.
_WRITING = frozenset({"backspace", "delete", "left", "right"})
#: Actions whose meaning depends on screen positions.
_BY_PLACE = (
    events.Key,
    events.Paste,
    events.MouseDown,
    events.MouseUp,
    events.MouseScrollDown,
    events.MouseScrollUp,
)


class Arrangement:
    """Changes and displays the session's layout. `focus` moves the focus to a pane."""

    def __init__(self, container: PaneContainer, focus: Callable[[str], None]) -> None:
        self._container = container
        self._focus = focus
        self.session: Session | None = None

    @property
    def layout(self) -> LayoutSlice:
        return self.session.state.layout if self.session else LayoutSlice()

    @property
    def commands(self) -> Mapping[str, Callable[[], object]]:
        """Handlers of the pane actions, by action id."""
        return {
            **{f"pane.{name}": partial(self._come_to, name) for name in PANES},
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

    def _come_to(self, name: str) -> None:
        if (pane := self._container.pane(name)) is not None:
            pane.lead()
        self._focus(name)

    @property
    def needs(self) -> Needs:
        """The panes' current needs, which the screen may not reflect yet."""
        return needs_of(self.session.state) if self.session else AT_FIRST

    def catch_up(self) -> bool:
        """Returns whether anything moved."""
        needs = self.needs
        if needs == self._container.needs:
            return False
        self._container.arranged(self.layout, needs)
        return True

    def bring_to_front(self, name: str, *, follow: bool = True) -> None:
        """Show and focus a pane. The centre follows to the chat, the review and the editor; without `follow` nothing
        becomes wider, so that a click ends where it began."""
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
        """Bring a pane to the front of its place unless the user works in that place; moves no other pane."""
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


class RoomMaker:
    """Makes room for panes that become non-empty, deferred while the user types.

    Receives the state like a pane.
    """

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
        """Returns whether the layout changed before this event is handled."""
        if isinstance(event, events.Key | events.Paste) and self._writes(event):
            self._typed = monotonic()
            return False
        return isinstance(event, _BY_PLACE) and self._arrangement.catch_up()

    def _writes(self, event: events.Key | events.Paste) -> bool:
        """Whether the event only edits the focused text, independent of screen positions."""
        from textual.widgets import Input, TextArea  # already imported if a text widget has the focus

        if not isinstance(self._screen.focused, TextArea | Input):
            return False
        return (
            isinstance(event, events.Paste)
            or event.is_printable
            or event.key in _WRITING
            or is_modifier(event)
        )
