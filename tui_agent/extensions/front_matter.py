"""Reader of the front matter of skills, commands and agents.

It reads the part of YAML that these files use: `key: value`, quoted values, lists, block scalars and
indented continuations. Plain values are text, also with a colon or brackets in them, because many existing
files have such values without quotes. Nothing is interpreted: no anchors, tags, numbers or dates.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from msgspec import Struct

from tui_agent.extensions.places import Unusable
from tui_agent.files.text import clean

Value = str | tuple[str, ...]
#: Maximum number of lines of a front matter.
MAX_LINES = 500
_KEY = re.compile(r"([A-Za-z_][\w-]{0,63})[ ]*:(?:[ ]+(.*)|[ ]*)")
_BLOCK = re.compile(r"([|>])([+-]?)[1-9]?([+-]?)[ ]*(?:#.*)?")
_COMMENT = re.compile(r"(?:^|\s)#.*")
_ESCAPES = {"n": "\n", "t": "\t", '"': '"', "\\": "\\", "/": "/", "r": "\r", "0": "", " ": " "}


class Document(Struct, frozen=True):
    """A Markdown file: the fields of its front matter, and its text after it."""

    fields: Mapping[str, Value]
    body: str

    def text(self, *names: str) -> str:
        """The first of these fields with a value, as one line."""
        for name in names:
            value = self.fields.get(name, "")
            text = value if isinstance(value, str) else ", ".join(value)
            if text.strip():
                return " ".join(text.split())
        return ""

    def is_true(self, name: str) -> bool:
        return self.text(name).lower() in ("true", "yes", "on")

    def items(self, *names: str) -> tuple[str, ...] | None:
        """The first of these fields as a list; commas outside brackets separate items. None if missing."""
        for name in names:
            if name in self.fields:
                value = self.fields[name]
                texts = (value,) if isinstance(value, str) else value
                return tuple(item for text in texts for item in _separated(text))
        return None


def parse(text: str) -> Document:
    """Parses a file, without control characters; without front matter all of it is the body. Raises Unusable with the
    line."""
    text = clean(text)
    lines = text.split("\n")
    if not lines or lines[0].rstrip() != "---":
        return Document({}, text)
    end = next((at for at, line in enumerate(lines[1:], 1) if line.rstrip() in ("---", "...")), None)
    if end is None:
        raise Unusable("its front matter has no closing ---", 1)
    if end > MAX_LINES:
        raise Unusable(f"its front matter has more than {MAX_LINES} lines", MAX_LINES)
    return Document(_fields(lines[1:end]), "\n".join(lines[end + 1 :]).strip("\n"))


def _fields(lines: list[str]) -> dict[str, Value]:
    fields: dict[str, Value] = {}
    at = 0
    while at < len(lines):
        line, number = lines[at], at + 2
        at += 1
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        found = _KEY.fullmatch(line.rstrip())
        if found is None:
            raise Unusable("a line of its front matter is not `key: value`", number)
        key, value = found[1], (found[2] or "").strip()
        if key in fields:
            raise Unusable(f"its front matter has `{key}` twice", number)
        below = []
        while at < len(lines) and (not lines[at].strip() or lines[at][0] in " \t" or _is_item(lines[at])):
            if lines[at].startswith("\t"):
                raise Unusable("a tab indents its front matter, which YAML does not allow", at + 2)
            below.append(lines[at])
            at += 1
        fields[key] = _value(value, below, number)
    return fields


def _is_item(line: str) -> bool:
    return line == "-" or line.startswith("- ")


def _value(value: str, below: list[str], number: int) -> Value:
    block = _BLOCK.fullmatch(value)
    if block:
        return _scalar(below, folded=block[1] == ">")
    texts = [line.strip() for line in below if line.strip()]
    if value[:1] in ('"', "'"):
        return _quoted(" ".join([value, *texts]), number)
    if value.startswith("["):
        whole = " ".join([value, *texts])
        if whole.endswith("]") and whole.count("[") == 1:
            return tuple(_item(item, number) for item in _separated(whole[1:-1]))
        if "]" not in whole:
            raise Unusable("a list of its front matter has no closing ]", number)
        return whole
    if not value and texts and all(_is_item(line) for line in texts):
        return tuple(_item(line[1:].strip(), number) for line in texts)
    return _COMMENT.sub("", " ".join([value, *texts])).strip()


def _item(text: str, number: int) -> str:
    return _quoted(text, number) if text[:1] in ('"', "'") else _COMMENT.sub("", text).strip()


def _scalar(below: list[str], *, folded: bool) -> str:
    depths = [len(line) - len(line.lstrip(" ")) for line in below if line.strip()]
    depth = min(depths, default=0)
    lines = [line[depth:].rstrip() for line in below]
    if not folded:
        return "\n".join(lines).strip("\n")
    return "\n".join(" ".join(part.split("\n")) for part in "\n".join(lines).strip("\n").split("\n\n"))


def _quoted(text: str, number: int) -> str:
    """Raises Unusable if it is not closed, or if text follows it."""
    mark, found, at = text[0], [], 1
    while at < len(text):
        letter = text[at]
        if letter == mark and mark == "'" and text[at + 1 : at + 2] == "'":
            found.append("'")
            at += 2
        elif letter == mark:
            rest = text[at + 1 :].strip()
            if rest and not rest.startswith("#"):
                raise Unusable("text follows a quoted value of its front matter", number)
            return "".join(found)
        elif letter == "\\" and mark == '"' and at + 1 < len(text):
            found.append(_ESCAPES.get(text[at + 1], text[at : at + 2]))
            at += 2
        else:
            found.append(letter)
            at += 1
    raise Unusable("a quoted value of its front matter is not closed", number)


def _separated(text: str) -> list[str]:
    items, depth, mark, begin = [], 0, "", 0
    for at, letter in enumerate(text):
        if mark:
            mark = "" if letter == mark else mark
        elif letter in "\"'":
            mark = letter
        elif letter in "([{":
            depth += 1
        elif letter in ")]}":
            depth -= 1
        elif letter == "," and depth <= 0:
            items.append(text[begin:at].strip())
            begin = at + 1
    items.append(text[begin:].strip())
    return [item for item in items if item]
