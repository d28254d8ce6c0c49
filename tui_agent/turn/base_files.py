"""Base files: what `base_files` names is in the system prompt."""

from __future__ import annotations

import os
from collections.abc import Iterator

from tui_agent.turn.desk import Desk
from tui_agent.turn.texts import Text
from tui_agent.workspace.patterns import Pattern, compile_pattern

MAX_FILES = 10
MAX_BYTES = 64 * 1024


def read_base_files(desk: Desk) -> Iterator[tuple[str, Text]]:
    """Every file that a pattern of `base_files` fits, in the order of the paths; for a thread.

    Those that are too many have that as their fault.
    """
    root = desk.workspace.root
    there = [path for path in base_paths(desk) if os.path.lexists(root / path)]
    for number, path in enumerate(there):
        if number < MAX_FILES:
            yield path, desk.texts.get(desk.workspace.gate, path, MAX_BYTES, desk.state().secrets)
        else:
            yield path, Text(fault=f"only {MAX_FILES} base files are used")


def base_paths(desk: Desk) -> list[str]:
    """The paths of the index that `base_files` names."""
    compiled = [compile_pattern(pattern) for pattern in desk.settings.base_files]
    patterns = [pattern for pattern in compiled if isinstance(pattern, Pattern)]
    index = desk.workspace.index
    return sorted({path for pattern in patterns for path in index.match(pattern, MAX_FILES * 2).paths})
