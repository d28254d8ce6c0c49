"""Base files: what `base_files` names goes into the system prompt, once (C1)."""

from __future__ import annotations

import asyncio

from tui_agent.errors import TuiAgentError
from tui_agent.files.gate import read
from tui_agent.files.text import decode
from tui_agent.turn.desk import Desk
from tui_agent.workspace.patterns import Pattern, compile_pattern

MAX_FILES = 10
MAX_BYTES = 64 * 1024


async def read_base_files(desk: Desk) -> list[tuple[str, str]]:
    """(path, text) of every file that a pattern of `base_files` fits, in the order of the paths."""
    return await asyncio.to_thread(_read, desk)


def _read(desk: Desk) -> list[tuple[str, str]]:
    compiled = [compile_pattern(pattern) for pattern in desk.settings.base_files]
    patterns = [pattern for pattern in compiled if isinstance(pattern, Pattern)]
    paths = [path for path in desk.workspace.index.paths if any(pattern.fits(path) for pattern in patterns)]
    found: list[tuple[str, str]] = []
    for path in paths[:MAX_FILES]:
        try:
            found.append((path, decode(read(desk.workspace.gate, path, MAX_BYTES)).text))
        except TuiAgentError:
            continue  # a base file that cannot be read is not there
    return found
