"""The one place where text from outside becomes something on the screen.

File names, replies, file content and error texts may hold escape sequences, control characters, letters that
turn the reading direction, or `[markup]`. Here each dangerous character is replaced by one visible character,
and the result is an object of text: it is never read as markup.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from textual.content import Content

if TYPE_CHECKING:
    from rich.text import Text

#: C0 but newline and tab, DEL, C1, bidi controls, invisible characters, line separators, tags, lone surrogates.
_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f"
    "\ufeff\ufff9-\ufffb\U000e0000-\U000e007f\ud800-\udfff]"
)
_LINE_BREAKS = re.compile("[\n\t]")


def clean(text: str) -> str:
    """The text with every character that could act on the terminal made visible, one for one.

    Newlines and tabs stay; a carriage return before a newline goes, since the line ends there anyway.
    """
    if "\r\n" in text:
        text = text.replace("\r\n", "\n")
    if text.isascii() and text.isprintable():
        return text
    return _UNSAFE.sub(_visible, text)


def one_line(text: str) -> str:
    """The same for a title, a label or a name: line breaks and tabs are made visible too."""
    return _LINE_BREAKS.sub(lambda found: "␤" if found[0] == "\n" else "␉", clean(text))


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


def _part(piece: str | tuple[str, str] | Content) -> Content:
    match piece:
        case Content():
            return piece
        case (text, style):
            return label(text, style)
        case text:
            return label(text)


def _visible(found: re.Match[str]) -> str:
    code = ord(found[0])
    if code < 0x20:
        return chr(0x2400 + code)
    return "␡" if code == 0x7F else "�"
