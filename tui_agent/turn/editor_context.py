"""Open buffers in the model's context. Their contents become known files, whole or as excerpts."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection, Sequence

from msgspec.structs import replace

from tui_agent.context import editor
from tui_agent.context.editor import OpenFile
from tui_agent.context.known_files import KnownFile
from tui_agent.errors import TuiAgentError
from tui_agent.files.gate import Decisions, Gate, SecretFinding, UndecidedSecret, find_secrets, is_secret
from tui_agent.files.key_formats import Hit, hits_masked
from tui_agent.files.text import TextFile, md5
from tui_agent.store import events as e
from tui_agent.store.files import Buffer, BuffersSlice
from tui_agent.tools.context import Emit
from tui_agent.tools.load_files import ask_about_secret, known_file, load
from tui_agent.turn.context import TurnContext


async def add_open_files(context: TurnContext, taken: Collection[str], emit: Emit) -> tuple[OpenFile, ...]:
    """Returns the open files that may be sent and records unknown contents as known files.

    `taken` are the paths the request already contains.
    """
    files = await _open_files_decided(context, emit)
    state = context.state()
    new = editor.new_blocks(editor.blocks(files), state.conversation.blocks)
    for file in editor.attached(files):
        before = state.known.files.get(file.path)
        if f"file:{file.path}" not in new or file.path in taken or not _adds(file, before):
            continue
        try:
            loaded = await load(context, file.path, "buffer")
        except TuiAgentError:
            continue  # The file was deleted; the editor reports it.
        if loaded.text == file.text:
            entry = known_file(loaded, context.turn, before)
            entry = replace(entry, whole=entry.whole and editor.excerpt(file).whole)
            await emit(e.FileLoaded(entry, at=time.time()))
    return tuple(files)


async def _open_files_decided(context: TurnContext, emit: Emit) -> list[OpenFile]:
    while True:
        state = context.state()
        if not state.buffers.open:
            return []
        judging = asyncio.to_thread(_open_files, context.workspace.gate, state.buffers, state.secrets)
        files, undecided = await judging
        if not undecided:
            return files
        if context.ask is None:
            for error in undecided:
                await emit(e.NoticeGiven("warning", str(error)))
            return files
        await ask_about_secret(context, undecided[0], emit)


def _adds(file: OpenFile, before: KnownFile | None) -> bool:
    if before is None:
        return True
    whole = editor.excerpt(file).whole and not file.masked
    return (before.md5 != file.md5 and (whole or not before.whole)) or (whole and not before.whole)


def _open_files(
    gate: Gate, buffers: BuffersSlice, decisions: Decisions
) -> tuple[list[OpenFile], list[UndecidedSecret]]:
    """Blocking."""
    found: list[OpenFile] = []
    undecided: list[UndecidedSecret] = []
    for buffer in buffers.open:
        if buffer.note or _is_secret(gate, buffer.path):
            continue
        judged = _judged(buffer)
        try:
            text, hits = judged.shown(decisions)
        except UndecidedSecret as error:
            undecided.append(error)
        except TuiAgentError:
            continue  # The user decided not to send it.
        else:
            found.append(_open_file(buffer, text, hits, buffer.path == buffers.active))
    return found, undecided


def _is_secret(gate: Gate, path: str) -> bool:
    try:
        return gate.place(path, "read").secret
    except TuiAgentError:
        return is_secret(path)  # The file was deleted or is unreadable.


def _judged(buffer: Buffer) -> SecretFinding:
    data = buffer.mark + buffer.text.encode(buffer.encoding, errors="surrogatepass")
    return find_secrets(buffer.path, data, TextFile(buffer.text, buffer.encoding, buffer.mark), named=False)


def _open_file(buffer: Buffer, text: str, hits: Sequence[Hit], active: bool) -> OpenFile:
    first, last = sorted((buffer.cursor, buffer.anchor))
    return OpenFile(
        path=buffer.path,
        text=text,
        md5=_hash(buffer),
        line=buffer.cursor[0] + 1,
        selection=_selected(buffer.text, hits, first, last),
        first=first[0] + 1,
        last=last[0] + (last[1] > 0 or last[0] == first[0]),
        unsaved=buffer.unsaved,
        active=active,
        mtime=buffer.mtime,
        masked=bool(hits),
    )


def _hash(buffer: Buffer) -> str:
    if not buffer.unsaved:
        return buffer.disk
    return md5(buffer.mark + buffer.text.encode(buffer.encoding, errors="surrogatepass"))


def _selected(text: str, hits: Sequence[Hit], first: tuple[int, int], last: tuple[int, int]) -> str:
    lines = text.splitlines(keepends=True)
    start, end = (sum(map(len, lines[:line])) + column for line, column in (first, last))
    within = [
        Hit(max(hit.start, start) - start, min(hit.end, end) - start, hit.what)
        for hit in hits
        if hit.start < end and hit.end > start
    ]
    return hits_masked(text[start:end], within)
