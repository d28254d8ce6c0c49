"""Bundled files: what belongs to a changed file, as the model reads it."""

from __future__ import annotations

from collections.abc import Sequence

from tui_agent.context.blocks import inert, name
from tui_agent.context.loaded import LoadedFile, numbered


def section(files: Sequence[LoadedFile]) -> str:
    """The `## AUTO-BUNDLED FILES` section; empty without any. `action` of a file says what it belongs to."""
    if not files:
        return ""
    return "## AUTO-BUNDLED FILES\n" + "\n\n".join(_entry(file) for file in files)


def _entry(file: LoadedFile) -> str:
    facts = f"{file.size} bytes, {file.lines} lines, md5 {file.md5}"
    why = f"\n{name(file.action)}" if file.action else ""
    return f"### {name(file.path)} ({facts}){why}\n{inert(numbered(file.text))}"
