"""Base files: what `base_files` names stands in the system prompt (C1)."""

from __future__ import annotations

from tui_agent.context.instructions import BASE, ContextFile
from tui_agent.files.gate import is_secret
from tui_agent.turn.desk import Desk
from tui_agent.workspace.patterns import Pattern, compile_pattern

MAX_FILES = 10
MAX_BYTES = 64 * 1024


def read_base_files(desk: Desk) -> list[ContextFile]:
    """Every file that a pattern of `base_files` fits, in the order of the paths; for a thread.

    A base file that cannot be read, or looks like a secret, is not there.
    """
    found = []
    for path in base_paths(desk):
        text = desk.texts.get(desk.workspace.gate, path, MAX_BYTES)
        if not text.fault and not is_secret(path):
            found.append(ContextFile(path, "", BASE, text.text, text.md5, "base"))
    return found[:MAX_FILES]


def base_paths(desk: Desk) -> list[str]:
    """The paths of the index that `base_files` names."""
    compiled = [compile_pattern(pattern) for pattern in desk.settings.base_files]
    patterns = [pattern for pattern in compiled if isinstance(pattern, Pattern)]
    index = desk.workspace.index
    return sorted({path for pattern in patterns for path in index.match(pattern, MAX_FILES * 2).paths})
