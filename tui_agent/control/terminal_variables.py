"""The environment variables that describe a terminal, and change with it."""

from __future__ import annotations

import os
from collections.abc import Mapping

NAMES = (
    *("TERM", "COLORTERM", "NO_COLOR", "TERM_PROGRAM", "TERM_PROGRAM_VERSION", "TMUX", "TMUX_PANE", "STY"),
    *("KITTY_WINDOW_ID", "VTE_VERSION", "SSH_TTY", "SSH_CONNECTION", "DISPLAY", "WAYLAND_DISPLAY"),
)
#: The size that takes precedence over the terminal's own.
_SIZE = ("COLUMNS", "LINES")
_LONGEST = 4096


def present() -> dict[str, str]:
    """The variables of this process's terminal, without bytes that are not UTF-8."""
    found = {name: os.environ[name] for name in NAMES if name in os.environ}
    return {name: value.encode(errors="replace").decode() for name, value in found.items()}


def adopt(variables: Mapping[str, object]) -> None:
    """Replaces this process's variables by those of another terminal; others are ignored."""
    for name in (*NAMES, *_SIZE):
        os.environ.pop(name, None)
    for name in NAMES:
        value = variables.get(name)
        if isinstance(value, str) and len(value) <= _LONGEST and "\0" not in value:
            os.environ[name] = value
