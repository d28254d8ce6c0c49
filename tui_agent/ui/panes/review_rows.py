"""Position in the review, navigation, title, rows and key hints."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from typing import Any, NamedTuple

from tui_agent.edits.change import PLACED, UNNAMED, Change, ChangeState, HunkState, Pick
from tui_agent.files.numbers import whole_number
from tui_agent.store.state import ReviewSlice, State
from tui_agent.ui.safe_text import counted
from tui_agent.ui.widgets.line_view import CHANGES, Hint, Line, Piece, Row, note

#: States that prevent applying; such a change is retried or skipped as a whole.
BROKEN: frozenset[ChangeState] = frozenset({"conflict", "failed"})


class ReviewPosition(NamedTuple):
    """A zero-based hunk index in a change; 0 for changes without hunks, such as renames."""

    change: str
    hunk: int = 0

    def saved(self) -> dict[str, Any]:
        return {"change": self.change, "hunk": self.hunk}


def shown_changes(review: ReviewSlice) -> tuple[Change, ...]:
    if not review.changes:
        return ()
    turns = {change.turn for change in review.changes if change.is_open or change.state == "conflict"}
    turns.add(review.changes[-1].turn)
    shown = [change for change in review.changes if change.turn in turns]
    newest = {change.path: change.id for change in shown}
    return tuple(c for c in shown if c.state != "skipped" or newest[c.path] == c.id)


def change_at(changes: Sequence[Change], position: ReviewPosition | None) -> Change | None:
    return next((change for change in changes if position and change.id == position.change), None)


def places_of(changes: Sequence[Change]) -> list[ReviewPosition]:
    return [
        ReviewPosition(change.id, hunk) for change in changes for hunk in range(max(len(change.hunks), 1))
    ]


def waiting(changes: Sequence[Change]) -> list[ReviewPosition]:
    hunks = [
        ReviewPosition(change.id, hunk)
        for change in changes
        if change.is_open
        for hunk, state in enumerate(change.hunks or ("pending",))
        if state == "pending"
    ]
    return [*hunks, *(ReviewPosition(change.id) for change in changes if change.state in BROKEN)]


def restored_position(changes: Sequence[Change], saved: object) -> ReviewPosition | None:
    there = places_of(changes)
    if isinstance(saved, dict):
        wanted = (saved.get("change"), saved.get("hunk", 0))
        if found := next((place for place in there if place == wanted), None):
            return found
    return next(iter([*waiting(changes), *there]), None)


def next_waiting(changes: Sequence[Change], place: ReviewPosition | None) -> ReviewPosition | None:
    """The next pending position, wrapping around; `place` if none is pending."""
    order = places_of(changes)
    due = set(waiting(changes))
    start = order.index(place) + 1 if place in order else 0
    return next((other for other in order[start:] + order[:start] if other in due), place)


def step_hunk(
    changes: Sequence[Change], place: ReviewPosition | None, step: int, *, by_change: bool = False
) -> ReviewPosition | None:
    """`by_change` skips the other hunks of the change."""
    order = places_of(changes)
    if place not in order:
        return next(iter(order), None)
    if by_change:
        order = [other for other in order if other == place or other.change != place.change]
    return order[max(0, min(order.index(place) + step, len(order) - 1))]


def step_file(changes: Sequence[Change], place: ReviewPosition | None, step: int) -> ReviewPosition | None:
    """The first pending hunk of the next or previous file, or its first; wraps around."""
    if not changes:
        return None
    ids = [change.id for change in changes]
    at = ids.index(place.change) if place and place.change in ids else 0
    return entry(changes[(at + step) % len(changes)])


def of_todo(changes: Sequence[Change], change: Change | None) -> list[Change]:
    """Only `change` if it has no todo."""
    if change is None:
        return []
    return [
        other for other in changes if other.id == change.id or (change.todo and other.todo == change.todo)
    ]


def entry(change: Change) -> ReviewPosition:
    return next(iter([*waiting([change]), ReviewPosition(change.id)]))


def pick(change: Change, place: ReviewPosition) -> Pick:
    return Pick(change.id, place.hunk if change.hunks and change.is_open else None, change.version)


def whole(change: Change) -> Pick:
    return Pick(change.id, None, change.version)


def hunk_states(change: Change, count: int) -> tuple[HunkState, ...]:
    whole: HunkState = "pending"
    if not change.is_open and change.state not in BROKEN:
        whole = "applied" if change.state == "applied" else "skipped"
    states = (change.hunks[index] if index < len(change.hunks) else whole for index in range(count))
    return tuple(whole if state == "pending" else state for state in states)


_DECIDE = (
    ("apply", "apply"),
    ("skip", "skip"),
    ("apply_all", "all"),
    ("undo", "undo"),
    ("edit", "edit"),
    ("next_hunk", "next"),
    ("next_file", "file"),
    ("apply_file", "whole file"),
    ("comment", "comment"),
    ("columns", "columns"),
    ("open", "open"),
)
_CONFLICT = (
    ("yours", "yours"),
    ("theirs", "theirs"),
    ("both", "both"),
    ("edit", "by hand"),
    ("next_hunk", "next"),
    ("skip", "skip it"),
    ("comment", "comment"),
    ("open", "open"),
)
_DECIDED = (
    ("undo", "undo"),
    ("redo", "redo"),
    ("take_back", "undo change"),
    ("history", "history"),
    ("next_hunk", "next"),
    ("next_file", "file"),
    ("open", "open"),
)


def title(changes: Sequence[Change], place: ReviewPosition | None) -> str:
    """Returns words such as ` · api.py 1 of 3 · change 1 of 2`, without inapplicable parts."""
    index = next((i for i, change in enumerate(changes) if place and change.id == place.change), None)
    if index is None or place is None:
        return ""
    change = changes[index]
    file = "" if change.path == UNNAMED else f" · {change.path.rsplit('/', 1)[-1]}"
    count = f" {index + 1} of {len(changes)}" if len(changes) > 1 else ""
    hunk = f" · change {place.hunk + 1} of {len(change.hunks)}" if change.hunks else ""
    return f"{file}{count}{hunk}"


def decision_counts(changes: Sequence[Change]) -> str:
    states = [change.state for change in changes]
    counts = {
        "●": ReviewSlice(tuple(changes)).undecided,
        "⚠": states.count("conflict"),
        "✗": states.count("failed"),
    }
    return "".join(f" {sign}{count}" for sign, count in counts.items() if count)


def change_rows(changes: Sequence[Change], untold: Sequence[str] = ()) -> list[Row]:
    """Keys: ids of changes. `untold` facts are for the next request."""
    rows = []
    turns = {change.turn for change in changes}
    newest = max(turns) if len(turns) > 1 else None
    for change in changes:
        rows.append(_row(change, newest))
        if change.reason and change.path != UNNAMED:
            ink = "failed" if change.state in ("failed", "conflict") else "muted"
            rows.append(note(f"  {change.reason}", ink, 2))
        if change.checks:
            failed = f"  failed in its sub-task: {', '.join(change.checks)}"
            rows.append(note(failed, "failed", 2))
        for comment in change.comments:
            about = "" if comment.hunk is None else f"change {comment.hunk + 1}: "
            waits = any(fact.endswith(f"the person says: {comment.text}") for fact in untold)
            when = "sent with your next message" if waits else "sent to the model"
            rows.append(note(f"  {when}: {about}{comment.text}", "muted", 2))
    return rows


#: Maximum failing locations in the review.
MOST_PLACES = 8


def place_rows(state: State) -> list[Row]:
    """Check failures in the displayed changes."""
    places = {
        place: said or result.name
        for result in state.checks.results
        if result.where == "trial" and state.review.open and state.holds(result)
        for place, said in zip_longest(result.places, result.said, fillvalue="")
        if place
    }
    return [
        Row(
            f"{_PLACE}{path}:{line}",
            Line((Piece("✗ ", "failed"), Piece(f"{path}:{line}", "accent"), Piece(f" {name}", "muted"))),
        )
        for (path, line), name in list(places.items())[:MOST_PLACES]
    ]


_PLACE = "place "


def place_of(key: str) -> tuple[str, int] | None:
    if not key.startswith(_PLACE):
        return None
    path, _, line = key.removeprefix(_PLACE).rpartition(":")
    return path, whole_number(line)


def hints(changes: Sequence[Change], place: ReviewPosition | None) -> list[Hint]:
    if not changes:
        return []
    if waiting(changes):
        return [Hint(f"review.{name}", text) for name, text in _DECIDE]
    said = Hint("", outcome(changes))
    keys = [Hint(f"review.{name}", text) for name, text in _DECIDED]
    change = change_at(changes, place)
    if change and place and hunk_states(change, place.hunk + 1)[place.hunk] != "applied":
        keys = [hint._replace(text="decide again") if "take_back" in hint.action else hint for hint in keys]
    return [said, *keys]


def conflict_hints(change: Change) -> list[Hint]:
    names = _CONFLICT if not change.rival else (*_CONFLICT[:4], ("give_back", "return"), *_CONFLICT[4:])
    return [Hint(f"review.{name}", text) for name, text in names]


def outcome(changes: Sequence[Change]) -> str:
    """Returns words such as `2 files written, 1 skipped`."""
    counts: dict[str, int] = {}
    for change in changes:
        if change.state == "skipped" and change.reason.startswith("replaced by "):
            continue
        counts[change.state] = counts.get(change.state, 0) + 1
    written = counts.pop("applied", 0)
    rest = [f"{count} {state}" for state, count in counts.items()]
    return ", ".join([f"{counted(written, 'file')} written", *rest] if written else rest)


def without_diff(change: Change) -> str:
    if change.state == "failed":
        return change.reason or f"The place of the change to {change.path} is ambiguous."
    if change.executable is not None and change.kind == "edit":
        return (
            f"{change.path} {'becomes' if change.executable else 'is no longer'} executable; its text stays."
        )
    match change.kind:
        case "rename":
            return f"{change.path} becomes {change.rename_to}; its content stays as it is."
        case "delete":
            return f"{change.path} is deleted; it is empty."
        case "create":
            return f"{change.path} is new, and empty."
        case _:
            return f"{change.path} already contains this change."


def progress(change: Change) -> str:
    """Returns words such as `2/3 ✓1`; "" if none or all are decided."""
    applied, skipped = change.hunks.count("applied"), change.hunks.count("skipped")
    if not change.is_open or not applied + skipped:
        return ""
    return f"{applied + skipped}/{len(change.hunks)}" + (f" ✓{applied}" if applied else "")


def _row(change: Change, newest: int | None) -> Row:
    """Changes of the `newest` turn are marked if older ones are pending."""
    if change.path == UNNAMED:
        words = Piece(change.reason, "failed")
        return Row(change.id, Line((CHANGES[change.state], Piece(" "), words)), wraps=True, hang=2)
    partly = progress(change)
    pieces = [
        Piece("◐", "running") if partly else CHANGES[change.state],
        Piece(" "),
        Piece(change.path, "", "start"),
    ]
    if change.rename_to:
        pieces += [Piece(" → ", "muted"), Piece(change.rename_to, "", "start")]
    count = f"+{change.added} −{change.removed}"
    kind = {"create": "new", "delete": "deleted", "rename": "renamed"}.get(change.kind, "")
    mode = {True: " executable", False: " not executable", None: ""}[change.executable]
    done = change.hunks.count("applied")
    some = change.state == "applied" and done < len(change.hunks)
    words = [
        f"{kind}{mode}".strip(),
        partly,
        f"new in turn {newest}" if change.turn == newest and change.is_open else "",
        f"by {', '.join(change.tasks)}" if change.tasks else "",
        f"{done} of {len(change.hunks)} applied" if some else change.state.removeprefix("pending"),
        PLACED.get(change.rung, ""),
        "by hand" if change.by_hand else "",
    ]
    long = " · ".join(part for part in (*words, count) if part)
    short = " · ".join(part for part in (*words[:3], count) if part)
    return Row(
        change.id, Line(tuple(pieces), (Piece(long, "muted"), Piece(short, "muted"), Piece(count, "muted")))
    )
