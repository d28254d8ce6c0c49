"""What is drawn: the cells that changed and no others, what is typed at once, nothing where nothing is another."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest
from msgspec.structs import replace
from support.screens import Driven, on_screen
from support.sessions import reply
from textual import events
from textual.app import App
from textual.binding import BindingsMap
from textual.filter import ANSIToTruecolor
from textual.geometry import Region
from textual.screen import Screen
from textual.strip import Strip
from textual.widget import Widget

from tui_agent.settings.schema import CheckCommand
from tui_agent.ui.panes import PANES
from tui_agent.ui.panes.status import StatusPane
from tui_agent.ui.textual_patches import spans as screen_compositor
from tui_agent.ui.textual_patches.guard import missing
from tui_agent.ui.textual_patches.spans import PiecesUpdate, SpanCompositor
from tui_agent.ui.widgets.messages import MessageBlock
from tui_agent.ui.widgets.prompt import Prompt
from tui_agent.ui.widgets.prompt_lines import OfferLine
from tui_agent.ui.widgets.transcript import Transcript


async def test_what_is_drawn_is_what_changed_by_the_widget_that_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "api.py").write_text("x = 1\n")
    async with on_screen(tmp_path) as it:
        some_regions_are_drawn_as_in_the_whole_picture(it)
        a_large_screen_is_drawn_in_parts(it, monkeypatch)
        await a_widget_is_told_that_it_is_shown_whoever_asked_for_its_place_before(it)
        await a_terminal_that_has_its_size_again_is_drawn_whole(it, monkeypatch)
        await a_scroll_draws_what_moved(it)
        await what_moved_is_drawn_whoever_asked_for_its_place_before(it)
        await a_letter_draws_the_line_it_is_on_before_the_frame_that_waits(it, monkeypatch)
        await a_key_is_drawn_between_a_layout_and_its_drawing(it, monkeypatch)
        await what_is_drawn_in_a_batch_is_shown_after_it(it, monkeypatch)
        await a_dialog_is_drawn_whole(it, monkeypatch)
        await what_moves_below_a_dialog_is_drawn_through_it(it, monkeypatch)
        await a_state_that_says_the_same_lays_nothing_out(it, monkeypatch)


async def test_a_fault_in_a_frame_ends_the_screen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("a fault")

    with pytest.raises(ZeroDivisionError, match="a fault"):
        async with on_screen(tmp_path) as it:
            it.screen._refresh_layout()  # what it lays out is drawn in a round of the loop of its own
            monkeypatch.setattr(SpanCompositor, "render_update", broken)
            await it.until(lambda: it.app._exception, "the fault")


async def test_a_key_and_a_scroll_do_no_work_a_second_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Counts, since each of these took 0.3 to 1 ms of a key."""
    done: Counter[str] = Counter()

    def counted(owner: type, name: str, counts: Callable[..., bool] = lambda *_: True) -> None:
        original = getattr(owner, name)

        def wrapped(*given: Any, **more: Any) -> Any:
            done[name] += counts(*given)
            return original(*given, **more)

        monkeypatch.setattr(owner, name, wrapped)

    long = "\n\n".join(f"Paragraph {number} has *words*." for number in range(200))
    async with on_screen(tmp_path, [reply("Long.", message=long)], size=(160, 48)) as it:
        await it.session.chat.submit("tell me")
        await it.session.chat.finished()
        await it.shows("Paragraph 199")
        for key in ("pageup", "pageup", "pagedown", "pagedown", "w"):
            await it.press(key)
        await it.pilot.pause(0.2)
        counted(SpanCompositor, "_arrange_root")
        counted(BindingsMap, "apply_keymap")
        counted(ANSIToTruecolor, "apply", lambda _, segments, *__: any(one.text.strip() for one in segments))
        asked = missing.cache_info().misses
        for key in ("pageup", "pageup", "pagedown", "pagedown"):
            await it.press(key)
        assert done["_arrange_root"] <= 5, "a scroll lays the screen out once"
        assert not done["apply_keymap"], "no widget of a workspace has keys before the focus"
        assert done["apply"] < 40, "a row that is drawn again has its colours"
        await it.press("pageup", "pageup")
        laid_out, hidden = done["_arrange_root"], it.one(OfferLine)
        assert not hidden.display and not hidden.size
        it.one(Transcript).query(MessageBlock).first().refresh()
        assert done["_arrange_root"] == laid_out, "the size of what is out of view is known"
        laid_out = done["_arrange_root"]
        await it.press("pageup")
        it.screen._refresh_layout()
        made = done["_arrange_root"] - laid_out
        assert it.one(StatusPane).region and it.one(Prompt).region
        assert done["_arrange_root"] == laid_out + made, "a layout after a scroll is whole"
        await it.press(*"ords")
        assert missing.cache_info().misses == asked, "names of libraries are looked for once"


async def test_only_the_application_has_keys_before_the_focus_of_a_workspace(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x = 1\n")
    async with on_screen(tmp_path, size=(160, 48)) as it:
        await it.session.files.open("a.py")
        for pane in PANES:
            it.screen.focus_pane(pane)
            await it.pilot.pause()
        first = {
            type(node).__name__
            for node in it.screen.walk_children(with_self=True)
            for found in node._bindings.key_to_bindings.values()
            if any(binding.priority for binding in found)
        }
        assert not first


async def a_widget_is_told_that_it_is_shown_whoever_asked_for_its_place_before(it: Driven) -> None:
    compositor, prompt = it.screen._compositor, it.one(Prompt)
    prompt.display = False
    await it.pilot.pause()
    compositor.reflow_visible(it.screen, it.screen.size)  # as a chat that scrolls does
    prompt.display = True
    assert prompt.region
    assert prompt in compositor.reflow(it.screen, it.screen.size).shown
    assert not compositor.reflow(it.screen, it.screen.size).shown
    it.screen._compositor_refresh()
    prompt.focus()


def some_regions_are_drawn_as_in_the_whole_picture(it: Driven) -> None:
    compositor, chance = it.screen._compositor, random.Random(3)
    width, height = compositor.size
    whole = [cells_of(strip) for strip in compositor.render_strips()]
    for _ in range(60):
        regions = {
            Region(
                chance.randrange(width),
                chance.randrange(height),
                chance.randrange(1, 99),
                chance.randrange(1, 9),
            )
            for _ in range(chance.randrange(1, 4))
        }
        compositor._dirty_regions = set(regions)
        update = compositor.render_update()
        assert isinstance(update, PiecesUpdate)
        drawn = {
            (x, y): cell for piece in update.pieces for x, y, cell in placed(piece.x, piece.y, piece.strip)
        }
        assert len(drawn) == sum(piece.strip.cell_length for piece in update.pieces), "a cell is drawn twice"
        inside = {
            (x, y) for r in regions for x in r.column_range for y in r.line_range if x < width and y < height
        }
        assert drawn.keys() == inside
        assert all(cell == whole[y][x] for (x, y), cell in drawn.items())


def a_large_screen_is_drawn_in_parts(it: Driven, monkeypatch: pytest.MonkeyPatch) -> None:
    compositor = it.screen._compositor
    width, height = compositor.size
    drawn: list[tuple[int, int]] = []
    with monkeypatch.context() as patched:
        patched.setattr(screen_compositor, "MOST_CELLS", 1_000)
        compositor._dirty_regions = {Region(0, 0, width, height)}
        while (update := compositor.render_update()) is not None:
            assert isinstance(update, PiecesUpdate)
            part = [
                (piece.y, piece.x + at) for piece in update.pieces for at in range(piece.strip.cell_length)
            ]
            assert len(part) <= 1_000
            drawn += part
    assert sorted(drawn) == [(y, x) for y in range(height) for x in range(width)]


def cells_of(strip: Strip) -> list[object]:
    return [cell for _, _, cell in placed(0, 0, strip)]


def placed(x: int, y: int, strip: Strip) -> list[tuple[int, int, object]]:
    """Each cell of a line without wide letters: its place, its letter and how it looks."""
    found = []
    for text, style, _ in strip:
        colours = (style.color, style.bgcolor, style.bold) if style else None
        found += [(x + at, y, (letter, colours)) for at, letter in enumerate(text)]
        x += len(text)
    return found


async def a_letter_draws_the_line_it_is_on_before_the_frame_that_waits(
    it: Driven, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Widget] = []
    updates: list[PiecesUpdate] = []
    render_lines, display = Widget.render_lines, App._display

    def rendered(widget: Widget, crop: Region) -> list[Strip]:
        asked.append(widget)
        return render_lines(widget, crop)

    def displayed(app: App[object], screen: Screen[object], update: object) -> None:
        if isinstance(update, PiecesUpdate):
            updates.append(update)
        display(app, screen, update)  # ty: ignore[invalid-argument-type]

    def put_together(_: Screen[object]) -> list[object]:
        raise AssertionError("the bindings are put together for a letter")

    with monkeypatch.context() as patched:
        patched.setattr(Screen, "_binding_chain", property(put_together))
        await it.press("w", "backspace")
    assert it.one(Prompt).text == ""
    it.screen._update_timer.stop()  # no frame comes any more
    with monkeypatch.context() as patched:
        patched.setattr(Widget, "render_lines", rendered)
        patched.setattr(App, "_display", displayed)
        patched.setattr(Screen, "_binding_chain", property(put_together))
        await it.press("q")
    prompt = it.one(Prompt)
    assert prompt.text == "q"
    assert {type(widget) for widget in asked} == {Prompt}
    assert len(updates) == 1
    assert {piece.y for piece in updates[0].pieces} <= set(prompt.region.line_range)
    assert "q" in "".join(piece.strip.text for piece in updates[0].pieces)


async def a_key_is_drawn_between_a_layout_and_its_drawing(
    it: Driven, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows: list[set[int]] = []
    display = App._display

    def displayed(app: App[object], screen: Screen[object], update: object) -> None:
        if isinstance(update, PiecesUpdate):
            rows.append({piece.y for piece in update.pieces})
        display(app, screen, update)  # ty: ignore[invalid-argument-type]

    screen, prompt = it.screen, it.one(Prompt)
    with monkeypatch.context() as patched:
        patched.setattr(App, "_display", displayed)
        screen._compositor._dirty_regions.add(Region(0, 0, 9, 3))
        screen._refresh_layout()
        assert rows == [], "a key may come first"
        patched.setattr(it.app.keyboard, "_handling", True)
        prompt.insert("z")
        screen._dirty_widgets.add(prompt)
        screen._paint_focused()
        assert len(rows) == 1 and rows[0] <= set(prompt.region.line_range)
        it.app.keyboard._handling = False
        await it.until(lambda: len(rows) == 2, "the rest")
        assert {0, 1, 2} <= rows[1]
        screen._draw_frame_later(0, 0)
        screen._compositor._dirty_regions.add(Region(0, 0, 9, 3))
        screen._compositor_refresh()
        assert len(rows) == 2, "what is about to be drawn is not drawn with the layout of something else"
        await it.until(lambda: len(rows) == 3, "the rest")
        it.app.keyboard._handling = True
        screen._compositor._dirty_regions.add(Region(0, 0, 9, 3))
        screen._refresh_layout()
        assert {0, 1, 2} <= rows[3], "what a key does is drawn with its layout"


async def what_is_drawn_in_a_batch_is_shown_after_it(it: Driven, monkeypatch: pytest.MonkeyPatch) -> None:
    rows: set[int] = set()
    display = App._display

    def displayed(app: App[object], screen: Screen[object], update: object) -> None:
        if isinstance(update, PiecesUpdate) and not app._batch_count:
            rows.update(piece.y for piece in update.pieces)
        display(app, screen, update)  # ty: ignore[invalid-argument-type]

    with monkeypatch.context() as patched:
        patched.setattr(App, "_display", displayed)
        with it.app.batch_update():
            it.screen._compositor._dirty_regions.add(it.screen.size.region)
            it.screen._refresh_layout()
            await asyncio.sleep(0.05)  # what is called later is called, in the batch
            assert not rows
        await it.until(lambda: rows == set(range(it.screen.size.height)), "the whole screen")


async def a_terminal_that_has_its_size_again_is_drawn_whole(
    it: Driven, monkeypatch: pytest.MonkeyPatch
) -> None:
    display, size = App._display, it.app.size
    rows: set[int] = set()

    def displayed(app: App[object], screen: Screen[object], update: object) -> None:
        if isinstance(update, PiecesUpdate):
            rows.update(piece.y for piece in update.pieces)
        display(app, screen, update)  # ty: ignore[invalid-argument-type]

    with monkeypatch.context() as patched:
        patched.setattr(App, "_display", displayed)
        # the program saw the size between, but did not draw it; or it did not even see it
        for target in (it.screen, it.app):
            await it.pilot.pause()
            rows.clear()
            target.post_message(events.Resize(size, size))
            await it.until(lambda: rows == set(range(size.height)), "the whole screen")


async def a_scroll_draws_what_moved(it: Driven) -> None:
    compositor = it.screen._compositor
    await it.pilot.pause()
    compositor.render_update()
    compositor.reflow(it.screen, it.screen.size)
    compositor.reflow_visible(it.screen, it.screen.size)  # as a chat that scrolls does
    assert compositor.render_update() is None


async def what_moved_is_drawn_whoever_asked_for_its_place_before(it: Driven) -> None:
    compositor = cast("SpanCompositor", it.screen._compositor)
    for dock in ("top", "bottom"):
        await it.pilot.pause()
        before = [cells_of(strip) for strip in compositor.render_strips()]
        compositor.reflow_visible(it.screen, it.screen.size)  # as a chat that scrolls does
        compositor.mark_moved()
        compositor._dirty_regions.clear()
        it.one(StatusPane).styles.dock = dock
        it.screen._clear_arrangement_cache()
        assert compositor.full_map[it.one(StatusPane)].region.y == (0 if dock == "top" else 47)
        compositor.reflow(it.screen, it.screen.size)
        drawn: set[tuple[int, int]] = set()
        while (update := compositor.render_update()) is not None:
            assert isinstance(update, PiecesUpdate)
            drawn |= {(x, y) for piece in update.pieces for x, y, _ in placed(piece.x, piece.y, piece.strip)}
        now = [cells_of(strip) for strip in compositor.render_strips()]
        differ = {(x, y) for y, row in enumerate(now) for x, cell in enumerate(row) if cell != before[y][x]}
        assert differ <= drawn


async def a_dialog_is_drawn_whole(it: Driven, monkeypatch: pytest.MonkeyPatch) -> None:
    rows: set[int] = set()
    display = App._display

    def displayed(app: App[object], screen: Screen[object], update: object) -> None:
        if isinstance(update, PiecesUpdate):
            rows.update(piece.y for piece in update.pieces)
        display(app, screen, update)  # ty: ignore[invalid-argument-type]

    it.app.keyboard._handling = False
    await it.pilot.press("f1")
    await it.until(lambda: it.app.screen is not it.screen, "the keys")
    with monkeypatch.context() as patched:
        patched.setattr(screen_compositor, "MOST_CELLS", 1_000)
        patched.setattr(App, "_display", displayed)
        it.app.screen.refresh()  # as a change of the theme does
        await it.until(lambda: rows == set(range(it.screen.size.height)), "the whole screen")
    await it.pilot.press("escape")


async def what_moves_below_a_dialog_is_drawn_through_it(it: Driven, monkeypatch: pytest.MonkeyPatch) -> None:
    compositor = cast("SpanCompositor", it.screen._compositor)
    it.app.keyboard._handling = False
    await it.pilot.press("f1")
    await it.until(lambda: it.app.screen is not it.screen, "the keys")
    compositor.mark_moved()
    compositor._dirty_regions.clear()
    it.one(StatusPane).styles.dock = "top"
    it.screen._clear_arrangement_cache()
    compositor.reflow_visible(it.screen, it.screen.size)  # as a chat that follows a reply does
    drawn: list[Region] = []
    with monkeypatch.context() as patched:
        patched.setattr(type(it.app.screen), "refresh", lambda _, *regions, **__: drawn.extend(regions))
        it.screen._compositor_refresh()
    assert {0, it.screen.size.height - 1} <= {y for region in drawn for y in region.line_range}
    it.one(StatusPane).styles.dock = "bottom"
    await it.pilot.press("escape")


async def a_state_that_says_the_same_lays_nothing_out(it: Driven, monkeypatch: pytest.MonkeyPatch) -> None:
    checks = replace(it.session.state.checks, offered=(CheckCommand("tests", "true"),))
    state = replace(it.session.state, checks=checks)
    it.pane("chat").show(state)
    assert it.one(OfferLine).display
    asked: list[Widget] = []
    monkeypatch.setattr(Widget, "refresh", lambda widget, *_, **__: asked.append(widget))
    it.pane("chat").show(replace(state, checks=replace(checks, offered=(CheckCommand("tests", "true"),))))
    assert asked == []
