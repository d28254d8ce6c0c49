"""Changes as a reply asks for them."""

from __future__ import annotations

from tui_agent.answers import markers
from tui_agent.answers.unified import hunks_of
from tui_agent.answers.values import ChangeRequest, EditHunk
from tui_agent.errors import EditFailed


def hunks(diff: str) -> tuple[EditHunk, ...]:
    return hunks_of(diff.splitlines())


def by_diff(diff: str, path: str = "a.py") -> ChangeRequest:
    """The change of one file by a diff. Raises EditFailed where the diff is refused as it is read."""
    [request] = markers.requests(diff, ChangeRequest(path))
    if not isinstance(request, ChangeRequest):
        raise EditFailed(str(request), "send another diff")
    return request
