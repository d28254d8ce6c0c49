"""The open buffers as the model's context wants them."""

from __future__ import annotations

from tui_agent.context.editor import OpenFile
from tui_agent.store.state import Buffer, BuffersSlice


def open_files(buffers: BuffersSlice) -> list[OpenFile]:
    """Every open text file, with its cursor and what is selected; binary and huge ones have no text to show."""
    return [_open_file(buffer, buffer.path == buffers.active) for buffer in buffers.open if not buffer.note]


def _open_file(buffer: Buffer, active: bool) -> OpenFile:
    first, last = sorted((buffer.cursor, buffer.anchor))
    return OpenFile(
        path=buffer.path,
        text=buffer.text,
        md5=buffer.disk,
        line=first[0] + 1,
        end_line=last[0] + 1,
        selection=_selected(buffer.text.splitlines(keepends=True), first, last),
        unsaved=buffer.unsaved,
        active=active,
        mtime=buffer.mtime,
    )


def _selected(lines: list[str], first: tuple[int, int], last: tuple[int, int]) -> str:
    chosen = lines[first[0] : last[0] + 1]
    if first == last or not chosen:
        return ""
    if first[0] == last[0]:
        return chosen[0][first[1] : last[1]]
    middle = "".join(chosen[1:-1])
    end = chosen[-1][: last[1]] if len(chosen) > last[0] - first[0] else ""
    return chosen[0][first[1] :] + middle + end
