"""Our scrollbar is Textual's, cell for cell."""

from __future__ import annotations

import pytest
from textual.app import App, ComposeResult
from textual.containers import ScrollableContainer
from textual.scrollbar import ScrollBar, ScrollBarRender
from textual.strip import Strip
from textual.widgets import Static

from tui_agent.ui.widgets.scroll_bar import ScrollBarCells


class Scrolled(App[None]):
    CSS = """
    ScrollableContainer { width: 30; height: 11; scrollbar-color: #ff8800 60%; scrollbar-background: #102030; }
    Static { width: 100; height: 77; }
    """

    def compose(self) -> ComposeResult:
        with ScrollableContainer():
            yield Static()


async def test_our_scrollbar_looks_as_textuals(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ScrollBar, "renderer", ScrollBarRender)
    async with Scrolled().run_test() as pilot:
        container = pilot.app.query_one(ScrollableContainer)
        seen = set()
        for place in range(0, 140, 3):
            container.scroll_to(place, place / 2, animate=False, immediate=True)
            for thickness in (1, 2):
                container.styles.scrollbar_size_vertical = thickness
                await pilot.pause()
                for bar in (container.vertical_scrollbar, container.horizontal_scrollbar):
                    pictures = []
                    for renderer in (ScrollBarRender, ScrollBarCells):
                        monkeypatch.setattr(ScrollBar, "renderer", renderer)
                        bar.refresh()
                        pictures.append(cells_of(bar.render_lines(bar.size.region)))
                    assert pictures[0] == pictures[1], (bar, place, thickness)
                    seen.add(str(pictures[0]))
        assert len(seen) > 20, "it moves"


async def test_rows_that_look_the_same_are_one_strip(monkeypatch: pytest.MonkeyPatch) -> None:
    async with Scrolled().run_test() as pilot:
        container = pilot.app.query_one(ScrollableContainer)
        monkeypatch.setattr(ScrollBar, "renderer", ScrollBarCells)
        visual = container.vertical_scrollbar.render()
        assert isinstance(visual, ScrollBarCells)
        strips = visual.render_strips(1, 40, container.visual_style, None)  # ty: ignore[invalid-argument-type]
        assert len(strips) == 40 and len({id(strip) for strip in strips}) <= 4


def cells_of(strips: list[Strip]) -> list[list[object]]:
    """The letters with their colours, and what a click does."""
    return [
        [
            (letter, style and (style.color, style.bgcolor, style.reverse, style.meta))
            for letter, style in ((letter, segment.style) for segment in strip for letter in segment.text)
        ]
        for strip in strips
    ]
