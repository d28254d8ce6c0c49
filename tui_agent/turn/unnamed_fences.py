"""Unnamed fences of a reply: a fence that resembles a known file, or may be a new file, becomes a change the
user must accept with a separate key."""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import Mapping

from tui_agent.answers import file_names
from tui_agent.answers.values import ChangeRequest, Reply, ShownText
from tui_agent.edits import forms
from tui_agent.edits.change import text_under
from tui_agent.errors import EditFailed, TuiAgentError
from tui_agent.turn.context import TurnContext

#: Limits of the comparison: fences, files, and characters per file.
MOST_FENCES, MOST_FILES, MOST_LETTERS = 20, 200, 200_000
#: Minimum number of lines; shorter files resemble too many others.
FEWEST_LINES = 4
WHY = "a code block without a file name resembles it"
WHY_NEW = "a code block may be its text, but the answer does not say so"


async def resembling(context: TurnContext, reply: Reply) -> tuple[ChangeRequest, ...]:
    if not reply.shown:
        return ()
    known = context.state().known.files
    taken = {file_names.plain(one.path) for one in (*reply.changes, *reply.refused, *reply.offered)}
    seen = {
        path: entry.md5
        for path, entry in known.items()
        if not entry.masked and entry.md5 and path not in taken
    }

    def compare() -> tuple[ChangeRequest, ...]:
        files: dict[str, str] = {}
        for path, md5 in list(seen.items())[-MOST_FILES:]:
            text = text_under(context.blobs, md5) if context.blobs.has(md5) else None
            if text and len(text) <= MOST_LETTERS:
                files[path] = text
        found = (
            _request(one, files) or (None if one.path in taken else _new(context, one))
            for one in reply.shown[:MOST_FENCES]
        )
        return tuple({one.path: one for one in found if one}.values())

    return await asyncio.to_thread(compare)


def _request(shown: ShownText, files: Mapping[str, str]) -> ChangeRequest | None:
    if len(shown.text) > MOST_LETTERS:
        return None
    if shown.diff is not None:
        requests = [ChangeRequest(path, diff=shown.diff, offered=WHY) for path in files]
        fitting = [request for request in requests if _fits(request, files[request.path])]
    else:
        lines = _lines(shown.text)
        likest = [path for path, text in files.items() if _resembles(lines, _lines(text))]
        fitting = [
            ChangeRequest(path, content=shown.text, fenced=True, labelled=True, offered=WHY)
            for path in likest
        ]
    return fitting[0] if len(fitting) == 1 else None


def _new(context: TurnContext, shown: ShownText) -> ChangeRequest | None:
    """Blocking."""
    if not shown.path or shown.diff is not None:
        return None
    try:
        place = context.workspace.gate.place(shown.path, "write")
    except TuiAgentError:
        return None
    if os.path.lexists(context.workspace.root / place.path):
        return None
    return ChangeRequest(place.path, content=shown.text, fenced=True, labelled=True, offered=WHY_NEW)


def _fits(request: ChangeRequest, text: str) -> bool:
    try:
        return forms.propose(request, text, forms.NEVER_NEAR).new_text not in (None, text)
    except EditFailed:
        return False


def _lines(text: str) -> Counter[str]:
    return Counter(bare for line in text.splitlines() if (bare := line.strip()))


def _resembles(fence: Counter[str], file: Counter[str]) -> bool:
    if fence == file or file.total() < FEWEST_LINES:
        return False
    return 2 * (file & fence).total() > max(file.total(), fence.total() // 2)
