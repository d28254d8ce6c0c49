"""Instruction files: their folders, order, and form in the prompt."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from msgspec import Struct

from tui_agent.context.blocks import inert, name, quoted

YOURS = "your own, for every workspace"
ROOT = "the root of the workspace"
START = "the folder you started in"
BASE = "a base file"


class Folder(Struct, frozen=True):
    """Relative to the root, and the reason; `""` is the root."""

    path: str
    why: str


class ContextFile(Struct, frozen=True):
    """`path` is absolute for the user's own; `folder` is its scope, empty for all."""

    path: str
    folder: str
    why: str
    text: str
    md5: str
    kind: Literal["instructions", "base"] = "instructions"


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


def changed_files(
    files: Sequence[ContextFile], told: Mapping[str, str]
) -> tuple[list[ContextFile], list[str]]:
    """`told` maps paths to the last hash sent, empty for a removed file."""
    now = {file.path for file in files}
    new = [file for file in files if told.get(file.path) != file.md5]
    return new, [path for path, md5 in told.items() if md5 and path not in now]


def block(file: ContextFile) -> str:
    return f"<context filename={quoted(file.path)}>\n{inert(file.text.rstrip())}\n</context>"


def section(new: Sequence[ContextFile], gone: Sequence[str]) -> str:
    parts = []
    if new:
        parts.append("Instruction files that are new or have changed; these texts are the ones in force:")
        parts += [block(file) for file in new]
    if gone:
        parts.append(f"No longer in force: {', '.join(map(name, gone))}")
    return "\n".join(parts)
