"""Undoing and redoing an apply, in any order: what came since is merged, never overwritten (E6)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from tui_agent.edits.change import Change, ChangeState, Checkpoint, FileStep, HunkState
from tui_agent.edits.merge import merge
from tui_agent.errors import EditFailed, SessionError
from tui_agent.files.blobs import Blobs
from tui_agent.files.text import TextFile, decode
from tui_agent.session.journal import Journal
from tui_agent.session.writing import Current, Target, Writing
from tui_agent.store import events as e
from tui_agent.store.state import ReviewSlice


class Undoing:
    def __init__(self, journal: Journal, blobs: Blobs, writing: Writing) -> None:
        self._journal = journal
        self._blobs = blobs
        self._writing = writing

    async def undo(self, name: str) -> None:
        """Take an apply back: the one named, or the last that stands. Raises `EditFailed` on a conflict."""
        point = _named(self._review, name, undone=False)
        await self._move(point, undone=True)

    async def redo(self, name: str) -> None:
        """Do an apply again: the one named, or the last that was undone."""
        point = _named(self._review, name, undone=True)
        await self._move(point, undone=False)

    def recorded_names(self) -> list[str]:
        """The names under which undos and redos that the log knows were written."""
        return [_batch_name(point, point.undone) for point in self._review.checkpoints]

    @property
    def _review(self) -> ReviewSlice:
        return self._journal.store.state.review

    async def _move(self, point: Checkpoint, undone: bool) -> None:
        targets, conflicts = [], []
        for step in point.files:
            start, goal = (step.after, step.before) if undone else (step.before, step.after)
            now = await self._writing.current(step.path)
            try:
                targets.append(await asyncio.to_thread(self._target, now, start, goal))
            except EditFailed as error:
                conflicts.append(error)
        if conflicts:
            raise EditFailed(f"Nothing was written: {conflicts[0].what}", conflicts[0].remedy)

        def events(steps: tuple[FileStep, ...]) -> list[e.Event]:
            written = {step.path: step.after for step in steps}
            word = "undone" if undone else "applied again"
            paths = ", ".join(step.path for step in steps)
            return [
                e.CheckpointUndone(point.id, undone, written),
                *self._changes(point, undone),
                e.ModelOwesNews(f"An applied change to {paths} was {word} by the person."),
            ]

        await self._writing.write(_batch_name(point, undone), targets, events)

    def _target(self, now: Current, start: str, goal: str) -> Target:
        """What the file is to become so that `start` becomes `goal` and all that came since stays."""
        stored = self._stored(goal or start)
        if now.md5 == start:
            return Target(
                now if now.text is not None else _as_stored(now, stored), stored.text if goal else None
            )
        if not goal or not start or now.text is None:
            raise EditFailed(f"{now.path} changed since", "bring it to where it was, or leave it as it is")
        merged = merge(self._stored(start).text, now.text, stored.text)
        if merged.conflicts:
            raise EditFailed(f"{now.path} changed in the same place since", "change it by hand")
        return Target(now, merged.text)

    def _stored(self, key: str) -> TextFile:
        return decode(self._blobs.get(key))

    def _changes(self, point: Checkpoint, undone: bool) -> Sequence[e.Event]:
        names = dict.fromkeys(pick.change for pick in point.picks)
        found = [change for name in names if (change := self._review.change(name)) is not None]
        return [_moved(change, point, undone) for change in found]


def _as_stored(now: Current, stored: TextFile) -> Current:
    return Current(now.path, None, "", stored)


def _moved(change: Change, point: Checkpoint, undone: bool) -> e.ChangeMoved:
    mine = {pick.hunk for pick in point.picks if pick.change == change.id}
    decided: HunkState = "pending" if undone else "applied"
    hunks = tuple(decided if place in mine else state for place, state in enumerate(change.hunks))
    state: ChangeState = "undone" if undone else "applied"
    if undone and "applied" in hunks:
        state = "pending"
    if not undone and "pending" in hunks:
        state = "pending"
    return e.ChangeMoved(change.id, state, hunks)


def _named(review: ReviewSlice, name: str, undone: bool) -> Checkpoint:
    word, done = ("redo", "undone") if undone else ("undo", "applied")
    points = [point for point in review.checkpoints if point.undone is undone]
    if not name and points:
        return points[-1]
    found = next((point for point in points if point.id == name), None)
    if found is None:
        raise SessionError(f"There is nothing to {word}", f"only what was {done} can be")
    return found


def _batch_name(point: Checkpoint, undone: bool) -> str:
    return f"{point.id}-{'undone' if undone else 'redone'}"
