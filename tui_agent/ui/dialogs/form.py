"""A dialog in which something is written or ticked, and kept by a key."""

from __future__ import annotations

from collections.abc import Collection

from textual import on
from textual.screen import ScreenResultType
from textual.widgets import TextArea

from tui_agent.errors import TuiAgentError
from tui_agent.ui.dialogs.dialog import Dialog
from tui_agent.ui.editor.kept_text import KeptArea, KeptInput
from tui_agent.ui.sink import label, plain
from tui_agent.ui.widgets.lines import Lined
from tui_agent.ui.widgets.rows import Rows


class Form(Dialog[ScreenResultType]):
    """Gives what `keep` returns; a refusal is shown, and the form stays. What is written is kept at its place until
    then.

    With `asks_twice`, leaving a text that differs from `before` takes a second press.
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
        #: The text as it was before the person wrote, and whether leaving it was asked for.
        self.before = ""
        self._leaving = False
        #: The keys of the rows that are ticked.
        self.ticked: set[str] = set()

    async def keep(self) -> ScreenResultType | None:
        """What is written or ticked, put to its use. Raises `TuiAgentError` if that is refused."""
        raise NotImplementedError

    async def action_keep(self) -> None:
        try:
            kept = await self.keep()
        except TuiAgentError as error:
            self.say(plain(str(error), "$error"))
        else:
            self._end(kept)

    def _end(self, result: ScreenResultType | None = None) -> None:
        """Close the form; what was written is kept no longer."""
        for place in (*self.query(KeptInput), *self.query(KeptArea)):
            place.give_up()
        self.dismiss(result)

    def action_close(self) -> None:
        written = next((area.text for area in self.query(KeptArea)), "")
        if self._leaving or not self.asks_twice or written == self.before:
            self._end()
        else:
            self._leaving = True
            again = self.keys_for(("dialog.close", "again drops what you wrote"), ("form.keep", self.keeps))
            self.say(label(again, "$warning"))

    #: What the key that keeps does, in the warning.
    keeps = "keep"

    @on(TextArea.Changed)
    def _text_changed(self) -> None:
        if self._leaving:
            self._leaving = False
            self.say()

    def action_next_field(self, step: int) -> None:
        self.focus_next() if step > 0 else self.focus_previous()

    # ── ticks ────────────────────────────────────────────────────────────────────────────────────────────

    def tickable(self) -> Collection[str]:
        """The keys of all rows that can be ticked."""
        return ()

    def draw(self) -> None:
        """Show the rows, after a tick."""

    @on(Lined.Marked)
    def _row_marked(self, event: Lined.Marked) -> None:
        event.stop()
        self.action_tick(event.key)

    @on(Lined.Chosen)
    def _row_chosen(self, event: Lined.Chosen) -> None:
        event.stop()
        self.action_tick(event.key)

    def action_tick(self, key: str = "") -> None:
        if key := key or self.query_one(Rows).cursor:
            self.ticked ^= {key}
            self.draw()

    def action_tick_all(self) -> None:
        """Tick all of them; none if all are."""
        every = set(self.tickable())
        self.ticked = set() if self.ticked == every else every
        self.draw()
