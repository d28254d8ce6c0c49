"""Text inside the blocks of a prompt: nothing in it ends its block, opens another, or passes for a heading of ours.

A block ends with a tag and a section begins with a heading. Where the text of a file, a selection or a message holds
one of exactly those, a `~` is put into it: `<~/user_query>`, `~## KNOWN FILES`. Anything else stays as it is, so that
code is shown as it is written; the same text always gives the same bytes. A `~` that is there already gets a second
one, so that `restored` gives back exactly what was there: the model copies what it sees into its edits, and those are
restored before they are looked for. No backslash and no entity, since a model that writes JSON or HTML would have to
escape those once more, and does not always.
"""

from __future__ import annotations

import re
import unicodedata

from tui_agent.files.late_expressions import late
from tui_agent.files.visible import escaped, json_escaped, replaced

MARK = "~"
#: What wraps a block; `context` only where it closes or has the attribute that ours has, since
#: `<Context>` is an ordinary name in code.
TAGS = (
    "additional_data",
    "current_file",
    "attached_files",
    "file_contents",
    "manually_added_selection",
    "user_query",
)
#: What begins a section, without the signs before it.
HEADINGS = (
    "KNOWN FILES",
    "DIRECTORY LISTING RESULTS",
    "AUTO-BUNDLED FILES",
    "AI Memory (Continuation Context)",
    "SUB-TASKS",
    "SEARCH RESULTS",
    "COMMAND RESULT",
    "Working files",
    "Summary of the conversation so far",
)
_TAG = rf"\s*(?:/?\s*(?:{'|'.join(TAGS)})(?!\w)|/\s*context(?![\w.:-])|context\s+filename\b)"
_HEADING = rf"\#{{1,6}}[ \t]*(?:{'|'.join(map(re.escape, HEADINGS))}|CHECK(?!\w))"
_TITLE = rf"(?:{_HEADING}|\{{[ \t]*\"type\":[ \t]*\"read_files\")"
#: Behind the sign of a diff's line a heading is at the beginning of its line as well.
#: Not only a line feed begins a line for who reads.
_START = r"(?:^|(?<=[\r\x0b\x0c\x85\u2028\u2029]))[+\- ]?[ \t]*"
_INERT_TAG = late(rf"<(?={MARK}*{_TAG})", re.IGNORECASE)
_TAG_LEFT = late(rf"<(?={_TAG})", re.IGNORECASE)
_INERT_TITLE = late(rf"({_START})(?={MARK}*{_TITLE})", re.IGNORECASE | re.MULTILINE)
_MARKED_TAG = late(rf"<{MARK}(?={MARK}*{_TAG})", re.IGNORECASE)
_MARKED_TITLE = late(rf"({_START}){MARK}(?={MARK}*{_TITLE})", re.IGNORECASE | re.MULTILINE)
# `xml.sax.saxutils` would do it too, but imports the HTTP client and the parser of e-mail for its other functions.
_ENTITIES = str.maketrans(
    {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "\n": "&#10;", "\r": "&#13;", "\t": "&#9;"}
)


def inert(text: str) -> str:
    """The text as it may be inside a block."""
    if "<" in text:
        text = _INERT_TAG.sub("<" + MARK, text)
    if "#" in text or "{" in text:
        text = _INERT_TITLE.sub(rf"\1{MARK}", text)
    return text


def restored(text: str) -> str:
    """The text before `inert`; what was never marked stays as it is."""
    if MARK not in text:
        return text
    return _MARKED_TITLE.sub(r"\1", _MARKED_TAG.sub("<", text))


def item(text: str) -> str:
    """An entry of a list: later lines are indented, so that none looks like the next entry or a section."""
    return inert(text).replace("\n", "\n  ")


def name(text: str) -> str:
    """A name on one line of a list or a heading: what hides or breaks the line is spelled out."""
    return inert(escaped(text))


def json_inert(text: str) -> str:
    """JSON whose long texts are inert already: in what is left, names above all, a tag is spelled as JSON can."""
    return json_escaped(_TAG_LEFT.sub(r"\\u003c", text))


def cell(text: str) -> str:
    """The same in a table of Markdown."""
    return name(text.replace("\\", "\\\\").replace("|", "\\|"))


def quoted(text: str) -> str:
    """As an attribute: in double quotes, with what would end, change or hide the value as entities.

    See XML 1.0, 2.3 and 3.3.3.
    """
    return f'"{replaced(text.translate(_ENTITIES), _entity)}"'


def _entity(character: str) -> str:
    lone = unicodedata.category(character) == "Cs"
    return "\ufffd" if lone else f"&#{ord(character)};"
