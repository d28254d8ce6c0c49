"""What became of every character of a reply: a call, a change, a refusal, a thought, or text that is shown."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from operator import attrgetter
from typing import Literal

from msgspec import Struct

_begin = attrgetter("begin")
Use = Literal["call", "change", "refusal", "thought", "shown"]


class UsedText(Struct, frozen=True, gc=False):
    """The characters of a reply from `begin` up to `end`, and what they were taken for."""

    begin: int
    end: int
    use: Use


class Ledger:
    """The text of a reply. What nobody claims is shown."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._claimed: list[UsedText] = []

    def claim(self, begin: int, end: int, use: Use) -> None:
        """Say what the characters are. Claims do not overlap: what is claimed is in no text that is left."""
        if begin < end:
            self._claimed.append(UsedText(begin, end, use))

    @property
    def spans(self) -> tuple[UsedText, ...]:
        """All of the text in order, neighbours of one use together."""
        found: list[UsedText] = []
        at = 0
        for span in [*sorted(self._claimed, key=_begin), UsedText(len(self.text), len(self.text), "shown")]:
            for part in (UsedText(at, span.begin, "shown"), span):
                if part.begin >= part.end:
                    continue
                if found and found[-1].use == part.use:
                    part = UsedText(found.pop().begin, part.end, part.use)
                found.append(part)
            at = max(at, span.end)
        return tuple(found)

    def left(self, without: Iterable[Use] = ()) -> Left:
        """The text that nobody has claimed, or all but what was claimed for one of the uses `without`."""
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
        return Left(self, pieces)


class Left:
    """The text of some pieces of a reply, one behind the other; what is claimed of it is claimed of the reply."""

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
        """Claim characters of this text; what is beyond it belongs to no reply."""
        end = min(end, len(self.text))
        number = bisect_right(self._offsets, begin) - 1
        while begin < end and 0 <= number < len(self._pieces):
            first, last = self._pieces[number]
            shift = first - self._offsets[number]
            upto = min(end + shift, last)
            self.ledger.claim(begin + shift, upto, use)
            begin, number = upto - shift, number + 1
