"""Hunks of a diff, individually applicable."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from tui_agent.edits.alignment import matches
from tui_agent.edits.change import Diff, Hunk
from tui_agent.edits.lines import split


def hunks(base: str, new: str) -> tuple[Hunk, ...]:
    """Returns the hunks from `base` to `new`, in order, separated by at least one equal line."""
    return _hunks(split(base), split(new))


def _hunks(old: list[str], new: list[str]) -> tuple[Hunk, ...]:
    found: list[Hunk] = []
    start = at = 0
    for i, j, length in [*matches(old, new), (len(old), len(new), 0)]:
        if start < i or at < j:
            found.append(Hunk(start, tuple(old[start:i]), tuple(new[at:j])))
        start, at = i + length, j + length
    return tuple(found)


def same_hunk(hunk: Hunk, others: Sequence[Hunk]) -> int | None:
    """Returns the number of the only other hunk with the same lines, or `None`."""
    does = (hunk.removed, hunk.added)
    found = [number for number, other in enumerate(others) if (other.removed, other.added) == does]
    return found[0] if len(found) == 1 else None


def compose(base: str, parts: Sequence[Hunk], chosen: Collection[int]) -> str:
    """Returns `base` with the hunks numbered in `chosen` (from 0), equal to `git apply` of these hunks."""
    lines = split(base)
    result: list[str] = []
    at = 0
    for number, hunk in enumerate(parts):
        result.extend(lines[at : hunk.start])
        at = hunk.start + len(hunk.removed)
        result.extend(hunk.added if number in chosen else hunk.removed)
    result.extend(lines[at:])
    return "".join(result)


def diff_of(path: str, base: str, new: str) -> Diff:
    old = split(base)
    return Diff(path, tuple(old), _hunks(old, split(new)))


def counts(parts: Sequence[Hunk]) -> tuple[int, int]:
    """Returns the numbers of added and removed lines."""
    return sum(len(hunk.added) for hunk in parts), sum(len(hunk.removed) for hunk in parts)


def unified(diff: Diff, chosen: Collection[int] | None = None, context: int = 3) -> str:
    """Returns a unified diff of the chosen hunks (default: all) for `git apply`; empty without hunks."""
    picked = [hunk for number, hunk in enumerate(diff.hunks) if chosen is None or number in chosen]
    if not picked:
        return ""
    old = f"a/{diff.path}" if diff.base else "/dev/null"
    parts = [f"--- {old}\n+++ b/{diff.path}\n"]
    moved = 0
    for group in _groups(picked, context):
        parts.extend(_group(diff, group, context, moved))
        moved += sum(len(hunk.added) - len(hunk.removed) for hunk in group)
    return "".join(parts)


def _groups(picked: list[Hunk], context: int) -> Iterator[list[Hunk]]:
    """Groups hunks with touching context."""
    group: list[Hunk] = []
    for hunk in picked:
        if group and hunk.start - _end(group[-1]) > 2 * context:
            yield group
            group = []
        group.append(hunk)
    yield group


def _end(hunk: Hunk) -> int:
    return hunk.start + len(hunk.removed)


def _group(diff: Diff, group: list[Hunk], context: int, moved: int) -> Iterator[str]:
    first = max(0, group[0].start - context)
    last = min(len(diff.base), _end(group[-1]) + context)
    length = last - first
    grown = length + sum(len(hunk.added) - len(hunk.removed) for hunk in group)
    yield f"@@ -{first + (length > 0)},{length} +{first + moved + (grown > 0)},{grown} @@\n"
    at = first
    for hunk in group:
        yield from _marked(" ", diff.base[at : hunk.start])
        yield from _marked("-", hunk.removed)
        yield from _marked("+", hunk.added)
        at = _end(hunk)
    yield from _marked(" ", diff.base[at:last])


def _marked(mark: str, lines: Sequence[str]) -> Iterator[str]:
    for line in lines:
        yield mark + line
        if not line.endswith("\n"):
            yield "\n\\ No newline at end of file\n"
