"""Converts a model's indentation to the file's, if certain."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from math import gcd

#: Indentation of a line in the search text and in the file.
Pair = tuple[str, str]
#: Returns a new line's indentation by its number and own indentation; `None` if unknown.
_Rule = Callable[[int, str], "str | None"]

_LEVELS = (2, 3, 4, 8)
_NEVER = 1 << 30


def of(line: str) -> str:
    return line[: len(line) - len(line.lstrip(" \t"))]


def unit(lines: Iterable[str]) -> int:
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
    """Returns all plausible indentations of the lines numbered in `changed`; others stay.

    A plausible rule (common shift, tabs for spaces, another level width, single stray blanks, a first
    line without indentation) explains all pairs and produces indentations possible in the file. If one
    exists, rules that fail only at possibly aligned lines are added. `level` is the file's indentation in
    spaces. With `blanks`, white-space-only lines lose as much as others.
    """
    new = [lines[number] for number in changed]
    found: list[list[str]] = []
    doubtful: list[list[str]] = []
    for rule in _rules(pairs):
        moved: list[str] = []
        for number, line in zip(changed, new, strict=True):
            own = of(line)
            depth = rule(number, own) if own or line.strip() else own
            if not line.strip():
                follows = rule(number, "") == "" or (blanks and depth is not None and len(depth) < len(own))
                depth = depth if follows and depth is not None else own
            if depth is None:
                break
            moved.append(depth + line[len(own) :])
        else:
            result = list(lines)
            for number, line in zip(changed, moved, strict=True):
                result[number] = line
            if _possible(new, moved, pairs, level):
                found.append(result)
            elif _possible(new, moved, pairs, level, aligned=True):
                doubtful.append(result)
    return found and found + doubtful


def _rules(pairs: Sequence[Pair]) -> list[_Rule]:
    first, rest = pairs[0], pairs[1:]
    trimmed = not first[0] and first[1]
    if trimmed and rest and all(wanted == there for wanted, there in rest):
        return [_first_only(first[1])]
    known = dict(pairs)
    function = all(known[wanted] == there for wanted, there in pairs)
    rules: list[_Rule] = []
    if function:
        more, less = first[1].removesuffix(first[0]), first[0].removesuffix(first[1])
        if more and all(there == more + wanted for wanted, there in pairs):
            rules.append(lambda _, depth: more + depth)
        elif less and all(wanted == less + there for wanted, there in pairs):
            rules.append(lambda _, depth: depth[len(less) :] if depth.startswith(less) else None)
        rules += _scales(known)
    agrees = any(wanted and wanted == there for wanted, there in pairs)
    if function and not (rules or trimmed or agrees) and len(set(known.values())) == len(known):
        rules.append(lambda _, wanted: known.get(wanted))
    if trimmed and not rest:
        rules.append(_first_only(first[1]))
    strays = {wanted: there for wanted, there in pairs if wanted != there}
    alike = sum(wanted == there for wanted, there in pairs)
    if alike and all(abs(len(wanted) - len(there)) == 1 for wanted, there in strays.items()):
        if agrees or alike == len(pairs) - 1:
            rules.append(lambda _, wanted: None if wanted in strays else wanted)
        else:
            rules.append(lambda _, wanted: "" if not wanted else None)
    return rules


def _first_only(depth: str) -> _Rule:
    return lambda number, wanted: wanted or (depth if number == 0 else None)


def _scales(known: dict[str, str]) -> list[_Rule]:
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
        return []
    if rise <= 0:
        return []
    if ours == theirs:
        pairs = [(one, two) for one in _LEVELS for two in _LEVELS if run * two == rise * one]
        between_levels = {run, rise} == {1, 2} or (run != rise and any(not run % one for one, _ in pairs))
    else:
        spaces, tabs = (run, rise) if ours == " " else (rise, run)
        between_levels = not spaces % tabs and spaces // tabs in _LEVELS
    if not between_levels:
        return []
    if any((x - low[0]) * rise != (y - low[1]) * run for x, y in points):
        return []

    def scaled(_: int, wanted: str) -> str | None:
        steps, rest = divmod((len(wanted) - low[0]) * rise, run)
        if rest or set(wanted) - {ours} or low[1] + steps < 0:
            return None
        return theirs * (low[1] + steps)

    return [scaled]


def _possible(
    lines: Sequence[str], result: Sequence[str], pairs: Sequence[Pair], level: int, aligned: bool = False
) -> bool:
    own = {there for _, there in pairs}
    chars = set("".join(own))
    level = gcd(level, *(len(depth) for depth in own if "\t" not in depth))
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
        aside = new.lstrip().startswith("*") and (len(after) - 1) % level == 0
        if len(after) % level and (len(after) - len(before)) % level and not aside:
            return False
    return True


def left_open(lines: Sequence[str]) -> bool:
    worded = [line for line in lines if line.strip()]
    return any(
        before.rstrip().endswith((":", "{"))
        and len(of(after)) <= len(of(before))
        and not after.lstrip().startswith(("-", "}"))
        for before, after in pairwise(worded)
    )


def jumps(lines: Sequence[str], level: int) -> bool:
    """Whether the second line is over one level deeper than the first."""
    depths = [of(line) for line in lines if line.strip()][:2]
    return len(depths) == 2 and len(depths[1]) - len(depths[0]) > (1 if "\t" in depths[1] else level)
