"""The input of the chat: several lines, a history at its edges, files and commands to pick, long pastes folded."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from textual import events, on
from textual.message import Message
from textual.widgets import TextArea

from tui_agent.files.numbers import whole_number
from tui_agent.ui.editor.vim import Mode, Vim
from tui_agent.ui.editor.writing_area import WritingArea
from tui_agent.ui.keys.keymap import Keys
from tui_agent.ui.keys.leader import is_modifier

#: A paste longer than this is shown as one line and sent as it is.
FOLD_FROM = 2_000
_MENTION = re.compile(r"(?:^|(?<=\s))@([^\s@]*)$")
#: A command, as long as nothing but its name is typed.
_COMMAND = re.compile(r"/([\w-]*)")
#: A paste longer than this is kept apart from what is written, and sent with it.
KEEP_FROM = 100_000
_FOLDED = re.compile(r"\[pasted text (\d+): [\d,]+ characters\]")


class ChosenStep(NamedTuple):
    """A next step that was put into the input: the digit that was typed for it, empty for a click, and its text."""

    digit: str
    text: str


class Prompt(WritingArea):
    """`step` gives the text of the next step with that number, "" where it is done without a text, None where there is
    none.

    A digit in an empty input chooses a step. Backspace and undo take the choice back; if the person types on, the
    digit was the beginning of a text and is kept as that.
    """

    class Picking(Message):
        """The word at the cursor is `@query` or `/query` now; with an empty sign it is neither."""

        def __init__(self, sign: str, query: str) -> None:
            super().__init__()
            self.sign = sign
            self.query = query

    class BelowAsked(Message):
        """↓ was pressed in an empty input below which there is nothing newer."""

    class EditorAsked(Message):
        """The text is to be written in the person's own editor."""

    class ModeChanged(Message):
        """Vim's keys mean something else from here on."""

        def __init__(self, mode: Mode) -> None:
            super().__init__()
            self.mode = mode

    class PickerKey(Message):
        """A key for the open list of files or commands, by what it means (`offers` in keys.toml)."""

        def __init__(self, meant: str) -> None:
            super().__init__()
            self.meant = meant

    def __init__(self, step: Callable[[int], str | None], keep: Callable[[str], str] | None = None) -> None:
        """`step` gives the text of a next step; `keep` takes a paste that is too long to be written out, and gives
        the line that is written in its place."""
        super().__init__(
            id="prompt",
            soft_wrap=True,
            compact=True,
            placeholder="Ask · @ file · / action · ! command",
        )
        self.highlight_cursor_line = False
        self._step = step
        self._keep = keep
        self._chosen: ChosenStep | None = None
        self._pastes: list[str] = []
        self._history: Sequence[str] = ()
        self._at = 0
        self._unsent = ""
        self.picking = False
        #: The word that the list is open for: its sign and the rest.
        self.picked_for = ("", "")
        #: Whether Ctrl+X was pressed, with nothing selected: the first key of two.
        self._after_x = False
        self._vim: Vim | None = None

    # ── the whole text ───────────────────────────────────────────────────────────────────────────────────

    @property
    def value(self) -> str:
        """What will be sent: the text with folded pastes in full."""
        return _FOLDED.sub(self._unfolded, self.text)

    def set_value(self, text: str) -> None:
        """Take this text, folded where it is long, with the cursor at its end."""
        self._chosen = None
        self._pastes = []
        self.text = self._fold(text) if len(text) > FOLD_FROM * 4 else text
        self.move_cursor(self.document.end)

    def choose(self, text: str, digit: str = "") -> None:
        """Take the text of a next step."""
        self.set_value(text)
        self._chosen = ChosenStep(digit, text)

    def put_before(self, text: str) -> None:
        """Take a text that comes back from elsewhere, before what is being written."""
        self.set_value("\n".join(filter(None, (text, self.value))))

    def _fold(self, text: str) -> str:
        self._pastes.append(text)
        return f"[pasted text {len(self._pastes)}: {len(text):,} characters]"

    def _unfolded(self, found: re.Match[str]) -> str:
        number = whole_number(found[1])
        return self._pastes[number - 1] if 0 < number <= len(self._pastes) else found[0]

    # ── history ──────────────────────────────────────────────────────────────────────────────────────────

    def set_history(self, history: Sequence[str]) -> None:
        """The messages that were sent, oldest first."""
        if history != self._history:
            self._history, self._at = history, len(history)

    def older(self) -> None:
        if self._at == len(self._history):
            self._unsent = self.value
        if self._at > 0:
            self._at -= 1
            self.set_value(self._history[self._at])

    def newer(self) -> None:
        if self._at < len(self._history):
            self._at += 1
            self.set_value(self._unsent if self._at == len(self._history) else self._history[self._at])

    def action_cursor_up(self, select: bool = False) -> None:
        if not select and self.navigator.is_first_wrapped_line(self.cursor_location):
            self.older()
        else:
            super().action_cursor_up(select)

    def action_cursor_down(self, select: bool = False) -> None:
        if not select and not self.text and self._at == len(self._history):
            self.post_message(self.BelowAsked())
        elif not select and self.navigator.is_last_wrapped_line(self.cursor_location):
            self.newer()
        else:
            super().action_cursor_down(select)

    # ── files and commands to pick ───────────────────────────────────────────────────────────────────────

    @property
    def command(self) -> str | None:
        """The word after `/`, where that is all that is written; else None."""
        found = _COMMAND.fullmatch(self.text)
        return found[1] if found else None

    def complete(self, path: str) -> None:
        """Put the path where the mention at the cursor stands."""
        row, column = self.cursor_location
        found = _MENTION.search(self.document.get_line(row)[:column])
        if found:
            name = f'@"{path}" ' if " " in path else f"@{path} "
            self.replace(name, (row, found.start()), (row, column))

    @on(TextArea.Changed)
    def _offer_words(self) -> None:
        self.post_message(self.Picking(*self._word()))

    def _word(self) -> tuple[str, str]:
        """The sign and the rest of the word at the cursor that there is something to pick for; else "" twice."""
        row, column = self.cursor_location
        if found := _MENTION.search(self.document.get_line(row)[:column][-300:]):
            return "@", found[1]
        command = self.command
        return ("", "") if command is None else ("/", command)

    def _meant_for_list(self, key: str) -> str:
        """What a key does in the list (`offers` in keys.toml); "" if it is not for the list. What a late one offers for
        an older word is not chosen."""
        keys: Keys | None = getattr(self.app, "keys", None)
        if keys is None or not self.picking:
            return ""
        choosing = ("choose", "take") if self._word() == self.picked_for else ()
        names = (*choosing, "up", "down", "close")
        return next((name for name in names if keys.means(key, f"offers.{name}")), "")

    # ── keys ─────────────────────────────────────────────────────────────────────────────────────────────

    def use_vim(self) -> None:
        """From now on take Vim's keys, beginning in insert mode."""
        self._vim = self._vim or Vim(self, lambda mode: self.post_message(self.ModeChanged(mode)))

    @on(events.Key)
    async def _take_key(self, event: events.Key) -> None:
        if self.locked:
            return  # the base says so
        if self._first_of_two(event):
            event.prevent_default()
            event.stop()
        elif meant := self._meant_for_list(event.key):
            event.prevent_default()
            event.stop()
            self.post_message(self.PickerKey(meant))
        elif self._vim is not None and self._vim.take(event):
            event.prevent_default()
            event.stop()
        elif self._vim is not None and self._vim.mode != "insert" and event.is_printable:
            event.prevent_default()  # it is a key of the workspace, such as the leader's, and no letter
        elif self._chosen is not None:
            self._after_choice(self._chosen, event)
        elif (digit := event.character or "").isdecimal() and not self.text and not self.read_only:
            text = self._step(int(digit))
            if text is not None:
                event.prevent_default()
                event.stop()
                if text:
                    self.choose(text, digit)

    def _first_of_two(self, event: events.Key) -> bool:
        """Ctrl+X Ctrl+E is the person's own editor; what is selected is cut by Ctrl+X as ever."""
        after_x, self._after_x = self._after_x, False
        if after_x and event.key == "ctrl+e":
            self.post_message(self.EditorAsked())
            return True
        if event.key == "ctrl+x" and not self.selected_text:
            self._after_x = True
            return True
        return False

    def _after_choice(self, chosen: ChosenStep, event: events.Key) -> None:
        """The first key after a choice undoes it, shows that it was none, or leaves it as it is."""
        if is_modifier(event):
            return
        self._chosen = None
        if event.key in ("backspace", "ctrl+z"):
            event.prevent_default()
            event.stop()
            self.set_value("")
        elif event.is_printable and chosen.digit:
            self.set_value(chosen.digit)

    @on(events.Paste)
    async def _take_paste(self, event: events.Paste) -> None:
        if self.locked:
            return  # the base says so
        if self._chosen is not None and self._chosen.digit:
            self.set_value(self._chosen.digit)
        self._chosen = None
        if len(event.text) > FOLD_FROM:
            event.prevent_default()
            event.stop()
            fold = self._fold if self._keep is None or len(event.text) <= KEEP_FROM else self._keep
            self.insert(fold(event.text))
