"""The plain screen for screen readers: what is written to the terminal, where its cursor is, what is announced."""

from __future__ import annotations

import re
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import pytest
from rich.segment import Segment
from support.screens import Driven, on_screen
from support.sessions import reply
from textual.strip import Strip

from tui_agent.edits.change import Change
from tui_agent.store.graph import SubTask
from tui_agent.store.state import (
    InputSlice,
    PermissionQuestion,
    ReviewSlice,
    State,
    SubTaskProgress,
    SubTasksSlice,
    TurnSlice,
)
from tui_agent.ui.commands import DIALOGS
from tui_agent.ui.keys.keymap import load_keys
from tui_agent.ui.panes import PANES
from tui_agent.ui.plain_screen import (
    Announcements,
    _row,
    announced,
    around_file_text,
    around_model_text,
    to_speech,
)

#: Arrows, boxes, blocks, shapes, dots of braille, dingbats.
DRAWN = re.compile("[\u2190-\u21ff\u2500-\u27bf\u2800-\u28ff\u2b00-\u2bff]")
ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
ANSWER = "Do this:\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n```python\nprint(1)\n```\n\n- [x] one\n- two"
CHANGES = [{"path": f"{name}.py", "edits": [{"search": "one", "replace": "two"}]} for name in "ab"]
TASKS = [
    {"id": name, "goal": f"Do {name}.", "files": [], "dependencies": needs}
    for name, needs in (("api", []), ("docs", ["api"]))
]


@asynccontextmanager
async def plainly(folder: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[tuple[Driven, list[str]]]:
    """A session with something in every pane, and everything that is written to the terminal."""
    for name in "ab":
        (folder / f"{name}.py").write_text("one\n")
    answer = reply(
        "Changed.",
        message=ANSWER,
        fileChanges=CHANGES,
        subTasks=TASKS,
        todos=[{"text": "One", "done": False}],
    )
    async with on_screen(folder, [answer, reply("Second.")], size=(80, 24), plain=True) as it:
        written: list[str] = []
        driver = it.app._driver
        assert driver is not None
        monkeypatch.setattr(driver, "write", written.append)
        await it.press(*"change a.py and b.py", "enter")
        await it.until(lambda: it.session.state.review.open)
        await it.session.chat.finished()
        await it.pilot.pause()
        yield it, written


def text_of(it: Driven) -> str:
    assert it.app.plain_screen is not None
    return it.app.plain_screen.text


def words(written: list[str]) -> str:
    return ESCAPES.sub("", "".join(written))


async def test_each_pane_and_each_dialog_is_lines_of_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with plainly(tmp_path, monkeypatch) as (it, written):

        def row() -> str:
            """Where the cursor of the terminal is."""
            assert it.app.plain_screen is not None
            return text_of(it).split("\n")[it.app.plain_screen.place.y].strip()

        await it.session.files.open("a.py")
        for name in PANES:
            it.screen.focus_pane(name)
            await it.pilot.pause()
            title = text_of(it).partition("\n")[0].strip()
            assert title.startswith("a.py" if name == "buffers" else PANES[name].title)
            assert it.screen.workspace.front_panes() == [name]
        for action in ("app.palette", "app.help", "app.theme", *DIALOGS):
            await it.screen.do(action)
            await it.pilot.pause(0.01)
            if it.app.screen is not it.screen:
                shown = it.app.screen.query("Dialog > *").first().region
                assert (shown.x, shown.y, shown.width) == (0, 0, 80), f"{action} leaves room for half lines"
                assert "print(1)" not in text_of(it), f"the chat is behind {action}"
            while it.app.screen is not it.screen:
                await it.press("escape")
        assert "print(1)" in words(written)
        assert not [row for row in ESCAPES.split("".join(written)) if DRAWN.search(row)]
        assert "\x1b[?25h" in "".join(written)

        await it.press("f3", "down", "down")
        await it.until(lambda: row() == "b.py known", f"the second file, not {row()}")
        await it.press("f5", "n")
        await it.until(lambda: "removed: one" in row(), f"the hunk, not {row()}")
        await it.press("ctrl+p", *"undo the")
        await it.until(lambda: row() == "undo the", f"what is typed, not {row()}")
        await it.press("down")
        await it.until(lambda: row().startswith("Redo the"), f"the choice, not {row()}")
        await it.press("escape", "f7", *"hello")
        await it.until(lambda: row() == "hello", f"the prompt, not {row()}")

        it.app.notify("Saved to disk.")
        await it.pilot.pause()
        assert text_of(it).split("\n")[-2] == "Saved to disk."
        await it.asked()
        written.clear()
        await it.press("x")
        await it.pilot.pause()
        assert words(written).strip() == "x"
        written.clear()
        it.screen.refresh(layout=True)
        await it.pilot.pause()
        assert words(written) == ""


async def test_what_happens_is_announced_and_the_plain_screen_can_be_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with plainly(tmp_path, monkeypatch) as (it, _):

        async def announced(words: str) -> None:
            await it.until(lambda: words in "\n".join(it.one(Announcements).spoken), words)

        await announced("Reply done: 2 changes in 2 files wait. F5 opens the review.")
        await it.press("f5", "s")
        await announced("Review, 2 to decide")
        await announced("1 change in 1 file waits.")
        await it.press("f8")
        await announced("1 file written, u undoes")
        await it.press("ctrl+o", "u")
        await announced("Undone. Ctrl+O U redoes it.")
        await it.press("f7", *"draft", "ctrl+o", "9")
        await it.until(lambda: not it.app.plain and it.screen.ready, "the usual screen")
        await it.shows("draft")
        assert len(it.screen.query(Announcements)) == 0
        await it.press("ctrl+o", "9")
        await it.until(lambda: it.app.plain and it.screen.ready, "the plain screen")
        await it.until(lambda: "draft" in text_of(it))


def test_each_event_has_its_sentence() -> None:
    keys, idle = load_keys(), State()
    running = State(turn=TurnSlice(1, "asking"))
    conflict = ReviewSlice((Change("c1", 1, "a.py", "edit", state="conflict", hunks=("pending",)),))
    task = SubTask("api", "Do it.", state="completed")
    for before, now, said in (
        (idle, State(turn=TurnSlice(1, "finding")), "Finding files."),
        (running, State(turn=TurnSlice(1)), "Reply done."),
        (running, State(turn=TurnSlice(1, ok=False, error="No network.")), "The turn failed: No network."),
        (running, State(turn=TurnSlice(1, ok=False, kind="Interrupted")), "Stopped."),
        (idle, State(review=conflict), "Conflict in a.py. F5 opens it."),
        (idle, State(turn=TurnSlice(1, "waiting")), "The plan has a question. Ctrl+O p opens it."),
        (idle, State(subtasks=SubTasksSlice((task,))), "Sub-task api: completed."),
        (idle, State(input=InputSlice(queue=("later",))), "1 message waits in the queue."),
    ):
        assert said in list(announced(before, now, keys, 30)), said
    asked = PermissionQuestion("1", "run_command", "make", "make all")
    assert any("make asks for permission" in said for said in announced(idle, State(asked=asked), keys, 30))


@pytest.mark.parametrize(
    ("text", "pane", "said"),
    [
        ("Review ●6 ⚠1 · a.py", "title", "Review, 6 to decide, 1 in conflict, a.py"),
        ("Plan ?", "title", "Plan asks"),
        ("▌✓ Fix it   1 file", "todos", " done Fix it  1 file"),
        ("Ctrl+↑      Earlier message   Chat", "dialog", "Ctrl+Up     Earlier message   Chat"),
        ("  ↓  more models", "chat", "Down  more models"),
        ("   ↓ 3 new", "chat", "3 new"),
        ("● 3 changes · main ↑1 ±2", "status", " 3 changes, main 1 ahead 2 changed"),
        ("Ctrl+↑ earlier", "chat", "Ctrl+Up earlier"),
        ("▸ ✓ read_files a.py · 2 kB", "chat", "folded done read_files a.py, 2 kB"),
    ],
)
def test_signs_are_words(text: str, pane: str, said: str) -> None:
    assert re.sub(r"^ +", " ", to_speech(text, pane)).strip() == said.strip()


def test_the_text_of_files_and_of_the_model_is_kept() -> None:
    assert around_file_text("▌ 10 + mark = '✓ ─'") == " 10 added: mark = '✓ ─'"
    assert around_model_text(" a │ b ") == " a | b "
    assert around_model_text("it says ✓") == "it says ✓"


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("   17    - x = 1", " 17 removed: x = 1"),
        ("      17 + x = 2", " 17 added: x = 2"),
        ("    2  2   import os", " 2 import os"),
    ],
)
def test_a_row_of_a_diff_is_said_also_if_it_has_plain_letters_alone(row: str, said: str) -> None:
    cells = _row(Strip([Segment(row)]), around_file_text, 40)
    assert "".join(cell.text for cell in cells).rstrip() == said


def test_a_row_whose_words_are_longer_loses_its_gap_first() -> None:
    row = " ◐ m0.py                        1/5 ✓1 · +5 −5 "
    said = "".join(cell.text for cell in _row(Strip([Segment(row)]), partial(to_speech, pane="review"), 60))
    assert said.strip() == "partly decided m0.py  1/5, 1 applied, 5 added, 5 removed"


async def test_a_silent_subtask_is_announced_after_the_time_of_the_setting() -> None:
    said: list[list[str]] = []
    for silent_after in (10, 60):
        one = Announcements(load_keys(), lambda _: None, lambda after=silent_after: after)
        one.update = lambda *_: None  # ty: ignore[invalid-assignment]
        one.show(State())
        progress = SubTaskProgress("streaming", started=0.0, heard=time.time() - 30)
        one.show(State(subtasks=SubTasksSlice(running={"api": progress})))
        said.append(one.spoken)
    assert [["api" in " ".join(spoken)] for spoken in said] == [[True], [False]]
