"""A whole Markdown text as drawn lines, with highlighted code."""

from __future__ import annotations

from tui_agent.ui.markdown.rendering import coloured
from tui_agent.ui.markdown.streaming import DrawnLines, Reading


def draw(text: str) -> DrawnLines:
    reading = Reading()
    drawn = reading.read(text)
    for code in list(reading.uncoloured):
        drawn = reading.colour(code, coloured(code.code, code.language), drawn)
    return drawn
