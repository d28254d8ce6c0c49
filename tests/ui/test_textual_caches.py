"""What is no longer shown is let go of: the interface must not grow with every turn."""

from __future__ import annotations

import asyncio
import gc
import itertools
import math
import time
import weakref
from collections.abc import AsyncGenerator, Callable, Generator
from pathlib import Path

import pytest
from rich.segment import Segment
from rich.style import Style
from rich.terminal_theme import DEFAULT_TERMINAL_THEME
from support.panes import ThemedApp
from support.screens import on_screen
from support.sessions import model_of, reply
from textual._spatial_map import SpatialMap
from textual._styles_cache import StylesCache
from textual.app import App, ComposeResult
from textual.color import Color
from textual.filter import ANSIToTruecolor
from textual.geometry import Offset, Region
from textual.strip import Strip
from textual.widgets import Static

from tui_agent.model.client import Chunk, ModelRequest
from tui_agent.store.files import Buffer
from tui_agent.ui import garbage_collection as garbage_module
from tui_agent.ui import textual_patches
from tui_agent.ui.editor.code_editor import Editor
from tui_agent.ui.garbage_collection import QUIET, Garbage
from tui_agent.ui.widgets.syntax import SyntaxColours

THRESHOLD = gc.get_threshold()
SOURCE = "def value() -> int:\n    return 1\n"


class Small(App[None]):
    def get_css_variables(self) -> dict[str, str]:
        ours = dict.fromkeys(("cursor", "cursor-line", "selection", "muted", "faint"), "#303030")
        return {**super().get_css_variables(), **ours}

    def compose(self) -> ComposeResult:
        textual_patches.apply()
        yield Static("one", id="one")


def test_a_tall_widget_is_marked_and_laid_out_without_a_look_at_each_of_its_lines() -> None:
    textual_patches.apply()
    lines, tall = StylesCache(), Region(0, 0, 300, 1_000_000)
    lines._cache = {5: Strip.blank(1), 7: Strip.blank(1)}
    lines.set_dirty(tall.shrink((6, 0, 0, 0)))
    assert lines._dirty_lines == {7}
    places: SpatialMap[str] = SpatialMap()
    below = Region(0, tall.bottom, 30, 3)
    nowhere = Offset()
    places.insert([(tall, nowhere, False, False, "tall"), (below, nowhere, False, False, "below")])
    assert len(places._map) <= 2
    assert places.total_region == tall.union(below)
    assert "tall" in places.get_values_in_region(Region(0, 500_000, 80, 24))
    assert set(places.get_values_in_region(below)) == {"tall", "below"}


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


def test_a_line_that_a_filter_leaves_as_it_is_stays_the_same_line(monkeypatch: pytest.MonkeyPatch) -> None:
    textual_patches.apply()
    line_filter, black = ANSIToTruecolor(DEFAULT_TERMINAL_THEME), Color(0, 0, 0)
    ours = Strip([Segment("a", Style.parse("#ff0000 on #000000")), Segment("b")])
    with monkeypatch.context() as patched:
        patched.setattr(ANSIToTruecolor, "apply", None)  # compares each style; not called for true colours
        assert ours.apply_filter(line_filter, black) is ours
    theirs = Strip([Segment("a", Style.parse("red")), Segment("b", Style.parse("dim #808080"))])
    filtered = theirs.apply_filter(line_filter, black)
    assert [str(part.style) for part in filtered] == ["#800000", "not dim #545454"]
    assert filtered.text == "ab"


async def test_nothing_is_left_of_a_notice_that_is_taken_away() -> None:
    textual_patches.apply()
    async with Small().run_test(notifications=True) as pilot:
        pilot.app.notify("one")
        await pilot.pause()
        assert len(pilot.app.screen.query("Toast")) == 1
        pilot.app.clear_notifications()
        await pilot.pause()
        await pilot.pause()
        assert not pilot.app.screen.query("Toast, ToastHolder")


async def test_an_editor_lets_go_of_each_text_that_another_takes_the_place_of() -> None:
    async with ThemedApp().run_test() as pilot:
        editor = Editor(Buffer("a.py", text=SOURCE, revision=1))
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
    parsed = weakref.ref(colours._found._parsed())
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
    textual_patches.apply()
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
    textual_patches.apply()
    assert [part.text for part in plain.divide([2, 4])] == ["ab", "cd"]
    assert [part.text for part in plain.divide([4])] == ["abcd"]
    assert [part.text for part in plain.divide([4, 9])] == ["abcd"]
    assert plain.crop_extend(0, 4, None).text == "abcd"
    assert plain.crop_extend(1, 6, None).text == "bcd  "


@pytest.fixture
def collector() -> Generator[None]:
    """Off, as while the program starts; afterwards as it was."""
    gc.disable()
    yield
    gc.unfreeze()
    gc.set_threshold(*THRESHOLD)
    gc.enable()


def ring(gone: Callable[[], object]) -> list[object]:
    """What only the collector frees."""
    words: list[object] = [Words("old")]
    words.append(words)
    weakref.finalize(words[0], gone)
    return words


async def test_what_a_turn_leaves_is_collected_when_no_key_has_come_for_a_while(
    collector: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(garbage_module, "MOST_ADDED", -(10**9))  # all that is left is looked at
    asked, gone = asyncio.Event(), asyncio.Event()
    keys_came = [0.0, QUIET / 2, QUIET, QUIET]  # the last for the older objects

    def idle() -> float:
        asked.set()
        return keys_came.pop(0)

    garbage = Garbage(idle)
    garbage.begin()
    old = ring(gone.set)
    gc.collect()  # as old as can be: no small collection looks at it
    del old
    garbage.collect_soon()
    for _ in range(2):
        await asyncio.wait_for(asked.wait(), 5)
        asked.clear()
        assert not gone.is_set()
    await asyncio.wait_for(gone.wait(), 5)
    assert keys_came == []
    garbage.close()


async def test_old_objects_are_collected_when_the_user_is_away_and_those_of_the_start_are_not(
    collector: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("QUIET", "AWAY"):
        monkeypatch.setattr(garbage_module, name, 0.01)
    kept, gone, garbage = asyncio.Event(), asyncio.Event(), Garbage(lambda: math.inf)
    monkeypatch.setattr(garbage_module, "FEW", -1)
    of_the_start = ring(kept.set)
    garbage.begin()
    del of_the_start
    old = ring(gone.set)
    gc.collect()  # as old as can be
    del old
    garbage.collect_soon()
    await asyncio.wait_for(gone.wait(), 5)
    assert not kept.is_set()
    garbage.close()


async def test_the_screen_of_a_session_that_is_opened_later_is_collected_for_too(
    collector: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(garbage_module, "QUIET", 0.01)
    monkeypatch.setattr(garbage_module, "MOST_ADDED", -(10**9))
    gone, first, second = asyncio.Event(), Garbage(lambda: math.inf), Garbage(lambda: math.inf)
    first.begin()
    first.close()
    assert not gc.isenabled(), "its panes are made without it too"
    second.begin()
    old = ring(gone.set)
    gc.collect()
    del old
    second.collect_soon()
    await asyncio.wait_for(gone.wait(), 5)
    second.close()


async def test_nothing_is_collected_while_a_turn_runs(
    tmp_path: Path, collector: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(garbage_module, "MOST_ADDED", -(10**9))
    whole: list[str] = []
    asked: list[float] = []
    go_on = asyncio.Event()

    def collected(phase: str, info: dict[str, int]) -> None:
        if phase == "stop" and info["generation"] == 2:
            whole.append(phase)

    async with on_screen(tmp_path, [reply("Says hello.")]) as it:
        model, garbage = model_of(it.session), it.app.garbage
        stream, idle = model.stream, garbage._idle

        async def held(request: ModelRequest) -> AsyncGenerator[Chunk]:
            async for chunk in stream(request):
                yield chunk
                await go_on.wait()

        def idle_for() -> float:
            asked.append(idle())
            return asked[-1]

        model.stream, garbage._idle = held, idle_for
        garbage.begin()
        await it.press("h", "i", "enter")
        await it.until(lambda: it.session.state.turn.running and model.requests)
        gc.callbacks.append(collected)
        try:
            garbage.collect_soon()
            await it.until(lambda: len(asked) > 1)
            assert len(asked) == 2 and not whole
            go_on.set()
            await it.until(lambda: whole, "what the turn left is collected")
            assert not it.session.state.turn.running
        finally:
            gc.callbacks.remove(collected)


@pytest.mark.parametrize("delay", [-0.1, 0.0, 0.01])
async def test_a_single_timer_that_is_late_runs(monkeypatch: pytest.MonkeyPatch, delay: float) -> None:
    """As on a machine that stops whenever the time is asked. Textual skips it, or its loop does not end."""
    begin = time.monotonic()
    seconds = itertools.count(begin)

    def stopped() -> float:
        now = next(seconds)
        if now > begin + 1_000:
            raise asyncio.CancelledError  # ends the loop
        return now

    app = Small()
    textual_patches.apply()
    async with app.run_test() as pilot:
        await pilot.pause()
        done = asyncio.Event()
        monkeypatch.setattr("textual._time.get_time", stopped)
        app.set_timer(delay, done.set)
        await asyncio.wait_for(done.wait(), 3)
        monkeypatch.undo()
