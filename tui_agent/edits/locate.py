"""Matches edits in steps from exact to fuzzy, and adapts them to the matched lines.

Never guesses between two matches. Kept lines stay as in the file; new lines are the model's, except for
one common change of indentation.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import takewhile

from msgspec import Struct
from msgspec.structs import replace as with_

from tui_agent.answers.values import EditHunk
from tui_agent.edits import indent, preconditions
from tui_agent.edits.lines import changes, plain
from tui_agent.edits.source_text import (
    LOOK_ALIKES,
    Match,
    Part,
    SourceText,
    Span,
    bare_end,
    cuts,
    lines_from,
    normalized_letters,
    windows,
)
from tui_agent.errors import Ambiguous, EditFailed
from tui_agent.files.lazy_regex import late
from tui_agent.files.numbers import whole_number

_WORD = late(r"\w+")
_FANCY = frozenset(map(chr, LOOK_ALIKES))
_CLOSING = (")", "]", "}")


def one_by_one(count: int) -> tuple[Part, ...]:
    return tuple((number, number + 1, number, number + 1) for number in range(count))


def carried(
    search: Sequence[str], found: Sequence[str], replaced: Sequence[str], ties: Sequence[Part], level: int = 4
) -> list[str] | None:
    """Returns `found` after the edit from `search` to `replaced`. `ties` pair lines of both. `None` if an
    edited line has no certain counterpart, or a new line no certain indentation.
    """
    parts = list(_parts(ties, search, found))
    new_lines = _indented(search, found, replaced, ties, level)
    if new_lines is None:
        return None
    slips = _Lookalikes(search, found, ties)

    def result_of(changes: Iterator[Part]) -> list[str] | None:
        result: list[str] = []
        at = 0
        for start, end, new, until in changes:
            here = _lines_matching(parts, start, end)
            lines = new_lines[new:until]
            if here is None or not _agree(search[start:end], found[here[0] : here[1]], lines):
                return None
            if slips.may_hold(lines):
                return None
            result.extend(found[at : here[0]])
            result.extend(lines)
            at = here[1]
        return [*result, *found[at:]]

    result = result_of(changes(search, replaced))
    if len(found) != len(search):
        from_the_end = [
            (len(search) - end, len(search) - start, len(replaced) - until, len(replaced) - new)
            for start, end, new, until in changes(search[::-1], replaced[::-1])
        ]
        if result != result_of(reversed(from_the_end)):
            return None
    return result


def _indented(
    search: Sequence[str], found: Sequence[str], replaced: Sequence[str], ties: Sequence[Part], level: int
) -> list[str] | None:
    tied = [
        (start, indent.of(search[start]), indent.of(found[at]))
        for start, _, at, _ in ties
        if search[start].strip() and found[at].strip()
    ]
    pairs = [(wanted, there) for _, wanted, there in tied]
    if not pairs:
        return None
    if all(wanted == there for wanted, there in pairs):
        return list(replaced)
    stretches = list(changes(search, replaced))
    numbers = [number for *_, new, until in stretches for number in range(new, until)]
    worded = [number for number in numbers if replaced[number].strip()]
    blanks = "" not in search  # an empty line shows that blank lines are not shifted
    if not worded:
        only = indent.readings(replaced, pairs, level, numbers, blanks)
        return only[0] if only else list(replaced)
    begins_bare = pairs[0][1] and not pairs[0][0]
    if begins_bare and stretches and stretches[0][0]:
        start, end, new, until = stretches[0]
        gone = {line.strip() for line in search[start:end]} - {""}
        if any(line.strip() in gone for line in replaced[new:until]):
            return None
    touched = {number for start, end, *_ in stretches for number in range(start, end)}
    first = indent.of(replaced[worded[0]])
    wanted_depths, depths = ({pair[side] for pair in pairs} for side in (0, 1))
    moved = {wanted for wanted, there in pairs if wanted != there}
    written_alike = (
        (first in moved and first == pairs[0][0])
        or any(indent.of(replaced[number]) in moved - depths for number in worded)
        or any(wanted != there for number, wanted, there in tied if number not in touched)
    )
    found_ways = indent.readings(replaced, pairs, level, numbers, blanks)
    as_in_file = {*first} <= {char for depth in depths for char in depth} or not any(depths)
    if as_in_file and (not written_alike or (first in depths and first not in wanted_depths)):
        if not found_ways and first not in depths:
            return None
        found_ways.append(list(replaced))
    if begins_bare and all(wanted == there for wanted, there in pairs[1:]) and 0 in worded:
        found_ways = _with_bare_first_line(search, replaced, pairs, worded, found_ways, level)
    ways = [way for number, way in enumerate(found_ways) if way not in found_ways[:number]]
    if len(ways) > 1 or list(replaced) in ways:
        there = {number: line for number, _, line in tied}
        kept: dict[int, str] = {}
        old = at = 0
        for _, end, new, until in [*stretches, (-1, -1, len(replaced), len(replaced))]:
            kept |= {at + n: there[old + n] for n in range(new - at) if old + n in there}
            old, at = end, until
        ways = [
            way
            for way in ways
            if not indent.left_open(
                [kept.get(n, indent.of(line)) + line.lstrip(" \t") for n, line in enumerate(way)]
            )
        ]
    return ways[0] if len(ways) == 1 else None


def _with_bare_first_line(
    search: Sequence[str],
    replaced: Sequence[str],
    pairs: Sequence[indent.Pair],
    worded: Sequence[int],
    ways: list[list[str]],
    level: int,
) -> list[list[str]]:
    """Tries the first line without indentation; [] if ambiguous."""
    if search[0][:1] in _CLOSING and replaced[0][:1] not in _CLOSING:
        return []  # a closing bracket rarely has the depth of its replacement
    if not pairs[1:]:
        return ways
    if {*_WORD.findall(search[0])}.isdisjoint(_WORD.findall(replaced[0])):
        return []  # another line, possibly at another depth
    second = next((number for number in worded if number), 0)
    drops = second and second == next((n for n, line in enumerate(replaced) if n and line.strip()), 0)
    if drops and len(pairs[1][1]) >= len(pairs[0][1]) > len(indent.of(replaced[second])):
        return []  # the other lines moved left, perhaps also the first
    return [way for way in ways if not indent.jumps(way, level)]


def _parts(ties: Sequence[Part], search: Sequence[str], found: Sequence[str]) -> Iterator[tuple[Part, bool]]:
    start = at = 0
    for tie in [*ties, (len(search), len(search), len(found), len(found))]:
        between = [*search[start : tie[0]], *found[at : tie[2]]]
        if tie[0] - start == tie[2] - at and not "".join(between).strip():
            for number in range(tie[0] - start):
                yield (start + number, start + number + 1, at + number, at + number + 1), True
        elif between:
            yield (start, tie[0], at, tie[2]), False
        if tie[0] < tie[1]:
            yield tie, True
        start, at = tie[1], tie[3]


def _lines_matching(parts: Sequence[tuple[Part, bool]], start: int, end: int) -> tuple[int, int] | None:
    if start == end:
        beside = [(part, tied) for part, tied in parts if part[0] <= start <= part[1]]
        if not all(tied for _, tied in beside):
            return None
        places = {part[2] if part[0] == start else part[3] for part, _ in beside if start in part[:2]}
        return (only, only) if len(places) == 1 and (only := places.pop()) is not None else None
    touched = [(part, tied) for part, tied in parts if part[0] < end and start < part[1]]
    within = [part for part, _ in parts if part[0] == part[1] and start < part[0] < end]
    if within or not all(tied for _, tied in touched):
        return None
    first, last = touched[0][0], touched[-1][0]
    return (first[2], last[3]) if first[0] == start and last[1] == end else None


def _agree(search: Sequence[str], found: Sequence[str], new: Sequence[str]) -> bool:
    if not search or not found or not new:
        return True
    ours, theirs = [*map(_ending, search)], [*map(_ending, found)]
    if theirs[-1] not in (ours[-1], _ending(new[-1])):
        return False
    if len(search) != len(found):
        return True
    return ours[:-1] == theirs[:-1] and [*map(_commas, search)] == [*map(_commas, found)]


def _ending(line: str) -> str:
    bare = line.rstrip()
    return bare[-1] if bare[-1:] in (",", ";") else ""


def _commas(line: str) -> str:
    return "".join(char for char in line.rstrip().rstrip(",;") if char in ",;")


class _Lookalikes:
    """Look-alikes and trailing blanks in either search text or file: ambiguous in new lines."""

    def __init__(self, search: Sequence[str], found: Sequence[str], ties: Sequence[Part]) -> None:
        ours, theirs = "".join(search), "".join(found)
        self._marks: frozenset[str] = frozenset()
        if not (ours.isascii() and theirs.isascii()):
            only_ours = _FANCY.intersection(ours) - {*theirs}
            only_theirs = _FANCY.intersection(theirs) - {*ours}
            for start, end, at, to in ties:
                if end - start == 1 == to - at:
                    differ = {
                        pair
                        for pair in zip(search[start].strip(), found[at].strip(), strict=False)
                        if len({*pair}) > 1
                    }
                    only_ours |= _FANCY.intersection(one for one, _ in differ)
                    only_theirs |= _FANCY.intersection(other for _, other in differ)
            self._marks = frozenset(char.translate(LOOK_ALIKES) for char in only_theirs) - {" "}
            if only_ours:
                self._marks |= (_FANCY - {*theirs}) | only_ours
        self._blanks = any(
            _blank_end(search[start]) and not _blank_end(found[at])
            for start, end, at, to in ties
            if end - start == 1 == to - at
        )

    def may_hold(self, lines: Sequence[str]) -> bool:
        if self._blanks and any(map(_blank_end, lines)):
            return True
        return any(char in line for char in self._marks for line in lines)


def _blank_end(line: str) -> bool:
    return bool(line.strip()) and line[-1].isspace()


#: Steps in order; a change records the lowest one in use.
RUNGS = (
    "exact", "line-endings", "trailing-space", "line-numbers", "indentation", "look-alikes", "anchored",
    "near",
)  # fmt: skip

_NUMBERED = re.compile(r" {0,6}(\d{1,7})(?::(?: |$)|\t| \| ?)")


class Replacement(Struct, frozen=True):
    """Replaces a range of offsets in `SourceText.text`; `line` is the start of the search text."""

    start: int
    end: int
    line: int
    text: str
    rung: str


_Rung = Callable[[SourceText, EditHunk, float], Iterator[Match]]


def lowest(*rungs: str) -> str:
    return max(rungs, key=lambda rung: RUNGS.index(rung) if rung else -1, default="")


def locate(source: SourceText, wanted: EditHunk, threshold: float = 0.9) -> Replacement:
    """Raises `Ambiguous` for several matches, `EditFailed` for none."""
    return placed(source, only(wanted, matches_of_best_rung(source, wanted, threshold)))


def matches_of_best_rung(source: SourceText, wanted: EditHunk, threshold: float = 0.9) -> list[Match]:
    """Raises `EditFailed` without a match. `threshold` is the minimum score of a fuzzy match; over 1
    disables it.
    """
    bare = wanted
    if "\r" in wanted.old + wanted.new:
        bare = with_(wanted, old=plain(wanted.old), new=plain(wanted.new))
    for rung in _LADDER:
        matches = list(rung(source, bare, threshold))
        if matches:
            if rung is _exact and not bare.marks and not any(map(str.isalnum, bare.old)):
                # Only indentation distinguishes brackets, and models often get it wrong.
                alike = list(in_any_indentation(source, bare))
                matches = alike if len(alike) > len(matches) else matches
            if rung is not _exact:
                preconditions.check_unmade(source, bare, matches)
            elif (source.has_returns or "\r" in wanted.old) and wanted.old not in source.raw:
                return [with_(match, rung="line-endings") for match in matches]
            return matches
    raise preconditions.not_found_reason(source, bare)


def only(wanted: EditHunk, matches: Sequence[Match]) -> Match:
    """Raises `Ambiguous` for several."""
    if len(matches) == 1:
        return matches[0]
    numbers = [str(match.first + 1) for match in matches[:4]]
    more = f" and {len(matches) - 4} more" if len(matches) > 4 else ""
    where = f"{', '.join(numbers[:-1])} and {numbers[-1]}" if not more else ", ".join(numbers) + more
    raise Ambiguous(
        f"{wanted.name} is at {len(matches)} places, in lines {where}",
        "take more of the lines around it into the search text, so that it occurs only once",
    )


def placed(source: SourceText, match: Match) -> Replacement:
    """Raises `EditFailed` if the result is uncertain or already in the file."""
    preconditions.check(source, match)
    place = _verbatim(source, match)
    if place is None:
        search, replaced = match.hunk.old, match.hunk.new
        before = after = ""
        if match.span is not None:
            before = source.text[source.starts[match.first] : match.span.start]
            before = before if before.strip() else ""
            if not search.endswith("\n"):
                after = source.text[match.span.end : source.starts[match.end] - 1]
        ours, theirs = _lines(before + search + after), _lines(before + replaced + after)
        if not search.endswith("\n") and not after and (replaced.endswith("\n") or not before + replaced):
            theirs.append("")
        lines = source.lines[match.first : match.end]
        text = carried(ours, lines, theirs, match.ties or one_by_one(len(lines)), source.level)
        if text is None:
            raise EditFailed(
                f"{match.hunk.name} differs from line {match.first + 1} and those after it in layout, and it is"
                " not certain how the new lines should look there",
                "copy the search text exactly from the file\n" + lines_from(source, match.first, match.end),
            )
        start, end = source.starts[match.first], source.starts[match.end]
        place = Replacement(start, end, match.first, "".join(line + "\n" for line in text), match.rung)
    preconditions.check_tabs(source, match, place.text)
    old, new = source.text[place.start : place.end], place.text
    if old and new.startswith(old + "\n") and not old.endswith("\n"):
        return with_(place, start=place.end, text=new[len(old) :])
    if "\n" not in old or "\n" not in new:
        return place
    head = _shared(old.split("\n")[:-1], new.split("\n")[:-1])
    start = place.start + head
    at_line_end = place.end in (0, len(source.text)) or source.text[place.end - 1] == "\n"
    ended = at_line_end and new.endswith("\n")
    tail = _shared(old[head:].split("\n")[-2::-1], new[head:].split("\n")[-2::-1]) if ended else 0
    return with_(place, start=start, end=place.end - tail, text=new[head : len(new) - tail])


def _verbatim(source: SourceText, match: Match) -> Replacement | None:
    hunk, span = match.hunk, match.span
    if span is None or match.rung not in ("exact", "line-endings"):
        return None
    if not hunk.old.strip():
        return Replacement(span.start, span.end, span.line, hunk.new, match.rung)
    before = source.text[source.starts[span.line] : span.start]
    bare = before and not before.strip() and hunk.old[0] != "\n"
    if bare and ("\n" in hunk.old + hunk.new or hunk.new[:1].isspace()):
        return None
    text = hunk.new
    if hunk.old.endswith("\n") and text and not text.endswith("\n") and not before.strip():
        text += "\n"
    return Replacement(span.start, span.end, span.line, text, match.rung)


def _shared(ours: Sequence[str], theirs: Sequence[str]) -> int:
    same = takewhile(lambda pair: pair[0] == pair[1], zip(ours, theirs, strict=False))
    return sum(len(line) + 1 for line, _ in same)


def _exact(source: SourceText, wanted: EditHunk, _: float = 0) -> Iterator[Match]:
    if wanted.old:
        for start in source.every(wanted.old, wanted.whole):
            end = start + len(wanted.old)
            span = Span(start, end, source.line_of(start))
            if _is_place(source, wanted, span):
                yield _match(source, wanted, span, "exact")


def _is_place(source: SourceText, wanted: EditHunk, span: Span) -> bool:
    """Whether whole lines begin and end at lines, and other text is not inside a word or indentation."""
    begins = source.starts[span.line] == span.start
    if not wanted.whole:
        indented = not begins and wanted.old[0] in " \t" and wanted.old.strip()
        if indented and not source.text[source.starts[span.line] : span.start].strip():
            return False
        return not cuts(source.text, span.start) and not cuts(source.text, span.end)
    return begins and (
        source.text[span.end - 1] == "\n" or source.text[span.end : span.end + 1] in ("", "\n")
    )


def _match(source: SourceText, wanted: EditHunk, span: Span, rung: str) -> Match:
    last = source.line_of(max(span.end - 1, span.start))
    return Match(rung, span.line, min(last, len(source.lines) - 1) + 1, wanted, span)


def _trailing_space(source: SourceText, wanted: EditHunk, _: float = 0) -> Iterator[Match]:
    search = _formed(wanted.old, bare_end)
    if search.strip():
        changed = not search.endswith("\n")
        for span in source.without_trailing.spans(search, changed and search != wanted.old, True):
            if _is_place(source, wanted, span):
                yield _match(source, wanted, span, "trailing-space")


def _line_numbers(source: SourceText, wanted: EditHunk, _: float = 0) -> Iterator[Match]:
    """A number may be a part of its line: all lines of the search text need one, and all new ones or none."""
    old: list[str] = []
    numbers: list[int] = []
    for at, line in enumerate(_lines(wanted.old)):
        match = _NUMBERED.match(line)
        if match is None and line.strip():
            return
        old.append(line[match.end() :] if match else line)
        numbers += [whole_number(match[1]) - at] if match else []
    if len(set(numbers)) != 1:
        return
    first, last = numbers[0], numbers[0] + len(old) - 1
    lines = wanted.new.split("\n")
    numbered = [_NUMBERED.match(line) for line in lines]
    kept = {line.rstrip() for line in wanted.old.split("\n")}
    fresh = [
        match
        for line, match in zip(lines, numbered, strict=True)
        if line.strip() and line.rstrip() not in kept
    ]
    follow = all(first <= whole_number(match[1]) <= last + len(lines) for match in numbered if match)
    if any(fresh) and not (all(fresh) and follow):
        return
    new = "\n".join(
        line[match.end() :] if match else line for line, match in zip(lines, numbered, strict=True)
    )
    end = "\n" if wanted.old.endswith("\n") else ""
    bare = with_(wanted, old="\n".join(old) + end, new=new, whole=True)
    for rung in (_exact, _trailing_space, in_any_indentation):
        matches = list(rung(source, bare))
        if matches:
            told = [match for match in matches if match.first == first - 1]
            preconditions.check_announced(source, with_(bare, line=first - 1), matches)
            yield from (with_(match, rung="line-numbers") for match in (told or matches))
            return


def in_any_indentation(source: SourceText, wanted: EditHunk, _: float = 0) -> Iterator[Match]:
    lines = _lines(wanted.old)
    bare = [line.strip() for line in lines]
    anchor = max(range(len(bare)), key=lambda number: len(bare[number]), default=-1)
    if anchor < 0 or not bare[anchor]:
        return
    for number in source.by_stripped.get(bare[anchor], ()):
        first = number - anchor
        if first >= 0 and source.stripped[first : first + len(bare)] == bare:
            yield Match("indentation", first, first + len(lines), wanted)


def _look_alikes(source: SourceText, wanted: EditHunk, _: float = 0) -> Iterator[Match]:
    search = _formed(wanted.old, normalized_letters)
    if search.strip() and not (wanted.old.isascii() and source.text.isascii()):
        open_end = not search.endswith("\n") and len(search) != len(wanted.old)
        for span in source.looking_alike.spans(search, open_end, open_end):
            if _is_place(source, wanted, span):
                yield _match(source, wanted, span, "look-alikes")


def _near(source: SourceText, wanted: EditHunk, threshold: float) -> Iterator[Match]:
    if threshold > 1:
        return
    for window in windows(source, _lines(wanted.old), threshold):
        rung = "anchored" if window.anchored else "near"
        yield Match(rung, window.first, window.first + window.count, wanted, ties=window.ties)


_LADDER: tuple[_Rung, ...] = (_exact, _trailing_space, _line_numbers, in_any_indentation, _look_alikes, _near)


def _formed(text: str, form: Callable[[str], str]) -> str:
    return "\n".join(form(line) for line in text.split("\n"))


def _lines(text: str) -> list[str]:
    lines = text.split("\n") if text else []
    return lines[:-1] if text.endswith("\n") else lines
