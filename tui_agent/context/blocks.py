"""Texts in a prompt: escaped inside blocks, quoted as code, shortened, and summarised in one line.

An escaped text cannot close its block, open another, or imitate a section heading. Inserts a `~` into
each such tag or heading (`<~/user_query>`); an existing `~` is doubled, so `restored` is exact: the model
copies escaped text into its edits, and would not reliably escape backslashes and entities again.
"""

from __future__ import annotations

import re

from tui_agent.files.lazy_regex import late
from tui_agent.files.text import escaped, json_escaped, replaced

MARK = "~"
#: `context` counts only if closing or with our attribute, because `<Context>` is a common name in code.
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
# `xml.sax.saxutils` imports an HTTP client and an e-mail parser.
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
    """Returns one line with invisible characters escaped."""
    return inert(escaped(text))


def json_inert(text: str) -> str:
    """Escapes tags left in JSON with escaped content, such as in file names."""
    return json_escaped(_TAG_LEFT.sub(r"\\u003c", text))


def cell(text: str) -> str:
    return name(text.replace("\\", "\\\\").replace("|", "\\|"))


def quoted(text: str) -> str:
    """Quotes an XML attribute (XML 1.0, 2.3 and 3.3.3)."""
    shown = replaced(
        text.translate(_ENTITIES), lambda it: "\ufffd" if "\ud800" <= it <= "\udfff" else f"&#{ord(it)};"
    )
    return f'"{shown}"'


_NARROWEST = 60
_SEQUENCE = re.compile(r"\x1b\[[0-9;:]*m")
_LONGEST_SEQUENCE = 40


def fenced(text: str, language: str = "") -> str:
    """The fence is longer than any run of backticks in the text."""
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
    return f"{fence}{language}\n{text}\n{fence}"


def head_and_tail(text: str, letters: int) -> tuple[str, int]:
    """Returns about `letters` characters of both ends, and the number of omitted lines. Cuts a line in the
    middle if it would displace others.
    """
    if len(text) <= letters:
        return text, 0
    lines = text.splitlines()
    for most in (letters - 40, letters // 2, letters // 4, letters // 8):
        whole = [_cut_in_the_middle(line, max(most, _NARROWEST)) for line in lines]
        if sum(map(len, whole)) + len(whole) <= letters:
            return "\n".join(whole), 0
    lines = whole
    head, tail, used = 0, 0, 0
    # failures are usually at the end, which gets three quarters
    while head < len(lines) and (not head or used + len(lines[head]) + 1 <= letters // 4):
        used += len(lines[head]) + 1
        head += 1
    while tail < len(lines) - head and (not tail or used + len(lines[-1 - tail]) + 1 <= letters):
        used += len(lines[-1 - tail]) + 1
        tail += 1
    left = len(lines) - head - tail
    middle = [f"[{left:,} lines left out]" if left > 1 else "[1 line left out]"][: min(left, 1)]
    return "\n".join([*lines[:head], *middle, *lines[len(lines) - tail :]]), left


def _cut_in_the_middle(line: str, most: int) -> str:
    if len(line) <= most:
        return line
    half = most // 2
    begin, end = half, len(line) - half
    for found in _SEQUENCE.finditer(line, max(0, begin - _LONGEST_SEQUENCE), begin + _LONGEST_SEQUENCE):
        if found.start() < begin < found.end():
            begin = found.start()
    for found in _SEQUENCE.finditer(line, max(0, end - _LONGEST_SEQUENCE), end + _LONGEST_SEQUENCE):
        if found.start() < end < found.end():
            end = found.end()
    return f"{line[:begin]} [{end - begin:,} characters left out] {line[end:]}"


_PARAGRAPH = late(r"\n[ \t]*\n\s*")
_SENTENCE = late(r".{12,}?[.!?…](?=\s)", re.DOTALL)
_FENCE = late(r"^[ \t]*(`{3,}|~{3,}).*?(?:^[ \t]*\1[`~]*[ \t]*$|\Z)", re.DOTALL | re.MULTILINE)
#: Of a longer paragraph, in characters, only the first sentence is used.
LONG = 300
_LOOKED_AT = 50_000


def summary_line(text: str) -> str:
    """Returns the last paragraph of prose on one line; of a single paragraph, the first sentence."""
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
    return _FENCE.sub("\n\n", text)


def _one_line(text: str) -> str:
    return " ".join(text.split())


def holds(text: str, summary: str) -> bool:
    words = summary.split()
    if not words or len(summary) > _LOOKED_AT:
        return summary == text
    return bool(re.search(r"(?m)^[ \t]*" + r"\s+".join(map(re.escape, words)), text))
