"""Instruction files and base files in force for the files read and changed in the session."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Literal

from msgspec import Struct

from tui_agent.context.file_contents import LoadedFile, cost
from tui_agent.context.prompt import ContextFile
from tui_agent.files.gate import UndecidedSecret
from tui_agent.store import events as e
from tui_agent.store.state import InstructionFile, State
from tui_agent.tools.load_files import ask_about_secret
from tui_agent.tools.tool import Emit
from tui_agent.turn.context import Text, TurnContext
from tui_agent.workspace.patterns import Pattern, compile_pattern

Kind = Literal["instructions", "base"]
MAX_BASE_FILES = 10
MAX_BASE_BYTES = 64 * 1024
MOST_ASKED = 10
YOURS = "your own, for every workspace"
ROOT = "the root of the workspace"
START = "the folder you started in"
BASE = "a base file"


class Folder(Struct, frozen=True):
    """Relative to the root, and the reason; `""` is the root."""

    path: str
    why: str


def folders(start: str, paths: Iterable[str]) -> list[Folder]:
    """Returns the root, the start folder and all parent folders of `paths`, general folders first."""
    found = {"": ROOT}
    for path in paths:
        parts = path.split("/")[:-1]
        for depth in range(1, len(parts) + 1):
            found.setdefault("/".join(parts[:depth]), f"for {path}")
    if start not in ("", "."):
        found.setdefault(start, START)
    ordered = sorted(found, key=lambda folder: (folder.count("/") + bool(folder), folder))
    return [Folder(folder, found[folder]) for folder in ordered]


async def instruct(context: TurnContext, files: Sequence[LoadedFile], emit: Emit) -> tuple[ContextFile, ...]:
    paths = _touched(context.core.state, files)
    places, unlisted, look = await asyncio.to_thread(_first_look, context, paths)
    hidden = await context.core.workspace.ignored(unlisted) if unlisted else set()
    if look is None:
        look = await asyncio.to_thread(_scan_folders, context, places, hidden)
    for _ in range(MOST_ASKED):
        undecided = next((found for found in look.undecided if not found.named), None)
        if undecided is None or context.ask is None:
            break
        await ask_about_secret(context, undecided, emit)
        look = await asyncio.to_thread(_scan_folders, context, places, hidden)
    read = (
        InstructionFile(
            one.path, one.folder, one.why, one.md5, cost(len(one.text.encode(errors="replace")), 0)
        )
        for one in look.found
    )
    rows, before = (*read, *look.left_out), context.core.state.instructions
    if rows != before:
        await emit(e.InstructionsRead(rows))
        known = {(row.path, row.left_out) for row in before}
        new = [row for row in rows if (row.path, row.left_out) not in known]
        if in_force := [row.path for row in new if not row.left_out]:
            await emit(e.NoticeGiven("info", f"Instructions in force: {', '.join(in_force)}"))
        for row in new:
            if row.left_out:
                sentence = f"Instructions in {row.path} are ignored: {row.left_out}"
                await emit(e.NoticeGiven("warning", sentence))
    return tuple(look.found)


def look_ahead(context: TurnContext) -> None:
    """Warms the cache for the next request. Blocking."""
    _first_look(context, _touched(context.core.state, ()))


def _touched(state: State, files: Sequence[LoadedFile]) -> list[str]:
    changed = {change.path for change in state.review.changes}
    return sorted({*state.known.files, *changed, *(file.path for file in files)})


def _first_look(
    context: TurnContext, paths: Sequence[str]
) -> tuple[list[tuple[Folder, list[str]]], list[str], _InstructionScan | None]:
    """Returns the places, their files missing from the index, and the result if none is missing. One thread
    call: frames would be drawn between two.
    """
    names, root = context.core.settings.instructions.names, str(context.core.workspace.root)
    places = []
    for folder in folders(context.start_folder, paths):
        present = context.texts.present(f"{root}/{folder.path}" if folder.path else root, names)
        if present:
            places.append((folder, [f"{folder.path}/{name}" if folder.path else name for name in present]))
    unlisted = [
        path for _, names in places for path in names if not context.core.workspace.index.contains(path)
    ]
    return places, unlisted, None if unlisted else _scan_folders(context, places, set())


class _InstructionScan:
    def __init__(self) -> None:
        self.found: list[ContextFile] = []
        self.left_out: list[InstructionFile] = []
        self.undecided: list[UndecidedSecret] = []
        self._real: set[str] = set()

    def take(self, path: Path, folder: Folder, name: str, text: Text, kind: Kind = "instructions") -> bool:
        """Ignores a second name of the same file."""
        if text.undecided is not None:
            self.undecided.append(text.undecided)
        if text.fault:
            self.left_out.append(InstructionFile(name, folder.path, folder.why, left_out=text.fault))
        elif text.text.strip() and (real := os.path.realpath(path)) not in self._real:
            self._real.add(real)
            self.found.append(ContextFile(name, folder.path, folder.why, text.text, text.md5, kind))
        return bool(text.text.strip())


def _scan_folders(
    context: TurnContext, places: Sequence[tuple[Folder, list[str]]], hidden: set[str]
) -> _InstructionScan:
    look, secrets, root = _InstructionScan(), context.core.state.secrets, context.core.workspace.root
    settings, model = context.core.settings.instructions, context.core.state.model
    most = settings.max_bytes
    if model.server and model.window_known:
        most = min(most, model.window // 2)
    # A pattern without a slash matches the name in any folder, as in an ignore file.
    compiled = [compile_pattern(text if "/" in text else f"**/{text}") for text in settings.exclude]
    excluded = [pattern for pattern in compiled if isinstance(pattern, Pattern)]
    for path in (context.core.folders.config / name for name in settings.names):
        if not path.is_file():
            continue
        text = context.texts.get_own(path, most, secrets)
        if look.take(path, Folder("", YOURS), str(path), text):
            break
    for folder, paths in places:
        for path in paths:
            if any(pattern.fits(path) for pattern in excluded):
                why = "excluded by instructions.exclude"
            else:
                why = "ignored by git" if path in hidden else ""
            read = partial(context.texts.get, context.core.workspace.gate, path, most, secrets)
            if look.take(root / path, folder, path, Text(fault=why) if why else read()):
                break
    patterns = [compile_pattern(pattern) for pattern in context.core.settings.base_files]
    index = context.core.workspace.index
    bases = {
        path
        for pattern in patterns
        if isinstance(pattern, Pattern)
        for path in index.match(pattern, MAX_BASE_FILES * 2).paths
    }
    there = [path for path in sorted(bases) if os.path.lexists(root / path)]
    for number, path in enumerate(there):
        text = Text(fault=f"only {MAX_BASE_FILES} base files are used")
        if number < MAX_BASE_FILES:
            text = context.texts.get(context.core.workspace.gate, path, MAX_BASE_BYTES, secrets)
        look.take(root / path, Folder("", BASE), path, text, "base")
    return look
