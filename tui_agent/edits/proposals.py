"""From what a reply asks for to changes that can be reviewed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from msgspec.structs import replace

from tui_agent.answers.values import ChangeRequest
from tui_agent.edits import forms
from tui_agent.edits.change import Change, ChangeKind
from tui_agent.edits.hunks import counts, hunks
from tui_agent.edits.lines import plain
from tui_agent.errors import EditFailed

#: How much of a file the model had in view when it wrote the change.
Seen = Literal["whole", "part", "never"]

#: The reason of a change that would leave its file as it is.
CHANGES_NOTHING = "changes nothing"

#: A fence that keeps fewer of the file's lines than this share is an excerpt of it.
_EXCERPT_SHARE = 0.5


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
    todo: str = "",
) -> Change:
    """The change number `index` (from 1) of a turn, as it waits for review; never raises.

    `base_text` is the text under `base_hash`, None (and "") for a file that does not exist. `put_text` keeps a
    text and gives its content hash. What cannot be done is a change in the state `failed`, with the reason.
    A file that the model never saw takes no near match; whole content over a file that it did not see whole
    is held for review (`Change.ask`).
    """
    change = Change(
        f"c{turn}.{index}", turn, request.path, _kind(request, base_text), base=base_hash, todo=todo
    )
    floor = near_threshold if seen != "never" else forms.NEVER_NEAR
    try:
        if is_excerpt(request, base_text):
            raise EditFailed(
                f"the fenced text looks like an excerpt of {request.path}, not the whole of it",
                "send the change as edits",
            )
        proposal = forms.propose(request, base_text, floor)
        _check_text(request.path, base_text, proposal.new_text)
    except EditFailed as error:
        return _moved(change, "failed", str(error))
    if _changes_nothing(proposal, base_text):
        return _moved(change, "failed", CHANGES_NOTHING)
    return _ready(change, request, proposal, base_text, put_text, seen)


def is_excerpt(request: ChangeRequest, base_text: str | None) -> bool:
    """Whether content from a fence in prose is only a part of the file that is there: then it is no change."""
    if not request.fenced or request.content is None or not (base_text or "").strip():
        return False
    old = [line.strip() for line in plain(base_text or "").split("\n") if line.strip()]
    new = {line.strip() for line in plain(request.content).split("\n")}
    return sum(line in new for line in old) < len(old) * _EXCERPT_SHARE


def _kind(request: ChangeRequest, base_text: str | None) -> ChangeKind:
    if request.delete:
        return "delete"
    if request.rename_to:
        return "rename"
    return "create" if base_text is None else "edit"


def _check_text(path: str, base_text: str | None, new_text: str | None) -> None:
    if new_text is not None and "\0" in new_text and "\0" not in (base_text or ""):
        raise EditFailed(f"the new text of {path} holds a NUL character", "send it as text")


def _changes_nothing(proposal: forms.Proposal, base_text: str | None) -> bool:
    return proposal.kind == "edit" and proposal.new_text == base_text


def _ready(
    change: Change,
    request: ChangeRequest,
    proposal: forms.Proposal,
    base_text: str | None,
    put_text: Callable[[str], str],
    seen: Seen,
) -> Change:
    base = base_text or ""
    new = "" if proposal.kind == "delete" else base if proposal.new_text is None else proposal.new_text
    parts = hunks(base, new)
    added, removed = counts(parts)
    ask = ""
    if request.content is not None and base_text is not None and seen != "whole":
        how = "only in part" if seen == "part" else "not at all"
        ask = f"whole content over a file that the model has seen {how}"
    return Change(
        id=change.id,
        turn=change.turn,
        path=change.path,
        kind=proposal.kind,
        base=change.base,
        new="" if proposal.kind == "delete" else put_text(new),
        rename_to=proposal.rename_to,
        rung=proposal.rung,
        hunks=("pending",) * len(parts),
        added=added,
        removed=removed,
        reason=ask,
        ask=ask,
        todo=change.todo,
    )


def _moved(change: Change, state: Literal["failed"], reason: str) -> Change:
    return replace(change, state=state, reason=reason)
