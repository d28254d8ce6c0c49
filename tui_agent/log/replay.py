"""The state that a log leads to: from its snapshot and what came after, or from all of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from sqlite3 import Connection

from msgspec import Struct

from tui_agent.log import database, pages, records, snapshot
from tui_agent.log.log import growing_of
from tui_agent.store.events import Lasting
from tui_agent.store.fold import fold_all
from tui_agent.store.state import State


class Read(Struct, frozen=True):
    """A state, the number of the last record in it, how many came after the snapshot, and what could not be read."""

    state: State
    number: int = 0
    folded: int = 0
    lost: tuple[str, ...] = ()


def read_state(path: Path) -> Read:
    """The state of the session whose log lies at `path`, with what was growing. Raises SessionError."""
    folder = path.parent
    with closing(database.connect_to_read(path)) as connection:
        last = database.last_number(connection)
        lost: list[str] = []
        kept = snapshot.load(folder)
        if kept is None or database.checksum_of(connection, kept.number) not in (kept.checksum, None):
            pages.forget(folder)
            kept = snapshot.Snapshot(0, 0, State())
        if kept.number > last:
            lost.append(_cut_off(last, kept.number))
        state = fold_all(_events_after(connection, kept.number, lost), kept.state)
        growing, lost_growing = growing_of(connection)
        state = fold_all(growing, state)
    number = max(last, kept.number)
    return Read(state, number, number - kept.number, (*lost, *lost_growing))


def _events_after(connection: Connection, number: int, lost: list[str]) -> Iterator[Lasting]:
    """The events behind a record; a sentence for each that is missing goes into `lost`."""
    numbers = [number]
    for record in database.read_records(connection, number):
        lost += records.gap(numbers[-1], record.number)
        numbers[0] = record.number
        found = records.lasting(record)
        if isinstance(found, str):
            lost.append(found)
        else:
            yield found


def _cut_off(last: int, there_was: int) -> str:
    """The log is shorter than it was; its records go on behind those that the snapshot has seen."""
    (sentence,) = records.gap(last, there_was + 1)
    return f"{sentence} at the end of the log; what they said is here, from a snapshot"
