"""Files written by a command in its view, as pending changes."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from tui_agent.edits.change import Change, ChangeKind, hunks, text_under
from tui_agent.edits.rebase import rebased, with_texts
from tui_agent.errors import TuiAgentError
from tui_agent.files.blobs import Blobs
from tui_agent.files.key_formats import MASK
from tui_agent.files.text import decode, encode
from tui_agent.review.writer import CurrentFile, Writer

if TYPE_CHECKING:
    from tui_agent.sandbox.layer_changes import ChangedPath

_KINDS: dict[str, ChangeKind] = {"new": "create", "changed": "edit", "mode": "edit", "deleted": "delete"}
_LEFT = {"link": "it is a link", "special": "it is not a file"}


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
            if one.meanwhile:
                raise ValueError("it was changed in the folder while the command ran")
            named = Change(f"r{run}.{number}", turn, one.path, "edit", reason=f"from `{command}`")
            changes.append(await change_of(one, named, writer, blobs))
        except (ValueError, TuiAgentError) as error:
            left.append(left_out(one.path, error))
    return changes, left


def left_out(path: str, error: Exception) -> str:
    """Why a written file is not in the review, as a sentence."""
    return f"{path} is left out: {error.what if isinstance(error, TuiAgentError) else error}"


async def change_of(
    one: ChangedPath, named: Change, writer: Writer, blobs: Blobs, base: str | None = None
) -> Change:
    """The change of a written file, with id, turn and reason of `named`.

    `base` is the hash of the file that the program changed, "" if there was none, if it may differ from the
    current file; then both are merged. Raises ValueError with the reason if there is no such change, and
    `TuiAgentError`.
    """
    if one.kind not in _KINDS:
        raise ValueError(_LEFT[one.kind])
    if one.why:
        raise ValueError(one.why)
    now = await writer.current(one.path)
    content = await asyncio.to_thread(lambda: one.after)
    new = "" if content is None else decode(content, one.path).text
    if one.kind == "mode":
        new = now.text or ""
    if one.kind == "deleted" and now.text is None:
        raise ValueError("it was deleted, but is only proposed so far: skip it in the review")
    if MASK in new and MASK not in (now.text or ""):
        raise ValueError(f"{MASK} in it stands for a secret, and is never written to a file")
    kind = "create" if now.text is None else _KINDS[one.kind]
    if one.kind == "new" and now.text is not None:
        kind = "edit"
    ran = bool((now.mode or 0) & 0o100)  # Executable for its owner.
    runs = one.executable if kind != "delete" and one.executable != ran else None
    change = replace(named, kind=kind, executable=runs)
    if base is None or base == now.md5:
        return await asyncio.to_thread(_based, change, now, new, blobs)
    return await asyncio.to_thread(_merged, change, base, now, new, blobs)


def _based(change: Change, now: CurrentFile, new: str, blobs: Blobs) -> Change:
    text = now.text or ""
    base = "" if now.text is None else blobs.put(encode(now.stored, text))
    return with_texts(replace(change, base=base), text, new, blobs.put_text)


def _merged(change: Change, base: str, now: CurrentFile, new: str, blobs: Blobs) -> Change:
    kind: ChangeKind = change.kind if base or change.kind == "delete" else "create"
    before = text_under(blobs, base) or ""
    change = with_texts(replace(change, base=base, kind=kind), before, new, blobs.put_text)
    return rebased(change, before, new, now.text, now.md5, blobs.put_text)


def with_skips(change: Change, known: Change, blobs: Blobs) -> Change:
    """The change with the hunks skipped that are skipped in an earlier change of the same file. Blocking."""
    parts = hunks(text_under(blobs, known.base) or "", text_under(blobs, known.new) or "")
    skipped = {
        (part.removed, part.added)
        for part, state in zip(parts, known.hunks, strict=False)
        if state == "skipped"
    }
    if not skipped:
        return change
    parts = hunks(text_under(blobs, change.base) or "", text_under(blobs, change.new) or "")
    states = ("skipped" if (part.removed, part.added) in skipped else "pending" for part in parts)
    return replace(change, hunks=tuple(states))
