"""Reading a file for the model: the newest version, through the gate, kept under its hash."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Iterable

from msgspec.structs import replace

from tui_agent.context.known import KnownFile, LoadedBy
from tui_agent.context.loaded import LoadedFile, cost
from tui_agent.errors import FileError, PathRefused, TuiAgentError
from tui_agent.files.gate import is_secret, read
from tui_agent.files.text import decode, encode, md5
from tui_agent.store import events as e
from tui_agent.turn.desk import Desk, Gathered
from tui_agent.workspace.languages import language

#: A larger file is no source that a model could use whole; in bytes.
MAX_BYTES = 4 * 1024 * 1024
#: The share of the window that one turn's files may fill.
FILES_SHARE = 0.5


async def load(desk: Desk, path: str, loaded_by: LoadedBy, action: str = "") -> LoadedFile:
    """The newest text of a file: unsaved edits of an open buffer, else the disk.

    Raises `PathRefused` for what may not be read, `FileError` for what cannot be.
    """
    buffer = desk.state().buffers.get(path)
    if is_secret(path):
        raise PathRefused(f"{path} looks like a secret", "it is not sent to a model without being asked for")
    data = await asyncio.to_thread(read, desk.workspace.gate, path, MAX_BYTES)
    text = decode(data, path)
    unsaved = buffer is not None and buffer.unsaved
    if buffer is not None and unsaved:
        data = encode(text, buffer.text)
        text = decode(data)
    await asyncio.to_thread(desk.blobs.put, data)
    return LoadedFile(
        path=path,
        md5=md5(data),
        text=text.text,
        size=len(data),
        loaded_by=loaded_by,
        language=language(path),
        unsaved=unsaved,
        action=action,
    )


def known_file(file: LoadedFile, turn: int, before: KnownFile | None) -> KnownFile:
    """The registry's entry for a file that the model is about to see."""
    return KnownFile(
        path=file.path,
        md5=file.md5,
        seen_turn=turn,
        size=file.size,
        lines=file.lines,
        tokens=cost(file.size, file.lines),
        language=file.language,
        loaded_by=file.loaded_by,
        modified_turn=before.modified_turn if before else 0,
    )


async def load_files(
    desk: Desk, gathered: Gathered, paths: Iterable[str], loaded_by: LoadedBy, action: str = ""
) -> AsyncGenerator[e.Event, None]:
    """Read files for the next request while they fit; what does not fit or cannot be read is named."""
    left_out: list[str] = []
    for path in paths:
        if any(file.path == path for file in (*gathered.files, *gathered.bundled)):
            continue
        try:
            file = await load(desk, path, loaded_by, action)
        except TuiAgentError as error:
            yield e.NoticeGiven("warning", str(error))
            yield e.FilesLeftOut(action, (path,), str(error), unreadable=True)
            continue
        if cost(file.size, file.lines) > room(desk, gathered):
            left_out.append(path)
            continue
        for event in see(desk, gathered, file):
            yield event
    if left_out:
        yield e.FilesLeftOut(action, tuple(left_out), "no room in the model's window")
        gathered.facts.append(f"Not shown, for want of room: {', '.join(left_out)}")


def see(desk: Desk, gathered: Gathered, file: LoadedFile) -> list[e.Event]:
    """The file goes with the next request; where the registry had an older version, that it had is remembered."""
    before = desk.state().known.files.get(file.path)
    gathered.before.setdefault(file.path, before)
    (gathered.bundled if file.loaded_by == "bundle" else gathered.files).append(file)
    events: list[e.Event] = []
    now = time.time()
    if before is not None:
        if before.freshness in ("fresh", "edited") and file.md5 not in (before.md5, before.written):
            moved = e.FreshnessChanged(file.path, "buffer" if file.unsaved else "disk", at=now)
            events.append(moved)
            before = replace(before, freshness=moved.freshness)
        if before.freshness != "fresh":
            gathered.again[file.path] = before
    loaded = known_file(file, gathered.turn, before)
    action = "" if file.loaded_by == "bundle" else file.action
    return [*events, e.FileLoaded(loaded, action, now)]


def room(desk: Desk, gathered: Gathered) -> int:
    """How many tokens of files this request may still take."""
    window = desk.state().model.window or 32_000
    taken = sum(cost(file.size, file.lines) for file in (*gathered.files, *gathered.bundled))
    return int(window * FILES_SHARE) - taken


async def text_on_disk(desk: Desk, path: str) -> tuple[str, str] | None:
    """The text and hash of a file as it is now on disk or, unsaved, in the editor; None where there is none."""
    buffer = desk.state().buffers.get(path)
    try:
        data = await asyncio.to_thread(read, desk.workspace.gate, path, MAX_BYTES)
    except PathRefused:
        raise
    except FileError:
        if desk.workspace.index.contains(path):
            raise
        return None
    if buffer is not None and buffer.unsaved:
        data = encode(decode(data), buffer.text)
    await asyncio.to_thread(desk.blobs.put, data)
    return decode(data).text, md5(data)
