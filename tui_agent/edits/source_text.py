"""A file's text with cached indexes for many searches, including words independent of layout and with omitted
lines.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from itertools import accumulate, count, pairwise
from operator import add

from msgspec import Struct

from tui_agent.answers.values import EditHunk
from tui_agent.edits import indent
from tui_agent.edits.lines import BOM, plain

LOOK_ALIKES = str.maketrans(
    {
        **dict.fromkeys("\u2018\u2019\u201a\u201b\u2032\u02bc\uff07", "'"),
        **dict.fromkeys("\u201c\u201d\u201e\u201f\u2033\uff02", '"'),
        **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufe58\ufe63\uff0d", "-"),
        **dict.fromkeys(
            "\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a", " "
        ),
        **dict.fromkeys("\u202f\u205f\u3000", " "),
    }
)
_TOKEN = re.compile(
    r"""
    "(?:\\.|[^"\\])*" | '(?:\\.|[^'\\])*' | `(?:\\.|[^`\\])*`   # a string
  | [^\W\d]\w*(?:'(?:s|t|re|ve|ll|d|m)\b)?                      # a name or a word
  | \d(?:[\w.]*\w)?                                             # a number or a version
  | [^\s,;]                                                     # any other mark
    """,
    re.VERBOSE,
)
_LONGEST = 2000
_END = "\n"


def spans(line: str) -> list[tuple[int, int]]:
    """Returns words, strings and operators, without white space, commas and semicolons."""
    if len(line) > _LONGEST:
        bare = line.strip()
        at = line.find(bare)
        return [(at, at + len(bare))] if bare else []
    return [match.span() for match in _TOKEN.finditer(plain_marks(line))]


def key(line: str) -> str:
    """Returns equal keys for lines that differ only in layout, commas and quotes."""
    if len(line) > _LONGEST:
        bare = line.strip()
        return bare + _END if bare else ""
    words = []
    for word in _TOKEN.findall(plain_marks(line)):
        if word[0] in "\"'`":
            word = f"'{word[1:-1]}'" if len(word) > 1 else "'"
        words.append(word + _END)
    return "".join(words)


def plain_marks(text: str) -> str:
    return text if text.isascii() else text.translate(LOOK_ALIKES)


def cuts(text: str, at: int) -> bool:
    """Whether `at` is inside a word or number, in scripts that separate words."""
    if not 0 < at < len(text):
        return False
    before, after = text[at - 1], text[at]
    if _in_word(before) and _in_word(after):
        return True
    if after == "." and before.isdigit():
        return text[at + 1 : at + 2].isdigit()
    return before == "." and after.isdigit() and at > 1 and text[at - 2].isdigit()


def _in_word(char: str) -> bool:
    return char == "_" or (char.isalnum() and char < "\u0e00")


Form = Callable[[str], str]
#: Lines of a search text (from, to), and of the file.
Part = tuple[int, int, int, int]
MOST_PLACES = 1000
MOST_INDENTED = 500


def bare_end(line: str) -> str:
    return line.rstrip(" \t\f\v")


def normalized_letters(line: str) -> str:
    return bare_end(plain_marks(line))


class Span(Struct, frozen=True):
    """Offsets in `SourceText.text`, and the start's line."""

    start: int
    end: int
    line: int


class NormalizedText:
    """Each line normalised; offsets convert back to the original text."""

    def __init__(self, source: SourceText, form: Form) -> None:
        self._source = source
        self.lines = [form(line) for line in source.lines]
        self.text = "\n".join(self.lines) + "\n"
        self._starts = _starts(self.lines)

    def spans(self, wanted: str, at_line_end: bool, at_line_start: bool) -> list[Span]:
        found = []
        for start in every(self.text, wanted):
            first, column = self._place(start)
            last, end_column = self._place(start + len(wanted))
            ends = end_column == len(self.lines[last]) if last < len(self.lines) else True
            if at_line_end and not (ends or end_column == 0):
                continue
            if at_line_start and self.lines[first][:column].strip():
                continue
            source = self._source
            begin = source.starts[first] + column
            if last >= len(source.lines):
                found.append(Span(begin, len(source.text), first))
                continue
            whole = ends and end_column > 0
            end = source.starts[last] + (len(source.lines[last]) if whole else end_column)
            found.append(Span(begin, end, first))
        return found

    def _place(self, offset: int) -> tuple[int, int]:
        line = bisect_right(self._starts, offset) - 1
        return line, offset - self._starts[line]


class SourceText:
    """Text with line feeds, also at its end; `raw` is the original.

    The byte-order mark is separate. Derived data is cached: most changes have several edits.
    """

    def __init__(self, raw: str) -> None:
        self.raw = raw
        self.has_returns = "\r" in raw
        self.bom = BOM if raw.startswith(BOM) else ""
        text = plain(raw.removeprefix(BOM))
        self.ended = not text or text.endswith("\n")
        self.text = text if self.ended else text + "\n"
        self.lines = self.text.split("\n")[:-1] if self.text else []
        self.starts = _starts(self.lines)
        self._keys: dict[int, str] = {}

    def line_of(self, offset: int) -> int:
        return bisect_right(self.starts, offset) - 1

    def every(self, wanted: str, whole: bool = False) -> list[int]:
        parts = wanted.split("\n")
        lines = (parts[:-1] if len(parts) > 1 and not parts[-1] else parts) if whole else parts[1:-1]
        longest = max(lines, key=len, default="")
        if not longest:
            return every(self.text, wanted)
        before = sum(len(part) + 1 for part in parts[: parts.index(longest, not whole)])
        starts = (self.starts[number] - before for number in self.by_line.get(longest, ()))
        return [start for start in starts if start >= 0 and self.text.startswith(wanted, start)][:MOST_PLACES]

    @cached_property
    def by_line(self) -> dict[str, list[int]]:
        return _numbered(self.lines)

    @cached_property
    def without_trailing(self) -> NormalizedText:
        return NormalizedText(self, bare_end)

    @cached_property
    def looking_alike(self) -> NormalizedText:
        return NormalizedText(self, normalized_letters)

    @cached_property
    def stripped(self) -> list[str]:
        return [line.strip() for line in self.lines]

    @cached_property
    def level(self) -> int:
        return indent.unit(self.lines[:MOST_INDENTED])

    @cached_property
    def has_blanks_only(self) -> bool:
        return "\n\t" not in self.text and "\n  " in self.text and not self.text.startswith("\t")

    def key(self, number: int) -> str:
        found = self._keys.get(number)
        if found is None:
            found = self._keys[number] = key(self.lines[number])
        return found

    def keys(self, first: int, end: int) -> list[str]:
        return [self.key(number) for number in range(first, end)]

    def lines_with(self, word: str) -> list[int]:
        return list(dict.fromkeys(self.line_of(at) for at in every(self.text, word)))

    @cached_property
    def by_stripped(self) -> dict[str, list[int]]:
        return _numbered(self.stripped)


def _numbered(lines: list[str]) -> dict[str, list[int]]:
    result: dict[str, list[int]] = {}
    for number, line in enumerate(lines):
        result.setdefault(line, []).append(number)
    return result


def _starts(lines: list[str]) -> list[int]:
    return [0, *map(add, accumulate(map(len, lines)), count(1))]


def every(text: str, wanted: str) -> list[int]:
    """Returns up to `MOST_PLACES` offsets; matches may overlap."""
    found: list[int] = []
    at = text.find(wanted)
    while at >= 0 and len(found) < MOST_PLACES:
        found.append(at)
        at = text.find(wanted, at + 1)
    return found


class Match(Struct, frozen=True):
    """Lines `first` to `end`. `span` is the exact range unless the match consists of whole lines; `ties` pair
    lines of the search with the file's. `hunk` is the edit without copied line numbers."""

    rung: str
    first: int
    end: int
    hunk: EditHunk
    span: Span | None = None
    ties: tuple[Part, ...] = ()


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
    for before, after in pairwise(lines):
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
