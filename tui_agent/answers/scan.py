"""The summary and the message of a JSON reply while it is still being written."""

from __future__ import annotations

import re
from typing import Literal

from tui_agent.answers.escapes import joined, unescaped
from tui_agent.answers.values import Delta

_SIGN = re.compile(r'["{}\[\],:]')
_INSIDE = re.compile(r'(?:[^"\\]++|\\u[0-9a-fA-F]{4}|\\[^u])*+', re.DOTALL)
_PART: dict[str, Literal["summary", "message"]] = {"summary": "summary", "message": "message"}
_ESCAPE_LENGTH = 6
_KEY_LENGTH = 32


class JsonScan:
    """Reads one object as it comes, from its opening bracket on, each character once.

    It only follows strings and brackets: whether the reply is right is judged when it is whole. What is held
    back between two pieces is an escape that is not complete, never more than a dozen characters.
    """

    def __init__(self) -> None:
        self.done = False
        self._held = ""
        self._half = ""
        self._depth = 0
        self._key = ""
        self._key_comes = False
        self._inside: Literal["", "key", "part", "other"] = ""

    def feed(self, piece: str) -> list[Delta]:
        """The new text of the two parts; what follows the object is passed over."""
        text, at = self._held + piece, 0
        self._held = ""
        found: list[Delta] = []
        while at < len(text) and not self.done:
            at = self._string(text, at, found) if self._inside else self._between(text, at)
        return found

    def _between(self, text: str, at: int) -> int:
        match = _SIGN.search(text, at)
        if match is None:
            return len(text)
        match match[0]:
            case '"':
                self._open_string()
            case "{" | "[":
                self._depth += 1
                self._key_comes = self._depth == 1
            case "}" | "]":
                self._depth -= 1
                self.done = self._depth <= 0
            case "," if self._depth == 1:
                self._key_comes = True
            case ":" if self._depth == 1:
                self._key_comes = False
        return match.end()

    def _open_string(self) -> None:
        if self._depth != 1:
            self._inside = "other"
        elif self._key_comes:
            self._inside, self._key = "key", ""
        else:
            self._inside = "part" if self._key in _PART else "other"

    def _string(self, text: str, at: int, found: list[Delta]) -> int:
        match = _INSIDE.match(text, at)
        end = match.end() if match else at
        if end < len(text) and text[end] == "\\":
            if len(text) - end < _ESCAPE_LENGTH:
                self._held = text[end:]
                self._take(text[at:end], found)
                return len(text)
            end += 2  # an escape that JSON does not know
            self._take(text[at:end], found)
            return end
        self._take(text[at:end], found)
        if end < len(text):
            self._close_string(found)
        return end + 1

    def _take(self, raw: str, found: list[Delta]) -> None:
        if self._inside == "key":
            self._key = (self._key + raw)[:_KEY_LENGTH]
        elif self._inside == "part":
            text = self._half + unescaped(raw)
            self._half = text[-1] if text and "\ud800" <= text[-1] <= "\udbff" else ""
            self._say(text[:-1] if self._half else text, found)

    def _close_string(self, found: list[Delta]) -> None:
        if self._inside == "part":
            self._say(self._half, found)
            self._half = ""
        self._inside = ""

    def _say(self, text: str, found: list[Delta]) -> None:
        if text:
            found.append(Delta(_PART[self._key], joined(text)))
