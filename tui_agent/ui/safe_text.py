"""Converts external text to text objects, never to markup; control and hidden characters become visible
(`files.sanitize`).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from rich.text import Text
from textual.content import Content

from tui_agent.files.numbers import whole_number
from tui_agent.files.text import clean, one_line

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tui_agent.store.commands import CheckLook, CheckMark

CHECK_INKS: dict[CheckLook, str] = {
    "passed": "$success",
    "failed": "$error",
    "missing": "$warning",
    "stopped": "$warning",
    "stale": "$stale",
    "running": "$running",
}

#: Select Graphic Rendition, the only sequence kept in command output.
_RENDITION = re.compile(r"\x1b\[([0-9;:]*)m")
#: For the terminal's dark and bright colours; black and white use the text colour.
_COLOURS = ("$muted", "$error", "$success", "$warning", "$accent", "$running", "$accent", "")
#: Maximum codes per sequence, and the largest code; the rest is ignored.
_MOST_CODES, _MOST_CODE = 32, 255
_ATTRIBUTES = {1: "bold", 2: "dim", 3: "italic", 4: "underline", 7: "reverse", 9: "strike"}


def counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def plain(text: str, style: str = "") -> Content:
    """`style` must be internal (`$muted`, `bold $accent`)."""
    return Content.styled(clean(text), style) if style else Content(clean(text))


def coloured(text: str) -> Content:
    """Keeps the colours of command output; other control characters are made visible."""
    pieces, style, at = [], dict[str, str](), 0
    for found in _RENDITION.finditer(text):
        pieces.append(plain(text[at : found.start()], " ".join(style.values())))
        style, at = _rendered(style, found[1]), found.end()
    pieces.append(plain(text[at:], " ".join(style.values())))
    return Content("").join(pieces)


def _rendered(style: dict[str, str], codes: str) -> dict[str, str]:
    """The style after a sequence. Background codes are ignored for legibility."""
    given = [
        whole_number(code, most=_MOST_CODE)
        for code in codes.replace(":", ";").split(";", _MOST_CODES)[:_MOST_CODES]
    ]
    while given:
        match given.pop(0):
            case 0:
                style = {}
            case 22 | 23 | 24 | 27 | 29 as code:
                ends = (1, 2) if code == 22 else (code - 20,)
                style = {key: words for key, words in style.items() if key not in map(str, ends)}
            case 38 | 48 as code:
                rest, given = (given[1:4], given[4:]) if given[:1] == [2] else (given[1:2], given[2:])
                if code == 38 and len(rest) == 3 and max(rest) < 256:
                    style = {**style, "colour": f"rgb({rest[0]},{rest[1]},{rest[2]})"}
                elif code == 38 and len(rest) == 1 and rest[0] < 16:
                    style = {**style, "colour": _COLOURS[rest[0] % 8]}
            case 39:
                style = {**style, "colour": ""}
            case code if 30 <= code <= 37 or 90 <= code <= 97:
                style = {**style, "colour": _COLOURS[code % 10]}
            case code if code in _ATTRIBUTES:
                style = {**style, str(code): _ATTRIBUTES[code]}
    return style


def label(text: str, style: str = "") -> Content:
    return Content.styled(one_line(text), style) if style else Content(one_line(text))


def parts(*pieces: str | tuple[str, str] | Content) -> Content:
    return Content.assemble(
        *(
            piece if isinstance(piece, Content) else label(piece) if isinstance(piece, str) else label(*piece)
            for piece in pieces
        )
    )


def rich_label(text: str) -> Text:
    return Text(one_line(text), end="", no_wrap=True)


def check_pieces(marks: Iterable[CheckMark]) -> list[tuple[str, str]]:
    return [(f" {mark.words}", CHECK_INKS[mark.look]) for mark in marks]
