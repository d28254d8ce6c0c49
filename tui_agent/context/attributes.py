"""Text as an attribute of the tags that wrap what the model reads."""

from __future__ import annotations

# `xml.sax.saxutils` would do it too, but imports the HTTP client and the parser of e-mail for its other functions.
_ENTITIES = str.maketrans(
    {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "\n": "&#10;", "\r": "&#13;", "\t": "&#9;"}
)


def quoted(text: str) -> str:
    """In double quotes, with what would end or change the value as entities; see XML 1.0, 2.3 and 3.3.3."""
    return f'"{text.translate(_ENTITIES)}"'
