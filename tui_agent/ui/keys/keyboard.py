"""Handles keys, pastes and mouse events strictly in input order.

Textual's queues could send keys of one read to the previous focus; here each event waits for the effects
of the one before, but not for the session, a disk or a model, unless its meaning depends on running work
(`Busy`).
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from textual import events
from textual.app import App
from textual.dom import DOMNode
from textual.message_pump import MessagePump

from tui_agent.ui.textual_patches.quiet import at_rest, calls_wait, layout_waits, version_of

if TYPE_CHECKING:
    from tui_agent.session.session import Session

#: Maximum seconds to wait for a handler.
AT_MOST = 5.0
#: Idle loop iterations that let a worker start and push its dialog.
QUIET_ROUNDS = 3
#: Iterations before polling with a sleep.
SPIN_ROUNDS = 200
#: Seconds before queued text is stored; a key handled at once is stored by its widget.
STORED_AFTER = 0.2
#: Place of that text in the session; the next start appends it to the prompt.
WAITING = "waiting"
#: Seconds for the layout of a new screen or pane.
DRAWN_WITHIN = 1.0

Typed = events.InputEvent | events.Paste | events.AppFocus | events.AppBlur


@runtime_checkable
class Busy(Protocol):
    """A widget or screen whose running work affects the meaning of keys."""

    def busy(self, event: Typed) -> asyncio.Future[None] | None:
        """The future to await before the event, for about a second at most."""


class Keyboard:
    """`urgent` selects events that do not wait in the queue."""

    def __init__(
        self,
        app: App[Any],
        dispatch: Callable[[Typed], Awaitable[None]],
        urgent: Callable[[Typed], bool],
    ) -> None:
        self._app = app
        self._dispatch = dispatch
        self._urgent = urgent
        self._queue: deque[Typed] = deque()
        self._came = asyncio.Event()
        self._waited_for: asyncio.Future[None] | None = None
        self._handling = False
        #: Number of handled keys, pastes and clicks.
        self.handled = 0
        self._rested = asyncio.Event()
        self._rested.set()
        self._read_at = time.monotonic()
        #: Awaited between two events with the text of keys that have waited for `STORED_AFTER`, and with ""
        #: afterwards.
        self.on_waiting: Callable[[str], Awaitable[None]] | None = None
        self._storing: asyncio.TimerHandle | None = None
        self._is_to_be_stored = False
        #: Message pumps, and the screens and versions that they belong to.
        self._pumps: list[MessagePump] = []
        self._pumps_of: list[object] = []

    @property
    def text(self) -> str:
        return "".join(
            event.text if isinstance(event, events.Paste) else event.character or ""
            for event in self._queue
            if isinstance(event, events.Paste) or (isinstance(event, events.Key) and event.is_printable)
        )

    @property
    def at_rest(self) -> bool:
        return not self._queue and not self._handling

    def waiting(self) -> bool:
        return bool(self._queue)

    @property
    def idle(self) -> float:
        """Seconds since the last input or resize; 0 while effects are pending."""
        return time.monotonic() - self._read_at if self.at_rest else 0.0

    def touch(self) -> None:
        self._read_at = time.monotonic()

    def put(self, event: Typed) -> None:
        self.touch()
        self._rested.clear()
        self._queue.append(event)
        self._came.set()
        self._store_later()

    def _store_later(self) -> None:
        if self._storing is None:
            self._storing = asyncio.get_running_loop().call_later(STORED_AFTER, self._store)

    def _store(self) -> None:
        self._storing, self._is_to_be_stored = None, True
        if self._queue:
            self._store_later()
        self.look()

    async def rested(self, within: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(within):
                await self._rested.wait()

    def look(self) -> None:
        self._came.set()

    async def run(self) -> None:
        while True:
            event = await self._next()
            self._handling = True
            self.handled += isinstance(event, events.Key | events.Paste | events.MouseDown)
            writes = isinstance(event, events.Key) and event.is_printable
            if isinstance(event, events.MouseEvent | events.Key) and not writes:
                screen, presses = self._app.screen, isinstance(event, events.MouseDown)
                moves = layout_waits(screen) or (presses and calls_wait(screen))
                if moves:
                    await self.drawn()
            # A press on a larger screen, or in pixels for another program: Textual would take the focus away.
            outside = (
                isinstance(event, events.MouseEvent)
                and self._app.mouse_captured is None
                and (event.screen_x, event.screen_y) not in self._app.screen.region
            )
            await self._effects(None if outside else self._dispatch(event))
            self._handling = False
            if not self._queue:
                self._rested.set()

    async def _next(self) -> Typed:
        settled = False
        while True:
            self._came.clear()
            if self._is_to_be_stored and self.on_waiting is not None:
                self._is_to_be_stored = False
                await self.on_waiting(self.text)
            if not self._queue:
                await self._came.wait()
            elif (done := self._busy(self._queue[0])) is not None:
                if (event := next(filter(self._urgent, self._queue), None)) is not None:
                    self._queue.remove(event)
                    return event
                if done is not self._waited_for:
                    self._waited_for = done
                    done.add_done_callback(lambda _: self.look())
                await self._came.wait()
                settled = False
            elif settled or self._is_quiet():
                return self._queue.popleft()
            else:
                await self._effects()
                settled = True

    def _busy(self, event: Typed) -> asyncio.Future[None] | None:
        if not isinstance(event, events.Key | events.Paste | events.MouseDown | events.MouseUp):
            return None
        target = self._app.focused or self._app.screen
        for node in target.ancestors_with_self:
            if isinstance(node, Busy) and (done := node.busy(event)) is not None and not done.done():
                return done
        return None

    async def _effects(self, of: Awaitable[None] | None = None) -> None:
        before = self._app.screen, self._app.focused
        if of is not None:
            await of
        await self._settled()
        if before != (self._app.screen, self._app.focused):
            await self.drawn()

    async def _settled(self) -> None:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + AT_MOST
        quiet = rounds = 0
        while quiet < QUIET_ROUNDS and loop.time() < deadline and self._app.is_running:
            quiet = quiet + 1 if self._is_quiet() else 0
            rounds += 1
            await asyncio.sleep(0 if rounds < SPIN_ROUNDS else 0.001)

    def _is_quiet(self) -> bool:
        screens = self._app.screen_stack
        shown: list[object] = [*screens, *(version_of(screen) for screen in screens)]
        if shown != self._pumps_of:
            nodes: list[DOMNode] = list(screens)
            for node in nodes:  # grows during iteration
                nodes.extend(node.children)
            self._pumps_of = shown
            self._pumps = [*nodes, self._app]
        for at, pump in enumerate(self._pumps):
            if not at_rest(pump):
                self._pumps[0], self._pumps[at] = pump, self._pumps[0]
                return False
        return True

    async def drawn(self) -> None:
        screen = self._app.screen
        if screen.is_running:
            try:
                async with asyncio.timeout(DRAWN_WITHIN):
                    await screen.wait_for_refresh()
            except TimeoutError:
                return
            await self._settled()


def store_waiting(app: App[Any], session: Session) -> None:
    """Stores the keys that still wait, beside text that is being stored: after a kill, no key is in both."""
    keyboard = getattr(app, "keyboard", None)
    if isinstance(keyboard, Keyboard) and session.state.input.typed.get(WAITING):
        hidden = getattr(app.focused, "password", False)
        session.chat.set_typed(WAITING, "" if hidden else keyboard.text)
