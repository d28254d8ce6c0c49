"""The open buffers as the model's context wants them."""

from __future__ import annotations

from collections.abc import Sequence

from tui_agent.context.editor import OpenFile
from tui_agent.errors import TuiAgentError
from tui_agent.files.gate import Gate, is_secret
from tui_agent.files.judging import Decisions, Judged, Undecided, judge
from tui_agent.files.key_formats import Hit, masked
from tui_agent.files.text import TextFile, md5
from tui_agent.store.state import Buffer, BuffersSlice


def open_files(
    gate: Gate, buffers: BuffersSlice, decisions: Decisions
) -> tuple[list[OpenFile], list[Undecided]]:
    """Every open text file, with its cursor and what is selected, and what the person has yet to say. Blocking.

    Binary and huge ones have no text to show, and a file that is a secret by its names is not for the model.
    """
    found: list[OpenFile] = []
    undecided: list[Undecided] = []
    for buffer in buffers.open:
        if buffer.note or _is_secret(gate, buffer.path):
            continue
        judged = _judged(buffer)
        try:
            text, hits = judged.shown(decisions)
        except Undecided as error:
            undecided.append(error)
        except TuiAgentError:
            continue  # the person said that it stays here
        else:
            found.append(_open_file(buffer, text, hits, buffer.path == buffers.active))
    return found, undecided


def _is_secret(gate: Gate, path: str) -> bool:
    try:
        return gate.place(path, "read").secret
    except TuiAgentError:
        return is_secret(path)  # it is gone from the disk, or may not be read any more


def _judged(buffer: Buffer) -> Judged:
    data = buffer.mark + buffer.text.encode(buffer.encoding, errors="surrogatepass")
    return judge(buffer.path, data, TextFile(buffer.text, buffer.encoding, buffer.mark), named=False)


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
    """The hash of the text as it would be saved; that of the disk while nothing is unsaved."""
    if not buffer.unsaved:
        return buffer.disk
    return md5(buffer.mark + buffer.text.encode(buffer.encoding, errors="surrogatepass"))


def _selected(text: str, hits: Sequence[Hit], first: tuple[int, int], last: tuple[int, int]) -> str:
    """What is selected, from one (line, column) to another, without the parts of secrets in it."""
    lines = text.splitlines(keepends=True)
    start, end = (sum(map(len, lines[:line])) + column for line, column in (first, last))
    within = [
        Hit(max(hit.start, start) - start, min(hit.end, end) - start, hit.what)
        for hit in hits
        if hit.start < end and hit.end > start
    ]
    return masked(text[start:end], within)
