"""A filterable list as a dialog."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from textwrap import wrap
from typing import Any, NamedTuple

from textual import events, on
from textual.containers import Vertical
from textual.content import Content
from textual.geometry import Offset
from textual.widget import Widget
from textual.widgets import Input, OptionList

from tui_agent.ui.dialogs.dialog import Dialog
from tui_agent.ui.host import keys_of
from tui_agent.ui.safe_text import label, parts

MOST = 200
#: Cells of a menu at the pointer, and rows around a list.
MENU, _AROUND = 70, 5
_ON_ROWS = ("chooser.choose", "chooser.up", "chooser.down", "chooser.page_up", "chooser.page_down")


def room_of(width: int, most: int = 120) -> int:
    """Cells of a row."""
    return min(most, int(width * 0.94)) - 5


class ChooserRow(NamedTuple):
    value: str
    words: Content


class _Typed(Input):
    """The yes key answers at once while the filter is empty."""

    def on_key(self, event: events.Key) -> None:
        chooser = self.screen
        if not self.value and isinstance(chooser, Chooser) and chooser.matches(event, "chooser.yes"):
            chooser.action_yes(event)


class Chooser(Dialog[Any]):
    """Returns the selected row's value. `rows` builds the rows for a filter text."""

    ID = "chooser"
    DEFAULT_CSS = """
    Chooser {
        & > Vertical { width: 120; max-width: 94%; max-height: 94%; }
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
        to_type: str = "type to filter, {choose} selects",
        getting: Coroutine[Any, Any, object] | None = None,
        following: Callable[[Callable[..., None]], Callable[[], None]] | None = None,
        seen: Callable[[str], object] | None = None,
        first: Callable[[], str] | None = None,
        most: int = MOST,
        yes: str = "",
        text: str = "",
        at: Offset | None = None,
    ) -> None:
        """`to_type` is the filter's placeholder, with `{choose}` and `{yes}` for these keys; `text` is its
        initial content. `getting` loads the data of `rows`; `following` subscribes to their changes and
        returns the unsubscribe function. `seen` receives the value at the cursor, `first` returns the
        initial one. `yes` is the yes key's value while the filter is empty. `at` is the pointer that
        opened the list. The rows after `most` are built if the cursor reaches them.
        """
        super().__init__(title)
        self._following = following
        self._seen = seen
        self._first = first
        self._most = most
        self._unfollow: Callable[[], None] | None = None
        self._getting = getting
        self._make = rows
        self._to_type = to_type
        self._yes = yes
        self._text = text
        self._pointer = at
        self._all: Sequence[ChooserRow] = ()
        self._rows: list[ChooserRow] = []
        self._across = 0

    def body(self) -> Iterable[Widget]:
        keys = {name: keys_of(self).shown(f"chooser.{name}") for name in ("choose", "yes")}
        placeholder = self._to_type.format(**keys)
        yield _Typed(self._text, placeholder=placeholder, compact=True, select_on_focus=False)
        yield OptionList(markup=False, compact=True)

    @on(events.Mount)
    def _mounted(self) -> None:
        if (at := self._pointer) is not None:
            box = self.query_one(Vertical)
            box.styles.width = width = min(MENU, self.size.width)
            tall = min(len(self._make("")) + _AROUND, self.size.height)
            self.styles.align = ("left", "top")
            x, y = min(at.x, self.size.width - width), min(at.y, self.size.height - tall)
            box.styles.margin = (y, 0, 0, x)
        self.narrow(self._text)
        if self._getting is not None:
            self.fill(self._get(self._getting))
        if self._following is not None:
            self._unfollow = self._following(self._follow)

    @on(events.Resize)
    def _resized(self, event: events.Resize) -> None:
        if self._across not in (0, event.size.width):
            self._follow()
        self._across = event.size.width

    @on(events.Unmount)
    def _unmounted(self) -> None:
        if self._unfollow is not None:
            self._unfollow()

    def _follow(self, *_: object) -> None:
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
        self.narrow(self.query_one(Input).value)

    def needs_content(self, event: events.Event) -> bool:
        return self.matches(event, *_ON_ROWS) or isinstance(event, events.MouseEvent)

    @on(Input.Changed)
    def _input_changed(self, event: Input.Changed) -> None:
        self.narrow(event.value)

    def narrow(self, words: str) -> None:
        self._all = self._make(words)
        self._show(list(self._all[: self._most]))
        first = self._first() if self._first is not None and not words else None
        at = next((at for at, row in enumerate(self._rows) if row.value == first), 0)
        self.query_one(OptionList).highlighted = at if self._rows else None

    def _show(self, rows: list[ChooserRow]) -> None:
        self._rows = rows
        options = self.query_one(OptionList)
        options.set_options([row.words for row in rows])
        if not rows:  # an emptied list would keep its height and catch clicks
            options.refresh(layout=True)
            self._show_facts()

    @property
    def value(self) -> str:
        at = self.query_one(OptionList).highlighted
        return self._rows[at].value if at is not None and at < len(self._rows) else ""

    def _show_facts(self) -> None:
        """Called if the cursor moved."""

    @on(OptionList.OptionHighlighted)
    def _option_highlighted(self, event: OptionList.OptionHighlighted) -> None:
        if event.option_index == len(self._rows) - 1 < len(self._all) - 1:
            more = list(self._all[len(self._rows) : len(self._rows) + self._most])
            self._rows += more
            self.query_one(OptionList).add_options([row.words for row in more])
        self._show_facts()
        if self._seen is not None and event.option_index < len(self._rows):
            self._seen(self._rows[event.option_index].value)

    @on(OptionList.OptionSelected)
    def _option_selected(self, event: OptionList.OptionSelected) -> None:
        self.choose(event.option_index)

    def choose(self, at: int | None) -> None:
        self.dismiss(self._rows[at].value if at is not None and at < len(self._rows) else None)

    def action_choose(self) -> None:
        self.choose(self.query_one(OptionList).highlighted)

    def action_yes(self, event: events.Key | None = None) -> None:
        if self._yes:
            if event is not None:
                event.stop()
                event.prevent_default()
            self.dismiss(self._yes)

    def action_move(self, how: str) -> None:
        getattr(self.query_one(OptionList), f"action_{how}")()


def question(
    title: str,
    answers: Mapping[str, str],
    *,
    below: str = "",
    to_type: str = "",
    yes: str = "",
) -> Chooser:
    """Returns the key of the selected answer; "" or `None` means no action."""
    rows = [ChooserRow(value, label(words)) for value, words in answers.items()]
    rows += [ChooserRow("", parts(("  ", ""), (line, "$muted"))) for line in wrap(below, 68)]
    return Chooser(title, lambda _: rows, to_type, yes=yes)
