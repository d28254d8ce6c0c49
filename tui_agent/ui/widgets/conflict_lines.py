"""A conflict laid out in lines to show: what agrees around each place, and its three sides under their names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal, NamedTuple

from tui_agent.edits.conflicts import ConflictView, Region

CONTEXT = 3
Part = Literal["same", "fold", "head", "base", "yours", "theirs"]
_NAMES: dict[Part, str] = {
    "base": "base: what the model saw",
    "yours": "yours: the file as it is now",
    "theirs": "theirs: what was proposed",
}
_PARTS: tuple[Part, ...] = ("base", "yours", "theirs")


class ConflictLine(NamedTuple):
    """One line on the screen. `place` is the place it belongs to, from 0, or -1; `side` that of a heading."""

    part: Part
    text: str
    place: int = -1
    side: str = ""


def conflict_lines(view: ConflictView, chosen: Mapping[int, str]) -> list[ConflictLine]:
    """All lines in order; `chosen` is what was decided for each place so far, `by hand` included."""
    lines: list[ConflictLine] = []
    place = -1
    for number, region in enumerate(view.regions):
        if not region.conflict:
            lines += _agreed(region, first=number == 0, last=number == len(view.regions) - 1)
            continue
        place += 1
        lines += _place(view, region, place, chosen.get(place, ""))
    return lines


def first_line(lines: list[ConflictLine], place: int) -> int:
    """Where a place begins."""
    return next((at for at, line in enumerate(lines) if line.place == place), 0)


def _agreed(region: Region, *, first: bool, last: bool) -> Iterator[ConflictLine]:
    texts = region.agreed
    head = 0 if first else CONTEXT
    tail = 0 if last else CONTEXT
    if len(texts) <= head + tail + 1:
        yield from (ConflictLine("same", text) for text in texts)
        return
    yield from (ConflictLine("same", text) for text in texts[:head])
    yield ConflictLine("fold", f"{len(texts) - head - tail} lines on which both agree")
    yield from (ConflictLine("same", text) for text in texts[len(texts) - tail :])


def _place(view: ConflictView, region: Region, place: int, chosen: str) -> Iterator[ConflictLine]:
    gone = {"yours": view.yours_gone, "theirs": view.theirs_gone}
    for part in _PARTS:
        name = f"{_name(view, part)}{' (no such file)' if gone.get(part) else ''}"
        mark = "✓ " if chosen in (part, "both") and part != "base" else ""
        hand = "  ✓ by hand" if chosen == "by hand" and part == "theirs" else ""
        yield ConflictLine("head", f"{mark}{name}{hand}", place, part)
        yield from (ConflictLine(part, text, place) for text in getattr(region, part))


def _name(view: ConflictView, part: Part) -> str:
    """What a side is called: whose work it is, where two sub-tasks disagree."""
    if view.yours_name == "yours":
        return _NAMES[part]
    match part:
        case "yours":
            return f"yours: what {view.yours_name} made of it"
        case "theirs":
            return f"theirs: what {view.theirs_name} made of it"
        case _:
            return "base: what both began with"
