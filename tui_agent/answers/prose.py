"""Plain text as an answer: what of it sums it up."""

from __future__ import annotations

import re

_PARAGRAPH = re.compile(r"\n[ \t]*\n\s*")
_SENTENCE = re.compile(r".{12,}?[.!?…](?=\s)", re.DOTALL)
_FENCE = re.compile(r"^[ \t]*(`{3,}|~{3,}).*?(?:^[ \t]*\1[`~]*[ \t]*$|\Z)", re.DOTALL | re.MULTILINE)
#: A summary longer than this is cut down to its first sentence.
LONG = 300
#: What sums an answer up is near its beginning or its end.
_LOOKED_AT = 50_000


def summary_of(text: str) -> str:
    """The last paragraph that is not code, a heading or a table; of a single one, its first sentence. One line."""
    if len(text) > 2 * _LOOKED_AT:
        text = f"{text[:_LOOKED_AT]}\n\n{text[-_LOOKED_AT:]}"
    blocks = [block.strip() for block in _PARAGRAPH.split(_FENCE.sub("\n\n", text).strip())]
    worded = [block for block in blocks if block and not block.startswith(("#", "|", "```", "~~~"))]
    if not worded:
        return _one_line(blocks[0])[:LONG] if blocks else ""
    last = worded[-1]
    if len(worded) > 1 and len(last) <= LONG:
        return _one_line(last)
    first = _SENTENCE.match(last)
    return _one_line(first[0] if first else last)[:LONG]


def _one_line(text: str) -> str:
    return " ".join(text.split())
