"""Undoing and redoing an apply, in any order: what came since is merged, never overwritten (E6)."""

from __future__ import annotations

import asyncio

from msgspec.structs import replace

from tui_agent.edits.change import Change, Checkpoint, FileStep
from tui_agent.edits.resolve import Conflict, OnDisk, after, picked, reopened, settled, undo
from tui_agent.errors import EditFailed, SessionError
from tui_agent.files.blobs import Blobs
from tui_agent.files.text import TextFile, decode
from tui_agent.session.journal import Journal
from tui_agent.session.texts import text_under
from tui_agent.session.writing import Target, Writing
from tui_agent.store import events as e
from tui_agent.store.state import ReviewSlice


class Undoing:
    def __init__(self, journal: Journal, blobs: Blobs, writing: Writing) -> None:
        self._journal = journal
        self._blobs = blobs
        self._writing = writing

    async def undo(self, name: str) -> None:
        """Take an apply back: the one named, or the last that stands. Raises `EditFailed` on a conflict."""
        await self._move(_named(self._review, name, undone=False), undone=True)

    async def redo(self, name: str) -> None:
        """Do an apply again: the one named, or the last that was undone."""
        await self._move(_named(self._review, name, undone=True), undone=False)

    def recorded_names(self) -> list[str]:
        """The names under which the last move of each checkpoint was written."""
        return [_batch_name(point, point.undone) for point in self._review.checkpoints]

    @property
    def _review(self) -> ReviewSlice:
        return self._journal.store.state.review

    async def _move(self, point: Checkpoint, undone: bool) -> None:
        steps = point.files if undone else tuple(FileStep(s.path, s.after, s.before) for s in point.files)
        targets = [target for step in steps if (target := await self._target(step)) is not None]

        def events(written: tuple[FileStep, ...]) -> list[e.Event]:
            word = "undone" if undone else "applied again"
            paths = ", ".join(step.path for step in steps)
            return [
                e.CheckpointUndone(point.id, undone, {step.path: step.after for step in written}),
                *self._changes(point, undone),
                e.ModelOwesNews(f"An applied change to {paths} was {word} by the person."),
            ]

        await self._writing.write(_batch_name(point, undone), targets, events)

    async def _target(self, step: FileStep) -> Target | None:
        """What a file is to become for `step.after` to be `step.before` again; None where it is so already."""
        now = await self._writing.current(step.path)
        before, after_text = await asyncio.to_thread(self._texts, step)
        decided = await asyncio.to_thread(undo, step, before, after_text, OnDisk(now.text, now.md5))
        if isinstance(decided, Conflict):
            raise EditFailed(
                f"Nothing was written, {decided.path}: {decided.reason}",
                "change it by hand, or leave it as it is",
            )
        if not decided.needed:
            return None
        if now.text is None:
            now = replace(now, stored=await asyncio.to_thread(self._stored, step.before))
        return Target(now, decided.text)

    def _texts(self, step: FileStep) -> tuple[str | None, str | None]:
        return text_under(self._blobs, step.before), text_under(self._blobs, step.after)

    def _stored(self, key: str) -> TextFile:
        return decode(self._blobs.get(key))

    def _changes(self, point: Checkpoint, undone: bool) -> list[e.Event]:
        names = dict.fromkeys(pick.change for pick in point.picks)
        found = [change for name in names if (change := self._review.change(name)) is not None]
        return [_moved(change, point, undone) for change in found]


def _moved(change: Change, point: Checkpoint, undone: bool) -> e.ChangeMoved:
    if undone:
        return e.ChangeMoved(change.id, *reopened(change, point.picks))
    hunks = after(change.hunks, picked(change, point.picks), "applied")
    return e.ChangeMoved(change.id, settled(hunks), hunks)


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
