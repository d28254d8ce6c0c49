"""What an answer only shows: examples, history and formats, as the words beside them say, and code inside fences."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator

from tui_agent.files.late_expressions import late

#: Words by which a line says that what it is about is an example, is not done, or only could be.
_SURELY_SHOWS = (
    r"\billustrat|\b(?:show|give|get) (?:you )?(?:the|an) idea\b|\balong (?:these|those|the) lines\b"
    r"|\bdropped it\b"
    r"|\bnormally\b|\bi (?:had )?considered\b|^\W*not\b|\banti-?pattern|\bpseudo|\bdon't (?:copy|apply"
    r"|use|do|send|take|run)"
    r"|\bdo not (?:copy|apply|use|do|send|take|run)|\b(?:is|are|be) wrong\b|\bnot recommended\b"
    r"|^\W*samples?\W*$"
    r"|\bfor (?:reference|comparison|context|information)\b|\bhow (?:such )?an? [\w/ ]{1,30} (?:is"
    r"|are) (?:written|made)"
    r"|\bhow such\b|\bif (?:you|one|we|i) (?:ever|really|later)\b|\bonly for\b|\bin theory\b|参考|示例"
    r"|\bsnippet shows\b|\bexamples?\W*$|\b(?:i'm|i am|we're|we are) not\b|\btheoretical|^\W*(?:format"
    r"|syntax)\W*$|\brisky\b"
    r"|for example\b|\be\.g\.|\bfor instance,|^\W*(?:an? |as an |another |a bad "
    r"|one )?examples?\b[^.]{0,40}$|\bhypothetical"
    r"|\bsuppose\b|\bimagine\b|\balternativ|\banother (?:option|way|approach|possibility|idea)\b"
    r"|\bif (?:you|one|we|i) "
    r"(?:want|were|had|prefer|like|ever|need)|\b(?:would|could|might) (?:also |then |later |even "
    r"|still )?(?:have|look|be"
    r"|do|write|use|want|extend|like|go|call|send|answer|get)\b|\blooks? (?:something )?like (?:this"
    r"|that|so)\b"
    r"|\b(?:i|we)(?: have| had| did| do| will|'ve|'d|'ll)?(?: not|n't| never)\b|\b(?:has|have|was"
    r"|were)(?: not|n't)(?: been)? "
    r"(?:done|sent|made|applied|carried|executed|called)\b|^\W*(?:please )?(?:do not|don't|never|avoid"
    r"|ignore)\b"
    r"|\b(?:should|must)(?: not|n't| never| avoid)\b|\bdecided against\b|\breject(?:ed|s)?\b|\btried\b"
    r"|\bdiscarded\b"
    r"|^\W*(?:instead of|rather than)\b|^\W*(?:bad|wrong|not like|not so|no|the wrong \w+|before)\W*$"
    r"|\bnaive\b"
    r"|zum beispiel|\bbeispiel\w*\W*$|beispielsweise|\bwäre\b|\bkönnte\b|par exempl[e]|por ejemplo"
    r"|ad esempio|per esempio"
    r"|por exempl[o]|\bexempl[eo]\s*:|例如|例えば|比如|譬如|예를 들|например"
)
#: Words that tell what was done before, by somebody else, or how something is written.
_PERHAPS_SHOWS = (
    r"\bpull request\b|\breview(?:er)?s? (?:suggest|ask|want|propos)|\bversion [\d.]+ (?:did|was|had)\b"
    r"|\bold days\b"
    r"|\bthe (?:old|original|former) (?:code|version|text|file|line|one)s?\b|\b(?:had|was|were) before\b"
    r"|\bthat (?:introduced"
    r"|caused|broke|added)\b|\bbroke it\b|\bback then\b|\bat (?:that|the) time\b"
    r"|(?:reply|answer|response|call|output|message|json) format|\bformat (?:is|of|looks)"
    r"|\bdocument(?:ed|ation)\b"
    r"|(?:json|reply) schema|sample (?:reply|answer|output)|\b(?:an|another) example\b|\bexample of\b"
    r"|\b(?:bug|regression|problem|fault|error|failure)s? (?:came|comes|started|appeared|began)\b"
    r"|\bcame with\b"
    r"|(?:introduced|caused|broken|added|changed|removed) (?:by|in|with) (?:this|that|commit|version"
    r"|the (?:commit|change|release|version|diff|patch|update|merge|last|previous))"
    r"|\b(?:this|that|the|last|previous|by|of|since)(?: \w+)? commit\b|\bcommit `?[0-9a-f]{7,40}"
    r"|\bthe last release\b"
    r"|\bprevious(?:ly)?\b|\bearlier\b|\bformerly\b|\bupstream\b|\bmaintainers?\b|\bsome(?:body|one)\b"
    r"|\bthey (?:do|did|use)\b"
    r"|\blast (?:week|month|year|time)\b|\byesterday\b|\bused to\b|\bthe (?:old|original) \w+ (?:was"
    r"|did|had)\b|^\W*what "
    r"(?:has |was )?changed\b|\bgit (?:log|diff|show|blame)\b|\bshow(?:s|ed|n)?\W*$|\b(?:log"
    r"|output) (?:says|said|is|was)\b"
    r"|\blike so\W*$|\btutorial\b"
)
#: Words by which a line says that what it is about is to be done.
_STEMS = (
    "add|fix|change|remove|delete|replace|update|rename|move|make|use|edit|apply|insert|pin|clamp|raise|return"
    "|wrap|append|create|write|revert|correct|switch|extend|adapt|bump|adjust|introduce|drop|swap|convert|handle|check"
    "|guard|pass|call|simplify|tighten|align"
)
_VERBS = (
    rf"(?:{_STEMS})(?:s|es|d|ed)?|appli(?:es|ed)|pinned|dropped|wrapped|swapped|fixing|adding|switching|removing|put|set|wrote|rewrote|rewrite|made|undo|undid|did"
    "|go with"
)
_DOES = (
    rf"\b(?:i|we)(?: have| will|'ve|'ll|'m| am|'re| are)? ?(?:now |also |just |therefore |have "
    rf"|going to )?(?:{_VERBS})\b"
    rf"|^\W*(?:(?:first|next|then|now|also|finally|please|so|but|and|to \w+ \w+"
    rf"|in `[^`]+`),? )*(?:{_VERBS})\b"
    rf"|\b(?:this|it|that|the (?:following )?(?:edit|change|fix|patch|diff)) (?:now "
    rf"|also )?(?:(?:{_STEMS})(?:s|es)|applies)\b"
    r"|\bthis should (?:work|do)\b"
    r"|\b(?:here(?:'s| is| are)|this is|these are) (?:the|my|an?)? ?(?:\w+ ){0,2}(?:change|fix|patch"
    r"|edit|correction|update)"
    r"s?\b(?! (?:of|from|that came|in) )|^\W*(?:the |my )?(?:edit|change|fix|patch|diff|correction)s?\W*$"
    r"|\bnow\b|^\W*(?:next|first|second|finally)\b|\bhere (?:it|they) (?:is|are)\b|\bneeds? (?:an?|the"
    r"|this|to)\b"
    rf"|\bwith this (?:edit|change|fix|patch) it (?:{_STEMS}|log)|\b(?:align|match|fix|use|pin"
    rf"|clamp) (?:it|them|these|this)\b"
)
_STRONG, _WEAK, _DONE = (late(rf"(?i){words}") for words in (_SURELY_SHOWS, _PERHAPS_SHOWS, _DOES))
#: A line below that speaks of what is above it.
_BELOW = late(
    r"(?i)^\W*(?:is|are|as|this|that|it|these|those|the (?:above|diff|edit|block|change|call"
    r"|reply))\b[^.]{0,80}"
    r"\b(?:not|never|examples?|formats?|rejected|document\w+|would|only|commit|by hand)\b"
    r"|^\W*(?:zum beispiel|例如|例えば)"
)
_CLAUSES = late(r"[.;!?]\s+|,\s+(?:so|but|and|then|therefore)?\s*|\s+so\s+(?=i\b|we\b)")
#: The head of a commit as git shows it.
_COMMIT = late(r"(?m)^[ \t]*(?:commit [0-9a-f]{7,40}\b|Author:[ \t])")
_LONGEST = 200
_FENCE = late(r"^[ \t]*(?:(?:[-*+>]|\d{1,9}[.)])[ \t]+)?(`{3,}|~{3,})[ \t]*([^\n]*)$", re.MULTILINE)
_LINE = late(r"[^\n]*\S[^\n]*")


def is_shown(above: str, below: str = "") -> bool:
    """Whether the lines beside a change say that it is an example, or what somebody did long ago.

    What its last clause says counts most: "It must not be negative, so clamp it" asks for the change.
    """
    line = above[-_LONGEST:]
    return (bool(line) and _shows(line)) or (bool(below) and _BELOW.search(below[:_LONGEST]) is not None)


def _shows(line: str) -> bool:
    strong = _STRONG.search(line) is not None
    if not (strong or _WEAK.search(line)):
        return False
    clauses = [clause for clause in _CLAUSES.split(line) if clause.strip(" \t*_`:")]
    last = clauses[-1] if clauses else line
    if len(clauses) > 1 and _DONE.search(last) and not _STRONG.search(last):
        return False
    return strong or not _DONE.search(line)


def is_commit(text: str) -> bool:
    """Whether the lines above a diff are the head of a commit."""
    return _COMMIT.search(text) is not None


def beside(text: str, begin: int, end: int) -> tuple[str, str]:
    """The last line above a place that is not blank, and the first one below it, fences aside."""
    above = ""
    for line in reversed(text[max(0, begin - 6 * _LONGEST) : begin].split("\n")):
        if line.strip(" \t`~"):
            above = line.strip()
            break
    for found in _LINE.finditer(text, end, end + 6 * _LONGEST):
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
