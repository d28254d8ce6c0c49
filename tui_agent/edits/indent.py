"""Text that was indented otherwise, in the indentation of the file: carried over only where it is certain."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from math import gcd

#: The indentation in the search text, and the one that the same line has in the file.
Pair = tuple[str, str]
#: The indentation of the new line with this number, by one way of reading the pairs; None where it says nothing.
_Rule = Callable[[int, str], "str | None"]

#: Widths of one level that somebody writes, in spaces.
_LEVELS = (2, 3, 4, 8)
#: No line is indented so far.
_NEVER = 1 << 30


def of(line: str) -> str:
    """The white space that a line begins with."""
    return line[: len(line) - len(line.lstrip(" \t"))]


def unit(lines: Iterable[str]) -> int:
    """How many spaces one level has in a file: the most common step from a line to a deeper one, else 4."""
    steps: Counter[int] = Counter()
    before, last = "", _NEVER
    for line in lines:
        bare = line.lstrip(" \t")
        if not bare or bare.isspace():
            continue
        depth = len(line) - len(bare)
        if depth > last and "\t" not in line[:depth] and line.startswith(before[:last]):
            steps[depth - last] += 1
        before, last = line, depth
    known = [(count, -step) for step, count in steps.items() if step in _LEVELS]
    return -max(known)[1] if known else 4


def readings(
    lines: Sequence[str], pairs: Sequence[Pair], level: int, changed: Sequence[int], blanks: bool = True
) -> list[list[str]]:
    """Every way in which the file may indent the lines with the numbers in `changed`; the others stay.

    Each way of reading the pairs (all lines deeper by as much, tabs for spaces, levels of another width, a stray
    blank in few of them, a first line without its indentation) that explains them and gives indentations that the
    file could have counts; where there is one, so does each that only lines which may be aligned rule out. `level` is
    the width of one level in the file, in spaces; `blanks` says whether lines of white space alone lose what the
    others lose.
    """
    new = [lines[number] for number in changed]
    found: list[list[str]] = []
    doubtful: list[list[str]] = []
    for rule in _rules(pairs):
        depths = [_by(rule, number, line, blanks) for number, line in zip(changed, new, strict=True)]
        moved = [
            depth + line[len(of(line)) :]
            for depth, line in zip(depths, new, strict=True)
            if depth is not None
        ]
        if len(moved) == len(new):
            result = list(lines)
            for number, line in zip(changed, moved, strict=True):
                result[number] = line
            if _possible(new, moved, pairs, level):
                found.append(result)
            elif _possible(new, moved, pairs, level, aligned=True):
                doubtful.append(result)
    return found and found + doubtful


def _by(rule: _Rule, number: int, line: str, blanks: bool) -> str | None:
    """The indentation of a new line; one of white space alone is as wide as before where all others are moved by as
    much, unless `blanks`: then it loses what they lose."""
    own = of(line)
    if line.strip():
        return rule(number, own)
    found = rule(number, own) if own else own
    follows = rule(number, "") == "" or (blanks and found is not None and len(found) < len(own))
    return found if follows and found is not None else own


def _rules(pairs: Sequence[Pair]) -> list[_Rule]:
    first, rest = pairs[0], pairs[1:]
    trimmed = not first[0] and first[1]
    if trimmed and rest and all(wanted == there for wanted, there in rest):
        return [_first_only(first[1])]
    known = dict(pairs)
    function = all(known[wanted] == there for wanted, there in pairs)
    rules = [*_shifts(known), *_scales(known)] if function else []
    stray = any(wanted and wanted == there for wanted, there in pairs)
    if function and not (rules or trimmed or stray) and len(set(known.values())) == len(known):
        rules.append(lambda _, wanted: known.get(wanted))  # only depths that the search text has, too
    if trimmed and not rest:
        rules.append(_first_only(first[1]))
    if any(wanted == there for wanted, there in pairs):
        rules += _as_written(pairs)
    return rules


def _first_only(depth: str) -> _Rule:
    """The first line came without its indentation, the others have theirs; of another bare line nobody can say."""
    return lambda number, wanted: wanted or (depth if number == 0 else None)


def _as_written(pairs: Sequence[Pair]) -> list[_Rule]:
    """A few lines have a stray blank or lack one; a new line as deep as one of those is not certain."""
    strays = {wanted: there for wanted, there in pairs if wanted != there}
    if any(abs(len(wanted) - len(there)) != 1 for wanted, there in strays.items()):
        return []
    few = sum(wanted != there for wanted, there in pairs) == 1
    if few or any(wanted and wanted == there for wanted, there in pairs):
        return [lambda _, wanted: None if wanted in strays else wanted]
    return [lambda _, wanted: "" if not wanted else None]


def _shifts(known: dict[str, str]) -> list[_Rule]:
    """All lines are deeper, or less deep, by the same white space."""
    wanted, there = next(iter(known.items()))
    if there.endswith(wanted) and len(there) > len(wanted):
        more = there[: len(there) - len(wanted)]
        if all(other == more + one for one, other in known.items()):
            return [lambda _, depth: more + depth]
    if wanted.endswith(there) and len(wanted) > len(there):
        less = wanted[: len(wanted) - len(there)]
        if all(one == less + other for one, other in known.items()):
            return [lambda _, depth: depth[len(less) :] if depth.startswith(less) else None]
    return []


def _scales(known: dict[str, str]) -> list[_Rule]:
    """One level is written otherwise: tabs for spaces, or another number of spaces; perhaps all are deeper too."""
    written, there = "".join(known), "".join(known.values())
    if len(set(written)) > 1 or len(set(there)) > 1 or not written or not there:
        return []
    ours, theirs = written[0], there[0]
    points = sorted((len(wanted), len(depth)) for wanted, depth in known.items())
    low, high = points[0], points[-1]
    if low == high:
        low = (0, 0)
    run, rise = high[0] - low[0], high[1] - low[1]
    if ours == theirs and len(points) == 2 and low[0] * rise != low[1] * run:
        return []  # a line in between that was left out looks the same
    if rise <= 0 or not _levels(run, rise, ours, theirs):
        return []
    if any((x - low[0]) * rise != (y - low[1]) * run for x, y in points):
        return []

    def scaled(_: int, wanted: str) -> str | None:
        steps, rest = divmod((len(wanted) - low[0]) * rise, run)
        if rest or set(wanted) - {ours} or low[1] + steps < 0:
            return None
        return theirs * (low[1] + steps)

    return [scaled]


def _levels(run: int, rise: int, ours: str, theirs: str) -> bool:
    """Whether so much on one side and so much on the other can be the same number of levels, written otherwise."""
    if ours == theirs:
        return {run, rise} == {1, 2} or (  # the stars of a comment
            run != rise
            and any(run * two == rise * one and not run % one for one in _LEVELS for two in _LEVELS)
        )
    spaces, tabs = (run, rise) if ours == " " else (rise, run)
    return not spaces % tabs and spaces // tabs in _LEVELS


def _possible(
    lines: Sequence[str], result: Sequence[str], pairs: Sequence[Pair], level: int, aligned: bool = False
) -> bool:
    """Whether the file could have these indentations: its own, whole levels, or moved by whole levels.

    A line at an odd depth may be `aligned` with one above it: then it rules out nothing.
    """
    own = {there for _, there in pairs}
    chars = set("".join(own))
    level = gcd(
        level, *(len(depth) for depth in own if "\t" not in depth)
    )  # half a level, in a text within code
    for line, new in zip(lines, result, strict=True):
        before, after = of(line), of(new)
        if not new.strip() or after in own:
            continue
        if chars and set(after) - chars:
            return False
        if aligned and len(before) % 2:
            continue
        if "\t" in after:
            continue
        aside = new.lstrip().startswith("*") and (len(after) - 1) % level == 0  # a line of a comment in stars
        if len(after) % level and (len(after) - len(before)) % level and not aside:
            return False
    return True


def left_open(lines: Sequence[str]) -> bool:
    """Whether a line that opens a block is followed by one that is not deeper."""
    worded = [line for line in lines if line.strip()]
    return any(
        before.rstrip().endswith((":", "{"))
        and len(of(after)) <= len(of(before))
        and not after.lstrip().startswith(("-", "}"))
        for before, after in pairwise(worded)
    )


def jumps(lines: Sequence[str], level: int) -> bool:
    """Whether the second line that is not blank is more than one level deeper than the first."""
    depths = [of(line) for line in lines if line.strip()][:2]
    return len(depths) == 2 and len(depths[1]) - len(depths[0]) > (1 if "\t" in depths[1] else level)
