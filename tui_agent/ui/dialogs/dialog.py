"""Modal dialogs with a result."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, ClassVar, cast

from textual import events
from textual.await_complete import AwaitComplete
from textual.containers import Vertical
from textual.content import Content
from textual.css.query import NoMatches
from textual.screen import ModalScreen, ScreenResultType
from textual.widget import Widget
from textual.widgets import Static
from textual.worker import Worker

from tui_agent.ui.host import keys_of
from tui_agent.ui.keys.keymap import DIALOGS, view_bindings
from tui_agent.ui.safe_text import label
from tui_agent.ui.textual_patches.keys_first import KeysFirstScreen

if TYPE_CHECKING:
    from tui_agent.ui.host import Host

#: Maximum seconds that a key waits for content.
AT_MOST = 1.0


class Dialog(KeysFirstScreen[ScreenResultType], ModalScreen[ScreenResultType], inherit_bindings=False):
    """Opens before its content is loaded; keys that need the content wait. `ID` is its key table
    (`keymap.DIALOGS`).
    """

    ID: ClassVar[str] = ""
    #: Keys of the hint line: action ids and their effects.
    HINTS: Sequence[tuple[str, str]] = ()
    #: Whether the hint line is above the body, where no notice covers it.
    HINT_ON_TOP: ClassVar[bool] = False
    BINDINGS = view_bindings(*DIALOGS[ID])
    DEFAULT_CSS = """
    Dialog {
        align: center top; background: $background 40%;
        & > Vertical {
            width: 120; max-width: 96%; height: auto; max-height: 90%;
            margin-top: 1; background: $overlay; padding: 1 2;
        }
        & .title { height: 1; color: $accent; text-style: bold; }
        & .hint { height: auto; color: $muted; }
    }
    """

    def __init_subclass__(cls, **kwargs: Any) -> None:
        if "ID" in cls.__dict__:
            cls.BINDINGS = view_bindings(*DIALOGS[cls.ID])
        super().__init_subclass__(**{"inherit_bindings": "ID" not in cls.__dict__, **kwargs})

    def __init__(self, heading: str = "") -> None:
        super().__init__(lambda: not cast("Host", self.app).keyboard.at_rest)
        self._heading = heading
        self._filling: set[asyncio.Future[None]] = set()

    def compose(self) -> Iterable[Widget]:
        with Vertical():
            yield Static(label(self._heading), classes="title", markup=False)
            hint = [] if (words := self.hint()) is None else [Static(words, classes="hint", markup=False)]
            parts = (hint, self.body()) if self.HINT_ON_TOP else (self.body(), hint)
            yield from chain.from_iterable(parts)

    def body(self) -> Iterable[Widget]:
        return ()

    def hint(self) -> Content | None:
        return label(self.keys_for(*self.HINTS)) if self.HINTS else None

    def retitle(self, words: str) -> None:
        self.query_one(".title", Static).update(label(words))

    def say(self, words: Content | str = "") -> None:
        self.query_one(".hint", Static).update(words or self.hint() or "")

    def keys_for(self, *told: tuple[str, str], gap: str = "   ") -> str:
        """`n p hunk   Esc cancel` for `("preview.next_hunk preview.previous_hunk", "hunk"), …`."""
        return gap.join(
            f"{' '.join(map(keys_of(self).shown, names.split()))} {words}" for names, words in told
        )

    def matches(self, event: events.Event, *names: str) -> bool:
        return isinstance(event, events.Key) and keys_of(self).matches(event.key, *names)

    def action_close(self) -> None:
        self.dismiss(None)

    def fill(self, call: Coroutine[Any, Any, object]) -> None:
        """Loads content instead of an unfinished load."""
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
        """Suppresses lookup errors after the dialog has closed."""
        return super().run_worker(work if options.get("thread") else self._while_open(work), *args, **options)

    async def _while_open(self, work: Any) -> None:
        try:
            await (work() if callable(work) else work)
        except NoMatches:
            # Children are removed before the dialog, also at program exit.
            if self.app.is_running and self.is_attached and self in self.app.screen_stack:
                raise

    def needs_content(self, event: events.Event) -> bool:
        """Whether the event's effect depends on content being loaded."""
        return not self.matches(event, "dialog.close")

    def busy(self, event: events.Event) -> asyncio.Future[None] | None:
        return next(iter(self._filling), None) if self.needs_content(event) else None

    def dismiss(self, result: ScreenResultType | None = None) -> AwaitComplete:
        """Does nothing if closed or covered by another dialog."""
        if self.app.screen is not self:
            return AwaitComplete.nothing()
        self.workers.cancel_group(self, "fill")
        return super().dismiss(result)
