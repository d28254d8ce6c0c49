"""Random edits in the editor: the text is that of a plain model, the screen that of an editor opened just now."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest
from msgspec.structs import replace
from textual import events
from textual.pilot import Pilot
from textual.widgets.text_area import Selection

from tests.support.editors import EditorApp, parsed
from tui_agent.ui.editor import code_editor as editor_module
from tui_agent.ui.editor import writing_area as text_area
from tui_agent.ui.editor.code_editor import duplicate_lines, move_lines
from tui_agent.ui.editor.documents import CodeDocument

Place = tuple[int, int]
PIECES = (
    "x",
    "(",
    "漢",
    "😀",
    "e\u0301",
    '"',
    "\t",
    "# ",
    "def f():",
    "value = [1, (2, 3)]",
    "\u200b",
    "\x1b",
)
LINES = 520
LONG_LINE = 400


class Model:
    """A text, and all that it was."""

    def __init__(self, text: str, ending: str) -> None:
        self.lines, self.ending = text.split(ending), ending
        self.done: list[list[str]] = []
        self.undone: list[list[str]] = []

    @property
    def text(self) -> str:
        return self.ending.join(self.lines)

    def become(self, lines: list[str]) -> None:
        if lines != self.lines:
            self.done.append(self.lines)
            self.undone, self.lines = [], lines

    def put(self, start: Place, end: Place, words: str) -> Place:
        """Where what was put ends."""
        (top, left), (bottom, right) = sorted((start, end))
        new = words.split("\n")
        column = len(new[-1]) + (left if len(new) == 1 else 0)
        new[0] = self.lines[top][:left] + new[0]
        new[-1] += self.lines[bottom][right:]
        row = top + len(new) - 1
        self.become([*self.lines[:top], *new, *self.lines[bottom + 1 :]])
        return row, column

    def undo(self) -> None:
        if self.done:
            self.undone.append(self.lines)
            self.lines = self.done.pop()

    def redo(self) -> None:
        if self.undone:
            self.done.append(self.lines)
            self.lines = self.undone.pop()


class Hand:
    """One editor and its model, changed in the same way."""

    def __init__(self, app: EditorApp, pilot: Pilot[None], model: Model, random: Random) -> None:
        self.app, self.pilot, self.model, self.random = app, pilot, model, random
        self.editor = app.editor
        self.revision = 1

    def place(self, near: int) -> Place:
        rows = len(self.model.lines)
        row = min(max(near + self.random.randrange(-12, 13), 0), rows - 1)
        return row, self.random.randrange(len(self.model.lines[row]) + 1)

    def select(self, empty: bool) -> tuple[Place, Place]:
        """Somewhere near the cursor, or anywhere."""
        near = self.editor.selection.end[0] if self.random.random() < 0.8 else self.random.randrange(LINES)
        start = self.place(near)
        end = start if empty else self.place(start[0])
        self.editor.selection = Selection(start, end)
        return start, end

    async def type(self) -> None:
        start, end = self.select(self.random.random() < 0.7)
        words = self.random.choice(PIECES)
        if len(words) == 1 and words.isprintable():
            self.app.post_message(events.Key(words, words))
        else:
            self.app.post_message(events.Paste(words))
        await self.pilot.pause()
        assert self.editor.selection == Selection.cursor(self.model.put(start, end, words))

    async def paste(self) -> None:
        start, end = self.select(self.random.random() < 0.5)
        count = self.random.choice((2, 5, 40, 300))
        words = "\n".join(self.random.choice(PIECES) * self.random.randrange(9) for _ in range(count))
        self.app.post_message(events.Paste(words.replace("\n", self.random.choice(("\n", "\r\n", "\r")))))
        self.app.post_message(events.Key("Z", "Z"))  # in the queue behind it
        end = self.model.put(start, end, words)
        end = self.model.put(end, end, "Z")
        await self.until(lambda: self.editor.selection == Selection.cursor(end))

    async def enter(self) -> None:
        start, end = self.select(self.random.random() < 0.7)
        line = self.model.lines[start[0]][: start[1]]
        await self.pilot.press("enter")
        self.model.put(start, end, "\n" + line[: len(line) - len(line.lstrip())])

    async def delete(self) -> None:
        start, end = self.select(self.random.random() < 0.5)
        key = self.random.choice(("backspace", "delete"))
        await self.pilot.press(key)
        (row, column), lines = start, self.model.lines
        if start == end and key == "backspace":
            end = (row, column - 1) if column else (row - 1, len(lines[row - 1])) if row else start
        elif start == end:
            last = column == len(lines[row])
            end = (row, column + 1) if not last else (row + 1, 0) if row + 1 < len(lines) else start
        self.model.put(start, end, "")

    async def duplicate(self) -> None:
        row = self.select(True)[0][0]
        duplicate_lines(self.editor)
        self.model.become([*self.model.lines[: row + 1], *self.model.lines[row:]])

    async def move(self) -> None:
        row = self.select(True)[0][0]
        lines = [*self.model.lines]
        end = len(lines) - (not lines[-1])
        move_lines(self.editor, 1)
        if row + 1 < end:
            lines[row : row + 2] = lines[row + 1], lines[row]
            self.model.become(lines)

    async def outside(self) -> None:
        """The disk has another text, and what was typed a moment ago was not handed over yet."""
        lines, at = self.model.lines, self.random.randrange(len(self.model.lines))
        agreed = [*lines[:at], "from outside", *lines[at + 3 :]]
        self.revision += 1
        self.editor.agreed = self.editor.text
        text = self.model.ending.join(agreed)
        self.editor.take(replace(self.app.buffer, text=text, revision=self.revision))
        self.model.become(agreed)

    async def undo(self) -> None:
        await self.pilot.press("ctrl+z")
        self.model.undo()

    async def redo(self) -> None:
        await self.pilot.press("ctrl+y")
        self.model.redo()

    async def look(self) -> None:
        """Nothing is edited: the view is moved, or the screen is another."""
        what = self.random.randrange(3)
        if what == 0:
            await self.pilot.resize_terminal(self.random.choice((60, 100)), self.random.choice((12, 30)))
        elif what == 1:
            self.editor.soft_wrap = not self.editor.soft_wrap
        else:
            at = self.random.choice((0, 7)), self.random.randrange(len(self.model.lines))
            self.editor.scroll_to(*at, animate=False, immediate=True)

    async def until(self, condition: Callable[[], bool]) -> None:
        for _ in range(500):
            await self.pilot.pause(0.002)
            if condition():
                return
        raise AssertionError("it never came")

    async def compare(self, fresh: bool) -> None:
        editor = self.editor
        if isinstance(editor.document, CodeDocument):
            await parsed(self.pilot, editor)
        await self.pilot.pause()
        assert editor.text == self.model.text
        assert self.app.seen == self.app.whole()
        if not fresh:
            return
        other = EditorApp(editor.text, editor.path, (0, 0))
        async with other.run_test(size=self.app.size) as again:
            other.editor.soft_wrap = editor.soft_wrap
            await again.pause()
            other.editor.selection = editor.selection
            await again.pause()
            other.editor.scroll_to(*editor.scroll_offset, animate=False, immediate=True)
            await again.pause()
            assert other.editor.scroll_offset == editor.scroll_offset
            assert other.text == self.app.text
            assert other.shown == self.app.seen


@pytest.mark.parametrize(("name", "ending", "last"), [("a.py", "\n", "no end"), ("b.txt", "\r\n", "")])
async def test_the_text_is_the_model_s_and_the_screen_that_of_an_editor_opened_just_now(
    name: str, ending: str, last: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(editor_module, "PARSED_AFTER", 0.01)
    monkeypatch.setattr(text_area, "PASTED_LONG", 30)
    random = Random(name)
    lines = [f"    value_{n} = compute({n}, '漢字 {n}')" for n in range(LINES)]
    lines[20] = "x = " + "'long' + " * LONG_LINE
    model = Model(ending.join([*lines, last]), ending)
    app = EditorApp(model.text, name, (15, 3))
    async with app.run_test(size=(100, 30)) as pilot:
        await pilot.pause()
        hand = Hand(app, pilot, model, random)
        edits = (hand.type, hand.type, hand.paste, hand.enter, hand.delete, hand.delete, hand.duplicate)
        others = (hand.move, hand.outside, hand.undo, hand.undo, hand.redo, hand.look)
        for number in range(16):
            app.editor.history.checkpoint()
            await random.choice((*edits, *others))()
            await hand.compare(fresh=number % 8 == 7)
