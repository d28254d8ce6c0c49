"""Escapes text inside prompt blocks, so that it cannot close its block, open another, or imitate a section
heading. Inserts a `~` into each such tag or heading (`<~/user_query>`); an existing `~` is doubled, so
`restored` is exact: the model copies escaped text into its edits, and would not reliably escape
backslashes and entities again."""

from __future__ import annotations

import re
import unicodedata

from tui_agent.files.lazy_regex import late
from tui_agent.files.text import escaped, json_escaped, replaced

MARK = "~"
#: Tags of our blocks. `context` counts only if closing or with our attribute, because `<Context>` is a common
#: name in code.
TAGS = (
    "additional_data",
    "current_file",
    "attached_files",
    "file_contents",
    "manually_added_selection",
    "user_query",
)
HEADINGS = (
    "KNOWN FILES",
    "DIRECTORY LISTING RESULTS",
    "AUTO-BUNDLED FILES",
    "AI Memory (Continuation Context)",
    "SUB-TASKS",
    "SEARCH RESULTS",
    "COMMAND RESULT",
    "WEB PAGE",
    "TOOL RESULT",
    "Working files",
    "Summary of the conversation so far",
)
_TAG = rf"\s*(?:/?\s*(?:{'|'.join(TAGS)})(?!\w)|/\s*context(?![\w.:-])|context\s+filename\b)"
_HEADING = rf"\#{{1,6}}[ \t]*(?:{'|'.join(map(re.escape, HEADINGS))}|CHECK(?!\w))"
_TITLE = rf"(?:{_HEADING}|\{{[ \t]*\"type\":[ \t]*\"read_files\")"
#: A diff sign may precede a heading. Line feeds are not the only line breaks.
_START = r"(?:^|(?<=[\r\x0b\x0c\x85\u2028\u2029]))[+\- ]?[ \t]*"
_INERT_TAG = late(rf"<(?={MARK}*{_TAG})", re.IGNORECASE)
_TAG_LEFT = late(rf"<(?={_TAG})", re.IGNORECASE)
_INERT_TITLE = late(rf"({_START})(?={MARK}*{_TITLE})", re.IGNORECASE | re.MULTILINE)
_MARKED_TAG = late(rf"<{MARK}(?={MARK}*{_TAG})", re.IGNORECASE)
_MARKED_TITLE = late(rf"({_START}){MARK}(?={MARK}*{_TITLE})", re.IGNORECASE | re.MULTILINE)
# `xml.sax.saxutils` would suffice, but imports an HTTP client and an e-mail parser.
_ENTITIES = str.maketrans(
    {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "\n": "&#10;", "\r": "&#13;", "\t": "&#9;"}
)


def inert(text: str) -> str:
    if "<" in text:
        text = _INERT_TAG.sub("<" + MARK, text)
    if "#" in text or "{" in text:
        text = _INERT_TITLE.sub(rf"\1{MARK}", text)
    return text


def restored(text: str) -> str:
    if MARK not in text:
        return text
    return _MARKED_TITLE.sub(r"\1", _MARKED_TAG.sub("<", text))


def item(text: str) -> str:
    """Indents continuation lines."""
    return inert(text).replace("\n", "\n  ")


def name(text: str) -> str:
    """On one line, with invisible characters escaped."""
    return inert(escaped(text))


def json_inert(text: str) -> str:
    """Tags left in JSON with escaped content, in file names for example."""
    return json_escaped(_TAG_LEFT.sub(r"\\u003c", text))


def cell(text: str) -> str:
    return name(text.replace("\\", "\\\\").replace("|", "\\|"))


def quoted(text: str) -> str:
    """An XML attribute (XML 1.0, 2.3 and 3.3.3)."""
    return f'"{replaced(text.translate(_ENTITIES), _entity)}"'


def _entity(character: str) -> str:
    lone = unicodedata.category(character) == "Cs"
    return "\ufffd" if lone else f"&#{ord(character)};"
