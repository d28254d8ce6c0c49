"""Base class of the panes, their session calls in the background, and calls at intervals."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from msgspec.structs import replace
from textual.containers import Container
from textual.content import Content
from textual.css.query import NoMatches
from textual.dom import DOMNode
from textual.message import Message
from textual.message_pump import MessagePump
from textual.reactive import var
from textual.timer import Timer
from textual.widget import Widget

from tui_agent.errors import TuiAgentError
from tui_agent.ui.actions import ACTIONS, actions_of, bindings_of
from tui_agent.ui.host import keys_of
from tui_agent.ui.keys.keymap import Keys
from tui_agent.ui.panes import PANES

if TYPE_CHECKING:
    from tui_agent.session.session import Session
    from tui_agent.store.state import State
    from tui_agent.ui.widgets.line_view import HintLine


#: Keys that wait for a pending call: the pane's actions, also text typed into it, or all keys.
Waiting = Literal["actions", "text", "all"]
_WAITING: tuple[Waiting, ...] = ("actions", "text", "all")
#: Maximum seconds that a key waits for an earlier session call.
AT_MOST = 1.0


async def call_and_await(command: Callable[[], object]) -> None:
    begun = command()
    if inspect.isawaitable(begun):
        await begun


class Pane(Container):
    """A subclass defines its id (`ID`), the slices that it shows (`SLICES`) and `show`. Its stylesheet
    (`plan.tcss` for `plan.py`) is scoped to it. The action `review.apply` calls the entry `apply` of
    `commands`.
    """

    ID: ClassVar[str] = ""
    TITLE: ClassVar[str] = ""
    SLICES: ClassVar[tuple[str, ...]] = ()

    DEFAULT_CSS = """
    Pane {
        width: 1fr; height: 1fr;
        background: $surface; color: $text;
        border-left: wide $edge;
    }
    Pane:focus-within, Pane:focus { border-left: wide $accent; }
    """

    class Retitled(Message):
        def __init__(self, pane: Pane) -> None:
            super().__init__()
            self.pane = pane

    class GoneTo(Message):
        """Moves the user to another pane; only brings it to the front if the user has already left."""

        def __init__(self, name: str, focus: bool = True) -> None:
            super().__init__()
            self.name = name
            self.focus = focus

    class ActionAsked(Message):
        def __init__(self, action: str) -> None:
            super().__init__()
            self.action = action

    #: Title with counts, such as `Plan 2/3`.
    title_text: var[str | Content] = var("", init=False)

    def __init_subclass__(cls, **kwargs: Any) -> None:
        sheet = Path(inspect.getfile(cls)).with_suffix(".tcss")
        if "DEFAULT_CSS" not in cls.__dict__ and sheet.is_file():
            cls.DEFAULT_CSS = sheet.read_text(encoding="utf-8")
        if cls.ID in PANES:
            cls.TITLE = PANES[cls.ID].title
        if cls.ID:
            cls.BINDINGS = [*cls.__dict__.get("BINDINGS", ()), *bindings_of(cls.ID)]
        super().__init_subclass__(**kwargs)

    def __init__(self, session: Session) -> None:
        super().__init__(id=f"pane-{self.ID}")
        self.session = session
        #: Pending calls that affect the meaning of later keys, and the keys that wait for each.
        self._doing: dict[asyncio.Future[None], Waiting] = {}
        self.set_reactive(Pane.title_text, self.TITLE)

    def show(self, state: State) -> None:
        """Called once after mounting, then for each change in its slices."""
        raise NotImplementedError

    async def flush(self) -> None:
        pass

    @property
    def entry(self) -> Widget:
        return next((child for child in self.query("*") if child.focusable), self)

    def enter(self) -> None:
        """Takes the focus synchronously: a message would arrive after the previous pane is hidden."""
        self.screen.set_focus(self.entry)

    def lead(self) -> None:
        """Called before the pane's key focuses it, to select the item that awaits the user."""

    def go_to(self, name: str, *, focus: bool = True) -> None:
        self.post_message(self.GoneTo(name, focus))

    @property
    def keys(self) -> Keys:
        return keys_of(self)

    @property
    def plain(self) -> bool:
        return getattr(self.app, "plain", False)

    @cached_property
    def calls_by_key(self) -> dict[str, str]:
        keys = self.keys.by_action
        return {key: action.call for action in actions_of(self.ID) for key in keys.get(action.id, ())}

    @cached_property
    def commands(self) -> Mapping[str, Callable[[], object]]:
        """Handlers by action name."""
        return {}

    async def action_do(self, action_id: str) -> None:
        action = ACTIONS[action_id]
        await call_and_await(self.commands[action.name])
        if acted := getattr(self.screen, "acted", None):
            acted(action_id)

    async def on_hint_line_pressed(self, event: HintLine.Pressed) -> None:
        event.stop()
        await self.action_do(event.action)

    def ask(self, call: Coroutine[Any, Any, object]) -> None:
        call_session(self, self.session, call)

    def act(
        self,
        call: Coroutine[Any, Any, object],
        *,
        changes: tuple[str, ...] = (),
        text_waits: bool = True,
        opens: bool = False,
    ) -> None:
        """Like `call_session`, for calls that affect the meaning of later keys: keys to this pane and to
        `changes` wait for the result. Without `text_waits` only action keys wait; with `opens` all keys
        wait for the dialog.
        """
        others = (self.screen.query_one_optional(f"#pane-{name}", Pane) for name in changes)
        panes = [self, *filter(None, others)]
        loop, bridge = asyncio.get_running_loop(), getattr(self.screen, "bridge", None)
        done = loop.create_future()

        def release() -> None:
            for pane in panes:
                pane._doing.pop(done, None)
            if not done.done():
                done.set_result(None)

        async def then() -> None:
            try:
                await call
                if bridge is not None:
                    await bridge.free()
            finally:
                for pane in panes:
                    if pane.is_attached:
                        pane.show(self.session.state)
                release()

        for pane in panes:
            pane._doing[done] = "all" if opens else "text" if text_waits else "actions"
        loop.call_later(AT_MOST, release)
        self.ask(then())

    def waits_for(self, keys: Waiting) -> asyncio.Future[None] | None:
        least = _WAITING.index(keys)
        return next((done for done, waiting in self._doing.items() if _WAITING.index(waiting) >= least), None)

    def _watch_title_text(self) -> None:
        self.post_message(self.Retitled(self))


def save_place(session: Session, pane: str, place: dict[str, object]) -> None:
    layout = session.state.layout
    session.set_layout(replace(layout, place={**layout.place, pane: place}))


def open_file(pane: Pane, path: str, line: int = 0) -> None:
    """Does nothing for ""."""
    if path:
        pane.act(pane.session.files.open(path, line), changes=("buffers",))


def compare(pane: Pane, path: str) -> None:
    """Shows the changes of a file; does nothing for ""."""
    from tui_agent.ui.dialogs.preview import FileDiff

    if path:
        pane.app.push_screen(FileDiff(pane.session, path))


GROUP = "ask"


def call_session(node: DOMNode, session: Session, call: Coroutine[Any, Any, object]) -> None:
    """Runs a session call in the background, after a flush of typed text. An error becomes a notice. The
    task belongs to the application: closing a pane does not interrupt a write.
    """
    app = node.app

    async def run() -> None:
        workspace = getattr(app.screen_stack[0], "workspace", None)
        try:
            for pane in workspace.panes if workspace is not None else ():
                await pane.flush()
            await call
        except NoMatches:
            # At the program's end a widget may be unmounted before the call ends.
            if app.is_running:
                raise

    app.run_worker(noticed(session, run()), group=GROUP)


async def noticed(session: Session, call: Awaitable[object]) -> None:
    """A user-facing error becomes a notice."""
    try:
        await call
    except TuiAgentError as error:
        await session.notice(str(error), "error")


class Ticker:
    def __init__(self, owner: MessagePump, tick: Callable[[], object], seconds: float = 1.0) -> None:
        self._owner = owner
        self._tick = tick
        self._seconds = seconds
        #: `None` while nothing runs.
        self.timer: Timer | None = None

    def run(self, runs: bool) -> None:
        if runs and self.timer is None:
            self.timer = self._owner.set_interval(self._seconds, self._tick)
        elif not runs and self.timer is not None:
            self.timer.stop()
            self.timer = None
