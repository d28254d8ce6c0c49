"""Line ranges in requests and calls. Lines count from 1; ranges include both ends."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from tui_agent.files.numbers import whole_number

Range = tuple[int, int]
_SPAN = re.compile(r"[lL]?(\d{1,9})(?:\s*(?:-|–|\.\.|,|:|to)\s*[lL]?(\d{1,9}))?\Z")
_IN_WORDS = re.compile(r"\blines?\s+(\d{1,9})(?:\s*(?:-|–|to|and|until)\s*(\d{1,9}))?", re.IGNORECASE)


def read_range(written: object) -> Range | None:
    """`120-180`, `L120-L180`, `120` or 120 as a range; None for any other value."""
    if isinstance(written, int) and not isinstance(written, bool):
        written = str(written)
    found = _SPAN.match(written.strip()) if isinstance(written, str) else None
    if found is None:
        return None
    first = max(1, whole_number(found[1]))
    return first, max(first, whole_number(found[2])) if found[2] else first


def ranges_in(words: str, file_name: str) -> tuple[Range, ...]:
    """The lines named in a request: `line 120`, `lines 120 to 180`, `big.py:120`, `big.py:120-180`."""
    at_name = re.compile(rf"(?<![\w.-]){re.escape(file_name)}:(\d{{1,9}})(?:-(\d{{1,9}}))?")
    found = [*_IN_WORDS.finditer(words), *at_name.finditer(words)]
    spans = [read_range(f"{one[1]}-{one[2]}" if one[2] else one[1]) for one in found]
    return tuple(span for span in spans if span is not None)


def in_words(ranges: Sequence[Range]) -> str:
    """`1-12, 120-180, 300`."""
    return ", ".join(f"{first}-{last}" if last > first else str(first) for first, last in ranges)


def within(ranges: Iterable[Range], count: int) -> tuple[Range, ...]:
    """The ranges sorted, adjacent ranges merged, limited to `count` lines."""
    found: list[Range] = []
    for first, last in sorted((max(1, first), min(last, count)) for first, last in ranges):
        if first > last:
            continue
        if found and first <= found[-1][1] + 1:
            found[-1] = found[-1][0], max(found[-1][1], last)
        else:
            found.append((first, last))
    return tuple(found)
