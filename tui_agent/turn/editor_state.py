"""The open buffers as the model's context wants them."""

from __future__ import annotations

from tui_agent.context.editor import OpenFile
from tui_agent.files.gate import is_secret
from tui_agent.files.text import md5
from tui_agent.store.state import Buffer, BuffersSlice


def open_files(buffers: BuffersSlice) -> list[OpenFile]:
    """Every open text file, with its cursor and what is selected.

    Binary and huge ones have no text to show, and what looks like a secret is not for the model (X1).
    """
    return [
        _open_file(buffer, buffer.path == buffers.active)
        for buffer in buffers.open
        if not buffer.note and not is_secret(buffer.path)
    ]


def _open_file(buffer: Buffer, active: bool) -> OpenFile:
    first, last = sorted((buffer.cursor, buffer.anchor))
    return OpenFile(
        path=buffer.path,
        text=buffer.text,
        md5=_hash(buffer),
        line=first[0] + 1,
        end_line=last[0] + 1,
        selection=_selected(buffer.text.splitlines(keepends=True), first, last),
        unsaved=buffer.unsaved,
        active=active,
        mtime=buffer.mtime,
    )


def _hash(buffer: Buffer) -> str:
    """The hash of the text as it would be saved; that of the disk while nothing is unsaved."""
    if not buffer.unsaved:
        return buffer.disk
    return md5(buffer.mark + buffer.text.encode(buffer.encoding, errors="surrogatepass"))


def _selected(lines: list[str], first: tuple[int, int], last: tuple[int, int]) -> str:
    chosen = lines[first[0] : last[0] + 1]
    if first == last or not chosen:
        return ""
    if first[0] == last[0]:
        return chosen[0][first[1] : last[1]]
    middle = "".join(chosen[1:-1])
    end = chosen[-1][: last[1]] if len(chosen) > last[0] - first[0] else ""
    return chosen[0][first[1] :] + middle + end
