"""Files written by a command in its view, as pending changes."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from tui_agent.edits.change import Change, ChangeKind
from tui_agent.edits.rebase import with_texts
from tui_agent.errors import TuiAgentError
from tui_agent.files.blobs import Blobs
from tui_agent.files.key_formats import MASK
from tui_agent.files.text import decode, encode
from tui_agent.review.writer import CurrentFile, Writer

if TYPE_CHECKING:
    from tui_agent.sandbox.layer_changes import ChangedPath

_KINDS: dict[str, ChangeKind] = {"new": "create", "changed": "edit", "deleted": "delete"}
_LEFT = {
    "mode": "its mode alone changed",
    "link": "it is a link",
    "special": "it is not a file",
}


async def changes_of(
    written: Sequence[ChangedPath], run: str, command: str, turn: int, writer: Writer, blobs: Blobs
) -> tuple[list[Change], list[str]]:
    """A change for each text file, based on the current file, and a sentence per omitted path.

    Pending content in the view is included; the new change replaces the pending one.
    """
    changes: list[Change] = []
    left: list[str] = []
    for number, one in enumerate(written, 1):
        try:
            if one.kind not in _KINDS:
                raise ValueError(_LEFT[one.kind])
            if one.meanwhile:
                raise ValueError("it was changed in the folder while the command ran")
            if one.why:
                raise ValueError(one.why)
            content = await asyncio.to_thread(lambda one=one: one.after)
            new = "" if content is None else decode(content, one.path).text
            now = await writer.current(one.path)
            if one.kind == "deleted" and now.text is None:
                raise ValueError("it was deleted, but is only proposed so far: skip it in the review")
            if MASK in new and MASK not in (now.text or ""):
                raise ValueError(f"{MASK} in it stands for a secret, and is never written to a file")
        except (ValueError, TuiAgentError) as error:
            left.append(
                f"{one.path} is left out: {error.what if isinstance(error, TuiAgentError) else error}"
            )
            continue
        kind = "create" if now.text is None else _KINDS[one.kind]
        ran = bool((now.mode or 0) & 0o100)  # Executable for its owner.
        runs = one.executable if kind != "delete" and one.executable != ran else None
        change = Change(f"r{run}.{number}", turn, one.path, kind, reason=f"from `{command}`", executable=runs)
        changes.append(await asyncio.to_thread(_based, change, now, new, blobs))
    return changes, left


def _based(change: Change, now: CurrentFile, new: str, blobs: Blobs) -> Change:
    text = now.text or ""
    base = "" if now.text is None else blobs.put(encode(now.stored, text))
    return with_texts(replace(change, base=base), text, new, blobs.put_text)
