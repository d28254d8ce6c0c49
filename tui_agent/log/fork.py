"""Forks a session: copies its log up to a turn under a new id. Does not touch the workspace."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from tui_agent.edits.change import Checkpoint
from tui_agent.errors import SessionError
from tui_agent.files.names import display_path
from tui_agent.files.operating_system import read_start
from tui_agent.files.text import md5
from tui_agent.log import directory, log
from tui_agent.store import events as e
from tui_agent.store.events import Lasting


class ForkResult(Struct, frozen=True):
    """The new id, and the paths whose files on disk differ from those of its turn. `lost` are sentences about
    unreadable records, which are not copied."""

    id: str
    differing: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()

    @property
    def sentence(self) -> str:
        """Differing files and lost records, or ""."""
        return ". ".join(filter(None, (self._files, *self.lost)))

    @property
    def _files(self) -> str:
        if not self.differing:
            return ""
        names = ", ".join(display_path(path) for path in self.differing[:10])
        more = f" and {len(self.differing) - 10} more" if len(self.differing) > 10 else ""
        return f"These files changed after that turn and were not reverted: {names}{more}. Undo reverts them"


def fork(data: Path, session: str, turn: int | None = None) -> ForkResult:
    """Copies the events up to the end of `turn` (default: all). Raises SessionError.

    Changes applied after that turn stay on disk. The new session lists them as applies that can be undone.
    """
    source = directory.existing(data, session) / directory.LOG
    lost: list[str] = []
    events = list(log.events_of(source, lost))
    kept = _up_to(events, session, turn)
    later = applies_in_force(events, len(kept))
    entry = directory.read_entry(source.parent)
    workspace = Path(entry.workspace) if entry else Path()
    forked = ForkResult(directory.new_id(data), differing(workspace, later), tuple(lost))
    copied: list[Lasting] = [*kept, *(e.CheckpointMade(replace(point, picks=())) for point in later)]
    copied.append(e.SessionForked(session, forked.sentence))
    started = [event for event in kept if isinstance(event, e.TurnStarted)]
    values: dict[str, object] = {"turns": len(started)}
    if started:
        values["first_request"] = started[0].request[:200]
    if entry is not None:
        values |= {"workspace": entry.workspace, "started_from": entry.started_from}
        values["name"] = f"{entry.name} (fork)" if entry.name else ""
    write(data, forked.id, as_copied(copied, forked.id), **values)
    return forked


def as_copied(events: Sequence[Lasting], session: str) -> list[Lasting]:
    """`session` does not count the events of another session as its own."""
    return [
        replace(event, id=session, copied=len(events) - 1) if isinstance(event, e.SessionStarted) else event
        for event in events
    ]


def write(data: Path, session: str, events: Sequence[Lasting], **meta: object) -> None:
    """Raises SessionError; an incomplete session is removed."""
    folder = directory.folder_of(data, session)
    made = log.Log.create(folder / directory.LOG)
    failures: list[SessionError] = []
    made.append(events, lambda _: None, failures.append)
    made.set_meta(**meta)
    made.close()
    if failures:
        shutil.rmtree(folder, ignore_errors=True)
        raise failures[0]


def applies_in_force(events: Sequence[Lasting], start: int) -> list[Checkpoint]:
    points: dict[str, Checkpoint] = {}
    for event in events[start:]:
        match event:
            case e.CheckpointMade(checkpoint):
                points[checkpoint.id] = checkpoint
            case e.CheckpointUndone(name, undone) if name in points:
                points[name] = replace(points[name], undone=undone)
    return [point for point in points.values() if not point.undone]


def moved_since(log_path: Path, turn: int) -> list[Checkpoint]:
    """Applies whose effect on the files changed since the start of `turn`: those made or done again, newest
    first, then those undone. Blocking."""
    then: dict[str, bool] = {}
    now: dict[str, Checkpoint] = {}
    begun = False
    for event in log.events_of(log_path, []):
        match event:
            case e.TurnStarted(number) if number >= turn and not begun:
                begun, then = True, {name: point.undone for name, point in now.items()}
            case e.CheckpointMade(point):
                now[point.id] = point
            case e.CheckpointUndone(name, undone) if name in now:
                now[name] = replace(now[name], undone=undone)
    moved = [point for point in now.values() if begun and point.undone != then.get(point.id, True)]
    return [
        *reversed([point for point in moved if not point.undone]),
        *(point for point in moved if point.undone),
    ]


def differing(workspace: Path, points: Iterable[Checkpoint]) -> tuple[str, ...]:
    """Paths whose files differ from their state before the first of these applies."""
    before: dict[str, str] = {}
    for point in points:
        for step in point.files:
            before.setdefault(step.path, step.before)
    return tuple(path for path, key in before.items() if _hash(workspace / path) != key)


def _hash(path: Path) -> str:
    try:
        return md5(read_start(path))
    except OSError:
        return ""


def _up_to(events: Sequence[Lasting], session: str, turn: int | None) -> list[Lasting]:
    kept: list[Lasting] = []
    last = 0
    for event in events:
        if isinstance(event, e.TurnStarted):
            last = event.turn
            if turn is not None and event.turn > turn:
                break
        kept.append(event)
    if turn is not None and turn > last:
        raise SessionError(f"{session} has no turn {turn}", f"its last is {last}")
    return kept
