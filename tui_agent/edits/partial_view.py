"""Edits of a partially shown file: fuzzy matching is limited to the shown lines."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from tui_agent.answers.plans import Range
from tui_agent.answers.values import ChangeRequest
from tui_agent.edits import forms
from tui_agent.edits.change import Hunk
from tui_agent.edits.forms import Proposal
from tui_agent.edits.hunks import hunks
from tui_agent.edits.lines import plain, split
from tui_agent.errors import Ambiguous, EditFailed

#: Maximum number of characters for indexing the whole text, which takes much memory. Longer texts only get
#: exact matching.
MOST_INDEXED = 4 * 1024 * 1024


def propose(request: ChangeRequest, base: str, shown: Sequence[Range], threshold: float) -> Proposal:
    """Returns the new text of a request for a partially shown `base`.

    Fuzzy matches count only in shown lines. Raises `EditFailed` or `Ambiguous`.
    """
    large = len(base) > MOST_INDEXED
    failure = EditFailed(
        f"the text to replace is not in {request.path} as it was shown",
        "copy it from the lines you were shown",
    )
    if not large or _is_there(request, base):
        try:
            return forms.propose(request, base, forms.NEVER_NEAR)
        except Ambiguous:
            raise
        except EditFailed as error:
            failure = error
    if large:
        # Applies the request to the only shown part that fits all of its edits
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
    """Whether all changed lines and insertion points are within the shown ranges."""
    return all(
        any(first - 1 <= hunk.start and hunk.start + len(hunk.removed) <= last for first, last in shown)
        for hunk in changed
    )


def view_after(shown: Sequence[Range], changed: Sequence[Hunk]) -> tuple[Range, ...]:
    """Returns the shown ranges after applying the hunks, and the ranges of added lines."""
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


def _is_there(request: ChangeRequest, base: str) -> bool:
    """Whether all searched texts occur verbatim."""
    text = plain(base)
    return all(plain(hunk.old) in text for hunk in (*request.edits, *request.diff))
