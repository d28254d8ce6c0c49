"""A scrollbar of a few strips. Textual's has a line of text per row, and a growing reply changes all rows."""

from __future__ import annotations

from rich.color import Color
from rich.segment import Segment
from rich.style import Style as CellStyle
from textual.css.styles import RulesMap
from textual.scrollbar import ScrollBarRender
from textual.strip import Strip
from textual.style import Style
from textual.visual import RenderOptions, Visual


class ScrollBarCells(ScrollBarRender, Visual):
    def render_strips(
        self, width: int, height: int | None, style: Style, options: RenderOptions
    ) -> list[Strip]:
        rows = height or 1
        drawn = self.style if isinstance(self.style, CellStyle) else CellStyle.parse(self.style)
        bar = self.render_bar(
            size=rows if self.vertical else width,
            virtual_size=self.virtual_size,
            window_size=self.window_size,
            position=self.position,
            thickness=width if self.vertical else 1,
            vertical=self.vertical,
            back_color=drawn.bgcolor or Color.default(),
            bar_color=drawn.color or Color.default(),
        )
        ground = style.rich_style
        styled = {
            id(part): Segment(part.text, ground + part.style if part.style else ground)
            for part in bar.segments
            if part.text != "\n"
        }
        parts = [styled[id(part)] for part in bar.segments if id(part) in styled]
        if not self.vertical:
            return [Strip(parts, width)] * rows
        strips = {id(part): Strip([part], width) for part in parts}
        return [strips[id(part)] for part in parts]

    def get_optimal_width(self, rules: RulesMap, container_width: int) -> int:
        return container_width

    def get_height(self, rules: RulesMap, width: int) -> int:
        return 1
