"""Base files: what `base_files` names stands in the system prompt (C1)."""

from __future__ import annotations

from tui_agent.context.instructions import BASE, ContextFile
from tui_agent.turn.desk import Desk
from tui_agent.turn.texts import Text
from tui_agent.workspace.patterns import Pattern, compile_pattern

MAX_FILES = 10
MAX_BYTES = 64 * 1024


def read_base_files(desk: Desk) -> tuple[list[ContextFile], dict[str, Text]]:
    """Every file that a pattern of `base_files` fits, in the order of the paths, and those left out as secrets; for a
    thread. One that cannot be read is not there."""
    found, secret = [], {}
    for path in base_paths(desk):
        text = desk.texts.get(desk.workspace.gate, path, MAX_BYTES, desk.state().secrets)
        if text.undecided is not None:
            secret[path] = text
        elif not text.fault:
            found.append(ContextFile(path, "", BASE, text.text, text.md5, "base"))
    return found[:MAX_FILES], secret


def base_paths(desk: Desk) -> list[str]:
    """The paths of the index that `base_files` names."""
    compiled = [compile_pattern(pattern) for pattern in desk.settings.base_files]
    patterns = [pattern for pattern in compiled if isinstance(pattern, Pattern)]
    index = desk.workspace.index
    return sorted({path for pattern in patterns for path in index.match(pattern, MAX_FILES * 2).paths})
