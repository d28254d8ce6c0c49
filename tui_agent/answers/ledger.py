"""Classification of every character of a reply: call, change, refusal, thought, or displayed text."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from operator import attrgetter
from typing import Literal

from msgspec import Struct

_begin = attrgetter("begin")
Use = Literal["call", "change", "refusal", "thought", "shown"]


class ClaimedSpan(Struct, frozen=True, gc=False):
    """Characters `begin` to `end` of a reply, and their use."""

    begin: int
    end: int
    use: Use


class Ledger:
    """The text of a reply. Unclaimed text is displayed."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._claimed: list[ClaimedSpan] = []

    def claim(self, begin: int, end: int, use: Use) -> None:
        """Assign a use to characters. Claims never overlap."""
        if begin < end:
            self._claimed.append(ClaimedSpan(begin, end, use))

    @property
    def spans(self) -> tuple[ClaimedSpan, ...]:
        """All of the text in order; adjacent spans of one use are merged."""
        found: list[ClaimedSpan] = []
        at = 0
        for span in [
            *sorted(self._claimed, key=_begin),
            ClaimedSpan(len(self.text), len(self.text), "shown"),
        ]:
            for part in (ClaimedSpan(at, span.begin, "shown"), span):
                if part.begin >= part.end:
                    continue
                if found and found[-1].use == part.use:
                    part = ClaimedSpan(found.pop().begin, part.end, part.use)
                found.append(part)
            at = max(at, span.end)
        return tuple(found)

    def left(self, without: Iterable[Use] = ()) -> JoinedPieces:
        """The unclaimed text, or all text except that claimed for a use in `without`."""
        uses = frozenset(without)
        pieces: list[tuple[int, int]] = []
        at = 0
        for span in sorted(self._claimed, key=_begin):
            if uses and span.use not in uses:
                continue
            if at < span.begin:
                pieces.append((at, span.begin))
            at = max(at, span.end)
        if at < len(self.text):
            pieces.append((at, len(self.text)))
        return JoinedPieces(self, pieces)


class JoinedPieces:
    """Concatenated pieces of a reply. Claims are forwarded to the reply."""

    def __init__(self, ledger: Ledger, pieces: list[tuple[int, int]]) -> None:
        self.ledger = ledger
        self._pieces = pieces
        self._offsets: list[int] = []
        at = 0
        for begin, end in pieces:
            self._offsets.append(at)
            at += end - begin
        self.text = "".join(ledger.text[begin:end] for begin, end in pieces)

    def claim(self, begin: int, end: int, use: Use) -> None:
        """Claim characters of this text; positions beyond its end are ignored."""
        end = min(end, len(self.text))
        number = bisect_right(self._offsets, begin) - 1
        while begin < end and 0 <= number < len(self._pieces):
            first, last = self._pieces[number]
            shift = first - self._offsets[number]
            upto = min(end + shift, last)
            self.ledger.claim(begin + shift, upto, use)
            begin, number = upto - shift, number + 1
