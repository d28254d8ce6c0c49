"""Applies a request of any edit form to a text."""

from __future__ import annotations

import re
from bisect import bisect_right, insort
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from operator import attrgetter

from msgspec import Struct
from msgspec.structs import replace as with_

from tui_agent.answers.placeholders import placeholder
from tui_agent.answers.values import ChangeRequest, EditHunk
from tui_agent.edits import indent, locate, preconditions
from tui_agent.edits.change import ChangeKind
from tui_agent.edits.lines import BOM, ended_like, plain
from tui_agent.edits.locate import Replacement, lowest
from tui_agent.edits.merge import merge
from tui_agent.edits.source_text import FEWEST, Match, SourceText
from tui_agent.errors import Ambiguous, EditFailed

MOST_HUNKS = 10_000
#: Product of edits and characters: each edit may scan the whole file.
_MOST_LOOKED_THROUGH = 5_000_000_000
_start, _span = attrgetter("start"), attrgetter("start", "end")


def place(base: str, hunks: Sequence[EditHunk], in_order: bool, threshold: float) -> tuple[str, str]:
    """Returns the text with all hunks, and the lowest rung in use.

    With `in_order` the hunks follow each other in the file. Otherwise each is located in the original
    file or, failing that, in the text written by earlier edits. Raises `EditFailed` or `Ambiguous`.
    """
    if len(hunks) > MOST_HUNKS:
        raise EditFailed(
            f"the change has {len(hunks):,} hunks", f"send at most {MOST_HUNKS:,}, or the whole file"
        )
    if not in_order and len(hunks) * len(base) > _MOST_LOOKED_THROUGH:
        raise EditFailed(
            f"{len(hunks):,} edits are too many for so long a file", "send a diff, or the whole file"
        )
    name = "hunk {} of the diff" if in_order else "the search text of edit {}"
    hunks = [with_(hunk, name=name.format(number)) for number, hunk in enumerate(hunks, 1)]
    source = SourceText(base)
    final_newline = None
    if in_order:
        places = [_fits(source, hunk, threshold) for hunk in hunks if hunk.old != hunk.new]
        made = sorted(_chosen(places), key=_span)
        if any(one.end > other.start for one, other in pairwise(made)):
            raise EditFailed("two hunks of the diff change the same lines", "send them as one hunk")
        rung = lowest(*(one.rung for one in made))
        final_newline = next(
            (hunk.final_newline for hunk in reversed(hunks) if hunk.final_newline is not None), None
        )
    else:
        source, made, rung = _one_by_one(source, hunks, threshold)
    text = _finished(source, made, final_newline)
    return text[: len(source.bom)] + ended_like(base.removeprefix("\ufeff"), text[len(source.bom) :]), rung


def _finished(source: SourceText, made: Sequence[Replacement], final_newline: bool | None = None) -> str:
    parts: list[str] = [source.bom]
    at = 0
    for one in sorted(made, key=_span):
        parts.extend((source.text[at : one.start], one.text))
        at = one.end
    text = "".join((*parts, source.text[at:]))
    ended = source.ended if final_newline is None else final_newline
    if not ended and text.endswith("\n"):
        return text[:-1]
    if ended and source.text and text[len(source.bom) :] and not text.endswith("\n"):
        return text + "\n"
    return text


def _one_by_one(
    source: SourceText, hunks: Sequence[EditHunk], threshold: float
) -> tuple[SourceText, list[Replacement], str]:
    made: list[Replacement] = []
    rung = ""
    repeats = Counter((hunk.old, hunk.new) for hunk in hunks)
    for hunk in hunks:
        times = repeats.pop((hunk.old, hunk.new), 0)
        if not times or hunk.old == hunk.new:
            continue
        if not hunk.old:
            raise EditFailed(f"{hunk.name} is empty", "copy the text that should change from the file")
        try:
            matches = locate.matches_of_best_rung(source, hunk, threshold)
        except EditFailed:
            if not made:
                raise
            matches = []
        if matches:
            if len(matches) != times:
                matches = [locate.only(hunk, matches)]
            here = [locate.placed(source, match) for match in matches]
            for one in here:
                after = bisect_right(made, one.start, key=_start)
                touches_above = after > 0 and made[after - 1].end > one.start
                if touches_above or (after < len(made) and made[after].start < one.end):
                    raise EditFailed(
                        f"{hunk.name} is of lines that an edit before it changes in another way",
                        "send one edit of that place",
                    )
        else:
            written: list[tuple[int, int]] = []
            moved = 0
            for one in sorted(made, key=_span):
                written.append((one.start + moved, one.start + moved + len(one.text)))
                moved += len(one.text) - (one.end - one.start)
            source, made = SourceText(_finished(source, made)), []
            one = locate.locate(source, hunk, threshold)
            if not any(one.start <= end and start <= one.end for start, end in written):
                raise Ambiguous(
                    f"{hunk.name} overlaps with an edit before it, and is in line {one.line + 1} too",
                    "send the two as one edit",
                )
            here = [one]
        for one in here:
            insort(made, one, key=_start)
        rung = lowest(rung, *(one.rung for one in here))
    return source, made, rung


class _Candidates(Struct, frozen=True):
    source: SourceText
    hunk: EditHunk
    found: tuple[Match | Replacement, ...]

    def extent(self, one: Match | Replacement) -> tuple[int, int]:
        """Excludes context, which hunks may share."""
        if isinstance(one, Replacement):
            return one.line, one.line
        lead, tail = self.hunk.context
        start = one.first + lead
        return start, max(start, one.end - tail)

    def placed(self, one: Match | Replacement) -> Replacement:
        return one if isinstance(one, Replacement) else locate.placed(self.source, one)


def _chosen(places: Sequence[_Candidates]) -> Iterator[Replacement]:
    """Yields one place per hunk, in order. If several remain, the header's line number decides."""
    if all(len(fits.found) == 1 for fits in places):
        yield from (fits.placed(fits.found[0]) for fits in places)
        return
    extents = [[fits.extent(one) for one in fits.found] for fits in places]
    lows: list[tuple[int, int]] = []
    low = (-1, 0)
    for fits, mine in zip(places, extents, strict=True):
        below = [here for here in mine if here[0] >= low[1] and here != low]
        if not below:
            raise _out_of_order(fits.hunk)
        low = min(below)
        lows.append(low)
    highs: list[tuple[int, int]] = []
    high = (len(places[0].source.lines) + 1,) * 2
    for fits, mine in zip(reversed(places), reversed(extents), strict=True):
        above = [here for here in mine if here[1] <= high[0] and here != high]
        if not above:
            raise _out_of_order(fits.hunk)
        high = max(above)
        highs.append(high)
    least = (-1, 0)
    for fits, low, high in zip(places, lows, reversed(highs), strict=True):
        left = [
            one
            for one in fits.found
            if low <= (here := fits.extent(one)) <= high and here[0] >= least[1] and here != least
        ]
        told = [one for one in left if isinstance(one, Match) and one.first == fits.hunk.line]
        if len(told) == 1:
            one = told[0]
        else:
            several = [one for one in left if isinstance(one, Match)]
            one = locate.only(several[0].hunk, several) if several else left[0]
        least = fits.extent(one)
        yield fits.placed(one)


def _out_of_order(hunk: EditHunk) -> EditFailed:
    return EditFailed(
        f"{hunk.name} is elsewhere than the order of the hunks says",
        "send the hunks in the order of the file, with more of the lines around each",
    )


def _fits(source: SourceText, hunk: EditHunk, threshold: float) -> _Candidates:
    if not hunk.old:
        # A hunk without old lines needs an anchor, the end of the file, or an empty file.
        if hunk.ends_file or not source.text:
            start, line = len(source.text), len(source.lines)
        else:
            scope = _block(source, hunk.anchors) if hunk.anchors else None
            if scope is None or hunk.line is not None:
                raise EditFailed(
                    f"{hunk.name} only adds lines and does not say where",
                    "give it some of the lines around as context",
                )
            start, line = source.starts[scope[0]], scope[0]
            if source.text.startswith(hunk.new, start):
                raise preconditions.already_done_reason(hunk, line)
        return _Candidates(source, hunk, (Replacement(start, start, line, hunk.new, "exact"),))
    try:
        matches = locate.matches_of_best_rung(source, hunk, threshold)
    except EditFailed:
        matches = _unmarked(source, hunk)
        if not matches:
            raise
    else:
        unmarked = [] if matches[0].rung in ("exact", "line-endings") else _unmarked(source, hunk)
        told = [one.first for one in matches if one.first == hunk.line]
        vague = hunk.line is None and sum(map(str.isalnum, hunk.old)) < FEWEST
        if unmarked and not vague and (not told or any(one.first == hunk.line for one in unmarked)):
            matches = unmarked
    preconditions.check_announced(source, hunk, matches)
    if hunk.ends_file:
        preconditions.check_undone_at_end(source, hunk, matches)
        matches = [match for match in matches if match.end == len(source.lines)] or matches
    if hunk.anchors:
        matches = _below_anchors(source, hunk, matches)
    return _Candidates(source, hunk, tuple(matches))


def _unmarked(source: SourceText, hunk: EditHunk) -> list[Match]:
    """Exact matches of a hunk whose context lines lack the leading blank."""
    context = [mark == " " for mark in hunk.marks if mark != "+"]
    old, new = hunk.old.split("\n")[:-1], hunk.new.split("\n")[:-1]
    if not any(context):
        return []
    found: list[Match] = []
    for match in locate.in_any_indentation(source, hunk):
        lines = source.lines[match.first : match.end]
        pairs = zip(old, lines, context, strict=True)
        if old != lines and all(
            text == line or (free and text.strip() and " " + text == line) for text, line, free in pairs
        ):
            kept = iter([line for line, free in zip(lines, context, strict=True) if free])
            added = iter(zip(new, [mark == "+" for mark in hunk.marks if mark != "-"], strict=True))
            text = "".join((line if fresh else next(kept)) + "\n" for line, fresh in added)
            wanted = with_(hunk, old="".join(line + "\n" for line in lines), new=text)
            found.append(with_(match, hunk=wanted))
    return found


def _below_anchors(source: SourceText, hunk: EditHunk, matches: list[Match]) -> list[Match]:
    scope = _block(source, hunk.anchors)
    if scope is None:
        first = 0
        for anchor in hunk.anchors:
            line = next((line for line in source.by_stripped.get(anchor, ()) if line >= first), None)
            if line is None:
                raise EditFailed(
                    f"{hunk.name} is said to be below `{hunk.anchors[-1][:80]}`, which is not in the file",
                    "copy the line after `@@` from the file, or leave it out",
                )
            first = line + 1
        found = [match for match in matches if match.end > first]
    else:
        below = [match for match in matches if match.end > scope[0]]
        found = [match for match in below if match.first < scope[1]]
        if not found:
            preconditions.check_undone_within(source, hunk, scope)
            found = below
    if not found:
        raise EditFailed(
            f"{hunk.name} is not below `{hunk.anchors[-1][:80]}`",
            "copy the line after `@@` from the file, or leave it out",
        )
    return found


def _block(source: SourceText, anchors: Sequence[str]) -> tuple[int, int] | None:
    """Returns the more deeply indented lines below the last anchor; `None` unless each anchor is unique."""
    least = 0
    for anchor in anchors:
        lines = [line for line in source.by_stripped.get(anchor, ()) if line >= least]
        if len(lines) != 1:
            return None
        least = lines[0] + 1
    depth = len(indent.of(source.lines[least - 1]))
    end = least
    while end < len(source.lines) and (not source.stripped[end] or len(indent.of(source.lines[end])) > depth):
        end += 1
    return least, end


_LONGEST = 200
_MARKER = re.compile(
    r"(?:<{5,9} ?(?:SEARCH|ORIGINAL)|>{5,9} ?(?:REPLACE|UPDATED)|-{5,9} ?SEARCH|\+{5,9} ?REPLACE"
    r"|\*\*\* (?:(?:Begin|End) Patch|(?:Add|Update|Delete) File: ))\b"
)


def leftover_marker(base: str, new: str) -> str:
    """Returns the first new line with a marker of an edit form or of a complete merge conflict, or ""."""
    if not any(sign in new for sign in ("<<<<<", ">>>>>", "----- SEARCH", "+++++ REPLACE", "*** ")):
        return ""
    own = set(base.splitlines())
    opened = ""
    divided = False
    for line in new.splitlines():
        if line[:1] not in ("<", "=", ">", "-", "+", "*") or line in own:
            continue
        if _MARKER.match(line):
            return line.rstrip()[:_LONGEST]
        if line.startswith("<<<<<<< "):
            opened, divided = line, False
        elif line.rstrip() == "=======":
            divided = True
        elif line.startswith(">>>>>>> ") and opened and divided:
            return opened.rstrip()[:_LONGEST]
    return ""


#: Disables fuzzy matching: above all scores.
NEVER_NEAR = 2.0


class Proposal(Struct, frozen=True):
    """`new_text` is `None` for deletions and pure renames. `rung` is the lowest step in use, or ""."""

    kind: ChangeKind
    new_text: str | None = None
    rename_to: str = ""
    rung: str = ""


def propose(request: ChangeRequest, base: str | None, near_threshold: float = 0.9) -> Proposal:
    """`base` is `None` for a missing file. Raises `EditFailed` or `Ambiguous`."""
    if base is None and (request.delete or request.rename_to):
        raise EditFailed(f"{request.path} does not exist", "name a file that does")
    if request.delete:
        there = {line.strip() for line in (base or "").splitlines()}
        shown = {line.strip() for hunk in request.diff for line in hunk.old.split("\n")} - {""}
        if shown - there:
            raise EditFailed(
                f"the diff that removes {request.path} shows lines that the file does not have",
                "look at the file as it is now, and send `delete`",
            )
        return Proposal("delete")
    text, rung = _text(request, base, near_threshold)
    # Each further step is located in the original file and merged with earlier ones or, failing that, located
    # in their result.
    original = base if request.content is None else text
    for step in request.then:
        try:
            own, needed = _text(step, original, NEVER_NEAR)
        except Ambiguous:
            raise
        except EditFailed:
            text, needed = _text(step, text, NEVER_NEAR)
        else:
            merged = merge(original or "", text or "", own or "")
            if merged.conflicts:
                raise EditFailed(
                    f"two changes of {request.path} in one answer change the same lines",
                    "send one change of that place",
                )
            text = merged.text
        rung = lowest(rung, needed)
    if text is None and request.executable is not None:
        text = base
    if text is None and not request.rename_to:
        raise EditFailed(f"the change of {request.path} is empty", "say what should become of the file")
    if text is not None and (remark := placeholder(request.path, base, text)):
        raise EditFailed(
            f"the new text of {request.path} leaves something out (`{remark}`)",
            "send the whole text, or edits of the places that change",
        )
    kind: ChangeKind = "create" if base is None else "rename" if request.rename_to else "edit"
    return Proposal(kind, text, request.rename_to or "", rung)


def _text(request: ChangeRequest, base: str | None, threshold: float) -> tuple[str | None, str]:
    if request.content is not None:
        return whole(request.content, base), ""
    diff, edits = request.diff, request.edits
    if not diff and not edits:
        return None, ""
    if base is None and diff and not any(hunk.old for hunk in diff):
        text = "".join(hunk.new for hunk in diff)
        return (text[:-1] if diff[-1].final_newline is False else text), ""
    if not (base or "").strip() and len(edits) == 1 and not edits[0].old.strip():
        return whole(edits[0].new, base), ""
    if base is None:
        raise EditFailed(
            f"{request.path} does not exist, so there is nothing to search in", "send its whole content"
        )
    return place(base, diff or edits, bool(diff), threshold)


def whole(content: str, base: str | None) -> str:
    """Applies the line endings, byte-order mark and final newline of `base`."""
    text = plain(content)
    if base is None:
        return content
    source = SourceText(base)
    text = text.removeprefix(BOM)
    if source.text and text:
        if source.ended and not text.endswith("\n"):
            text += "\n"
        elif not source.ended and text.endswith("\n") and text != source.text:
            text = text[:-1]
    return source.bom + ended_like(base.removeprefix(BOM), text)
