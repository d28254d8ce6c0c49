"""The workspace screen: composes panes, moves the focus, stores the layout."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Generator, Iterable
from contextlib import contextmanager, suppress
from functools import cached_property, partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, cast, runtime_checkable

from textual import events, on
from textual.css.query import NoMatches
from textual.widget import Widget
from textual.widgets import Static

from tui_agent.processes.background import in_background
from tui_agent.ui.actions import ACTIONS, ANYWHERE, APP, bindings_of
from tui_agent.ui.bridge import Attention, Bridge
from tui_agent.ui.commands import ScreenCommands
from tui_agent.ui.host import Host
from tui_agent.ui.keys.keyboard import WAITING, Typed
from tui_agent.ui.keys.leader import PAGE, Leader, is_modifier
from tui_agent.ui.layout.container import Arrangement, PaneContainer, RoomMaker, TabLine
from tui_agent.ui.panes import AFTER_THE_CHAT, PANES
from tui_agent.ui.safe_text import plain
from tui_agent.ui.signals import Signals
from tui_agent.ui.textual_patches.focus_styles import FocusStylesScreen
from tui_agent.ui.textual_patches.keys_first import KeysFirstScreen
from tui_agent.ui.textual_patches.lost_focus import LostFocusScreen
from tui_agent.ui.widgets.pane import Pane, call_and_await, call_session

if TYPE_CHECKING:
    from tui_agent.session.session import Session
    from tui_agent.store.state import State
    from tui_agent.ui.bridge import StateView

#: Maximum seconds by which input delays mounting a pane.
KEYS_FIRST = 0.5
#: Global actions that a pane handles; their keys wait until it is mounted.
DONE_IN = {
    "changes.apply_all": "review",
    "changes.apply_one": "review",
    "changes.skip_one": "review",
    "changes.undo": "review",
    "changes.redo": "review",
    "turn.run_ticked": "subtasks",
}


@runtime_checkable
class Pointable(Protocol):
    """A widget that can move its cursor to a position, in cells from its corner, without side effects."""

    def point(self, x: int, y: int) -> None: ...


class WorkspaceScreen(
    KeysFirstScreen[None], FocusStylesScreen[None], LostFocusScreen[None], inherit_bindings=False
):
    """Shows the empty layout until `fill`."""

    SCOPED_CSS = False  # so that notices look the same over dialogs
    DEFAULT_CSS = Path(__file__).with_suffix(".tcss").read_text(encoding="utf-8")
    BINDINGS = bindings_of(ANYWHERE)

    def __init__(self) -> None:
        super().__init__(lambda: not self.host.keyboard.at_rest)
        self.workspace = PaneContainer()
        self.arrangement = Arrangement(self.workspace, self.focus_pane)
        self.session: Session | None = None
        self.bridge: Bridge | None = None
        self.ready = False
        self.leader = Leader()
        self._commands = ScreenCommands(self)
        self._room = RoomMaker(self, self.arrangement)
        #: The pane that keys wait for, and its arrival.
        self._awaited = ""
        self._arriving: asyncio.Future[None] | None = None
        self._takes_focus = True
        #: Done when another screen has replaced this one.
        self._replacing: asyncio.Future[None] | None = None

    def compose(self) -> Iterable[Widget]:
        self.workspace.one_at_a_time = self.host.plain
        if self.host.guide is not None:
            from tui_agent.ui.widgets.guide import GuideLine

            yield GuideLine(self.host.guide, self.host.keys)
        yield self.workspace
        if self.host.plain:
            from tui_agent.ui.plain_screen import Announcements

            yield Announcements(self.host.keys, self.workspace.pane, self._silent_after)
        self.echo = Static("opening …", id="opening", markup=False)
        yield self.echo

    @property
    def host(self) -> Host:
        return cast(Host, self.app)

    async def fill(self, session: Session, *, opened: bool = True) -> None:
        """Mounts the chat and the status line. If the session was just `opened`, early input becomes chat
        text.
        """
        from tui_agent.ui.panes.chat import ChatPane
        from tui_agent.ui.panes.status import StatusPane
        from tui_agent.ui.widgets.prompt_lines import ApprovalLine

        self.session = self.arrangement.session = session
        waiting = session.state.input.typed.get(WAITING)
        if opened and waiting:
            session.chat.set_draft(session.state.input.draft + waiting)
            session.chat.set_typed(WAITING, "")
        self.host.keyboard.on_waiting = self._store_waiting
        self.bridge = bridge = Bridge(session, self.call_later, self.host.keyboard.waiting)
        self._awaited = "chat" if opened and self.host.keyboard.text else self.arrangement.layout.focus
        with self.app.batch_update():
            for pane in (ChatPane(session), StatusPane(session)):
                await self._mount_pane(pane, bridge)
            bridge.attach(self.query_one(ApprovalLine))
            if self.echo is not None:
                await self.echo.remove()
                self.echo = None
            self.workspace.arranged(self.arrangement.layout, self.arrangement.needs)
        if opened:
            await self._keys_rested()

    async def _keys_rested(self) -> None:
        """Returns soon if keys wait for a pane."""
        if self._arriving is None and self._replacing is None:
            await self.host.keyboard.rested(KEYS_FIRST)

    async def complete(self, session: Session) -> None:
        """Mounts the other panes one by one, visible panes first; input is handled before each."""
        bridge = self.bridge
        assert bridge is not None, "it is filled first"
        seen = self.workspace.front_panes()
        for pane in sorted(AFTER_THE_CHAT, key=lambda pane: pane.id not in seen):
            await self._keys_rested()
            # Imported in a thread, to not block input.
            pane_class = await asyncio.to_thread(pane.load)
            await self._mount_pane(pane_class(session), bridge)
        await self.wait_for_refresh()
        bridge.attach(Attention(self.arrangement.suggest))
        bridge.attach(self._room)
        settings = session.loaded.settings
        root = session.workspace.root.name
        signals = Signals(self.host, self.host.keyboard, root, settings.screen.bell_after, settings.notify)
        bridge.attach(signals)
        answers = partial(import_module, "tui_agent.ui.markdown.message_text")
        bridge.attach(AnswersExpected(lambda: self.run_worker(in_background(answers))))
        for told in self.query("Announcements, #guide"):
            bridge.attach(cast("StateView", told))
        self.ready = True

    def _silent_after(self) -> int:
        assert self.session is not None
        return self.session.loaded.settings.subtasks.silent_after

    async def leave(self) -> None:
        await self.flush()
        if self.bridge:
            self.bridge.close()

    async def flush(self) -> None:
        for pane in self.workspace.panes:
            await pane.flush()

    async def _store_waiting(self, text: str) -> None:
        """Stores waiting keys, except a password. The panes are flushed first: their keys are older."""
        session = self.session
        if session is None or getattr(self.app.focused, "password", False):
            return
        if text or WAITING in session.state.input.typed:
            with suppress(NoMatches):
                await self.flush()
            session.chat.set_typed(WAITING, text)

    async def _mount_pane(self, pane: Pane, bridge: Bridge) -> None:
        if pane.ID in PANES:
            await self.workspace.put(pane)
        else:
            await self.mount(pane)
        bridge.attach(pane)
        if self._awaited == pane.ID:
            self._awaited = ""
            if self._takes_focus:
                self.focus_pane(pane.ID)
            self._takes_focus = True
            if self._arriving is not None:
                self._arriving.set_result(None)
                self._arriving = None

    def on_mount(self) -> None:
        self._arriving = asyncio.get_running_loop().create_future()

    def busy(self, event: Typed) -> asyncio.Future[None] | None:
        """The future to await if the target pane is missing or busy."""
        if self._replacing is not None:
            return self._replacing
        if self._arriving is not None:
            return self._arriving
        mouse = isinstance(event, events.MouseEvent)  # its target may be any pane
        waited_for = (pane.waits_for("actions" if mouse else "all") for pane in self.workspace.panes)
        done = next(filter(None, waited_for), None)
        if mouse or done is not None:
            return done
        action = self.leader.action_of(event) if isinstance(event, events.Key) else None
        if self.session and not self.ready and isinstance(event, events.Key):
            named = (name for name in DONE_IN if self.host.keys.matches(event.key, name))
            target = DONE_IN.get(action.id if action else next(named, ""))
            if target and self.workspace.pane(target) is None:
                self._awaited, self._takes_focus = target, False
                self._arriving = asyncio.get_running_loop().create_future()
                return self._arriving
        if self.leader.waiting is not None:
            pane = self.workspace.pane(action.pane) if action else None
            return pane.waits_for("actions") if pane else None
        pane = self.workspace.pane(self.arrangement.layout.focus)
        if pane is None or (isinstance(event, events.Key) and event.key in self._leading_away):
            return None
        text = isinstance(event, events.Paste) or (
            isinstance(event, events.Key) and event.key not in pane.calls_by_key
        )
        return pane.waits_for("text" if text else "actions")

    @cached_property
    def _leading_away(self) -> frozenset[str]:
        return self.host.keys.single(ANYWHERE) - {"tab", "shift+tab", "question_mark"}

    def typed_early(self) -> None:
        if isinstance(self.echo, Static):
            self.echo.update(plain(f"opening …  {self.host.keyboard.text[-200:]}"), layout=False)

    def make_room(self, event: Typed) -> bool:
        """Adjusts pane sizes before events that depend on positions. Returns whether anything moved."""
        shown = isinstance(event, events.MouseDown) and self.bridge is not None and self.bridge.flush()
        return self._room.make(event) or shown

    async def handle_after_leader(self, event: Typed) -> bool:
        if self.leader.waiting is None or not isinstance(event, events.Key | events.Paste | events.MouseDown):
            return False
        if isinstance(event, events.Key) and is_modifier(event):
            return True
        action = self.leader.action_of(event) if isinstance(event, events.Key) else None
        if action is None and isinstance(event, events.Key) and event.key == PAGE:
            self.leader.turn_page()
            return True
        self.leader.end()
        if action:
            await self.do(action.id)
        return isinstance(event, events.Key)

    def focus_pane(self, name: str) -> None:
        """Keys wait if it is not mounted."""
        pane = self.workspace.pane(name)
        if pane:
            self.arrangement.bring_to_front(pane.ID)
            pane.enter()
        elif self.session and not self.ready and self._arriving is None:
            self._awaited, self._arriving = name, asyncio.get_running_loop().create_future()

    @on(events.Resize)
    def _touch_keyboard(self) -> None:
        self.host.keyboard.touch()

    def on_descendant_focus(self, event: events.DescendantFocus) -> None:
        names = [node.ID for node in event.widget.ancestors_with_self if isinstance(node, Pane)]
        if names and names[0] in PANES and self.arrangement.layout.focus not in names:
            self.arrangement.bring_to_front(names[0], follow=False)

    def _focus_instead(self) -> Widget | None:
        pane = self.workspace.pane(self.arrangement.layout.focus)
        return pane.entry if pane else None

    def on_pane_gone_to(self, message: Pane.GoneTo) -> None:
        if message.focus:
            self.focus_pane(message.name)
        else:
            self.arrangement.suggest(message.name)

    async def on_pane_action_asked(self, message: Pane.ActionAsked) -> None:
        await self.do(message.action)

    def on_tab_line_tab_pressed(self, message: TabLine.TabPressed) -> None:
        self.focus_pane(message.pane)

    def on_pane_container_dragged(self, message: PaneContainer.Dragged) -> None:
        self.arrangement.resize(message.pane, message.axis, message.cells)

    def handle_right_click(self, event: Typed) -> bool:
        if not isinstance(event, events.MouseDown | events.MouseUp) or event.button != 3:
            return False
        if isinstance(event, events.MouseDown):
            under, _ = self.get_widget_at(event.screen_x, event.screen_y)
            names = [node.ID for node in under.ancestors_with_self if isinstance(node, Pane)]
            if names and names[0] in PANES:
                self.focus_pane(names[0])
                if isinstance(under, Pointable):
                    under.point(*(event.screen_offset - under.region.offset))
                self._commands.offer(names[0], event.screen_offset)
        return True

    def ask(self, call: Coroutine[Any, Any, object]) -> None:
        if self.session:
            call_session(self, self.session, call)

    def act(self, call: Coroutine[Any, Any, object]) -> None:
        """Like `ask`, for calls that the next chat keys depend on."""
        chat = self.workspace.pane("chat")
        if chat is not None:
            chat.act(call, text_waits=False)
        else:
            self.ask(call)

    async def action_do(self, action_id: str) -> None:
        await call_and_await(self._commands.table[action_id])
        self.acted(action_id)

    def acted(self, action_id: str) -> None:
        if self.host.guide is not None and self.session is not None:
            from tui_agent.ui.widgets.guide import GuideLine

            self.host.guide.acted(action_id)
            self.query_one(GuideLine).show(self.session.state)

    async def do(self, action_id: str) -> None:
        action = ACTIONS[action_id]
        if action.pane == ANYWHERE:
            await self.action_do(action_id)
        elif action.pane == APP:
            await self.app.run_action(action.call, self.app)
        else:
            self.focus_pane(action.pane)
            await self.do_in(action.pane, action.name)

    async def do_in(self, name: str, action: str) -> None:
        pane = self.workspace.pane(name)
        if pane:
            await pane.action_do(f"{name}.{action}")


@contextmanager
def keys_wait(screen: WorkspaceScreen) -> Generator[None]:
    screen._replacing = done = asyncio.get_running_loop().create_future()
    try:
        yield
    finally:
        done.set_result(None)
        screen._replacing = None


class AnswersExpected:
    """Calls `then` once, shortly before the first possible turn."""

    SLICES: ClassVar[tuple[str, ...]] = ("input", "turn")

    def __init__(self, then: Callable[[], object]) -> None:
        self._then: Callable[[], object] | None = then

    def show(self, state: State) -> None:
        if self._then is not None and state.turn_expected:
            then, self._then = self._then, None
            then()
