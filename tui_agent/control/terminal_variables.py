"""The environment variables that describe a terminal, and change with it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress

from tui_agent.control.launcher import TERMINAL_VARIABLES

#: The size that takes precedence over the terminal's own.
_SIZE = ("COLUMNS", "LINES")
_LONGEST = 4096


def adopt(variables: Mapping[str, object]) -> None:
    """Replaces this process's variables by those of another terminal; others are ignored."""
    for name in (*TERMINAL_VARIABLES, *_SIZE):
        os.environ.pop(name, None)
    for name in TERMINAL_VARIABLES:
        value = variables.get(name)
        if isinstance(value, str) and len(value) <= _LONGEST and "\0" not in value:
            with suppress(UnicodeEncodeError):
                os.environ[name] = value
