"""Text that was indented otherwise, in the indentation of the file."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise


def of(line: str) -> str:
    """The white space that a line begins with."""
    return line[: len(line) - len(line.lstrip(" \t"))]


def mapping(search: Sequence[str], found: Sequence[str]) -> dict[str, str] | None:
    """For each indentation in `search` the one that stands in `found` (its equal line by line), or None.

    None says that the same indentation became two different ones: then nobody can say what a new line gets.
    """
    result: dict[str, str] = {}
    for wanted, line in zip(search, found, strict=True):
        if wanted.strip() and result.setdefault(of(wanted), of(line)) != of(line):
            return None
    return result


def reindented(lines: Sequence[str], known: dict[str, str]) -> list[str] | None:
    """`lines` with their indentation carried over; None where it is not certain for one of them."""
    result: list[str] = []
    step = _step(known)
    for line in lines:
        if not line.strip():
            result.append(line)
            continue
        indent = _carried(of(line), known, step)
        if indent is None:
            return None
        result.append(indent + line[len(of(line)) :])
    return result


def _step(known: dict[str, str]) -> tuple[str, str]:
    """One level on both sides, from the first two indentations that differ by something; equal where unknown."""
    ordered = sorted(known.items(), key=lambda pair: len(pair[0]))
    for (short, here), (long, there) in pairwise(ordered):
        if long.startswith(short) and there.startswith(here) and len(there) > len(here):
            return long[len(short) :], there[len(here) :]
    return "", ""


def _carried(indent: str, known: dict[str, str], step: tuple[str, str]) -> str | None:
    if indent in known:
        return known[indent]
    below = [start for start in known if indent.startswith(start)]
    if below:
        start = max(below, key=len)
        rest = _converted(indent[len(start) :], known, step)
        return None if rest is None else known[start] + rest
    above = [start for start in known if start.startswith(indent)]
    if not above:
        return None
    start = min(above, key=len)
    less = _converted(start[len(indent) :], known, step)
    return known[start].removesuffix(less) if less and known[start].endswith(less) else None


def _converted(space: str, known: dict[str, str], step: tuple[str, str]) -> str | None:
    """More or less indentation as the file writes it."""
    level, there = step
    if level and not len(space) % len(level) and space == level * (len(space) // len(level)):
        return there * (len(space) // len(level))
    written = set("".join(known.values()))
    return space if not level and (not written or set(space) == written) else None
