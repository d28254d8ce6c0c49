"""Forking a session: a copy of its log up to a turn, under an id of its own. Files on disk stay as they are."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from msgspec.structs import replace

from tui_agent.errors import SessionError
from tui_agent.session import catalog, log
from tui_agent.store.events import Lasting, SessionStarted, TurnStarted


def fork(data: Path, session: str, turn: int | None = None) -> str:
    """Copy the events up to the end of `turn` (None: all) to a new session; its id."""
    source = catalog.folder_of(data, session) / catalog.LOG
    if not source.exists():
        raise SessionError(f"There is no session {session}", "`tui-agent sessions list --all` shows them")
    kept = _up_to(log.load(source).events, session, turn)
    new = catalog.new_id()
    copy = log.Log.create(catalog.folder_of(data, new) / catalog.LOG)
    failures: list[SessionError] = []
    renamed = [replace(event, id=new) if isinstance(event, SessionStarted) else event for event in kept]
    copy.append(renamed, lambda _: None, failures.append)
    copy.set_meta(**_meta(catalog.read_entry(source.parent), kept))
    copy.close()
    if failures:
        raise failures[0]
    return new


def _up_to(events: Sequence[Lasting], session: str, turn: int | None) -> list[Lasting]:
    kept: list[Lasting] = []
    last = 0
    for event in events:
        if isinstance(event, TurnStarted):
            last = event.turn
            if turn is not None and event.turn > turn:
                break
        kept.append(event)
    if turn is not None and turn > last:
        raise SessionError(f"{session} has no turn {turn}", f"its last is {last}")
    return kept


def _meta(entry: catalog.Entry | None, events: Sequence[Lasting]) -> dict[str, object]:
    started = [event for event in events if isinstance(event, TurnStarted)]
    values: dict[str, object] = {"turns": len(started)}
    if started:
        values["first_request"] = started[0].request[:200]
    if entry is not None:
        values |= {"workspace": entry.workspace, "started_from": entry.started_from}
        values["name"] = f"{entry.name} (fork)" if entry.name else ""
    return values
