"""One-line summary of a text for lists and hand-overs, because a reply without a summary shows none on the
screen."""

from __future__ import annotations

import re

from tui_agent.files.lazy_regex import late

_PARAGRAPH = late(r"\n[ \t]*\n\s*")
_SENTENCE = late(r".{12,}?[.!?…](?=\s)", re.DOTALL)
_FENCE = late(r"^[ \t]*(`{3,}|~{3,}).*?(?:^[ \t]*\1[`~]*[ \t]*$|\Z)", re.DOTALL | re.MULTILINE)
#: Characters above which only a paragraph's first sentence is used.
LONG = 300
#: Characters read at the beginning and at the end of an answer.
_LOOKED_AT = 50_000


def summary_line(text: str) -> str:
    """The last paragraph that is not code, a heading or a table, on one line; if it is the only one, its
    first sentence."""
    if len(text) > 2 * _LOOKED_AT:
        text = f"{text[:_LOOKED_AT]}\n\n{text[-_LOOKED_AT:]}"
    blocks = [block.strip() for block in _PARAGRAPH.split(without_code(text).strip())]
    worded = [block for block in blocks if block and not block.startswith(("#", "|", "```", "~~~"))]
    if not worded:
        return _one_line(blocks[0])[:LONG] if blocks else ""
    last = worded[-1]
    if len(worded) > 1 and len(last) <= LONG:
        return _one_line(last)
    first = _SENTENCE.match(last)
    return _one_line(first[0] if first else last)[:LONG]


def without_code(text: str) -> str:
    """The text without fenced code."""
    return _FENCE.sub("\n\n", text)


def _one_line(text: str) -> str:
    return " ".join(text.split())


def holds(text: str, summary: str) -> bool:
    """Whether a line of the text begins with the summary, ignoring spaces; showing both would repeat it."""
    words = summary.split()
    if not words or len(summary) > _LOOKED_AT:
        return summary == text
    return bool(re.search(r"(?m)^[ \t]*" + r"\s+".join(map(re.escape, words)), text))
