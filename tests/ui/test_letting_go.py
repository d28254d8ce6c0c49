"""What is no longer shown is let go of: the interface must not grow with every turn."""

from __future__ import annotations

import asyncio
import gc
import weakref

from rich.segment import Segment
from textual.app import App, ComposeResult
from textual.strip import Strip
from textual.widgets import Static
from textual.widgets.text_area import TextAreaTheme

from tui_agent.store.files import Buffer
from tui_agent.ui.garbage import QUIET, Garbage
from tui_agent.ui.letting_go import mend_strips, mend_styles_cache
from tui_agent.ui.widgets.editor import Editor
from tui_agent.ui.widgets.syntax import SyntaxColours

THRESHOLD = gc.get_threshold()
SOURCE = "def value() -> int:\n    return 1\n"


class Small(App[None]):
    def get_css_variables(self) -> dict[str, str]:
        ours = dict.fromkeys(("cursor", "cursor-line", "selection", "muted", "faint"), "#303030")
        return {**super().get_css_variables(), **ours}

    def compose(self) -> ComposeResult:
        mend_styles_cache()
        yield Static("one", id="one")


async def test_the_drawn_lines_of_widgets_that_are_removed_go_with_them() -> None:
    async with Small().run_test() as pilot:
        drawn = []
        for number in range(12):
            widget = Static(f"line {number}")
            await pilot.app.mount(widget)
            await pilot.pause()
            drawn.append(weakref.ref(widget._styles_cache))
            await widget.remove()
        del widget
        await pilot.pause()
        gc.collect()
        alive = [number for number, cache in enumerate(drawn) if cache() is not None]
        assert len(alive) <= 2, f"{alive} of 12: what was drawn last may still be on its way out"


async def test_an_editor_lets_go_of_each_text_that_another_takes_the_place_of() -> None:
    async with Small().run_test() as pilot:
        editor = Editor(Buffer("a.py", text=SOURCE, revision=1), TextAreaTheme("plain"))
        await pilot.app.mount(editor)
        documents = []
        for number in range(3):
            documents.append(weakref.ref(editor.document))
            editor.take(Buffer("a.py", text=SOURCE * (number + 2), revision=number + 2))
            editor.load_text(SOURCE * (number + 9))
        await pilot.pause()
        gc.collect()
        assert [document() for document in documents] == [None, None, None]
        assert editor.text.startswith(SOURCE)
        last = editor.document
        await editor.remove()
        await pilot.pause()
        assert getattr(last, "_syntax_tree", None) is None, "nothing holds it once the editor is gone"


def test_the_colours_of_a_diff_hold_nothing_once_they_are_gone() -> None:
    colours = SyntaxColours(SOURCE.splitlines(keepends=True), "python", {})
    colours.of(0)
    parsed = weakref.ref(colours._found._editor)
    del colours
    gc.collect()
    assert parsed() is None


def test_the_editor_of_textual_still_needs_this() -> None:
    """Where it lets go of its texts by itself, what is done about it here can go."""
    from textual._tree_sitter import get_language
    from textual.document._syntax_aware_document import SyntaxAwareDocument

    grammar = get_language("python")
    assert grammar is not None
    document = SyntaxAwareDocument(SOURCE, grammar)
    kept = weakref.ref(document)
    del document
    gc.collect()
    assert kept() is not None
    kept()._syntax_tree = None  # ty: ignore[invalid-assignment]


class Words(str):
    """A text that can be watched."""


async def test_a_line_drawn_at_its_own_width_is_freed_at_once() -> None:
    mend_strips()
    gc.disable()
    try:
        for drawn in (
            lambda strip: strip.divide([4]),
            lambda strip: strip.crop_extend(0, 4, None),
        ):
            text = Words("abcd")
            watched = weakref.ref(text)
            strip = Strip([Segment(text)], 4)
            parts = drawn(strip)
            del text, strip, parts
            assert watched() is None
    finally:
        gc.enable()


async def test_lines_are_divided_and_cropped_as_before() -> None:
    plain = Strip([Segment("abcd")], 4)
    mend_strips()
    assert [part.text for part in plain.divide([2, 4])] == ["ab", "cd"]
    assert [part.text for part in plain.divide([4])] == ["abcd"]
    assert [part.text for part in plain.divide([4, 9])] == ["abcd"]
    assert plain.crop_extend(0, 4, None).text == "abcd"
    assert plain.crop_extend(1, 6, None).text == "bcd  "


async def test_what_a_turn_leaves_is_collected_when_no_key_has_come_for_a_while() -> None:
    asked, gone = asyncio.Event(), asyncio.Event()
    keys_came = [0.0, QUIET / 2, QUIET]

    def idle() -> float:
        asked.set()
        return keys_came.pop(0)

    garbage = Garbage(idle)
    gc.disable()
    try:
        garbage.begin()
        ring: list[object] = [Words("old")]
        ring.append(ring)
        weakref.finalize(ring[0], gone.set)
        gc.collect()  # as old as can be: no small collection looks at it
        del ring
        garbage.collect_soon()
        for _ in range(2):
            await asyncio.wait_for(asked.wait(), 5)
            asked.clear()
            assert not gone.is_set()
        await asyncio.wait_for(gone.wait(), 5)
        assert keys_came == []
    finally:
        garbage.close()
        gc.unfreeze()
        gc.set_threshold(*THRESHOLD)
        gc.enable()
