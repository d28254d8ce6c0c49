"""A list to choose from, narrowed by typing: the palette, the file finder, the notices."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple

from textual import events
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Input, OptionList, Static

from tui_agent.ui.dialogs.dialog import Dialog
from tui_agent.ui.sink import label

MOST = 200


def room_of(width: int) -> int:
    """The cells of a row on a screen of that width."""
    return min(92, int(width * 0.94)) - 5


class ChooserRow(NamedTuple):
    """What is chosen, and how it looks."""

    value: str
    words: Content


class _Typed(Input):
    """What is typed. As long as that is nothing, a key of `answers` chooses its value at once."""

    def __init__(self, placeholder: str, answers: Mapping[str, str]) -> None:
        super().__init__(placeholder=placeholder, compact=True)
        self._answers = answers

    def on_key(self, event: events.Key) -> None:
        if not self.value and event.key in self._answers:
            event.stop()
            event.prevent_default()
            self.screen.dismiss(self._answers[event.key])


class Chooser(Dialog[str | None], inherit_bindings=False):
    """Gives the value of the chosen row, or None. `rows` makes them for what is typed."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss(None)", show=False)]
    DEFAULT_CSS = """
    Chooser {
        align: center top; background: $background 40%;
        & > Vertical {
            width: 92; max-width: 94%; height: auto; max-height: 70%;
            margin-top: 3; background: $overlay; padding: 1 2;
        }
        & Static { height: 1; color: $accent; text-style: bold; }
        & .hint { color: $muted; text-style: none; }
        & Input { border: none; height: 1; padding: 0; margin: 0 0 1 0; background: $overlay; }
        & OptionList {
            border: none; height: auto; max-height: 100%;
            background: $overlay; padding: 0; scrollbar-size-vertical: 1;
        }
        & OptionList:focus { border: none; background-tint: transparent; }
        & OptionList > .option-list--option-highlighted { background: $accent-surface; color: $text; text-style: none; }
    }
    """

    def __init__(
        self,
        title: str,
        rows: Callable[[str], Sequence[ChooserRow]],
        to_type: str = "type to narrow",
        getting: Coroutine[Any, Any, object] | None = None,
        following: Callable[[Callable[..., None]], Callable[[], None]] | None = None,
        seen: Callable[[str], object] | None = None,
        first: Callable[[], str] | None = None,
        most: int = MOST,
        hint: Callable[[str], Content] | None = None,
        answers: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """`getting` gets what `rows` needs: they are made again when it is done. `seen` is told the value that the
        cursor is on. `first` gives the value that it begins on, where that is not the first; `most` rows are made at
        once. `hint` gives the line above the rows for the value that the cursor is on ("" if there is none). A key of
        `answers` chooses its value as long as nothing is typed.

        Rows beyond the `most` first are made when the cursor gets there.

        `following` takes what is to be called when the rows may be others, and returns how to end that.
        """
        super().__init__()
        self._following = following
        self._seen = seen
        self._first = first
        self._most = most
        self._hint = hint
        self._unfollow: Callable[[], None] | None = None
        self._getting = getting
        self._title = title
        self._make = rows
        self._to_type = to_type
        self._answers = answers
        self._all: Sequence[ChooserRow] = ()
        self._rows: list[ChooserRow] = []

    def compose(self) -> Iterable[Widget]:
        with Vertical():
            yield Static(label(self._title), markup=False)
            yield _Typed(self._to_type, self._answers)
            if self._hint is not None:
                yield Static("", classes="hint", markup=False)
            yield OptionList(markup=False, compact=True)

    def on_mount(self) -> None:
        self._narrow("")
        if self._getting is not None:
            self.fill(self._get(self._getting))
        if self._following is not None:
            self._unfollow = self._following(self._follow)

    def on_unmount(self) -> None:
        if self._unfollow is not None:
            self._unfollow()

    def _follow(self, *_: object) -> None:
        """Rows that came are shown; the chosen one stays chosen, and the top stays the top."""
        self._all = self._make(self.query_one(Input).value)
        rows = list(self._all[: max(self._most, len(self._rows))])
        if rows == self._rows:
            return
        options = self.query_one(OptionList)
        values = [row.value for row in rows]
        chosen = self._rows[options.highlighted].value if options.highlighted else ""
        self._show(rows)
        options.highlighted = values.index(chosen) if chosen in values else 0 if rows else None

    async def _get(self, getting: Coroutine[Any, Any, object]) -> None:
        await getting
        self._narrow(self.query_one(Input).value)

    def needs_content(self, event: events.Event) -> bool:
        moves = isinstance(event, events.Key) and event.key in ("enter", "up", "down", "pageup", "pagedown")
        return moves or isinstance(event, events.MouseEvent)

    def retitle(self, title: str) -> None:
        self.query_one(Static).update(label(title))

    def on_input_changed(self, event: Input.Changed) -> None:
        self._narrow(event.value)

    def _narrow(self, words: str) -> None:
        self._all = self._make(words)
        self._show(list(self._all[: self._most]))
        first = self._first() if self._first is not None and not words else None
        at = next((at for at, row in enumerate(self._rows) if row.value == first), 0)
        self.query_one(OptionList).highlighted = at if self._rows else None

    def _show(self, rows: list[ChooserRow]) -> None:
        self._rows = rows
        options = self.query_one(OptionList)
        options.set_options([row.words for row in rows])
        if not rows:  # else a list that became empty keeps its height, and the clicks there
            options.refresh(layout=True)
            self.show_hint()

    def _show_more(self) -> None:
        more = list(self._all[len(self._rows) : len(self._rows) + self._most])
        self._rows += more
        self.query_one(OptionList).add_options([row.words for row in more])

    @property
    def value(self) -> str:
        """The value that the cursor is on; "" if there is none."""
        at = self.query_one(OptionList).highlighted
        return self._rows[at].value if at is not None and at < len(self._rows) else ""

    def show_hint(self) -> None:
        if self._hint is not None:
            self.query_one(".hint", Static).update(self._hint(self.value))

    def on_option_list_option_highlighted(self, event: OptionList.OptionHighlighted) -> None:
        if event.option_index == len(self._rows) - 1 < len(self._all) - 1:
            self._show_more()
        self.show_hint()
        if self._seen is not None and event.option_index < len(self._rows):
            self._seen(self._rows[event.option_index].value)

    def on_input_submitted(self) -> None:
        self._choose(self.query_one(OptionList).highlighted)

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        self._choose(event.option_index)

    def _choose(self, at: int | None) -> None:
        self.dismiss(self._rows[at].value if at is not None and at < len(self._rows) else None)

    def on_key(self, event: events.Key) -> None:
        options = self.query_one(OptionList)
        moves = {
            "up": options.action_cursor_up,
            "down": options.action_cursor_down,
            "pageup": options.action_page_up,
            "pagedown": options.action_page_down,
        }
        if event.key in moves:
            event.stop()
            event.prevent_default()
            moves[event.key]()
