"""The whole contents of a session's log, as the program reads them."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from tui_agent.log import database
from tui_agent.log.log import Log, events_of, growing_of
from tui_agent.store.event import Growing, Lasting


class LogContents(NamedTuple):
    """`lost` has a sentence for each omission."""

    events: list[Lasting]
    growing: list[Growing]
    lost: list[str]


def load(log: Log | Path) -> LogContents:
    """Waits for the writes of an open log."""
    if isinstance(log, Log):
        log.count()
        log = log.path
    lost: list[str] = []
    events = list(events_of(log, lost))
    with closing(database.connect_to_read(log)) as connection:
        growing, lost_growing = growing_of(connection)
    return LogContents(events, growing, lost + lost_growing)
