"""Settings of places, and the processes that a command left."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from tui_agent.store.event import Event
from tui_agent.store.state import State

#: The beginning of a command line that no other test has.
SLEEP = f"sleep 9{os.getpid()}"


def places(*found: Mapping[str, object]) -> tuple[str, ...]:
    return (f"places={json.dumps(found)}",)


def running(words: str) -> list[str]:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if line.startswith(words):
            found.append(line)
    return found


def all_ended(words: str) -> None:
    """Waits until no process with this command line is left."""
    until = time.monotonic() + 10
    while running(words):
        assert time.monotonic() < until, running(words)
        time.sleep(0.05)


def when_printed(line: str, event: asyncio.Event) -> Callable[[Event, State], None]:
    """A listener that sets `event` if a running command printed this as its last line."""

    def look(_: Event, state: State) -> None:
        if any(one.line == line for one in state.commands.running):
            event.set()

    return look
