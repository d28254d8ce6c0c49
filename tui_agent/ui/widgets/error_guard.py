"""Replaces a block that fails to draw by an error line; the program continues."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from rich.segment import Segment
from textual.content import Content
from textual.geometry import Region, Size
from textual.strip import Strip
from textual.widget import Widget
from textual.widgets import Static

from tui_agent import debug_log

WORDS = "This block cannot be shown; read it with `tui-agent sessions show`."


def logged(error: Exception) -> Content:
    debug_log.fault("A block of the chat could not be shown", error)
    return Content.styled(WORDS, "$error")


def or_broken(draw: Callable[[], Content]) -> Content:
    try:
        return draw()
    except Exception as error:
        return logged(error)


if TYPE_CHECKING:
    _Base = Widget
else:
    _Base = object  # Textual inherits CSS from the first base that is a widget


class Guarded(_Base):
    """Errors during layout or drawing are caught and logged once."""

    _is_broken = False

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        try:
            return super().get_content_height(container, viewport, width)
        except Exception as error:
            self.break_down(error)
            return 1

    def render_lines(self, crop: Region) -> list[Strip]:
        try:
            return super().render_lines(crop)
        except Exception as error:
            self.break_down(error)
            line = Strip([Segment(WORDS[: crop.width].ljust(crop.width))])
            return [line, *[Strip.blank(crop.width)] * crop.height][: crop.height]

    def break_down(self, error: Exception) -> None:
        if not self._is_broken:
            self._is_broken = True
            logged(error)


class GuardedText(Guarded, Static):
    pass
