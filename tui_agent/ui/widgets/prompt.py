"""Chat input: multi-line text, history, folded pastes, and completion of files and commands."""

from __future__ import annotations

import asyncio
import os
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from rich.cells import cell_len
from textual import events, on
from textual.content import Content
from textual.message import Message
from textual.widgets import OptionList, TextArea

from tui_agent.files.numbers import whole_number
from tui_agent.store.state import State
from tui_agent.ui.actions import slash_commands
from tui_agent.ui.editor.writing_area import WritingArea
from tui_agent.ui.host import keys_of
from tui_agent.ui.keys.keymap import Keys, view_bindings
from tui_agent.ui.keys.leader import is_modifier
from tui_agent.ui.safe_text import one_line, parts
from tui_agent.ui.widgets.line_view import column
from tui_agent.ui.widgets.pane import Pane

if TYPE_CHECKING:
    from tui_agent.session.session import Session

#: Characters from which a paste is folded.
FOLD_FROM = 2_000
_MENTION = re.compile(r"(?:^|(?<=\s))@([^\s@]*)$")
_COMMAND = re.compile(r"/([\w:-]*)")
#: Characters from which a paste is stored outside the text.
KEEP_FROM = 100_000
_FOLDED = re.compile(r"\[pasted text (\d+): [\d,]+ characters\]")


#: The end of a picture's path, and seconds to find its file.
_PICTURE = re.compile(r"^[^\n]{1,4096}\.(?:png|jpe?g|gif|webp|bmp|tiff?|ico)$", re.IGNORECASE)
DROPPED_WITHIN = 0.2
#: Actions only of the empty prompt, since their keys edit text.
_IN_EMPTY = ("changes.apply_one", "changes.skip_one")


class Prompt(WritingArea):
    """A digit in an empty input chooses a next step; if a character follows, the digit was text."""

    BINDINGS = view_bindings("prompt")

    class Picking(Message):
        """The word at the cursor has become `@query` or `/query`; without a sign it is neither."""

        def __init__(self, sign: str, query: str) -> None:
            super().__init__()
            self.sign = sign
            self.query = query

    class BelowAsked(Message):
        """Down was pressed on the last line, at the end of the history."""

    class EditorAsked(Message):
        pass

    class PictureAsked(Message):
        """A paste without text: the clipboard may hold a picture."""

    class PickerKey(Message):
        """A key of the completion list, by its name in the `offers` table of `keys.toml`."""

        def __init__(self, meant: str) -> None:
            super().__init__()
            self.meant = meant

    def __init__(self, step: Callable[[int], str | None], keep: Callable[[str], str] | None = None) -> None:
        """`step` returns a next step's text, "" for one without text, or `None`. `keep` stores a very long
        paste and returns its placeholder.
        """
        super().__init__(
            id="prompt",
            soft_wrap=True,
            compact=True,
            placeholder="Ask · @ file · / action · ! run",
        )
        self.highlight_cursor_line = False
        self._step = step
        self._keep = keep
        #: The digit that has just chosen a next step, "" after a click.
        self._chosen: str | None = None
        self._pastes: list[str] = []
        self._history: Sequence[str] = ()
        self._at = 0
        self._unsent = ""
        self.picking = False
        #: Sign and query of the open completion list.
        self.picked_for = ("", "")
        #: Whether the last key was Ctrl+X without a selection.
        self._after_x = False
        self._undone = False

    def undo(self) -> None:
        super().undo()
        self._undone = not self.text

    @property
    def value(self) -> str:
        return _FOLDED.sub(self._unfolded, self.text)

    def set_value(self, text: str) -> None:
        self._chosen = None
        self._pastes = []
        self.text = self._fold(text) if len(text) > FOLD_FROM * 4 else text
        self.move_cursor(self.document.end)

    def choose(self, text: str, digit: str = "") -> None:
        self.set_value(text)
        self._chosen = digit

    def insert_before(self, text: str) -> None:
        self.set_value("\n".join(filter(None, (text, self.value))))

    def _fold(self, text: str) -> str:
        self._pastes.append(text)
        return f"[pasted text {len(self._pastes)}: {len(text):,} characters]"

    def _unfolded(self, found: re.Match[str]) -> str:
        number = whole_number(found[1])
        return self._pastes[number - 1] if 0 < number <= len(self._pastes) else found[0]

    def set_history(self, history: Sequence[str]) -> None:
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
        if select or not self.navigator.is_last_wrapped_line(self.cursor_location):
            super().action_cursor_down(select)
        elif self._at == len(self._history):
            self.post_message(self.BelowAsked())
        else:
            self.newer()

    @property
    def command(self) -> str | None:
        """The typed command name; `None` with other text."""
        found = _COMMAND.fullmatch(self.text)
        return found[1] if found else None

    def complete(self, path: str) -> None:
        row, column = self.cursor_location
        found = _MENTION.search(self.document.get_line(row)[:column])
        if found:
            name = f'@"{path}" ' if " " in path else f"@{path} "
            self.replace(name, (row, found.start()), (row, column))

    @on(TextArea.Changed)
    def _offer_words(self) -> None:
        self._undone = self._undone and not self.text
        self.post_message(self.Picking(*self._word()))

    def _word(self) -> tuple[str, str]:
        row, column = self.cursor_location
        if found := _MENTION.search(self.document.get_line(row)[:column][-300:]):
            return "@", found[1]
        command = self.command
        return ("", "") if command is None else ("/", command)

    def _meant_for_list(self, key: str) -> str:
        if not self.picking:
            return ""
        keys = keys_of(self)
        choosing = ("choose", "take") if self._word() == self.picked_for else ()
        names = (*choosing, "up", "down", "close")
        return next((name for name in names if keys.matches(key, f"offers.{name}")), "")

    def action_undo(self) -> None:
        empty = not self.text
        super().action_undo()
        if empty and not self.text and keys_of(self).matches("ctrl+z", "app.suspend"):
            self.post_message(Pane.ActionAsked("app.suspend"))

    @on(events.Key)
    async def _take_key(self, event: events.Key) -> None:
        after_x, self._after_x = self._after_x, event.key == "ctrl+x" and not self.selected_text
        if self._after_x or (after_x and event.key == "ctrl+e"):
            event.prevent_default()
            event.stop()
            if not self._after_x:
                self.post_message(self.EditorAsked())
        elif meant := self._meant_for_list(event.key):
            event.prevent_default()
            event.stop()
            self.post_message(self.PickerKey(meant))
        elif not self.text and not self._undone and keys_of(self).matches(event.key, *_IN_EMPTY):
            event.prevent_default()
            event.stop()
            action = next(name for name in _IN_EMPTY if keys_of(self).matches(event.key, name))
            await self.run_action(f"screen.do('{action}')")
        elif self._taken_by_vim(event):
            return
        elif self._chosen is not None:
            if is_modifier(event):
                return
            # The first key after a choice reverts it, or makes it typed text.
            digit, self._chosen = self._chosen, None
            if event.key in ("backspace", "ctrl+z"):
                event.prevent_default()
                event.stop()
                self.set_value("")
            elif event.is_printable and digit:
                self.set_value(digit)
        elif (digit := event.character or "").isdecimal() and not self.text and not self.read_only:
            text = self._step(int(digit))
            if text is not None:
                event.prevent_default()
                event.stop()
                if text:
                    self.choose(text, digit)

    @on(events.Paste)
    async def _take_paste(self, event: events.Paste) -> None:
        if self._chosen:
            self.set_value(self._chosen)
        self._chosen = None
        if not event.text:
            self.post_message(self.PictureAsked())
        elif path := await _dropped_picture(event.text):
            event.prevent_default()
            event.stop()
            self.insert(f"{shlex.quote(path)} ")
        elif len(event.text) > FOLD_FROM:
            event.prevent_default()
            event.stop()
            fold = self._fold if self._keep is None or len(event.text) <= KEEP_FROM else self._keep
            self.insert(fold(event.text))


async def _dropped_picture(text: str) -> str:
    """The path of a picture with spaces, which some terminals paste unquoted if its file is dropped on them."""
    path = text.strip()
    if not (path.startswith("/") and " " in path and _PICTURE.search(path)):
        return ""
    with suppress(TimeoutError):
        async with asyncio.timeout(DROPPED_WITHIN):
            if await asyncio.to_thread(os.path.isfile, path):
                return path
    return ""


class CompletionList(OptionList, can_focus=False):
    ROWS = 8

    def __init__(self, session: Session) -> None:
        super().__init__(id="picker", markup=False, compact=True)
        self._session = session
        self.sign = ""
        self._values: list[str] = []
        self.display = False

    def show(self, sign: str, rows: Sequence[tuple[str, Content]]) -> None:
        self.sign = sign
        self._values = [value for value, _ in rows]
        self.display = bool(rows)
        self.set_options([words for _, words in rows])
        if rows:
            self.highlighted = 0

    def offer(self, sign: str, query: str) -> None:
        match sign:
            case "@":
                paths = self._session.files.suggest(query, self.ROWS)
                rows = [file_row(path, self._session.state) for path in paths]
                for mention, name in self._session.mcp.suggest(query, self.ROWS):
                    rows.append((mention, parts(one_line(mention), (f"  {one_line(name)}", "$muted"))))
                self.show("@", rows)
            case "/":
                self._session.extensions.start()
                own = extension_rows(query, self._session.extensions.names())
                self.show("/", [*command_rows(query, keys_of(self)), *own])
            case _:
                self.close()

    def move(self, meant: str) -> bool:
        match meant:
            case "up":
                self.action_cursor_up()
            case "down":
                self.action_cursor_down()
            case "close":
                self.close()
            case _:
                return False
        return True

    def close(self) -> None:
        self.show("", ())

    @property
    def chosen(self) -> str:
        at = self.highlighted
        return self._values[at] if at is not None and at < len(self._values) else ""


def file_row(path: str, state: State) -> tuple[str, Content]:
    """States: open, unsaved, changed, pending, known, stale."""
    marks: list[str | tuple[str, str]] = []
    buffer, known = state.buffers.get(path), state.known.files.get(path)
    if buffer is not None:
        marks.append(("  ● unsaved", "$warning") if buffer.unsaved else ("  ● open", "$accent"))
    if any(change.path == path for change in state.review.open):
        marks.append(("  + proposed", "$added"))
    if git := state.workspace.marks.get(path, "").strip():
        marks.append((f"  {git} changed", "$stale"))
    if known is not None:
        marks.append(("  ⚠ stale", "$stale") if known.stale else ("  ◆ known", "$muted"))
    return path, parts(one_line(path), *marks)


def command_rows(query: str, keys: Keys) -> list[tuple[str, Content]]:
    found = [
        (name, keys.shown(it.id) or keys.shown(f"prompt.{it.name}"), it.words)
        for name, it in slash_commands(query)
    ]
    width = max((len(name) for name, _, _ in found), default=0)
    of_keys = max((cell_len(key) for _, key, _ in found), default=0)
    return [
        (
            name,
            parts((f"/{name:<{width}}  ", "$accent"), (f"{column(key, of_keys)}  ", "$muted"), words),
        )
        for name, key, words in found
    ]


def extension_rows(query: str, names: Mapping[str, tuple[str, str]]) -> list[tuple[str, Content]]:
    """Commands, skills and prompts whose name contains the query, prefixes first, with their origin."""
    found = [name for name in names if query.lower() in name.lower()]
    found.sort(key=lambda name: not name.lower().startswith(query.lower()))
    return [
        (name, parts((f"/{one_line(name)}  ", "$accent"), (f"{origin}  ", "$muted"), one_line(words)))
        for name in found
        for words, origin in (names[name],)
    ]
