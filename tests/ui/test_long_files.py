"""A long file in the editor: a key costs what its line costs, whatever the length of the text."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from typing import Any

import pytest
from textual import events
from textual._tree_sitter import get_language
from textual.widgets import TextArea
from textual.widgets.text_area import WrappedDocument
from tree_sitter import Tree

from tests.support.editors import EditorApp, parsed
from tui_agent.edits.search import Occurrence
from tui_agent.ui.editor import code_editor as editor_module
from tui_agent.ui.editor import documents
from tui_agent.ui.editor.code_editor import MOST_LINES, PART, Editor
from tui_agent.ui.editor.documents import CodeDocument, ExactDocument
from tui_agent.ui.editor.writing_area import SEARCHED_LINES
from tui_agent.workspace.syntax_trees import parse

LINES = [f"value_{number} = compute({number}, 'text')" for number in range(3_000)]


def colours(editor: Editor) -> list[object]:
    return [sorted(editor.colours[row]) for row in range(1_490, 1_520)]


async def test_a_key_joins_no_text_measures_its_line_and_parses_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    app = EditorApp("\n".join(LINES))
    async with app.run_test(size=(100, 30)) as pilot:
        await pilot.pause()
        joined, measured = [], []
        text, widest = ExactDocument.text, documents.widest
        assert isinstance(text, property) and text.fget is not None
        join = text.fget

        def measure(lines: list[str], tab: int) -> int:
            measured.append(len(lines))
            return widest(lines, tab)

        monkeypatch.setattr(
            ExactDocument, "text", property(lambda document: joined.append(1) or join(document))
        )
        monkeypatch.setattr(documents, "widest", measure)
        monkeypatch.setattr(editor_module, "PARSED_AFTER", 60.0)
        for key in ("x", "enter", "y", "backspace"):
            await pilot.press(key)
        assert not joined
        assert measured and max(measured) <= 2
        assert (
            app.editor.document.get_line(1_501) == LINES[1_500] and app.editor.document.get_line(1_500) == "x"
        )
        assert app.editor.wrapped_document.height == app.editor.document.line_count == 3_001
        monkeypatch.undo()
        await pilot.press("ctrl+z", "ctrl+z", "ctrl+z", "ctrl+z")
        assert app.editor.text == "\n".join(LINES), "all can be undone"


async def test_colours_and_rows_are_those_of_the_text_once_it_is_parsed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(editor_module, "PARSED_AFTER", 0.02)
    app = EditorApp("\n".join(LINES))
    async with app.run_test(size=(100, 30)) as pilot:
        await pilot.pause()
        for key in ("é", "enter", "tab", '"', "a", "up", "end", "#", "ü"):
            await pilot.press(key)
        app.editor.replace("one\ntwo = 'x'\n\n", (1_495, 2), (1_499, 3))
        document = await parsed(pilot, app.editor)
        app.editor.scroll_to(0, 1_490, animate=False, immediate=True)
        await pilot.pause()
        picture, found = app.text, colours(app.editor)
        other = EditorApp(document.text)
        async with other.run_test(size=(100, 30)) as again:
            other.editor.move_cursor(app.editor.cursor_location)
            await again.pause()
            other.editor.scroll_to(0, 1_490, animate=False, immediate=True)
            await again.pause()
            assert colours(other.editor) == found
            assert other.text == picture
            ours, fresh = app.editor.wrapped_document, WrappedDocument(other.editor.document)
            for name in (
                "_offset_to_line_info",
                "_line_index_to_offsets",
                "_wrap_offsets",
                "_tab_width_cache",
            ):
                assert list(getattr(ours, name)) == getattr(fresh, name), name


async def test_only_the_lines_of_a_key_are_drawn_and_the_screen_is_that_of_a_whole_drawing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(editor_module, "PARSED_AFTER", 0.02)
    app = EditorApp("\n".join(LINES))
    async with app.run_test(size=(100, 30)) as pilot:
        await pilot.pause()
        await parsed(pilot, app.editor)
        drawn: list[int] = []
        render = Editor.render_line
        monkeypatch.setattr(Editor, "render_line", lambda editor, y: drawn.append(y) or render(editor, y))
        for key, most in (
            ("x", 1),
            ("(", 1),
            ("left", 1),
            ("up", 3),
            ("backspace", 1),
            ("delete", 1),
            ("enter", 28),
            ("y", 1),
            ("shift+down", 2),
            ("shift+up", 2),
            ("tab", 1),
            ("#", 1),
            ('"', 1),
            ("pageup", 28),
            ("ctrl+z", 28),
        ):
            drawn.clear()
            await pilot.press(key)
            await pilot.pause()
            # a line is drawn again where its colours became others
            assert len({*drawn}) <= most or key in ("(", "#", '"', "enter"), (key, drawn)
            assert app.shown == app.whole(), key
            await parsed(pilot, app.editor)
            await pilot.pause()
            assert app.shown == app.whole(), f"{key}, once it was parsed"


async def test_lines_that_only_move_are_not_drawn_from_their_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(editor_module, "PARSED_AFTER", 60.0)
    app = EditorApp("\n".join(LINES))
    async with app.run_test(size=(100, 30)) as pilot:
        await pilot.pause()
        app.editor.colours.mark([Occurrence(1_503, 0, 5)])
        await pilot.pause()
        drawn: list[int] = []
        render = TextArea._render_line
        monkeypatch.setattr(TextArea, "_render_line", lambda area, y: drawn.append(y) or render(area, y))
        for key, most in (("enter", 4), ("backspace", 4), ("backspace", 4), ("enter", 4)):
            drawn.clear()
            await pilot.press(key)
            await pilot.pause()
            assert drawn and len(drawn) <= most, (key, drawn)
            assert app.shown == app.whole(), key


async def test_the_other_bracket_is_found_and_not_looked_for_in_the_whole_text() -> None:
    far = ["("] + ["x"] * SEARCHED_LINES + [")"]
    app = EditorApp("\n".join(["f(a[1], {", "  2: (3),", "})", *far, "] )"]))
    async with app.run_test(size=(60, 20)) as pilot:
        await pilot.pause()
        last = app.editor.document.line_count - 1
        for cursor, other in (
            ((0, 1), (2, 1)),
            ((2, 1), (0, 1)),
            ((0, 8), (2, 0)),
            ((1, 5), (1, 7)),
            ((1, 7), (1, 5)),
            ((0, 5), (0, 3)),
            ((3, 0), None),
            ((last - 1, 0), None),
            ((last, 0), None),
        ):
            app.editor.move_cursor(cursor)
            assert app.editor.matching_bracket_location == other, cursor
        await pilot.press("ctrl+home", "right", "ctrl+shift+end")
        assert app.editor.place == ((last, 3), (0, 1))


async def test_a_text_that_takes_long_to_parse_keeps_no_key_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tokens of so many comments are looked for again at each of them."""
    monkeypatch.setattr(documents, "GIVEN_UP_AFTER", 0.8)
    app = EditorApp("value = 1\n" + "# (\n" * 20_000)
    async with app.run_test(size=(100, 30)) as pilot:
        document = app.editor.document
        assert isinstance(document, CodeDocument)

        async def rounds() -> int:
            count = 0
            while not document.given_up:
                await asyncio.sleep(0.001)
                count += 1
            return count

        counting = asyncio.create_task(rounds())
        await pilot.press("x")
        assert document.get_line(1_500) == "x# (", "it is shown and takes keys at once"
        assert await counting > 20, "the loop went on meanwhile"
        await pilot.press("y")
        assert document.get_line(1_500) == "xy# ("


async def test_a_long_text_has_its_colours_once_it_is_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "AT_ONCE", 0.0)
    app = EditorApp("\n".join(LINES))
    async with app.run_test(size=(100, 30)) as pilot:
        await parsed(pilot, app.editor)
        await pilot.pause()
        assert all(app.editor.colours[row] for row in range(1_490, 1_510))
        assert app.shown == app.whole()


async def test_an_edit_does_not_begin_a_parse_again_and_slow_ones_are_summed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The thread of each parse waits until it is let on; each one takes as long as it is said to."""
    begun, let_on = threading.Semaphore(0), threading.Semaphore(0)
    took = 0.0

    def slow(*of: Any) -> Tree | None:
        begun.release()
        let_on.acquire()
        return parse(*of)

    times = threading.local()

    def clock() -> float:
        times.now = getattr(times, "now", -took) + took
        return times.now

    monkeypatch.setattr(documents, "AT_ONCE", 0.0)
    python = get_language("python")
    assert python is not None
    document = documents.CodeDocument("\n".join(LINES), python)
    assert document.parsed < 0
    monkeypatch.setattr(documents, "parse", slow)
    monkeypatch.setattr(documents, "thread_time", clock)
    parsing = asyncio.create_task(document.parse())
    await asyncio.to_thread(begun.acquire)
    document.replace_range((0, 0), (0, 0), "# é\n")
    assert await document.parse(), "one is under way"
    let_on.release()
    assert not await parsing, "there is the edit still"
    assert document.parsed == 0 and document._syntax_tree is not None
    root = document._syntax_tree.root_node
    assert root.start_point.row <= 1 and root.end_point.row == len(LINES), "the tree moved along with it"
    took = documents.SLOW / 2
    for seconds, given_up in ((documents.SLOW / 2, 30 * [False]), (0.6, [False, False, False, True])):
        took = seconds
        for expected in given_up:
            document.replace_range((0, 0), (0, 0), "x")
            let_on.release()
            await document.parse()
            assert document.given_up == expected


async def test_a_text_that_is_too_long_to_be_shown_whole_is_taken_apart_as_far_as_it_is_looked_at() -> None:
    taken: list[int] = []

    class Text(str):
        def split(self, sep: Any = None, maxsplit: Any = -1) -> Any:
            taken.append(len(self))
            return super().split(sep, maxsplit)

        def __getitem__(self, part: Any) -> str:
            return Text(super().__getitem__(part))

    lines = [f"line {number}" for number in range(MOST_LINES + 2)] + [""]
    app = EditorApp(Text("\n".join(lines)), "long.txt", (30_000, 0))
    async with app.run_test(size=(100, 30)) as pilot:
        await pilot.pause()
        app.editor.go_to_line(45_000)
        await pilot.pause()
        assert app.editor.document.get_line(44_999 - app.editor.first_line) == "line 44999"
        assert taken and max(taken) < PART * len("line 50000\n")
        taken.clear()
        whole = app.editor.lines
        for part in (slice(9_990, 20_001), slice(19_999, 20_000), slice(49_995, None), slice(7, 3)):
            assert whole[part] == lines[part], part
        assert (whole[0], whole[-1], whole[-3], len(whole)) == ("line 0", "", "line 50000", len(lines))
        assert max(taken) < PART * len("line 50000\n")
        assert list(whole) == list(whole) == lines
        assert taken.count(len("\n".join(lines))) == 1, "who looks for something needs all of it, once"
        for key, cursor in (("ctrl+end", (len(lines) - 1, 0)), ("ctrl+home", (0, 0))):
            await pilot.press(key)
            assert app.editor.place == (cursor, cursor)


async def test_a_long_paste_is_one_edit_that_is_measured_and_taken_apart_in_a_thread(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    app = EditorApp("\n".join(LINES))
    async with app.run_test(size=(100, 30)) as pilot:
        await pilot.pause()
        loop, threads = threading.get_ident(), list[bool]()
        widest, longest = documents.widest, list[int]()

        def measured(lines: Sequence[str], tab: int) -> int:
            threads.append(threading.get_ident() != loop)
            longest.append(len(lines))
            return widest([*lines], tab)

        monkeypatch.setattr(documents, "widest", measured)
        app.editor.move_cursor((0, 3))
        app.post_message(events.Paste("pasted 漢\r\n" * 20_000 + "w" * 300))
        await pilot.press("Z")
        before = app.editor.document.line_count
        assert app.editor.document.get_line(20_000) == "w" * 300 + "Z" + LINES[0][3:]
        assert before == len(LINES) + 20_000 and app.editor.document.get_line(0) == LINES[0][:3] + "pasted 漢"
        assert app.editor.virtual_size.width > 300
        assert [long for long, apart in zip(longest, threads, strict=True) if not apart and long > 2] == []
        await pilot.press("ctrl+z", "ctrl+z")
        assert app.editor.text == "\n".join(LINES)
        await pilot.press("ctrl+y")
        assert app.editor.document.line_count == before
