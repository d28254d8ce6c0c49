"""Converts requests of a reply to reviewable changes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Literal

from msgspec.structs import replace

from tui_agent.answers import markers
from tui_agent.answers.placeholders import hints_at_more, is_remark
from tui_agent.answers.plans import Range
from tui_agent.answers.values import ChangeRequest
from tui_agent.edits import forms
from tui_agent.edits.change import Change, ChangeKind, Hunk, counts, hunks
from tui_agent.edits.forms import Proposal, leftover_marker
from tui_agent.edits.lines import plain, split
from tui_agent.edits.preconditions import escaped
from tui_agent.errors import Ambiguous, EditFailed

#: Longer texts get exact matching only: the index takes much memory.
MOST_INDEXED = 4 * 1024 * 1024


def propose_within_view(
    request: ChangeRequest, base: str, shown: Sequence[Range], threshold: float
) -> Proposal:
    """Returns the proposal for a partially shown `base`: fuzzy matches count only in shown lines. Raises
    `EditFailed` or `Ambiguous`.
    """
    large = len(base) > MOST_INDEXED
    failure = EditFailed(
        f"the text to replace is not in {request.path} as it was shown",
        "copy it from the lines you were shown",
    )
    text = plain(base) if large else ""
    if not large or all(plain(hunk.old) in text for hunk in (*request.edits, *request.diff)):
        try:
            return forms.propose(request, base, forms.NEVER_NEAR)
        except Ambiguous:
            raise
        except EditFailed as error:
            failure = error
    if large:
        if request.diff:  # line numbers refer to the whole file
            raise failure
        lines = split(base)
        found: list[Proposal] = []
        for first, last in shown:
            before, part = "".join(lines[: first - 1]), "".join(lines[first - 1 : last])
            try:
                one = forms.propose(request, part, threshold)
            except EditFailed:
                continue
            found.append(replace(one, new_text=f"{before}{one.new_text}{''.join(lines[last:])}"))
        if len(found) != 1:
            raise failure
        return found[0]
    try:
        found = forms.propose(request, base, threshold)
    except EditFailed:
        raise failure from None
    if not is_within_view(hunks(base, found.new_text or ""), shown):
        raise failure
    return found


def is_within_view(changed: Sequence[Hunk], shown: Sequence[Range]) -> bool:
    return all(
        any(first - 1 <= hunk.start and hunk.start + len(hunk.removed) <= last for first, last in shown)
        for hunk in changed
    )


def view_after(shown: Sequence[Range], changed: Sequence[Hunk]) -> tuple[Range, ...]:
    found: list[Range] = []
    for first, last in shown:
        above = sum(_growth(hunk) for hunk in changed if hunk.start < first - 1)
        until = sum(_growth(hunk) for hunk in changed if hunk.start < last)
        found.append((first + above, last + until))
    grown = 0
    for hunk in changed:
        found.append((hunk.start + grown + 1, hunk.start + grown + len(hunk.added)))
        grown += _growth(hunk)
    return tuple((first, last) for first, last in found if first <= last)


def _growth(hunk: Hunk) -> int:
    return len(hunk.added) - len(hunk.removed)


Seen = Literal["whole", "part", "never"]

CHANGES_NOTHING = "changes nothing"

#: A fence with a smaller share of the file's lines is an excerpt.
_EXCERPT_SHARE = 0.5
#: An excerpt drops more lines.
_MOST_DROPPED = 3
#: Shorter files may lose half of their lines without a question.
_LONG = 40
_FEWEST_STOOD_FOR = 3


def propose(
    request: ChangeRequest,
    turn: int,
    index: int,
    base_text: str | None,
    base_hash: str,
    put_text: Callable[[str], str],
    *,
    near_threshold: float = 0.9,
    seen: Seen = "whole",
    shown: Sequence[Range] = (),
    todo: str = "",
) -> Change:
    """Never raises: an impossible change is `failed`, with a reason. `base_text` is `None` for a missing
    file. Fuzzy matching is off for unseen files, and limited to `shown` lines of partially seen ones.
    Whole content for a file not completely seen needs confirmation (`Change.ask`).
    """
    kind: ChangeKind
    if request.delete:
        kind = "delete"
    elif request.rename_to:
        kind = "rename"
    else:
        kind = "create" if base_text is None else "edit"
    change = Change(f"c{turn}.{index}", turn, request.path, kind, base=base_hash, todo=todo)
    floor = near_threshold if seen != "never" else forms.NEVER_NEAR
    try:
        if is_excerpt(request, base_text):
            raise EditFailed(
                f"the fenced text looks like an excerpt of {request.path}, not the whole of it",
                "send the change as edits",
            )
        if base_text is not None and seen == "part" and shown:
            proposal = propose_within_view(request, base_text, shown, near_threshold)
        else:
            proposal = forms.propose(request, base_text, floor)
        new_text = proposal.new_text
        if new_text is not None and "\0" in new_text and "\0" not in (base_text or ""):
            raise EditFailed(f"the new text of {request.path} holds a NUL character", "send it as text")
        if new_text and (sign := escaped(request.path, base_text or "", new_text)):
            raise EditFailed(
                f"the new text of {request.path} is escaped once too often: it holds `{sign}` outside of a string",
                "send it with the characters themselves",
            )
    except EditFailed as error:
        return replace(change, state="failed", reason=str(error))
    if request.executable is None and proposal.kind == "edit" and new_text == base_text:
        return replace(change, state="failed", reason=CHANGES_NOTHING)
    base, deletes = base_text or "", proposal.kind == "delete"
    new = "" if deletes else base if new_text is None else new_text
    parts = hunks(base, new)
    added, removed = counts(parts)
    ask = request.offered
    if not deletes:
        ask = _why_ask(request, base_text, new, seen) or _suspects_omission(request, parts)
    only_drops = bool(ask and new.strip()) and not request.offered and seen == "whole"
    return replace(
        change,
        kind=proposal.kind,
        new="" if deletes else put_text(new),
        rename_to=proposal.rename_to,
        rung=proposal.rung,
        hunks=("pending",) * len(parts),
        added=added,
        removed=removed,
        reason=ask,
        ask=ask,
        drops=dropped_lines(request, base, new) if only_drops else 0,
        executable=None if deletes else request.executable,
    )


def is_excerpt(request: ChangeRequest, base_text: str | None) -> bool:
    if not request.fenced or request.labelled or request.content is None or not (base_text or "").strip():
        return False
    base = base_text or ""
    dropped, total = _dropped(base, request.content)
    return dropped > max(_MOST_DROPPED, total * (1 - _EXCERPT_SHARE))


def _dropped(old: str, new: str) -> tuple[int, int]:
    before = Counter(line for text in plain(old).split("\n") if (line := text.strip()))
    after = Counter(text.strip() for text in plain(new).split("\n"))
    return (before - after).total(), before.total()


def _why_ask(request: ChangeRequest, base_text: str | None, new: str, seen: Seen) -> str:
    if not markers.may_hold_patches(request.path) and (marker := leftover_marker(base_text or "", new)):
        return f"its new text holds what looks like the marker of an edit or a conflict, `{marker}`"
    if request.offered:
        return request.offered
    if request.content is None or base_text is None:
        return ""
    if request.fresh and base_text.strip() and new.strip():
        return "its diff adds a file that already exists"
    if base_text.strip() and not new.strip():
        return "it empties the file"
    dropped = dropped_lines(request, base_text, new)
    drops = f"it drops {dropped} of the {len(base_text.splitlines())} lines of the file" if dropped else ""
    if seen != "whole":
        how = "only in part" if seen == "part" else "not at all"
        unseen = f"whole content over a file that the model has seen {how}"
        return f"{unseen}, and {drops}" if drops else unseen
    if drops:
        return drops
    if request.labelled:
        there = {line.strip() for line in new.splitlines()}
        worded = [bare for line in base_text.splitlines() if any(map(str.isalnum, bare := line.strip()))]
        if 2 * sum(line in there for line in worded) < len(worded):
            return "most lines of the file are not in it, and its fence does not name the file itself"
    return ""


def _suspects_omission(request: ChangeRequest, parts: Sequence[Hunk]) -> str:
    """Returns a comment in place of several lines, or "". In whole content, any comment alone is suspect."""
    path, whole = request.path, request.content is not None

    def code(lines: Iterable[str]) -> int:
        return sum(bool(line.strip()) and not is_remark(path, line) for line in lines)

    for part in parts if whole else ():
        new = [line for line in part.added if line.strip()]
        alone = new and len(part.added) <= len(part.removed) and all(is_remark(path, line) for line in new)
        if alone and (dropped := code(part.removed)) >= _FEWEST_STOOD_FOR:
            return f"`{new[0].strip()[:80]}` takes the place of {dropped} lines of the file"
    for some in [parts] if whole else [[part] for part in parts]:
        removed = [line for part in some for line in part.removed]
        added = [line for part in some for line in part.added] if len(removed) >= _FEWEST_STOOD_FOR else []
        there = {line.strip() for line in removed}
        hint = next(
            (one.strip() for one in added if hints_at_more(path, one) and one.strip() not in there), ""
        )
        if hint and code(removed) - code(added) >= _FEWEST_STOOD_FOR:
            return f"`{hint[:80]}` may stand for lines of the file that are not in it"
    return ""


def dropped_lines(request: ChangeRequest, base: str, new: str) -> int:
    """Returns the number of lines that whole content drops from a long file if over half, otherwise 0."""
    if request.content is None or len(base.splitlines()) < _LONG:
        return 0
    dropped, total = _dropped(base, new)
    return dropped if 2 * dropped > total else 0
