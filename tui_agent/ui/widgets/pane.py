"""A pane: one part of the screen, drawn from some slices of the state."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Coroutine, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from textual.containers import Container
from textual.content import Content
from textual.message import Message
from textual.reactive import var
from textual.widget import Widget

from tui_agent.ui.actions import ACTIONS, actions_of, bindings_of
from tui_agent.ui.keys.keymap import Keys
from tui_agent.ui.panes import PANES
from tui_agent.ui.widgets.session_calls import ask, refuse

if TYPE_CHECKING:
    from tui_agent.session.session import Session
    from tui_agent.store.state import State
    from tui_agent.ui.widgets.hints import HintLine

#: Keys that wait for what is being done: those of actions, what is typed into the pane too, or all wherever they go.
Waiting = Literal["actions", "text", "all"]
_WAITING: tuple[Waiting, ...] = ("actions", "text", "all")
#: Seconds that a key to a pane waits at most for what an earlier key asked of the session.
AT_MOST = 1.0


async def called(command: Callable[[], object]) -> None:
    """Call a command, and wait for what it has begun."""
    begun = command()
    if inspect.isawaitable(begun):
        await begun


class Pane(Container):
    """Base of all panes.

    A subclass has the id under which it is registered (`ID`), names the fields of `State` that it is drawn from
    (`SLICES`), and has `show`. The style sheet beside its module (`plan.py`, `plan.tcss`) is its own: rules in it
    reach only the pane and what is in it. Keys come from the table of actions: `review.apply` calls what `commands`
    has for `apply`.
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
        """The title or a count in it changed."""

        def __init__(self, pane: Pane) -> None:
            super().__init__()
            self.pane = pane

    class GoneTo(Message):
        """The person is led to another pane; where they have left for a third meanwhile, it only comes to the front."""

        def __init__(self, name: str, focus: bool = True) -> None:
            super().__init__()
            self.name = name
            self.focus = focus

    class ActionAsked(Message):
        """An action that is not the pane's own is to be done; `action` is its id."""

        def __init__(self, action: str) -> None:
            super().__init__()
            self.action = action

    #: Shown in the line above the pane, with its counts: `Plan 2/3`.
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
        #: The person is about to come: go to what the line over the prompt says waits here.
        self.lead: Callable[[], object] = lambda: None
        self.session = session
        #: What is being done and decides what the next keys mean, and which of them have to wait for it.
        self._doing: dict[asyncio.Future[None], Waiting] = {}
        self.set_reactive(Pane.title_text, self.TITLE)

    def show(self, state: State) -> None:
        """Draw the state; called once when the pane is there, then when one of its slices is another."""
        raise NotImplementedError

    async def flush(self) -> None:
        """Hand over what the person typed and the session has not got yet."""

    @property
    def entry(self) -> Widget:
        """What gets the focus when the person goes to this pane: the first that can have it."""
        return next((child for child in self.query("*") if child.focusable), self)

    def enter(self) -> None:
        """Take the focus, at once: as a message it would come after what hides the pane that had it."""
        self.screen.set_focus(self.entry)

    def go_to(self, name: str, *, focus: bool = True) -> None:
        """Bring another pane to the front and give it the focus; see `GoneTo`."""
        self.post_message(self.GoneTo(name, focus))

    @property
    def keys(self) -> Keys:
        """The keys that are in force."""
        return getattr(self.app, "keys", Keys({}))

    @property
    def plain(self) -> bool:
        """Whether it is drawn for screen readers."""
        return getattr(self.app, "plain", False)

    @cached_property
    def calls_by_key(self) -> dict[str, str]:
        """What each key of this pane calls."""
        keys = self.keys.by_action
        return {key: action.call for action in actions_of(self.ID) for key in keys.get(action.id, ())}

    @cached_property
    def commands(self) -> Mapping[str, Callable[[], object]]:
        """What actions of this pane call, by their names."""
        return {}

    async def action_do(self, action_id: str) -> None:
        """Do what a key, the palette, the footer or the mouse asked for."""
        action = ACTIONS[action_id]
        if action.writes and self.session.state.session.read_only:
            self.ask(refuse(self.app, self.session))
        else:
            await called(self.commands[action.name])
            if acted := getattr(self.screen, "acted", None):
                acted(action_id)

    async def on_hint_line_pressed(self, event: HintLine.Pressed) -> None:
        event.stop()
        await self.action_do(event.action)

    def ask(self, call: Coroutine[Any, Any, object]) -> None:
        """Run a call on the session beside the screen; an error for the person becomes a notice."""
        ask(self, self.session, call)

    def act(
        self,
        call: Coroutine[Any, Any, object],
        *,
        changes: tuple[str, ...] = (),
        text_waits: bool = True,
        opens: bool = False,
    ) -> None:
        """Like `ask`, for what decides what the next keys mean: those to this pane wait until it is done and shown.

        So do keys to the panes in `changes`. With `text_waits` false, only keys of actions wait; with `opens` all
        keys, since they are for the dialog that it opens after a while.
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
        """What keys have to wait for: those of this pane's actions, what is typed into it, or all wherever they go."""
        least = _WAITING.index(keys)
        return next((done for done, waiting in self._doing.items() if _WAITING.index(waiting) >= least), None)

    def watch_title_text(self) -> None:
        self.post_message(self.Retitled(self))
