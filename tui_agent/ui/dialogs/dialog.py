"""A dialog: a screen over the workspace that gives a result when it is closed, once."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, cast

from textual import events
from textual.await_complete import AwaitComplete
from textual.css.query import NoMatches
from textual.screen import ModalScreen, ScreenResultType
from textual.worker import Worker

from tui_agent.ui.textual_patches.keys_first import KeysFirstScreen

if TYPE_CHECKING:
    from tui_agent.ui.host import Host

#: Seconds that a key waits at most for what the dialog is getting to show.
AT_MOST = 1.0


class Dialog(KeysFirstScreen[ScreenResultType], ModalScreen[ScreenResultType], inherit_bindings=False):
    """It is opened at once and filled when its content is there; keys that depend on the content wait for it."""

    def __init__(self) -> None:
        super().__init__(lambda: not cast("Host", self.app).keyboard.at_rest)
        self._filling: set[asyncio.Future[None]] = set()

    def fill(self, call: Coroutine[Any, Any, object]) -> None:
        """Get something to show. A later call takes the place of one that is not done."""
        done = asyncio.get_running_loop().create_future()
        self._filling.add(done)

        def release() -> None:
            self._filling.discard(done)
            if not done.done():
                done.set_result(None)

        async def then() -> None:
            try:
                await call
            finally:
                release()

        asyncio.get_running_loop().call_later(AT_MOST, release)
        self.run_worker(then(), group="fill", exclusive=True)

    def run_worker(self, work: Any, *args: Any, **options: Any) -> Worker[Any]:
        """As any widget does; work that still looks for widgets when the dialog is closed ends in silence."""
        return super().run_worker(work if options.get("thread") else self._while_open(work), *args, **options)

    async def _while_open(self, work: Any) -> None:
        try:
            await (work() if callable(work) else work)
        except NoMatches:
            # Its widgets go before it does, also when the program ends under it.
            if self.app.is_running and self.is_attached and self in self.app.screen_stack:
                raise

    def needs_content(self, event: events.Event) -> bool:
        """Whether what this event does depends on what the dialog is getting to show."""
        return not isinstance(event, events.Key) or event.key != "escape"

    def busy(self, event: events.Event) -> asyncio.Future[None] | None:
        """What the keyboard waits for before it hands the event to this dialog."""
        return next(iter(self._filling), None) if self.needs_content(event) else None

    def dismiss(self, result: ScreenResultType | None = None) -> AwaitComplete:
        """Close the dialog; nothing happens where it is closed already, or another lies over it."""
        if self.app.screen is not self:
            return AwaitComplete.nothing()
        # What arrives from here on has nowhere to be shown.
        self.workers.cancel_group(self, "fill")
        return super().dismiss(result)
