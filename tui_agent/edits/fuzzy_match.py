"""Same words in another layout, or with omitted lines."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence

from msgspec import Struct

from tui_agent.edits import indent
from tui_agent.edits.source_text import Part, SourceText, key

#: Alphanumeric characters of a search text; shorter ones resemble too many places.
FEWEST = 8
#: The same for matches with omitted lines.
ANCHOR = 20
#: Consecutive omitted lines.
LEFT_OUT = 3
#: More frequent words are not looked up.
_COMMON = 2000
_WORD = re.compile(r"\w+")
_RARE = 20
_WORDS_TRIED = 40
_WIDEST = 120
_SHOWN = 12


class Window(Struct, frozen=True):
    """`count` lines from `first`. `anchored`: between them the file has lines that the search omits."""

    first: int
    count: int
    ties: tuple[Part, ...]
    anchored: bool = False


def windows(source: SourceText, lines: Sequence[str], threshold: float) -> list[Window]:
    """Returns places with the names, numbers, strings and operators of `lines` in order.

    White space, line breaks, commas, quotes and look-alikes may differ. Without such a place, the file
    may have up to `LEFT_OUT` more lines between two: one in total, or more if the normalised edit
    similarity of the words is at least 2 · `threshold` - 1.
    """
    keys = [key(line) for line in lines]
    said = sum(char.isalnum() for one in keys for char in one)
    if said < FEWEST:
        return []
    words: dict[str, int] = {}
    for number, line in enumerate(lines):
        for word in _WORD.findall(line):
            words.setdefault(word, number)
    count, rarest = _COMMON + 1, ""
    for word in sorted(words, key=len, reverse=True)[:_WORDS_TRIED]:
        here = source.text.count(word)
        if not here:
            return []
        if here < count:
            count, rarest = here, word
        if here <= _RARE:
            break
    if not rarest:
        return []
    places, at = source.lines_with(rarest), words[rarest]
    same = _distinct(_same_words(source, keys, places))
    if sum(map(bool, keys)) == 1:  # blank lines around a single line distinguish its matches
        same = [one for one in same if len(one.ties) > keys.count("")]
    if same or said < ANCHOR:
        return same
    return _distinct(_with_more(source, keys, places, at, 2 * threshold - 1))


def _distinct(found: Iterator[Window]) -> list[Window]:
    return list({(one.first, one.count): one for one in found}.values())


def _same_words(source: SourceText, keys: Sequence[str], places: Sequence[int]) -> Iterator[Window]:
    flow = "".join(keys)
    for place in places:
        length = 0
        for first in range(place, -1, -1):
            length += len(source.key(first))
            if length > len(flow):
                break
            if source.key(first) and flow.startswith(source.key(first)):
                at, end = 0, first
                while at < len(flow) and end < len(source.lines) and flow.startswith(source.key(end), at):
                    at += len(source.key(end))
                    end += 1
                if at == len(flow) and end > place:
                    yield _widened(source, keys, first, end, _common(keys, source.keys(first, end)))


def _common(ours: Sequence[str], theirs: Sequence[str]) -> list[Part]:
    ties: list[Part] = []
    i = j = 0
    while i < len(ours) and j < len(theirs):
        if not ours[i]:
            i += 1
        elif not theirs[j]:
            j += 1
        else:
            start, at = i, j
            here, there = len(ours[i]), len(theirs[j])
            i, j = i + 1, j + 1
            while here != there:
                if here < there:
                    here, i = here + len(ours[i]), i + 1
                else:
                    there, j = there + len(theirs[j]), j + 1
            ties.append((start, i, at, j))
    return ties


def _with_more(
    source: SourceText, keys: Sequence[str], places: Sequence[int], at: int, lowest: float
) -> Iterator[Window]:
    worded = [number for number, one in enumerate(keys) if one]
    if len(worded) < 2:
        return
    middle = worded.index(at)
    wanted = [keys[number] for number in worded]
    said = sum(map(len, wanted))
    for place in places:
        if source.key(place) != wanted[middle]:
            continue
        above = _walked(source, wanted[:middle][::-1], place, -1)
        below = _walked(source, wanted[middle + 1 :], place, 1)
        if above is None or below is None:
            continue
        lines = [*above[::-1], place, *below]
        between = [line for line in range(lines[0], lines[-1] + 1) if source.key(line)]
        more = sum(len(source.key(line)) for line in between) - said
        far = len(between) > len(lines) + 1 and 2 * said < lowest * (2 * said + more)
        if far or _heads(source, lines):
            continue
        # A line is tied only if a search from above and one from below find it.
        first, last = lines[0], lines[-1]
        down, up = [], []
        line = first
        for one in wanted:
            while line <= last and source.key(line) != one:
                line += 1
            down.append(line)
            line += 1
        line = last
        for one in reversed(wanted):
            while line >= first and source.key(line) != one:
                line -= 1
            up.append(line)
            line -= 1
        parts = [
            (number, number + 1, line - first, line - first + 1)
            for number, line, other in zip(worded, down, reversed(up), strict=True)
            if line == other
        ]
        yield _widened(source, keys, first, last + 1, parts, anchored=True)


def _walked(source: SourceText, wanted: Sequence[str], place: int, step: int) -> list[int] | None:
    found: list[int] = []
    for one in wanted:
        passed = 0
        place += step
        while 0 <= place < len(source.lines) and source.key(place) != one:
            passed += bool(source.key(place))
            if passed > LEFT_OUT:
                return None
            place += step
        if not 0 <= place < len(source.lines):
            return None
        found.append(place)
    return found


def _heads(source: SourceText, lines: Sequence[int]) -> bool:
    for before, after in itertools.pairwise(lines):
        depth = len(indent.of(source.lines[after]))
        for line in range(before + 1, after):
            bare = source.stripped[line]
            if not bare:
                continue
            here = len(indent.of(source.lines[line]))
            following = next((n for n in range(line + 1, after + 1) if source.stripped[n]), after)
            opens = len(indent.of(source.lines[following])) > here
            titled = bare.startswith(("[", "#", "=", "-")) and not source.stripped[line - 1]
            if here < depth or opens or titled or (bare[0] == "[" and bare[-1] == "]"):
                return True
    return False


def _widened(
    source: SourceText,
    keys: Sequence[str],
    first: int,
    end: int,
    ties: list[Part],
    *,
    anchored: bool = False,
) -> Window:
    above = next(number for number, one in enumerate(keys) if one)
    below = next(number for number, one in enumerate(reversed(keys)) if one)
    up = 0
    while up < above and first - up > 0 and not source.stripped[first - up - 1]:
        up += 1
    down = 0
    while down < below and end + down < len(source.lines) and not source.stripped[end + down]:
        down += 1
    parts = [
        *((above - up + n, above - up + n + 1, n, n + 1) for n in range(up)),
        *((start, stop, at + up, to + up) for start, stop, at, to in ties),
        *(
            (len(keys) - below + n, len(keys) - below + n + 1, end - first + up + n, end - first + up + n + 1)
            for n in range(down)
        ),
    ]
    return Window(first - up, end - first + up + down, tuple(parts), anchored)


def hint(source: SourceText, search: str) -> str:
    longest = max((line.strip() for line in search.split("\n")), key=len, default="")[:1000]
    if not longest or not source.lines:
        return "send it again with text that is in the file"
    from rapidfuzz import fuzz, process

    nearest = process.extractOne(longest, source.stripped, scorer=fuzz.ratio, score_cutoff=50)
    if nearest is None:
        return "nothing in the file is like it; look at the file again and resend the change"
    number = nearest[2]
    shown = lines_from(source, max(0, number - 1), min(len(source.lines), number + 2))
    return "copy it exactly from the file; the nearest lines are\n" + shown


def lines_from(source: SourceText, first: int, end: int) -> str:
    shown = range(first, min(end, first + _SHOWN))
    return "\n".join(f"{at + 1}: {source.lines[at][:_WIDEST]}" for at in shown)
