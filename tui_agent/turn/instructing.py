"""Instruction files and base files: which are in force for what was read and changed so far."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Literal

from tui_agent.context.instructions import BASE, YOURS, ContextFile, Folder, folders
from tui_agent.context.loaded import cost
from tui_agent.files.judging import Undecided
from tui_agent.store import events as e
from tui_agent.store.state import InstructionFile, State
from tui_agent.turn.base_files import read_base_files
from tui_agent.turn.desk import Desk, Gathered
from tui_agent.turn.secrets import ask
from tui_agent.turn.texts import Text
from tui_agent.workspace.patterns import Pattern, compile_pattern

Kind = Literal["instructions", "base"]
#: Of so many instruction files with secrets the person is asked before one request.
MOST_ASKED = 10


async def instruct(desk: Desk, gathered: Gathered) -> AsyncGenerator[e.Event, None]:
    """Look which instruction files are in force now, and say so where that has changed."""
    places = await asyncio.to_thread(_places, desk, _touched(desk.state(), gathered))
    # what the index does not have is new, or ignored
    unlisted = [path for _, paths in places for path in paths if not desk.workspace.index.contains(path)]
    hidden = await desk.workspace.ignored(unlisted) if unlisted else set()
    look = await asyncio.to_thread(_look, desk, places, hidden)
    for _ in range(MOST_ASKED):
        undecided = next((found for found in look.undecided if not found.named), None)
        if undecided is None or desk.ask is None:
            break
        async for event in ask(desk, gathered, undecided):
            yield event
        look = await asyncio.to_thread(_look, desk, places, hidden)
    gathered.contexts = look.found
    rows = (*map(_row, look.found), *look.left_out)
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


class _Look:
    """What there is now: the files that may be used, rows for those that may not, and what a person could allow."""

    def __init__(self) -> None:
        self.found: list[ContextFile] = []
        self.left_out: list[InstructionFile] = []
        self.undecided: list[Undecided] = []
        self._real: set[str] = set()

    def take(self, path: Path, folder: Folder, name: str, text: Text, kind: Kind = "instructions") -> bool:
        """Whether it may be used and says something. A file that another name leads to is there already."""
        if text.undecided is not None:
            self.undecided.append(text.undecided)
        if text.fault:
            self.left_out.append(InstructionFile(name, folder.path, folder.why, left_out=text.fault))
        elif text.text.strip() and (real := os.path.realpath(path)) not in self._real:
            self._real.add(real)
            self.found.append(ContextFile(name, folder.path, folder.why, text.text, text.md5, kind))
        return bool(text.text.strip())


def _look(desk: Desk, places: Sequence[tuple[Folder, list[str]]], hidden: set[str]) -> _Look:
    """Of each folder the first that may be used, and those before it that may not; then the base files."""
    look, secrets, root = _Look(), desk.state().secrets, desk.workspace.root
    settings = desk.settings.instructions
    for path in _own(desk):
        text = desk.texts.get_own(path, settings.max_bytes, secrets)
        if look.take(path, Folder("", YOURS), str(path), text):
            break
    for folder, paths in places:
        for path in paths:
            why = _why_not(desk, path, hidden)
            read = partial(desk.texts.get, desk.workspace.gate, path, settings.max_bytes, secrets)
            if look.take(root / path, folder, path, Text(fault=why) if why else read()):
                break
    for path, text in read_base_files(desk):
        look.take(root / path, Folder("", BASE), path, text, "base")
    return look


def _own(desk: Desk) -> Iterator[Path]:
    """The person's own, in the folder of their settings."""
    names = desk.settings.instructions.names if desk.user_folder else ()
    paths = (Path(desk.user_folder or "") / name for name in names)
    return (path for path in paths if path.is_file())


def _why_not(desk: Desk, path: str, hidden: set[str]) -> str:
    if any(pattern.fits(path) for pattern in _patterns(desk.settings.instructions.exclude)):
        return "excluded by instructions.exclude"
    return "ignored by git" if path in hidden else ""


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
