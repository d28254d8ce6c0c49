"""Modal dialogs with a result, and those with text input or checkboxes and a save key."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Collection, Coroutine, Iterable, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, ClassVar, cast

from textual import events, on
from textual.await_complete import AwaitComplete
from textual.containers import Vertical
from textual.content import Content
from textual.css.query import NoMatches
from textual.screen import ModalScreen, ScreenResultType
from textual.widget import Widget
from textual.widgets import Static, TextArea
from textual.worker import Worker

from tui_agent.errors import TuiAgentError
from tui_agent.ui.editor.writing_area import KeptArea, KeptInput
from tui_agent.ui.host import keys_of
from tui_agent.ui.keys.keymap import DIALOGS, view_bindings
from tui_agent.ui.safe_text import label, plain
from tui_agent.ui.textual_patches.keys_first import KeysFirstScreen
from tui_agent.ui.widgets.line_view import LineView, Piece, Rows

if TYPE_CHECKING:
    from tui_agent.session.session import Session
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


class Form(Dialog[ScreenResultType]):
    """Returns the result of `keep`; a refusal keeps the form open. Its text is saved until then. With
    `asks_twice`, closing with changes needs a second press.
    """

    ID = "text"
    asks_twice = False
    DEFAULT_CSS = """
    Form {
        & KeptInput { border: none; height: 1; padding: 0 1; margin-bottom: 1; background: $surface; }
    }
    """

    def __init__(self, heading: str) -> None:
        super().__init__(heading)
        self.before = ""
        self._leaving = False
        self.ticked: set[str] = set()

    async def keep(self) -> ScreenResultType | None:
        """Raises `TuiAgentError` to refuse the input."""
        raise NotImplementedError

    async def action_keep(self) -> None:
        try:
            kept = await self.keep()
        except TuiAgentError as error:
            self.say(plain(str(error), "$error"))
        else:
            self._end(kept)

    def _end(self, result: ScreenResultType | None = None) -> None:
        for place in (*self.query(KeptInput), *self.query(KeptArea)):
            place.give_up()
        self.dismiss(result)

    def action_close(self) -> None:
        written = next((area.text for area in self.query(KeptArea)), "")
        if self._leaving or not self.asks_twice or written == self.before:
            self._end()
        else:
            self._leaving = True
            again = self.keys_for(("dialog.close", "again discards your text"), ("form.keep", self.keeps))
            self.say(label(again, "$warning"))

    #: Effect of the save key, for the warning.
    keeps = "keep"

    @on(TextArea.Changed)
    def _text_changed(self) -> None:
        if self._leaving:
            self._leaving = False
            self.say()

    def action_next_field(self, step: int) -> None:
        self.focus_next() if step > 0 else self.focus_previous()

    def tickable(self) -> Collection[str]:
        return ()

    def draw(self) -> None:
        pass

    @on(LineView.Marked)
    @on(LineView.Chosen)
    def _row_pressed(self, event: LineView.Marked | LineView.Chosen) -> None:
        event.stop()
        self.action_tick(event.key)

    def action_tick(self, key: str = "") -> None:
        if key := key or self.query_one(Rows).cursor:
            self.ticked ^= {key}
            self.draw()

    def action_tick_all(self) -> None:
        every = set(self.tickable())
        self.ticked = set() if self.ticked == every else every
        self.draw()


def tick_box(ticked: bool) -> Piece:
    return Piece("[x] " if ticked else "[ ] ", "accent" if ticked else "muted")


class TextDialog(Form[str | None]):
    asks_twice = True
    DEFAULT_CSS = """
    TextDialog {
        & > Vertical { width: 100; max-width: 94%; height: 70%; margin-top: 2; }
        & KeptArea { height: 1fr; margin: 1 0; }
    }
    """

    def __init__(
        self,
        title: str,
        text: str | Awaitable[str | None],
        *,
        keep: str = "keep",
        wrap: bool = False,
        kept: tuple[Session, str] | None = None,
    ) -> None:
        """Keys wait for an awaitable `text`; `None` closes the dialog. `kept` is the draft's session and
        place. Read-only if `keep` is "".
        """
        super().__init__(title)
        self._text = text
        self.keeps = keep
        self._wrap = wrap
        self._kept = kept
        self.before = text if isinstance(text, str) else ""

    def body(self) -> Iterable[Widget]:
        wrap, fixed = self._wrap, not self.keeps
        yield KeptArea(self.before, soft_wrap=wrap, tab_behavior="indent", read_only=fixed)

    def hint(self) -> Content:
        keys = (("form.keep", self.keeps), ("dialog.close", "cancel"))
        return label(self.keys_for(*keys if self.keeps else [("dialog.close", "back")]))

    @on(events.Mount)
    def _mounted(self) -> None:
        area = self.query_one(KeptArea)
        area.focus()
        if not isinstance(self._text, str):
            self.fill(self._get(self._text))
        elif self._kept is not None:
            area.text = area.keep_at(*self._kept, self.before)

    async def _get(self, text: Awaitable[str | None]) -> None:
        found, area = await text, self.query_one(KeptArea)
        if found is None:
            self.dismiss(None)
        elif not area.text:
            self.before = found
            area.text = area.keep_at(*self._kept, found) if self._kept is not None else found

    async def keep(self) -> str:
        return self.query_one(KeptArea).text
