"""Undo and redo of applies, in any order; later edits are merged, never overwritten.

An apply that another program overwrites with its earlier text is pending again.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from tui_agent.edits.change import (
    Change,
    Checkpoint,
    Diff,
    FileStep,
    Hunk,
    HunkState,
    Pick,
    counts,
    diff_of,
    hunks_under,
    text_under,
    texts_under,
)
from tui_agent.edits.merge import joined, merge
from tui_agent.edits.resolve import (
    Conflict,
    OnDisk,
    Write,
    applied_again,
    place,
    revert,
    taken_back,
    undo,
)
from tui_agent.errors import EditFailed, SessionError, TuiAgentError
from tui_agent.files.blobs import Blobs
from tui_agent.files.text import TextFile, decode
from tui_agent.log.core import Core
from tui_agent.log.journal import Journal
from tui_agent.processes.background import start_task
from tui_agent.review.apply import apply_named, next_name
from tui_agent.review.writer import (
    CurrentFile,
    Events,
    WriteOutcome,
    Writer,
    WriteTarget,
    as_written,
    batch_name,
    is_overwritten,
    outside,
)
from tui_agent.store import events as e
from tui_agent.store.event import Event
from tui_agent.store.files import KnownSlice
from tui_agent.store.state import ReviewSlice, State


class Preview(Struct, frozen=True):
    """A diff or a conflict; `goes` marks a removal."""

    diff: Diff
    conflict: str = ""
    merged: bool = False
    goes: bool = False


class UndoHistory:
    def __init__(self, journal: Journal, blobs: Blobs, writer: Writer) -> None:
        self._journal = journal
        self._blobs = blobs
        self._writer = writer

    @property
    def _review(self) -> ReviewSlice:
        return self._journal.store.state.review

    @property
    def _known(self) -> KnownSlice:
        return self._journal.store.state.known

    async def preview(self, name: str) -> list[Preview]:
        point = apply_named(self._review, name)
        steps = _steps(point)
        return await asyncio.to_thread(lambda: [self._preview(step) for step in steps])

    async def revert(self, changes: Sequence[Change], picks: Sequence[Pick]) -> None:
        """All or nothing; later edits stay."""
        targets: list[WriteTarget] = []
        moves: list[e.Lasting] = []
        taken: list[Pick] = []
        for change in changes:
            write, its_targets = await self._undone_write(change, picks)
            targets += its_targets
            numbers = [str(pick.hunk + 1) for pick in _picks_of(change, write.hunks) if pick.hunk is not None]
            if not numbers or len(numbers) == len(change.hunks):
                back = f"Your applied change to {change.path} was undone by the person."
            else:
                back = f"Of your applied change to {change.path} hunk {', '.join(numbers)} was undone by the person."
            moves += [
                e.ChangeMoved(change.id, write.state, write.hunks),
                e.ModelOwesNews(back),
            ]
            taken += _picks_of(change, write.hunks)
        name = next_name(self._review)
        turn = self._journal.store.state.turn.number

        def events(done: WriteOutcome) -> list[e.Lasting]:
            point = Checkpoint(name, turn, done.steps, tuple(taken), takes_back=True, folders=done.folders)
            return [e.CheckpointMade(point), *moves, *self._news(done, undone=True)]

        await self._write(name, targets, events)

    async def _write(self, name: str, targets: Sequence[WriteTarget], events: Events) -> None:
        made = {folder for point in self._review.checkpoints for folder in point.folders}
        gone = [target.now.path for target in targets if target.text is None]
        emptied = {folder for folder in made if any(path.startswith(f"{folder}/") for path in gone)}
        if lost := await self._writer.write(name, targets, events, emptied):
            raise EditFailed(
                f"{', '.join(lost)}: another program saved the same lines at the same time",
                "check the file and undo again, or leave it as it is",
            )

    async def _undone_write(self, change: Change, picks: Sequence[Pick]) -> tuple[Write, list[WriteTarget]]:
        path = place(change) if change.kind in ("create", "delete") else self._known.moved(place(change))
        now = await self._writer.current(path)
        base, new = await asyncio.to_thread(texts_under, self._blobs, change.base, change.new)
        decided = await asyncio.to_thread(revert, change, base, new, OnDisk(now.text, now.md5), picks)
        if isinstance(decided, Conflict):
            raise EditFailed(
                f"Nothing was written, {decided.path}: {decided.reason}",
                "change it by hand, or leave it as it is",
            )
        if now.text is None and change.base:
            now = replace(now, stored=await asyncio.to_thread(self._stored, change.base))
        if not decided.needed:
            return decided, []
        mode = self._mode_before(change, path) if now.text is None or decided.state == "undone" else None
        if not decided.rename_to:
            return decided, [WriteTarget(now, decided.text, mode=mode)]
        there = await self._writer.current(decided.rename_to)
        if there.text is not None:
            raise EditFailed(f"{decided.rename_to} exists again", "move one of the two away first")
        back = replace(there, stored=now.stored)
        mode = now.mode if change.executable is None else self._mode_before(change, decided.rename_to)
        return decided, [WriteTarget(now, None), WriteTarget(back, decided.text, mode=mode, like=now.path)]

    def _mode_before(self, change: Change, path: str) -> int | None:
        for point in reversed(self._review.checkpoints):
            if not point.takes_back and any(pick.change == change.id for pick in point.picks):
                for step in point.files:
                    if step.path == path and (not step.after or change.executable is not None):
                        return step.mode
        return None

    async def move(self, name: str, *, redo: bool) -> None:
        """The last apply by default. Raises `EditFailed` on a conflict, which is added to the review."""
        points = self._review.checkpoints
        if name:
            found = [point for point in points if point.undone is redo and point.id == name]
        else:
            found = [point for point in points if (point.undone != point.takes_back) is redo]
        if not found:
            word, remedy = ("redo", "undo an apply first") if redo else ("undo", "apply a change first")
            raise SessionError(f"There is nothing to {word}", remedy)
        point = found[-1]
        undone, steps = not point.undone, _steps(point)
        results = await asyncio.to_thread(lambda: [(step, *self._target(step)) for step in steps])
        conflicts = [(step, decided) for step, decided, _ in results if isinstance(decided, Conflict)]
        if conflicts:
            waiting = {change.id: change for change in self._review.changes}
            for step, conflict in conflicts:
                name = f"{point.id}.{step.path}"
                if name in waiting and waiting[name].state == "conflict":
                    continue
                parts = await asyncio.to_thread(hunks_under, self._blobs, step.after, step.before)
                change = _conflicting(
                    name, self._journal.store.state.turn.number, step, conflict.reason, parts
                )
                await self._journal.record(e.ChangeProposed(change))
            first = conflicts[0][1]
            raise EditFailed(
                f"Nothing was written, {first.path}: {first.reason}",
                "resolve it in the review, or skip it to leave the file as it is",
            )
        targets = [target for _, _, target in results if target is not None]

        def events(done: WriteOutcome) -> list[e.Lasting]:
            word = "undone" if undone else "applied again"
            paths = ", ".join(step.path for step in steps)
            without = undone != point.takes_back
            states = taken_back if without else applied_again
            changes = [
                self._review.change(name) for name in dict.fromkeys(pick.change for pick in point.picks)
            ]
            return [
                e.CheckpointUndone(
                    point.id,
                    undone,
                    {step.path: step.after for step in done.steps},
                    done.folders,
                    {step.path: step.mode for step in done.steps if step.mode is not None},
                ),
                *(e.ChangeMoved(one.id, *states(one, point.picks)) for one in changes if one is not None),
                *self._news(done, undone=without),
                e.ModelOwesNews(f"An applied change to {paths} was {word} by the person."),
            ]

        await self._write(batch_name(point, undone), targets, events)

    def _news(self, done: WriteOutcome, undone: bool) -> list[e.Lasting]:
        known, now = self._known, time.time()
        turn = self._journal.store.state.turn.number
        told: list[e.Lasting] = []
        for target in done.targets:
            entry = known.files.get(target.now.path)
            if entry is None:
                continue
            if target.text is None:
                told.append(
                    e.FreshnessChanged(entry.path, "deleted", at=now, by_agent=not undone, undone=undone)
                )
                continue
            told += outside(known, target, turn)
            versions = {touch.md5 for touch in known.touches if touch.path == entry.path}
            entry = as_written(entry, target, self._writer.root)
            if undone:
                entry = replace(entry, freshness="undone", written=target.after)
            told.append(e.KnownFileEdited(entry, target.after in versions, now, undone))
        return told

    def _target(self, step: FileStep) -> tuple[Write | Conflict, WriteTarget | None]:
        now = self._now(step)
        before, after_text = texts_under(self._blobs, step.before, step.after)
        decided = undo(step, before, after_text, OnDisk(now.text, now.md5))
        changed = None not in (step.mode, step.mode_after) and step.mode != step.mode_after
        mode = step.mode if now.text is None or (changed and now.mode == step.mode_after) else None
        if isinstance(decided, Conflict) or (not decided.needed and mode in (None, now.mode)):
            return decided, None
        if now.text is None and decided.text is not None:
            now = replace(now, stored=self._stored(step.before))
        return decided, WriteTarget(now, decided.text, mode=mode)

    def _now(self, step: FileStep) -> CurrentFile:
        edited = step.before and step.after
        return self._writer.read_current(self._known.moved(step.path) if edited else step.path)

    def _preview(self, step: FileStep) -> Preview:
        now = self._now(step)
        decided, _ = self._target(step)
        if isinstance(decided, Conflict):
            return Preview(diff_of(step.path, now.text or "", now.text or ""), decided.reason)
        diff = diff_of(step.path, now.text or "", decided.text or "")
        return Preview(diff, "", decided.merged, goes=decided.text is None)

    def _stored(self, key: str) -> TextFile:
        return decode(self._blobs.get(key))


def _steps(point: Checkpoint) -> tuple[FileStep, ...]:
    return tuple(step.reversed for step in point.files) if point.undone else point.files


def _conflicting(name: str, turn: int, step: FileStep, reason: str, parts: tuple[Hunk, ...]) -> Change:
    kind = "edit" if step.before and step.after else "delete" if step.after else "create"
    added, removed = counts(parts)
    return Change(
        name,
        turn,
        step.path,
        kind,
        "conflict",
        step.after,
        step.before,
        hunks=("pending",) * len(parts),
        added=added,
        removed=removed,
        reason=f"going back: {reason}",
    )


def _picks_of(change: Change, states: Sequence[HunkState]) -> list[Pick]:
    numbers = [
        number for number, (was, now) in enumerate(zip(change.hunks, states, strict=True)) if was != now
    ]
    return [Pick(change.id, number) for number in numbers] or [Pick(change.id)]


#: Seconds after an apply; later, such a text is its author's decision.
LOOKED_FOR = 600.0
WITHOUT_IT = "another program saved the file without it"


class Overwrites:
    """An editor that had opened a file before an apply may save over it later. Only changes that the file
    lacks as a whole are pending again: without a common line, such a save looks like an edit by hand.
    """

    def __init__(self, core: Core, writer: Writer, deciding: asyncio.Lock) -> None:
        self._journal = core.journal
        self._blobs = core.blobs
        self._writer = writer
        self._deciding = deciding
        self._looking = set[asyncio.Task[None]]()
        self._until: dict[str, float] = {}
        core.journal.store.subscribe(self._note)

    def look_later(self, paths: Iterable[str]) -> None:
        """Checks files that a program may have changed, after the current decision."""
        if recent := [path for path in paths if path in self._until]:
            start_task(self._looking, self.look(recent))

    async def close(self) -> None:
        for task in self._looking:
            task.cancel()

    async def look(self, paths: Iterable[str]) -> None:
        async with self._deciding:
            for path in paths:
                if self._until.get(path, 0.0) < time.monotonic():
                    self._until.pop(path, None)
                elif events := await asyncio.to_thread(self._news, path):
                    self._until.pop(path, None)
                    await self._journal.record(*events)

    def _news(self, path: str) -> list[e.Lasting]:
        points, review = self._lacking(path), self._journal.store.state.review
        again: list[Change] = []
        for change in review.changes:
            picks = [pick for point in points for pick in point.picks if pick.change == change.id]
            if picks and place(change) == path:
                hunks = taken_back(change, picks, "pending")[1]
                again.append(replace(change, state="pending", hunks=hunks, reason=WITHOUT_IT))
        if not again:
            return []
        events: list[e.Lasting] = [
            e.ModelOwesNews(f"{change.called} is pending again: {WITHOUT_IT}.") for change in again
        ]
        others = {change.id for change in again}
        whole, *later = (*again, *(c for c in review.open if c.path == path and c.id not in others))
        for change in later:
            both = joined(whole, change, partial(text_under, self._blobs), self._blobs.put_text)
            if both.state == "conflict":
                events.append(e.ChangeReworked(whole))
            else:
                hunks = tuple("skipped" if hunk == "pending" else hunk for hunk in whole.hunks)
                events.append(e.ChangeMoved(whole.id, "skipped", hunks, f"joined into {change.id}"))
                both = replace(both, state="pending", reason=WITHOUT_IT)
            whole = both
        said = f"{path} was saved by another program with its text from before the apply"
        remedy = "the change is pending again, and applying it merges both"
        return [*events, e.ChangeReworked(whole), e.NoticeGiven("warning", f"{said}: {remedy}")]

    def _lacking(self, path: str) -> list[Checkpoint]:
        try:
            now = self._writer.read_current(path).text
        except TuiAgentError:
            return []
        lacking: list[Checkpoint] = []
        for point in self._journal.store.state.review.checkpoints:
            for step in point.files if not (point.undone or point.takes_back) else ():
                if step.path != path:
                    continue
                before, after = texts_under(self._blobs, step.before, step.after)
                if before is None or after is None or now is None or now == before:
                    continue
                with suppress(TuiAgentError):
                    if is_overwritten(before, after, now) and not merge(before, now, after).conflicts:
                        lacking.append(point)
        return lacking

    def _note(self, event: Event, state: State) -> None:
        match event:
            case e.CheckpointMade(point) if not point.takes_back:
                edited = [step.path for step in point.files if step.before and step.after]
                self._until |= dict.fromkeys(edited, time.monotonic() + LOOKED_FOR)
            case e.CheckpointMade(point):
                for step in point.files:
                    self._until.pop(step.path, None)
            case e.CheckpointUndone(name):
                for point in state.review.checkpoints:
                    for step in point.files if point.id == name else ():
                        self._until.pop(step.path, None)
            case e.FreshnessChanged(path, "disk"):
                self.look_later([path])
            case e.BufferSaved(path):  # by hand, with the change in view
                self._until.pop(path, None)
