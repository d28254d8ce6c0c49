"""What an answer only shows: examples, history and formats, as the words beside them say, and code inside fences."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator

from tui_agent.files.late_expressions import late

#: Words of a line above or below that say that what it is about is not meant to be done.
_EXAMPLE = (
    r"for example|e\.g\.|for instance|an example|example of|example:|examples?\b.{0,30}:|sample (?:reply|answer|output)"
    r"|(?:reply|answer|response|call|output|message|json) format|format (?:is|of|looks)|looks? like this"
    r"|would (?:look|be|have been)|could look|(?:is|are|as) documented|documentation|(?:json|reply) schema"
    r"|zum beispiel|beispiel:|por ejemplo|例如|例えば"
)
_NOT_DONE = (
    r"(?:was|were|is|are|has|have)(?: not|n't) (?:been )?"
    r"(?:done|sent|called|made|carried out|applied|run|executed|taken)"
    r"|(?:did|do|does)(?: not|n't) (?:send|call|do|make|apply|run|carry|use|write)|never (?:send|call|apply|write)"
    r"|instead of (?:sending|calling)|ignore th|must not|should not|don't send"
)
_HISTORY = (
    r"(?:bug|regression|problem|fault|error|failure|change|line)s? (?:was|were|came|comes|started|appeared|began)"
    r"|(?:introduced|caused|broken|added|changed|removed) (?:by|in|with) (?:this|that|the|commit)|came with"
    r"|(?:this|that|the|in|by|of|since) (?:\w+ )?commit|commit `?[0-9a-f]{7,40}|the last release did"
)
_SHOWS = late(rf"(?i)\b(?:{_EXAMPLE}|{_NOT_DONE}|{_HISTORY})")
#: The head of a commit as git shows it.
_COMMIT = late(r"(?m)^[ \t]*(?:commit [0-9a-f]{7,40}\b|Author:[ \t])")
_LONGEST = 600
_FENCE = late(r"^[ \t]*(?:(?:[-*+>]|\d{1,9}[.)])[ \t]+)?(`{3,}|~{3,})[ \t]*([^\n]*)$", re.MULTILINE)
_LINE = late(r"[^\n]*\S[^\n]*")


def is_shown(above: str, below: str = "") -> bool:
    """Whether the lines beside a change say that it is an example, or what somebody did long ago."""
    return any(_SHOWS.search(line[-_LONGEST:]) is not None for line in (above, below) if line)


def is_commit(text: str) -> bool:
    """Whether the lines above a diff are the head of a commit."""
    return _COMMIT.search(text) is not None


def beside(text: str, begin: int, end: int) -> tuple[str, str]:
    """The last line above a place that is not blank, and the first one below it, fences aside."""
    above = ""
    for line in reversed(text[max(0, begin - 2 * _LONGEST) : begin].split("\n")):
        if line.strip(" \t`~"):
            above = line.strip()
            break
    for found in _LINE.finditer(text, end, end + 2 * _LONGEST):
        if found[0].strip(" \t`~"):
            return above, found[0].strip()
    return above, ""


class Fences:
    """The fences of a text: where each begins, where what is in it begins, and where it ends."""

    def __init__(self, text: str) -> None:
        self._text = text
        #: Whether one of the places that were asked about was quoted.
        self.quoted = False
        self._begins: list[int] = []
        self._ends: list[tuple[int, int]] = []
        self._more = self._found()

    def _found(self) -> Iterator[int]:
        """Go through the text as far as it is asked about: the end of each fence that was added."""
        text, opened = self._text, None
        for found in _FENCE.finditer(text) if "```" in text or "~~~" in text else ():
            if opened is None:
                if "`" not in found[2]:
                    opened = found
            elif found[1][0] == opened[1][0] and len(found[1]) >= len(opened[1]) and not found[2].strip():
                yield self._add(opened, found.end())
                opened = None
        if opened is not None:
            yield self._add(opened, len(text))

    def _add(self, opened: re.Match[str], end: int) -> int:
        self._begins.append(opened.start())
        self._ends.append((opened.end(), end))
        return end

    def quotes(self, at: int) -> bool:
        """Whether a place is inside a fence among other text, or in a code span of its line."""
        quoted = self.holds(at)
        self.quoted = self.quoted or quoted
        return quoted

    def holds(self, at: int) -> bool:
        """The same, about a place at which nothing begins that could be carried out."""
        if not self._ends or self._ends[-1][1] <= at:
            next((end for end in self._more if end > at), None)
        number = bisect_right(self._begins, at) - 1
        if number >= 0 and self._begins[number] < at < self._ends[number][1]:
            return bool(self._text[self._ends[number][0] : at].strip(" \t\r\n["))
        line = self._text[self._text.rfind("\n", 0, at) + 1 : at]
        return line.count("`") % 2 == 1
