"""The ladder: where in a file a piece of text is meant to be, from exact to near; never a guess between two."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from msgspec import Struct

from tui_agent.edits import indent, near
from tui_agent.edits.align import matches
from tui_agent.edits.graft import grafted
from tui_agent.edits.ground import Ground, Span, bare_end, look_alike
from tui_agent.edits.lines import plain
from tui_agent.errors import Ambiguous, EditFailed

#: The rungs in the order in which they are tried; a change is named after the lowest that it needed.
RUNGS = (
    "exact",
    "line-endings",
    "trailing-space",
    "line-numbers",
    "indentation",
    "look-alikes",
    "anchored",
    "near",
)

_NUMBERED = re.compile(r" {0,6}(\d{1,7})(?::(?: |$)|\t| \| ?)")


class Place(Struct, frozen=True):
    """Where an edit goes: `text` takes the place of what stands between the offsets in `Ground.text`."""

    start: int
    end: int
    line: int
    text: str
    rung: str


class Wanted(Struct, frozen=True):
    """A piece of text to find, and what replaces it. `name` says in errors what it is.

    `line` (from 0) is where its writer says that it stands; it decides only between equal places. Only places
    from `after` on count. `threshold` is the floor for a near match, from 0 to 1; over 1 there is none.
    """

    search: str
    replace: str
    name: str
    threshold: float = 0.9
    line: int | None = None
    after: int = 0


_Rung = Callable[[Ground, "Wanted"], Iterator[Place]]


def lower(first: str, second: str) -> str:
    """Of two rungs the one that is further from exact; an empty one is above all."""
    return max(first, second, key=lambda rung: RUNGS.index(rung) if rung else -1)


def locate(ground: Ground, wanted: Wanted) -> Place:
    """The one place. Raises `Ambiguous` where there are two, `EditFailed` where there is none."""
    for rung in _LADDER:
        found = [place for place in rung(ground, _plain(wanted)) if place.start >= wanted.after]
        if found:
            return _named(ground, wanted, _only(wanted, found))
    raise EditFailed(f"{wanted.name} is not in the file", near.hint(ground, wanted.search))


def places(ground: Ground, wanted: Wanted) -> list[Place]:
    """Every place on the first rung that has any, but for a near one."""
    for rung in _LADDER[:-1]:
        found = list(rung(ground, _plain(wanted)))
        if found:
            return [_named(ground, wanted, place) for place in found]
    return []


def _plain(wanted: Wanted) -> Wanted:
    """With line feeds alone; `\\r` outside a line ending stays."""
    search, replacement = plain(wanted.search), plain(wanted.replace)
    return Wanted(search, replacement, wanted.name, wanted.threshold, wanted.line, wanted.after)


def _named(ground: Ground, wanted: Wanted, place: Place) -> Place:
    """Exact is only what stands in the file byte for byte."""
    if place.rung != "exact" or wanted.search in ground.raw:
        return place
    return _renamed(place, "line-endings")


def _only(wanted: Wanted, found: list[Place]) -> Place:
    if len(found) == 1:
        return found[0]
    told = [place for place in found if place.line == wanted.line]
    if len(told) == 1:
        return told[0]
    numbers = [str(place.line + 1) for place in found[:4]]
    more = f" and {len(found) - 4} more" if len(found) > 4 else ""
    where = f"{', '.join(numbers[:-1])} and {numbers[-1]}" if not more else ", ".join(numbers) + more
    raise Ambiguous(
        f"{wanted.name} stands at {len(found)} places, in lines {where}",
        "take more of the lines around it into the search text, so that it stands only once",
    )


def _exact(ground: Ground, wanted: Wanted) -> Iterator[Place]:
    if not wanted.search:
        return
    for start in ground.every(wanted.search):
        span = Span(start, start + len(wanted.search), ground.line_of(start))
        yield _place(ground, span, wanted.search, wanted.replace, "exact")


def _trailing_space(ground: Ground, wanted: Wanted) -> Iterator[Place]:
    search = _formed(wanted.search, bare_end)
    if search.strip():
        changed = not search.endswith("\n")
        for span in ground.without_trailing.spans(search, changed and search != wanted.search, True):
            yield _place(ground, span, wanted.search, wanted.replace, "trailing-space", carry=True)


def _line_numbers(ground: Ground, wanted: Wanted) -> Iterator[Place]:
    """`12: text` as it was shown, copied with the number; the number then also tells between equal places."""
    searched = _unnumbered(wanted.search)
    replaced = _unnumbered(wanted.replace)
    if searched is None or replaced is None:
        if searched is None or _has_numbers(wanted.replace):
            return
        replaced = (wanted.replace, 0)
    bare = Wanted(searched[0], replaced[0], wanted.name, wanted.threshold, searched[1] - 1, wanted.after)
    for rung in (_exact, _trailing_space):
        found = list(rung(ground, bare))
        if found:
            told = [place for place in found if place.line == bare.line]
            yield from (_renamed(place, "line-numbers") for place in (told or found))
            return


def _renamed(place: Place, rung: str) -> Place:
    return Place(place.start, place.end, place.line, place.text, rung)


def _indentation(ground: Ground, wanted: Wanted) -> Iterator[Place]:
    lines, _ = _whole_lines(wanted.search)
    for first in _windows(ground, lines):
        known = indent.mapping(lines, ground.lines[first : first + len(lines)])
        replaced, _ = _whole_lines(wanted.replace)
        text = None if known is None else indent.reindented(replaced, known)
        if text is not None:
            kept = _carried(lines, ground.lines[first : first + len(lines)], replaced, text)
            yield _in_window(ground, wanted, first, len(lines), kept, "indentation")


def _in_window(
    ground: Ground, wanted: Wanted, first: int, count: int, text: Sequence[str], rung: str
) -> Place:
    """So many whole lines from `first` on give way to `text`."""
    _, ended = _whole_lines(wanted.search)
    _, replaced_ended = _whole_lines(wanted.replace)
    span = ground.span_of_lines(first, count)
    end = span.end + (1 if ended and not text else 0)
    more = "\n" if replaced_ended and not ended else ""
    return Place(span.start, end, first, "\n".join(text) + more, rung)


def _windows(ground: Ground, lines: list[str]) -> Iterator[int]:
    """First lines of the windows whose lines are these but for the space around them."""
    bare = [line.strip() for line in lines]
    anchor = max(range(len(bare)), key=lambda number: len(bare[number]), default=-1)
    if anchor < 0 or not bare[anchor]:
        return
    for number in ground.by_stripped.get(bare[anchor], ()):
        first = number - anchor
        if first >= 0 and ground.stripped[first : first + len(bare)] == bare:
            yield first


def _look_alikes(ground: Ground, wanted: Wanted) -> Iterator[Place]:
    search = _formed(wanted.search, look_alike)
    if search.strip():
        open_end = not search.endswith("\n") and len(search) != len(wanted.search)
        for span in ground.looking_alike.spans(search, open_end, open_end):
            yield _place(ground, span, wanted.search, wanted.replace, "look-alikes", carry=True)


def _near(ground: Ground, wanted: Wanted) -> Iterator[Place]:
    lines, _ = _whole_lines(wanted.search)
    found = near.window(ground, lines, wanted.threshold) if wanted.threshold <= 1 else None
    if found is None:
        return
    replaced, _ = _whole_lines(wanted.replace)
    text = grafted(
        lines, ground.lines[found.first : found.end], replaced, near.anchored_floor(wanted.threshold)
    )
    if text is not None:
        rung = "anchored" if found.anchored else "near"
        yield _in_window(ground, wanted, found.first, found.count, text, rung)


_LADDER: tuple[_Rung, ...] = (_exact, _trailing_space, _line_numbers, _indentation, _look_alikes, _near)


def _formed(text: str, form: Callable[[str], str]) -> str:
    return "\n".join(form(line) for line in text.split("\n"))


def _whole_lines(text: str) -> tuple[list[str], bool]:
    """The lines, and whether the last one was ended; the empty text has none."""
    ended = text.endswith("\n")
    lines = text.split("\n") if text else []
    return (lines[:-1] if ended else lines), ended


def _place(
    ground: Ground, span: Span, searched: str, replacement: str, rung: str, carry: bool = False
) -> Place:
    """The place with what goes there. Lines that were searched for whole are not glued to what follows them."""
    if carry and replacement:
        replaced = replacement.split("\n")
        found = ground.text[span.start : span.end].split("\n")
        replacement = "\n".join(_carried(searched.split("\n"), found, replaced, replaced))
    begins_line = not ground.text[ground.starts[span.line] : span.start].strip()
    if searched.endswith("\n") and replacement and not replacement.endswith("\n") and begins_line:
        replacement += "\n"
    return Place(span.start, span.end, span.line, replacement, rung)


def _carried(
    search: Sequence[str], found: Sequence[str], replaced: Sequence[str], text: Sequence[str]
) -> list[str]:
    """`text`, with each line that the edit does not change as the file has it.

    Those are the lines that `search` and `replaced` share as they were written; `text` are the lines of
    `replaced` as they would go in.
    """
    result = list(text)
    if len(search) != len(found):
        return result
    for start, at, length in matches(
        [bare_end(line) for line in search], [bare_end(line) for line in replaced]
    ):
        result[at : at + length] = found[start : start + length]
    return result


def _has_numbers(text: str) -> bool:
    return any(_NUMBERED.match(line) for line in text.split("\n"))


def _unnumbered(text: str) -> tuple[str, int] | None:
    """The text without line numbers and the first number, or None unless every line has one, rising."""
    if not text:
        return "", 0
    lines, ended = _whole_lines(text)
    result: list[str] = []
    numbers: list[int] = []
    for line in lines:
        match = _NUMBERED.match(line)
        if match is None:
            if line.strip():
                return None
            result.append(line)
            continue
        numbers.append(int(match[1]))
        result.append(line[match.end() :])
    if not numbers or numbers != sorted(numbers):
        return None
    return "\n".join(result) + ("\n" if ended else ""), numbers[0]
