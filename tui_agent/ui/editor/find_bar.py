"""Find, replace and go-to-line bar below the editor."""

from __future__ import annotations

import asyncio
from bisect import bisect_left
from collections.abc import Callable, Coroutine, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from textual import events
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.css.query import NoMatches
from textual.message import Message
from textual.timer import Timer
from textual.widget import Widget
from textual.widgets import Input, Static

from tui_agent.edits.change import diff_of
from tui_agent.edits.search import MOST, Occurrence, Occurrences, Place, Search
from tui_agent.errors import EditFailed
from tui_agent.files.numbers import whole_number
from tui_agent.ui.editor.code_editor import Editor, replace_lines, replaced_in
from tui_agent.ui.editor.writing_area import KeptInput
from tui_agent.ui.safe_text import counted, parts
from tui_agent.ui.widgets.line_view import Hint, HintLine

if TYPE_CHECKING:
    from tui_agent.session.session import Session

PLACE = "replace"

FindMode = Literal["find", "replace", "line"]
#: Seconds between an edit and the next search.
AGAIN_AFTER = 0.2
_WORDS: dict[FindMode, str] = {"find": "find", "replace": "find", "line": "line"}
_SWITCHES = {"find_case": "case", "find_regex": "regex", "find_selection": "in selection"}


class FindBar(Vertical):
    """Enter selects the next match, or replaces the current one; Up and Down step through the matches."""

    DEFAULT_CSS = """
    FindBar {
        height: auto; background: $surface-raised; padding: 0 1;
        & Horizontal { height: 1; }
        & Input.-textual-compact { border: none; height: 1; padding: 0 1; width: 1fr; background: $surface-raised; }
        & Static { width: auto; height: 1; margin-right: 1; }
        & #find-note { width: 100%; height: auto; max-height: 2; }
        & HintLine { background: $surface-raised; }
    }
    """

    class Closed(Message):
        pass

    def __init__(self, session: Session) -> None:
        super().__init__()
        self._session = session
        self.display = False
        self._mode: FindMode = "find"
        self.editor: Editor | None = None
        self._switched: set[str] = set()
        self._selected: tuple[Place, Place] | None = None
        self._search: Search | None = None
        self._found = Occurrences()
        self._stale = False
        #: Whether the next search selects its first match; the selections before and after the last such
        #: search.
        self._goes = False
        self._gone: tuple[tuple[Place, Place], tuple[Place, Place]] | None = None
        self._again: Timer | None = None
        self._doing: asyncio.Future[None] | None = None
        self._due = False

    def compose(self) -> Iterable[Widget]:
        with Horizontal():
            yield Static("", id="find-what", markup=False)
            yield Input(id="find-words", compact=True)
            yield Static("", id="find-count", markup=False)
        with Horizontal(id="find-replace"):
            yield Static(parts(("with", "$accent")), markup=False)
            yield KeptInput(id="find-with", compact=True)
        yield Static("", id="find-note", markup=False)
        yield HintLine()

    def open_for(self, mode: FindMode, editor: Editor) -> None:
        fresh = self.editor is not editor or "line" in (mode, self._mode)
        self._mode, self.editor, self.display = mode, editor, True
        selected = editor.selected_text
        words = self.query_one("#find-words", Input)
        if fresh:
            anchor, cursor = sorted(editor.place)
            self._selected = (anchor, cursor) if anchor != cursor else None
            self._switched.discard("find_selection")
        if fresh and mode == "replace" and "\n" in selected:
            self._switched.add("find_selection")
        elif mode == "line":
            words.value = ""
        elif selected and "\n" not in selected and "find_regex" not in self._switched:
            words.value = selected
        self.query_one("#find-what", Static).update(parts((_WORDS[mode], "$accent")))
        self.query_one("#find-replace").display = mode == "replace"
        if mode == "replace":
            other = self.query_one("#find-with", KeptInput)
            other.value = other.keep_at(self._session, PLACE) or other.value
        self._say("")
        self._show_hints()
        replaces = mode == "replace" and words.value and not fresh
        (self.query_one("#find-with", Input) if replaces else words).focus()
        if mode != "line":
            self.search_again(here=True)

    def close(self) -> None:
        if self.editor is not None:
            self.editor.colours.mark(())
        self.editor, self._found, self._gone, self.display = None, Occurrences(), None, False

    def _leave(self) -> None:
        self.query_one("#find-with", KeptInput).give_up()
        self.close()
        self.post_message(self.Closed())

    def switch(self, name: str) -> None:
        if name == "find_selection" and self._selected is None and name not in self._switched:
            self._say("Nothing was selected", "$warning")
            return
        self._switched ^= {name}
        self._show_hints()
        if self.editor is not None:
            self.search_again(here=True)

    def busy(self, event: events.Event) -> asyncio.Future[None] | None:
        """The running search if `event` depends on its result; printable keys do not."""
        if not isinstance(event, events.Key | events.MouseDown):
            return None
        if isinstance(event, events.Key) and (event.is_printable or event.key == "backspace"):
            return None
        if self._stale and self._doing is None and self.editor is not None:
            self.search_again()
        return self._doing

    async def on_key(self, event: events.Key) -> None:
        calls: dict[str, Callable[[], object]] = {
            "escape": self._leave,
            "down": self._step,
            **dict.fromkeys(("up", "shift+enter"), partial(self._step, forward=False)),
            **dict.fromkeys(("tab", "shift+tab"), self._next_line),
        }
        if self.editor is not None and self._mode != "line":
            calls |= {"ctrl+z": self.editor.undo, "ctrl+y": self.editor.redo}
        if call := calls.get(event.key):
            event.stop()
            event.prevent_default()
            call()

    def on_input_changed(self, event: Input.Changed) -> None:
        event.stop()
        if self.editor is None or self._mode == "line":
            return
        if event.input.id == "find-words":
            self.search_again(here=True)
        else:
            self._due = True
            self._do(self._preview())

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        if self._mode == "line":
            line, _, column = event.value.strip().partition(":")
            row, place = whole_number(line), whole_number(column, 0 if column else 1)
            if self.editor and row and place:
                self.editor.go_to_line(row, place)
                self._leave()
            else:
                self._say("A line, or line:column", "$warning")
        elif event.input.id == "find-with":
            self._do(self._replace())
        else:
            self._step()

    def _next_line(self) -> None:
        if self.editor is None or self._mode == "line":
            return
        if self._mode == "find":
            self.open_for("replace", self.editor)
        words, other = self.query_one("#find-words", Input), self.query_one("#find-with", Input)
        (other if self.screen.focused is words else words).focus()

    def text_changed(self) -> None:
        if self.editor is None or self._mode == "line":
            return
        self._stale = True
        if self._again is not None:
            self._again.stop()
        self._again = self.set_timer(AGAIN_AFTER, self.search_again)

    def search_again(self, here: bool = False) -> None:
        """With `here`, selects the first match after the cursor."""
        self._stale, self._goes = True, self._goes or here
        if self._doing is None and self.editor is not None:
            self._do(self._find())

    def _do(self, call: Coroutine[Any, Any, None]) -> None:
        if self._doing is not None:
            call.close()
            return
        self._doing = done = asyncio.get_running_loop().create_future()

        async def told() -> None:
            try:
                await call
                if self._due:
                    await self._preview()
            except EditFailed as error:
                self._say(str(error), "$warning")
            except NoMatches:
                if self.is_attached:
                    raise
            finally:
                self._doing = None
                done.set_result(None)

        self.run_worker(told())

    async def _find(self) -> None:
        while self._stale and (editor := self.editor) is not None:
            self._stale = False
            self._search, self._found = None, Occurrences()
            editor.colours.mark(())
            self.query_one("#find-count", Static).update("")
            try:
                if words := self.query_one("#find-words", Input).value:
                    case, expression = "find_case" in self._switched, "find_regex" in self._switched
                    search = Search(words, case=case, expression=expression)
                    chosen = self._selected if "find_selection" in self._switched else None
                    start, end = chosen or ((0, 0), None)
                    lines = list(editor.lines)
                    self._found = await asyncio.to_thread(search.occurrences, lines, start, end)
                    self._search = search
            finally:
                if self._goes and not self._stale and editor is self.editor:
                    begun = self._gone[0] if self._gone and self._gone[1] == editor.place else editor.place
                    if self._found.found:
                        self._select(bisect_left(self._found.found, min(begun)))
                    elif editor.place != begun:
                        editor.select(begun[1], begun[0])
                    self._goes, self._gone, self._due = False, (begun, editor.place), True
                    self._say("")
            if not self._stale and editor is self.editor:
                editor.colours.mark(self._found.found)
                self._show_count()

    @property
    def _current(self) -> Occurrence | None:
        if self.editor is None:
            return None
        return self._found.exactly(*sorted(self.editor.place))

    def _step(self, forward: bool = True) -> None:
        if self.editor is None or self._mode == "line" or not self._found.found:
            return
        place = min(self.editor.place)
        at = bisect_left(self._found.found, place)
        if forward:
            at += self._current is not None
        else:
            at -= 1
        self._select(at)
        self._show_count()
        self._due = True
        self._do(self._preview())

    def _select(self, at: int) -> None:
        row, start, end = self._found.found[at % len(self._found.found)]
        if self.editor is not None:
            self.editor.select((row, start), (row, end))

    async def _replace(self) -> None:
        editor, search, here = self.editor, self._search, self._current
        if editor is None or search is None or editor.read_only:
            return
        if here is None:
            self._step()
            return
        template, line = self.query_one("#find-with", Input).value, editor.lines[here.row]
        text = await asyncio.to_thread(search.replaced, line, here, template)
        before = len(editor.lines), len(line)
        after = replace_lines(editor, [text], (here.row, here.start), (here.row, here.end))
        self._move_scope(here.row, len(editor.lines) - before[0], len(editor.lines[after[0]]) - before[1])
        editor.select(after, after)
        self._stale = self._goes = True
        await self._find()

    def _move_scope(self, row: int, lines: int, columns: int) -> None:
        if self._selected is not None:
            start, (last, column) = self._selected
            self._selected = start, (last + lines, column + columns if row == last and not lines else column)

    async def replace_all(self) -> None:
        """Applies the replacements if their diff is confirmed. Raises `EditFailed` for too many matches."""
        from tui_agent.ui.dialogs.preview import Replacements

        while self._doing is not None:
            await asyncio.wait([self._doing])
        if self._stale:
            await self._find()
        editor, search, found = self.editor, self._search, self._found.found
        if self._mode != "replace" or editor is None or search is None or not found or editor.read_only:
            return
        if self._found.more:
            raise EditFailed(f"There are more than {MOST:,} matches", "make the search more specific")
        template, lines = self.query_one("#find-with", Input).value, list(editor.lines)
        changed = await asyncio.to_thread(search.all_replaced, lines, found, template)
        after = [changed.get(row, line) for row, line in enumerate(lines)]
        diff = await asyncio.to_thread(diff_of, editor.path, "\n".join(lines), "\n".join(after))
        words = f"{counted(len(found), 'place')} in {counted(len(changed), 'line')}"

        def answered(agreed: bool | None) -> None:
            if not agreed:
                return
            if editor is not self.editor or list(editor.lines) != lines:
                self._say("The text has changed meanwhile: search again", "$warning")
                return
            first, last = min(changed), max(changed)
            replace_lines(editor, after[first : last + 1], (first, 0), (last, len(lines[last])))
            self._move_scope(last, len(editor.lines) - len(lines), len(after[last]) - len(lines[last]))
            self.search_again()
            self._say(f"Replaced {words} · Ctrl+Z undoes")

        await self.app.push_screen(Replacements(words, diff), answered)

    async def _preview(self) -> None:
        while self._due and self._mode == "replace":
            self._due = False
            editor, search, here = self.editor, self._search, self._current
            if editor is None or search is None or here is None:
                self._say("")
            elif editor.read_only:
                self._say("This file is read only", "$warning")
            else:
                line, template = editor.lines[here.row], self.query_one("#find-with", Input).value
                new = await asyncio.to_thread(search.replaced, line, here, template)
                self._say(replaced_in(line, here, new))

    def _show_count(self) -> None:
        found, here = self._found.found, self._current
        count = f"{len(found):,}{'+' if self._found.more else ''} found"
        if self.query_one("#find-words", Input).value:
            at = f"{bisect_left(found, here) + 1:,} of " if here else ""
            said = (at + count, "$muted") if found else ("not found", "$warning")
        else:
            said = ("", "")
        self.query_one("#find-count", Static).update(parts(said))

    def _say(self, words: str | Content, style: str = "$muted") -> None:
        note = self.query_one("#find-note", Static)
        note.display = bool(words)
        note.update(parts((words, style)) if isinstance(words, str) else words)

    def _show_hints(self) -> None:
        hints = self.query_one(HintLine)
        hints.display = self._mode != "line"
        switches = [
            Hint(f"buffers.{name}", f"{word} ✓" if name in self._switched else word)
            for name, word in _SWITCHES.items()
        ]
        replaces = self._mode == "replace"
        first = [Hint("buffers.replace_all", "replace all")] if replaces else []
        last = ("Enter replace one", "Esc close") if replaces else ("Enter next", "Tab replace", "Esc close")
        hints.set_words([*first, *switches, *(Hint("", words) for words in last)])
