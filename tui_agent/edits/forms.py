"""What a model wrote, in any of its forms, and the text it starts from: what the file would become."""

from __future__ import annotations

import re
from bisect import bisect_right, insort
from collections.abc import Sequence

from msgspec import Struct

from tui_agent.answers import patches
from tui_agent.answers.values import ChangeRequest, SearchReplace
from tui_agent.edits import patch
from tui_agent.edits.change import ChangeKind
from tui_agent.edits.lines import BOM, ended_like, plain
from tui_agent.edits.locate import Replacement, found, locate, lower, only, placed
from tui_agent.edits.merge import merge
from tui_agent.edits.source import Edit, SourceText
from tui_agent.errors import Ambiguous, EditFailed

_LEADER = r"(?:#+|//+|/\*+|\*|<!--|--+|;+|%+|\{/\*|\"\"\"|'''|\(\*|REM\b)"
_LEFT_OUT = (
    r"(?:rest|remain(?:ing|der)|existing|unchanged|same|previous|other|omitted|as before|keep|snip|truncated)"
)
_DOTS = r"(?:\.{3,}|…)"
_REMARK = re.compile(
    rf"{_LEADER}\s*\W*(?:{_DOTS}.*\b{_LEFT_OUT}\b.*|.*\b{_LEFT_OUT}\b.*{_DOTS}.*"
    rf"|(?:the\s+)?(?:rest|remaining|remainder|other|existing|previous)\b.*\b"
    rf"(?:unchanged|same|as before|omitted|stays?|here|goes here|remains?)\b.*|{_DOTS}\s*(?:\*/|-->|\*/\}}|\*\))?)",
    re.IGNORECASE,
)
_BARE = re.compile(
    rf"[\[(<{{]?\s*{_DOTS}\s*.*\b{_LEFT_OUT}\b.*|{_DOTS}\s*(?:rest|existing)\b.*", re.IGNORECASE
)
_LONGEST = 200
_MARKER = re.compile(
    r"(?:<{5,9} ?(?:SEARCH|ORIGINAL)|>{5,9} ?(?:REPLACE|UPDATED)|-{5,9} ?SEARCH|\+{5,9} ?REPLACE"
    r"|\*\*\* (?:(?:Begin|End) Patch|(?:Add|Update|Delete) File: ))\b"
)


def elision(base: str, new: str) -> str:
    """The first line of `new` that says that something was left out and is not in `base`, or nothing."""
    if not base.strip():
        return ""
    there, lines = base.splitlines(), new.splitlines()
    fresh = set(lines).difference(there)
    found = [bare for line in lines if line in fresh and _leaves_out(bare := line.strip())]
    own = {line.strip() for line in there} if found else ()
    return next((bare for bare in found if bare not in own), "")


def _leaves_out(bare: str) -> bool:
    return 3 <= len(bare) <= _LONGEST and bool(_REMARK.fullmatch(bare) or _BARE.fullmatch(bare))


def leftover(base: str, new: str) -> str:
    """The first line of `new`, not in `base`, that is the marker of an edit form, or that opens a whole conflict."""
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


#: A floor above every score: nothing is near enough.
NEVER_NEAR = 2.0
#: More edits, or hunks, of one file take too long to be found one by one.
MOST_EDITS = 10_000


class Proposal(Struct, frozen=True):
    """What a request comes to. `new_text` is None for a file that goes, or that only moves.

    `rung` is the lowest step of the ladder that was needed, empty where nothing had to be found.
    """

    kind: ChangeKind
    new_text: str | None = None
    rename_to: str = ""
    rung: str = ""


def propose(request: ChangeRequest, base: str | None, near_threshold: float = 0.9) -> Proposal:
    """The new text of a request against `base`, None for a file that does not exist.

    The file's line endings, byte-order mark and final newline stay. Raises `EditFailed`, or `Ambiguous`.
    """
    rename = request.rename_to or ""
    if base is None and (request.delete or rename):
        raise EditFailed(f"{request.path} does not exist", "name a file that does")
    if request.delete:
        return Proposal("delete")
    text, rung = _text(request, base, near_threshold)
    text, rung = _further(request, base, text, rung)
    if text is None and not rename:
        raise EditFailed(f"the change of {request.path} is empty", "say what should become of the file")
    if base is not None and text is not None:
        _refuse_elision(request.path, base, text)
    kind: ChangeKind = "create" if base is None else "rename" if rename else "edit"
    return Proposal(kind, text, rename, rung)


def _text(request: ChangeRequest, base: str | None, threshold: float) -> tuple[str | None, str]:
    if request.content is not None:
        return whole(request.content, base), ""
    if request.edits:
        return edited(request.edits, base, request.path, threshold, request.fenced)
    if request.diff is not None:
        return patched(request.diff, base, request.path, threshold)
    return None, ""


def _further(request: ChangeRequest, base: str | None, text: str | None, rung: str) -> tuple[str | None, str]:
    """The text after the further steps of a request, and the lowest rung that was needed.

    Each is looked for in the file as it was and merged with what the steps before it made; one that is not
    there, in what they made. A place that is only near is none here.
    """
    if request.content is not None:
        base = text
    for step in request.then:
        try:
            own, needed = _text(step, base, NEVER_NEAR)
        except Ambiguous:
            raise
        except EditFailed:
            text, needed = _text(step, text, NEVER_NEAR)
        else:
            text = _merged(request.path, base, text, own)
        rung = lower(rung, needed)
    return text, rung


def _merged(path: str, base: str | None, one: str | None, other: str | None) -> str | None:
    merged = merge(base or "", one or "", other or "")
    if merged.conflicts:
        raise EditFailed(
            f"two changes of {path} in one answer change the same lines",
            "send one change of that place",
        )
    return merged.text


def _refuse_elision(path: str, base: str, text: str) -> None:
    remark = elision(base, text)
    if remark:
        raise EditFailed(
            f"the new text of {path} leaves something out (`{remark}`)",
            "send the whole text, or edits of the places that change",
        )


def whole(content: str, base: str | None) -> str:
    """New content in the manner of the file it replaces."""
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


def edited(
    edits: Sequence[SearchReplace], base: str | None, path: str, threshold: float, whole_lines: bool = False
) -> tuple[str, str]:
    """The text after all search/replace edits, and the lowest rung that one of them needed.

    All are looked for in the file as it was; one that is not there may be in what an earlier one wrote.
    """
    if not (base or "").strip() and len(edits) == 1 and not edits[0].search.strip():
        return whole(edits[0].replace, base), ""
    if base is None:
        raise EditFailed(f"{path} does not exist, so there is nothing to search in", "send its whole content")
    _refuse_too_many(len(edits), "edits", path)
    source = SourceText(base)
    made: list[Replacement] = []
    rung = ""
    for number, edit in _distinct(edits):
        name = f"the search text of edit {number + 1}"
        if not edit.search:
            raise EditFailed(f"{name} is empty", f"copy the text that should change from {path}")
        wanted = Edit(edit.search, edit.replace, name, threshold, whole_lines)
        repeats = edits.count(edit) if len(edits) < 1000 else 1
        here = _places(source, wanted, repeats, made)
        if here is None:
            written = _written(made)
            source, made = SourceText(_finished(source, made)), []
            here = [_in_written(source, wanted, written)]
        for place in here:
            insort(made, place, key=_start)
        rung = lower(rung, here[0].rung)
    return _like_base(base, source, made), rung


def _refuse_too_many(count: int, what: str, path: str) -> None:
    if count > MOST_EDITS:
        raise EditFailed(
            f"the change of {path} has {count:,} {what}", f"send at most {MOST_EDITS:,}, or the whole file"
        )


def _distinct(edits: Sequence[SearchReplace]) -> list[tuple[int, SearchReplace]]:
    """Each edit once, with its number, without those that change nothing."""
    first = {edit: number for number, edit in reversed(list(enumerate(edits)))}
    return sorted((number, edit) for edit, number in first.items() if edit.search != edit.replace)


def _places(
    source: SourceText, wanted: Edit, repeats: int, made: Sequence[Replacement]
) -> list[Replacement] | None:
    """Where an edit goes in the file as it was; None where only the text after the edits before it can tell.

    `made` is where those go, sorted. An edit that was written as often as its text is in the file means
    all of those places.
    """
    try:
        matches = found(source, wanted)
    except EditFailed:
        if not made:
            raise
        return None
    if len(matches) != repeats:
        matches = [only(wanted, matches)]
    here = [placed(source, match) for match in matches]
    return None if any(_touches(place, made) for place in here) else here


def _written(made: Sequence[Replacement]) -> list[tuple[int, int]]:
    """The offsets (from, to) of what edits have written, in the text after all of them."""
    result: list[tuple[int, int]] = []
    moved = 0
    for place in sorted(made, key=_order):
        result.append((place.start + moved, place.start + moved + len(place.text)))
        moved += len(place.text) - (place.end - place.start)
    return result


def _in_written(source: SourceText, wanted: Edit, written: Sequence[tuple[int, int]]) -> Replacement:
    """Where an edit goes that only what edits before it wrote can have made possible, and nowhere else."""
    place = locate(source, wanted)
    if not any(place.start <= end and start <= place.end for start, end in written):
        raise Ambiguous(
            f"{wanted.name} overlaps with an edit before it, and is in line {place.line + 1} too",
            "send the two as one edit",
        )
    return place


def _touches(place: Replacement, made: Sequence[Replacement]) -> bool:
    """Whether it reaches into one of the places, which are sorted and lie apart."""
    after = bisect_right(made, place.start, key=_start)
    before = after > 0 and made[after - 1].end > place.start
    return before or (after < len(made) and made[after].start < place.end)


def _start(place: Replacement) -> int:
    return place.start


def _order(place: Replacement) -> tuple[int, int]:
    return place.start, place.end


def patched(diff: str, base: str | None, path: str, threshold: float) -> tuple[str, str]:
    """The text after a unified diff or the section of an envelope, and the lowest rung that was needed."""
    hunks = [hunk for section in patches.sections(diff) for hunk in patch.parse(section.body)]
    if not hunks:
        raise EditFailed(f"the diff of {path} has no hunks", "send the lines that change, with context")
    _refuse_too_many(len(hunks), "hunks", path)
    if base is None:
        if any(hunk.old for hunk in hunks):
            raise EditFailed(f"{path} does not exist, so its diff has no place", "send its whole content")
        text = "".join(line + "\n" for hunk in hunks for line in hunk.new)
        return (text[:-1] if hunks[-1].final_newline is False else text), ""
    source = SourceText(base)
    made = list(patch.place_all(source, hunks, threshold))
    rung = ""
    for place in made:
        rung = lower(rung, place.rung)
    says = [hunk.final_newline for hunk in hunks if hunk.final_newline is not None]
    return _like_base(base, source, made, says[-1] if says else None), rung


def _like_base(
    base: str, source: SourceText, found: Sequence[Replacement], final_newline: bool | None = None
) -> str:
    text = _finished(source, found, final_newline)
    return text[: len(source.bom)] + ended_like(base.removeprefix(BOM), text[len(source.bom) :])


def _finished(source: SourceText, found: Sequence[Replacement], final_newline: bool | None = None) -> str:
    """The text with every place replaced, byte-order mark in front and the last newline as it was."""
    parts: list[str] = [source.bom]
    at = 0
    for place in sorted(found, key=_order):
        parts.extend((source.text[at : place.start], place.text))
        at = place.end
    text = "".join((*parts, source.text[at:]))
    ended = source.ended if final_newline is None else final_newline
    if not ended and text.endswith("\n"):
        return text[:-1]
    if ended and source.text and text[len(source.bom) :] and not text.endswith("\n"):
        return text + "\n"
    return text
