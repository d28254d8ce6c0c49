"""The one way by which text from outside comes onto the screen: as an object of text, never as markup.

What acts on a terminal or hides in it is made visible first (`files.visible`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.content import Content

from tui_agent.files.visible import clean, one_line

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rich.text import Text

    from tui_agent.store.checks import CheckLook, CheckMark

CHECK_INKS: dict[CheckLook, str] = {
    "passed": "$success",
    "failed": "$error",
    "stopped": "$warning",
    "stale": "$stale",
    "running": "$running",
}

__all__ = ["check_pieces", "clean", "label", "one_line", "parts", "plain", "rich_label"]


def plain(text: str, style: str = "") -> Content:
    """Text for a widget of Textual; `style` is ours (`$muted`, `bold $accent`), the text may be anybody's."""
    return Content.styled(clean(text), style) if style else Content(clean(text))


def label(text: str, style: str = "") -> Content:
    """One line of text for a title, a tab or a row."""
    return Content.styled(one_line(text), style) if style else Content(one_line(text))


def parts(*pieces: str | tuple[str, str] | Content) -> Content:
    """Pieces side by side: text, (text, style), or what was made here before; each on one line."""
    return Content.assemble(*(_part(piece) for piece in pieces))


def rich_label(text: str, style: str = "") -> Text:
    """One line for the widgets that still draw with Rich: labels of a tree, lines of an editor."""
    from rich.text import Text

    return Text(one_line(text), style=style, end="", no_wrap=True)


def check_pieces(marks: Iterable[CheckMark]) -> list[tuple[str, str]]:
    """Checks behind something else, each in its colour."""
    return [(f"  {mark.words}", CHECK_INKS[mark.look]) for mark in marks]


def _part(piece: str | tuple[str, str] | Content) -> Content:
    match piece:
        case Content():
            return piece
        case (text, style):
            return label(text, style)
        case text:
            return label(text)
