"""The one screen: it composes the panes, moves between them, and keeps where the person left them."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from msgspec.structs import replace
from textual import events, work
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import Input, Static

from tui_agent.store.state import LayoutSlice
from tui_agent.ui.actions import ACTIONS, ANYWHERE, APP, PANES, bindings_of
from tui_agent.ui.bridge import Attention, Bridge
from tui_agent.ui.keys.keyboard import Typed
from tui_agent.ui.keys.leader import Leader, is_modifier
from tui_agent.ui.layout.areas import STEPS, Axis, places, resized
from tui_agent.ui.layout.container import PaneContainer, TabLine
from tui_agent.ui.sink import plain
from tui_agent.ui.widgets.pane import Pane
from tui_agent.ui.widgets.session_calls import ask, writes

if TYPE_CHECKING:
    from tui_agent.session.session import Session
    from tui_agent.ui.app import WorkspaceApp
    from tui_agent.ui.dialogs.chooser import ChooserRow


class WorkspaceScreen(Screen[None], inherit_bindings=False):
    """Before `fill` it is the layout alone; after it, the panes of a session."""

    DEFAULT_CSS = Path(__file__).with_suffix(".tcss").read_text(encoding="utf-8")
    BINDINGS = bindings_of(ANYWHERE)

    def __init__(self) -> None:
        super().__init__(id="screen")
        self.workspace = PaneContainer()
        self.session: Session | None = None
        self.bridge: Bridge | None = None
        #: Whether every pane is in its place.
        self.ready = False
        self.leader = Leader()
        #: The pane that keys wait for, by its id or (while it is not known yet) empty, and what tells that it is there.
        self._awaited = ""
        self._arriving: asyncio.Future[None] | None = None

    def compose(self) -> Iterable[Widget]:
        yield self.workspace
        yield self.leader
        yield Static("opening …", id="opening", markup=False)

    @property
    def owner(self) -> WorkspaceApp:
        """The application, as what it is."""
        return cast("WorkspaceApp", self.app)

    @property
    def arrangement(self) -> LayoutSlice:
        return self.session.state.layout if self.session else LayoutSlice()

    # ── opening and leaving ──────────────────────────────────────────────────────────────────────────────

    async def fill(self, session: Session) -> None:
        """Put the panes of an open session in their places, the chat first, and hand over what was typed.

        Each is drawn before the next is imported and mounted: all at once would hold up the keys.
        """
        from tui_agent.ui.panes.chat import ChatPane
        from tui_agent.ui.panes.registry import after_the_chat
        from tui_agent.ui.panes.status import StatusPane
        from tui_agent.ui.widgets.prompt_lines import ApprovalLine

        self.session = session
        self.bridge = bridge = Bridge(session, self.call_later)
        self._awaited = "chat" if self.owner.keyboard.text else self.arrangement.focus
        with self.app.batch_update():
            for pane in (ChatPane(session), StatusPane(session)):
                await self._put(pane, bridge)
            bridge.attach(self.query_one(ApprovalLine))
            await self.query("#opening").remove()
            self.workspace.arranged(self.arrangement)
        async for pane_class in after_the_chat():
            await self.wait_for_refresh()
            await self._put(pane_class(session), bridge)
        await self.wait_for_refresh()
        bridge.attach(Attention(self.bring))
        self.run_worker(_get_ready_for_answers())
        self.ready = True

    async def leave(self) -> None:
        """Hand over what was typed, and show nothing more."""
        await self.flush()
        if self.bridge:
            self.bridge.close()

    async def flush(self) -> None:
        """Hand over to the session what was typed."""
        for pane in self.workspace.panes:
            await pane.flush()

    async def _put(self, pane: Pane, bridge: Bridge) -> None:
        if pane.ID in PANES:
            await self.workspace.put(pane)
        else:
            await self.mount(pane)
        bridge.attach(pane)
        if self._awaited == pane.ID:
            self._arrived(pane)

    # ── keys that something has to be there for ──────────────────────────────────────────────────────────

    def on_mount(self) -> None:
        self._arriving = asyncio.get_running_loop().create_future()

    def busy(self, event: Typed) -> asyncio.Future[None] | None:
        """The pane that this key is for may not be there yet, or be doing what an earlier key asked of it."""
        if self._arriving is not None:
            return self._arriving
        if isinstance(event, events.MouseEvent):  # any pane may be under it
            waited_for = (pane.waits_for(text=False) for pane in self.workspace.panes)
            return next((done for done in waited_for if done is not None), None)
        if self.leader.waiting is None:
            return self._busy_with_focus(event)
        action = self.leader.action_of(event) if isinstance(event, events.Key) else None
        pane = self.workspace.pane(action.pane) if action else None
        return pane.waits_for(text=False) if pane else None

    def _busy_with_focus(self, event: Typed) -> asyncio.Future[None] | None:
        pane = self.workspace.pane(self.arrangement.focus)
        if pane is None or (isinstance(event, events.Key) and event.key in self._leading_away):
            return None
        text = isinstance(event, events.Paste) or (
            isinstance(event, events.Key) and event.key not in pane.calls_by_key
        )
        return pane.waits_for(text=text)

    @cached_property
    def _leading_away(self) -> frozenset[str]:
        """Keys that mean the same whatever the pane with the focus is doing."""
        return self.owner.keys.single(ANYWHERE) - {"tab", "shift+tab", "question_mark"}

    def typed_early(self) -> None:
        """Show what is typed while there is nothing to type into."""
        for line in self.query("#opening").results(Static):
            line.update(plain(f"opening …  {self.owner.keyboard.text[-200:]}"), layout=False)

    def _arrived(self, pane: Pane) -> None:
        self._awaited = ""
        self.focus_pane(pane.ID)
        if self._arriving is not None:
            self._arriving.set_result(None)
            self._arriving = None

    async def take_after_leader(self, event: Typed) -> bool:
        """Whether the event was taken as the second key after the leader's."""
        if self.leader.waiting is None or not isinstance(event, events.Key | events.Paste | events.MouseDown):
            return False
        if isinstance(event, events.Key) and is_modifier(event):
            return True
        action = self.leader.action_of(event) if isinstance(event, events.Key) else None
        self.leader.end()
        if action:
            await self.run_action_by_id(action.id)
        return isinstance(event, events.Key)

    # ── moving between panes ─────────────────────────────────────────────────────────────────────────────

    def focus_pane(self, name: str) -> None:
        """Bring a pane to the front and give it the focus; keys wait for one that is not there yet."""
        pane = self.workspace.pane(name)
        if pane:
            self._arrange(_in_front(self.arrangement, pane.ID, self.workspace))
            pane.enter()
        elif self.session and not self.ready and self._arriving is None:
            self._awaited, self._arriving = name, asyncio.get_running_loop().create_future()

    def bring(self, name: str) -> None:
        """Put a pane in front where it stands, unless the person is at work in that place."""
        layout = self.arrangement
        for place in places(self.workspace.size, layout):
            if name in place.panes and layout.focus not in place.panes:
                self._arrange(replace(layout, tabs={**layout.tabs, place.key: name}))

    def on_descendant_focus(self, event: events.DescendantFocus) -> None:
        names = [node.ID for node in event.widget.ancestors_with_self if isinstance(node, Pane)]
        if names and names[0] in PANES and self.arrangement.focus not in names:
            self._arrange(_in_front(self.arrangement, names[0], self.workspace))

    def _reset_focus(self, widget: Widget, avoiding: list[Widget] | None = None) -> None:
        """What has the focus goes or is hidden: the focus stays in the pane where the person is."""
        pane = self.workspace.pane(self.arrangement.focus)
        entry = pane.entry if pane else None
        if self.focused is widget and entry and entry.focusable and entry not in (widget, *(avoiding or ())):
            self.set_focus(entry)
        else:
            super()._reset_focus(widget, avoiding)

    def on_pane_gone_to(self, message: Pane.GoneTo) -> None:
        self.focus_pane(message.name)

    def on_tab_line_tab_pressed(self, message: TabLine.TabPressed) -> None:
        self.focus_pane(message.pane)

    def _arrange(self, layout: LayoutSlice) -> None:
        if self.session and layout != self.arrangement:
            self.session.set_layout(layout)
        self.workspace.arranged(layout)

    def action_go(self, name: str) -> None:
        self.focus_pane(name)

    def action_step(self, step: int) -> None:
        shown = [name for name in PANES if name not in self.arrangement.hidden]
        focus = self.arrangement.focus
        at = shown.index(focus) if focus in shown else 0
        self.focus_pane(shown[(at + step) % len(shown)])

    def action_zoom(self) -> None:
        layout = self.arrangement
        self._arrange(replace(layout, zoomed="" if layout.zoomed else layout.focus))

    def action_hide(self) -> None:
        layout = self.arrangement
        if layout.focus != "chat":
            self._arrange(replace(layout, zoomed="", hidden=(*layout.hidden, layout.focus)))
            self.focus_pane("chat")

    def action_show_all(self) -> None:
        self._arrange(replace(self.arrangement, zoomed="", hidden=(), sizes={}))

    def action_resize(self, axis: Axis, steps: int) -> None:
        self._resize(self.arrangement.focus, axis, steps * STEPS[axis])

    def on_pane_container_dragged(self, message: PaneContainer.Dragged) -> None:
        self._resize(message.pane, "width", message.cells)

    def _resize(self, pane: str, axis: Axis, cells: int) -> None:
        self._arrange(resized(self.workspace.size, self.arrangement, pane, axis, cells))

    def action_close(self) -> None:
        if self.arrangement.zoomed:
            self.action_zoom()
        else:
            self.focus_pane("chat")

    # ── what can be done from anywhere ───────────────────────────────────────────────────────────────────

    def ask(self, call: Coroutine[Any, Any, object]) -> None:
        if self.session:
            ask(self, self.session, call)

    def action_stop(self) -> None:
        if self.session:
            self.ask(self.session.chat.stop())

    def action_theme(self) -> None:
        self.owner.next_theme()

    async def action_suspend(self) -> None:
        if not isinstance(self.focused, Input):  # where the key means undo, or nothing
            await self.owner.suspend_to_shell()

    def action_palette(self) -> None:
        from tui_agent.ui.dialogs.chooser import Chooser

        self.app.push_screen(Chooser("Do", self._palette_rows, "type what it does"), self._do)

    def _palette_rows(self, words: str) -> list[ChooserRow]:
        from tui_agent.ui.dialogs.palette import palette_rows

        return palette_rows(words, self.owner.keys, self.arrangement.focus)

    def action_leader(self) -> None:
        self.leader.begin(self.owner.keys.after_leader())

    def action_help(self) -> None:
        from tui_agent.ui.dialogs.palette import KeyHelp

        self.app.push_screen(KeyHelp(self.owner.keys, self.arrangement.focus))

    def action_notices(self) -> None:
        from tui_agent.ui.dialogs.chooser import Chooser
        from tui_agent.ui.dialogs.palette import notice_rows

        if (session := self.session) is None:
            return

        def rows(words: str) -> list[ChooserRow]:
            return notice_rows(words, session.state.notices.items)

        self.app.push_screen(Chooser("Notices", rows, following=session.subscribe))

    def action_context(self) -> None:
        from tui_agent.ui.dialogs.context import ContextView

        if self.session is not None:
            self.app.push_screen(ContextView(self.session.state))

    @work(exclusive=True, group="sessions")
    async def action_sessions(self) -> None:
        from tui_agent.ui.dialogs.sessions import choose_another

        await choose_another(self.owner)

    @work(exclusive=True, group="sessions")
    async def action_fork(self) -> None:
        from tui_agent.ui.dialogs.sessions import fork_this

        await fork_this(self.owner)

    @writes
    @work(exclusive=True, group="sessions")
    async def action_rename(self) -> None:
        from tui_agent.ui.dialogs.sessions import rename_this

        await rename_this(self.owner)

    @work(exclusive=True, group="sessions")
    async def action_sent(self) -> None:
        from tui_agent.ui.dialogs.sessions import show_sent

        await show_sent(self.owner)

    @writes
    @work(exclusive=True, group="sessions")
    async def action_model(self) -> None:
        from tui_agent.ui.dialogs.questions import choose_model

        if self.session is not None:
            await choose_model(self.app, self.session)

    @writes
    @work(exclusive=True, group="sessions")
    async def action_summary(self) -> None:
        from tui_agent.ui.dialogs.drafts import edit_summary

        if self.session is not None:
            await edit_summary(self.app, self.session)

    @work(exclusive=True, group="sessions")
    async def action_clean(self) -> None:
        from tui_agent.ui.dialogs.questions import clean_up

        if self.session is not None:
            await clean_up(self.app, self.session)

    @work(exclusive=True, group="sessions")
    async def action_trust(self) -> None:
        from tui_agent.ui.dialogs.questions import ask_for_trust

        await ask_for_trust(self.owner)

    @writes
    @work(exclusive=True, group="commit")
    async def action_commit(self) -> None:
        from tui_agent.ui.dialogs.drafts import commit

        if self.session is not None:
            await commit(self.app, self.session)

    async def _do(self, action_id: str | None) -> None:
        if action_id:
            await self.run_action_by_id(action_id)

    async def action_to_pane(self, name: str, method: str) -> None:
        pane = self.workspace.pane(name)
        if pane:
            await self.app.run_action(method, pane)

    async def run_action_by_id(self, action_id: str) -> None:
        """Do what a key would do, from the palette or the mouse; an action of a pane goes there first."""
        action = ACTIONS[action_id]
        match action.pane:
            case pane if pane == ANYWHERE:
                await self.app.run_action(action.call, self)
            case pane if pane == APP:
                await self.app.run_action(action.call, self.app)
            case pane:
                self.focus_pane(pane)
                await self.action_to_pane(pane, action.call)


async def _get_ready_for_answers() -> None:
    """Import what draws Markdown now, in a thread: on the loop, or with the first answer, it would hold up the keys."""
    await asyncio.to_thread(import_module, "tui_agent.ui.widgets.message_text")


def _in_front(layout: LayoutSlice, name: str, workspace: PaneContainer) -> LayoutSlice:
    """The layout with a pane shown, in front of the others in its place, and focused."""
    hidden = tuple(pane for pane in layout.hidden if pane != name)
    layout = replace(layout, focus=name, hidden=hidden, zoomed=name if layout.zoomed else "")
    tabs = {
        place.key: name
        for place in places(workspace.size, layout)
        if name in place.panes and not layout.zoomed
    }
    return replace(layout, tabs={**layout.tabs, **tabs})
