"""Instruction files (C6) and base files (C1): which are in force for what was read and changed so far."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Literal

from tui_agent.context.instructions import YOURS, ContextFile, Folder, folders
from tui_agent.context.loaded import cost
from tui_agent.files.gate import is_secret
from tui_agent.store import events as e
from tui_agent.store.state import InstructionFile, State
from tui_agent.turn.base_files import read_base_files
from tui_agent.turn.desk import Desk, Gathered
from tui_agent.workspace.patterns import Pattern, compile_pattern


async def instruct(desk: Desk, gathered: Gathered) -> AsyncGenerator[e.Event, None]:
    """Look which instruction files are in force now, and say so where that has changed."""
    places = await asyncio.to_thread(_places, desk, _touched(desk.state(), gathered))
    # what the index does not have is new, or ignored
    unlisted = [path for _, paths in places for path in paths if not desk.workspace.index.contains(path)]
    hidden = await desk.workspace.ignored(unlisted) if unlisted else set()
    found, left_out = await asyncio.to_thread(_look, desk, places, hidden)
    base = await asyncio.to_thread(read_base_files, desk)
    taken = {file.path for file in found}
    gathered.contexts = [*found, *(file for file in base if file.path not in taken)]
    rows = (*map(_row, gathered.contexts), *left_out)
    before = desk.state().instructions
    if rows == before:
        return
    yield e.InstructionsRead(rows)
    for sentence in _notices(before, rows):
        yield e.NoticeGiven(*sentence)


def _touched(state: State, gathered: Gathered) -> list[str]:
    """Every file that was read or changed this session, in the order of their paths."""
    changed = {change.path for change in state.review.changes}
    loaded = {file.path for file in gathered.files}
    return sorted({*state.known.files, *changed, *loaded})


def _places(desk: Desk, paths: Sequence[str]) -> list[tuple[Folder, list[str]]]:
    """The instruction files that there are, by folder, in the order of their names."""
    names = desk.settings.instructions.names
    root = str(desk.workspace.root)
    found = []
    for folder in folders(desk.start_folder, paths):
        present = desk.texts.present(f"{root}/{folder.path}" if folder.path else root, names)
        if present:
            found.append((folder, [f"{folder.path}/{name}" if folder.path else name for name in present]))
    return found


def _look(
    desk: Desk, places: Sequence[tuple[Folder, list[str]]], hidden: set[str]
) -> tuple[list[ContextFile], list[InstructionFile]]:
    """Of each folder the first that may be used, and those before it that may not."""
    found = list(_own(desk))
    left_out: list[InstructionFile] = []
    for folder, paths in places:
        for path in paths:
            file = _read(desk, folder, path, hidden)
            if isinstance(file, ContextFile):
                found.append(file)
                break
            left_out.append(file)
    return found, left_out


def _own(desk: Desk) -> Iterator[ContextFile]:
    """The first of the person's own, in the folder of their settings."""
    names = desk.settings.instructions.names if desk.user_folder else ()
    for name in names:
        path = Path(desk.user_folder or "") / name
        if not path.is_file():
            continue
        text = desk.texts.get_own(path, desk.settings.instructions.max_bytes)
        if not text.fault:
            yield ContextFile(str(path), "", YOURS, text.text, text.md5)
            return


def _read(desk: Desk, folder: Folder, path: str, hidden: set[str]) -> ContextFile | InstructionFile:
    """The file, or a row that says why it is left alone."""
    settings = desk.settings.instructions
    why = ""
    if any(pattern.fits(path) for pattern in _patterns(settings.exclude)):
        why = "excluded by instructions.exclude"
    elif path in hidden:
        why = "ignored by git"
    elif is_secret(path):
        why = "it looks like a secret"
    if not why:
        text = desk.texts.get(desk.workspace.gate, path, settings.max_bytes)
        why = text.fault
        if not why:
            return ContextFile(path, folder.path, folder.why, text.text, text.md5)
    return InstructionFile(path, folder.path, folder.why, left_out=why)


def _patterns(texts: Iterable[str]) -> list[Pattern]:
    """A pattern without a slash means a file of that name anywhere, as in an ignore file."""
    compiled = [compile_pattern(text if "/" in text else f"**/{text}") for text in texts]
    return [pattern for pattern in compiled if isinstance(pattern, Pattern)]


def _row(file: ContextFile) -> InstructionFile:
    return InstructionFile(
        file.path, file.folder, file.why, file.md5, cost(len(file.text.encode(errors="replace")), 0)
    )


def _notices(
    before: Sequence[InstructionFile], now: Sequence[InstructionFile]
) -> Iterator[tuple[Literal["info", "warning"], str]]:
    known = {(row.path, row.left_out) for row in before}
    new = [row for row in now if (row.path, row.left_out) not in known]
    in_force = [row.path for row in new if not row.left_out]
    if in_force:
        yield "info", f"Instructions in force: {', '.join(in_force)}"
    for row in new:
        if row.left_out:
            yield "warning", f"Instructions in {row.path} are left alone: {row.left_out}"
