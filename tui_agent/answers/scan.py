"""The summary and the message of a JSON reply while it is still being written."""

from __future__ import annotations

import re
from typing import Literal

from tui_agent.answers.escapes import joined, unescaped
from tui_agent.answers.values import Delta

_SIGN = re.compile(r'["{}\[\],:]')
#: A whole string, the beginning of one, opening brackets in a row, or a closing one.
_NESTED = re.compile(r'"(?:[^"\\]++|\\.)*+"|"|[{\[]++|[}\]]', re.DOTALL)
_INSIDE = re.compile(r'(?:[^"\\]++|\\u[0-9a-fA-F]{4}|\\[^u])*+', re.DOTALL)
_PART: dict[str, Literal["summary", "message"]] = {"summary": "summary", "message": "message"}
_ESCAPE_LENGTH = 6
#: The words come first in a reply; behind so many other values nobody waits for them.
MOST_NESTED = 100_000
_KEY_LENGTH = 32


class JsonScan:
    """Reads one object as it comes, from its opening bracket on, each character once.

    It only follows strings and brackets: whether the reply is right is judged when it is whole. What is held
    back between two pieces is an escape that is not complete, never more than a dozen characters.
    """

    def __init__(self) -> None:
        #: Whether the object is over, or is longer than any that is followed while it comes.
        self.done = False
        self._left = MOST_NESTED
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
        if self._depth > 1:
            return self._nested(text, at)
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

    def _nested(self, text: str, at: int) -> int:
        """Pass over what is deeper than the object itself, up to a string or to the object's own level."""
        depth = self._depth
        for match in _NESTED.finditer(text, at):
            self._left -= 1
            if self._left < 0:
                self.done = True
                break
            sign = match[0]
            if sign in "}]":
                depth -= 1
                if depth == 1:
                    self._depth = 1
                    return match.end()
            elif sign == '"':
                self._depth, self._inside = depth, "other"
                return match.end()
            elif sign[0] != '"':
                depth += len(sign)
        self._depth = depth
        return len(text)

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
