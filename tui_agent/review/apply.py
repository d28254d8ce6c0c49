"""Apply: merges each change with its current file and writes all files or none."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from tui_agent.answers.plans import within
from tui_agent.context.known_files import KnownFile
from tui_agent.edits.change import Change, Checkpoint, Hunk, Pick, hunks, texts_under
from tui_agent.edits.merge import MERGED
from tui_agent.edits.resolve import Conflict, OnDisk, Write, apply, picked
from tui_agent.errors import EditFailed, FileError, Outdated, PathRefused, SessionError, TuiAgentError
from tui_agent.files.batch import StillWritten
from tui_agent.files.blobs import Blobs
from tui_agent.files.gate import LOOKS_SECRET
from tui_agent.files.operating_system import OTHER_NAMES, has_other_names
from tui_agent.log.journal import Journal
from tui_agent.review.writer import WriteOutcome, Writer, WriteTarget, as_written, outside
from tui_agent.store import events as e
from tui_agent.store.state import ReviewSlice
from tui_agent.workspace.syntax_trees import language
from tui_agent.workspace.workspace import Workspace

CHOOSE_A_SIDE = "choose a side, skip it, or ask again"


class ResolvedDecision(Struct, frozen=True):
    """`hunks` are numbers from 0."""

    change: Change
    hunks: frozenset[int]
    write: Write
    targets: tuple[WriteTarget, ...]
    #: Hunks in a file that the model saw only in part.
    in_part: tuple[Hunk, ...] = ()

    def as_written(self, final: Mapping[str, WriteTarget]) -> ResolvedDecision:
        """`final` are the written targets by path."""
        targets = tuple(final[target.now.path] for target in self.targets)
        merged = self.write.merged or any(target.merged for target in targets)
        return replace(self, targets=targets, write=replace(self.write, merged=merged))

    @property
    def as_proposed(self) -> bool:
        change = self.change
        whole = all(state == "applied" for state in self.write.hunks)
        return (
            whole
            and not self.write.merged
            and not change.by_hand
            and not change.tasks
            and not _was_merged(change)
        )


def _was_merged(change: Change) -> bool:
    return change.reason == MERGED or (change.state == "merged" and not change.by_hand)


class Applier:
    def __init__(self, journal: Journal, workspace: Workspace, blobs: Blobs, writer: Writer) -> None:
        self._journal = journal
        self._workspace = workspace
        self._blobs = blobs
        self._writer = writer

    async def apply(self, changes: Sequence[Change], picks: Sequence[Pick]) -> None:
        """Skips changes that need confirmation unless picked. Raises `EditFailed`, which names all
        conflicts, before writing.
        """
        if not picks:
            changes = await self._without_guarded(changes)
        resolved: list[ResolvedDecision] = []
        refused: list[tuple[Change, TuiAgentError]] = []
        results = await asyncio.to_thread(lambda: [self._resolved(change, picks) for change in changes])
        for change, result in zip(changes, results, strict=True):
            match result:
                case ResolvedDecision():
                    resolved.append(result)
                case EditFailed():
                    refused.append((change, result))
                case _:
                    await self._say_why([change], result)
                    raise result
        if refused:
            events: list[e.Lasting] = []
            for change, error in refused:
                if change.state != "failed":
                    reason = str(error).removeprefix(f"{change.path}: ")
                    events.append(e.ChangeMoved(change.id, "conflict", reason=reason))
                    events.append(e.ModelOwesNews(f"{change.called} could not be applied: {error.what}."))
            await self._journal.record(*events)
            names = ", ".join(change.path for change, _ in refused)
            first, error = refused[0]
            reason = str(error).removeprefix(f"{first.path}: ")
            raise EditFailed(f"Nothing was written, {names} conflicts", reason)
        if resolved:
            try:
                await self._write(resolved)
            except (FileError, PathRefused) as error:
                await self._say_why([item.change for item in resolved], error)
                raise

    async def _say_why(self, changes: Sequence[Change], error: TuiAgentError) -> None:
        why = str(error)
        said = [
            change for change in changes if change.state in ("pending", "merged") and change.reason != why
        ]
        if said and (isinstance(error, StillWritten) or not isinstance(error, Outdated)):
            await self._journal.record(*(e.ChangeMoved(one.id, one.state, reason=why) for one in said))

    async def would_write(self, changes: Sequence[Change]) -> tuple[list[WriteTarget], list[str]]:
        targets: dict[str, WriteTarget] = {}
        missing: list[str] = []
        for result in await asyncio.to_thread(lambda: [self._resolved(change, ()) for change in changes]):
            if isinstance(result, ResolvedDecision):
                targets |= {target.now.path: target for target in result.targets}
            else:
                missing.append(result.what)
        return list(targets.values()), missing

    async def _without_guarded(self, changes: Sequence[Change]) -> list[Change]:
        """These must be applied by name."""
        free, left = [], []
        paths = [path for change in changes for path in _paths(change)]
        unknown = [path for path in paths if not self._workspace.index.contains(path)]
        ignored = await self._workspace.ignored(unknown) if unknown else set()
        guarded = await asyncio.to_thread(lambda: [self._why_guarded(change) for change in changes])
        for change, rule in zip(changes, guarded, strict=True):
            why = change.ask or rule
            if not why and ignored.intersection(_paths(change)):
                why = "it is ignored by git"
            if not why:
                free.append(change)
                continue
            sentence = f"{change.path} was not applied with the rest ({why}): apply it by itself"
            left.append(e.NoticeGiven("warning", sentence))
        await self._journal.record(*left)
        return free

    def _why_guarded(self, change: Change) -> str:
        for path in _paths(change):
            place = self._workspace.gate.place(path, "write")
            if place.secret:
                return LOOKS_SECRET
            if place.governing:
                return "it governs what programs do"
            if has_other_names(self._workspace.root / place.path):
                return OTHER_NAMES
        return ""

    def _resolved(self, change: Change, picks: Sequence[Pick]) -> ResolvedDecision | TuiAgentError:
        if change.state == "failed":
            return EditFailed(f"{change.path}: {change.reason}", "skip it, or ask the model again")
        try:
            now = self._writer.read_current(change.path)
            base, new = texts_under(self._blobs, change.base, change.new)
            decided = apply(change, base, new, OnDisk(now.text, now.md5), picks)
            if isinstance(decided, Conflict):
                return EditFailed(f"{decided.path}: {decided.reason}", CHOOSE_A_SIDE)
            there = self._writer.read_current(decided.rename_to) if decided.rename_to else None
        except TuiAgentError as error:
            return error
        if there is None:
            targets = [WriteTarget(now, decided.text, executable=change.executable)]
        elif there.text is not None:
            return EditFailed(f"{decided.rename_to} already exists", "choose another name")
        else:
            there = replace(there, stored=now.stored)
            moved = WriteTarget(
                there, decided.text, mode=now.mode, like=now.path, executable=change.executable
            )
            targets = [WriteTarget(now, None), moved]
        in_part: tuple[Hunk, ...] = ()
        known = self._journal.store.state.known.files.get(change.path)
        if known is not None and known.shown:
            in_part = hunks(now.text or "", decided.text or "")
        return ResolvedDecision(change, picked(change, picks), decided, tuple(targets), in_part)

    async def _write(self, resolved: Sequence[ResolvedDecision]) -> None:
        state = self._journal.store.state
        name = next_name(state.review)
        picks = tuple(
            Pick(item.change.id, hunk) for item in resolved for hunk in (sorted(item.hunks) or [None])
        )

        def events(done: WriteOutcome) -> list[e.Lasting]:
            steps = done.steps
            point = Checkpoint(name, state.turn.number, steps, picks, folders=done.folders)
            told: list[e.Lasting] = [e.CheckpointMade(point)]
            final = {target.now.path: target for target in done.targets}
            after = {step.path: step.after for step in steps}
            for item in resolved:
                told += self._events(item.as_written(final), after)
            return told

        lost = await self._writer.write(
            name, [target for item in resolved for target in item.targets], events
        )
        if lost:
            why = "another program saved the same lines while it was applied"
            over = [
                item.change for item in resolved if any(target.now.path in lost for target in item.targets)
            ]
            for change in over:
                owed = e.ModelOwesNews(f"{change.called} could not be applied: {why}.")
                await self._journal.record(e.ChangeMoved(change.id, "conflict", change.hunks, why), owed)
            raise EditFailed(f"{', '.join(lost)}: {why}", CHOOSE_A_SIDE)

    def _events(self, item: ResolvedDecision, after: Mapping[str, str]) -> list[e.Lasting]:
        change = item.change
        written = after.get(change.rename_to or change.path, "")
        merged = item.write.merged or _was_merged(change)
        reason = MERGED if merged else change.reason if change.state == "merged" else ""
        told: list[e.Lasting] = [
            e.ChangeMoved(change.id, item.write.state, item.write.hunks, reason, written)
        ]
        for target in item.targets:
            told += self._known(target, after[target.now.path], item)
        merged = ", merged with what had changed since" if item.write.merged else ""
        merged += ", edited by hand by the person first" if change.by_hand else ""
        if len(item.hunks) == len(change.hunks):
            fact = f"{change.called} was applied{merged}."
        else:
            numbers = ", ".join(str(number + 1) for number in sorted(item.hunks))
            fact = f"{change.called}: hunk {numbers} of {len(change.hunks)} was applied{merged}."
        return [*told, e.ModelOwesNews(fact)]

    def _known(self, target: WriteTarget, written: str, item: ResolvedDecision) -> list[e.Lasting]:
        from tui_agent.edits.proposals import is_within_view, view_after

        state, change = self._journal.store.state, item.change
        path, turn = target.now.path, state.turn.number
        if not written:
            if path not in state.known.files:
                return []
            if change.rename_to and path == change.path:
                return [e.FreshnessChanged(path, "renamed", change.rename_to, time.time(), by_agent=True)]
            return [e.FreshnessChanged(path, "deleted", at=time.time(), by_agent=True)]
        told = outside(state.known, target, turn, change.base)
        if change.kind == "create":
            whole = item.as_proposed
        else:
            before = state.known.files.get(change.path if path == change.rename_to else path)
            whole = before is not None and before.whole
        files, source = state.known.files, state.known.files.get(change.path)
        entry = files.get(path) or KnownFile(path, "", 0, 0, language=language(path))
        if change.kind == "create" and item.as_proposed:
            entry = replace(entry, md5=written, seen_turn=turn)
        elif path == change.rename_to and path not in files and source is not None:
            entry = replace(source, path=path)
        entry = as_written(replace(entry, whole=whole, modified_turn=turn), target, self._workspace.root)
        base_seen = change.kind == "create" or source is None or not source.seen_turn
        if not base_seen and source is not None:
            proposed = {other.new for other in state.review.changes if other.path == change.path}
            base_seen = change.base in {source.md5, source.hash, *proposed}
        knows = item.as_proposed and base_seen and is_within_view(item.in_part, entry.shown)
        if entry.shown:
            entry = replace(
                entry,
                ranges=within(view_after(entry.ranges, item.in_part), entry.lines),
                shown=within(view_after(entry.shown, item.in_part), entry.lines),
            )
        return [*told, e.KnownFileEdited(entry, knows, time.time())]


def _paths(change: Change) -> list[str]:
    return [path for path in (change.path, change.rename_to) if path]


def apply_named(review: ReviewSlice, name: str) -> Checkpoint:
    """Raises `SessionError`."""
    found = next((point for point in review.checkpoints if point.id == name), None)
    if found is None:
        raise SessionError(f"There is no apply {name}", "choose one from the list")
    return found


def next_name(review: ReviewSlice) -> str:
    return f"k{len(review.checkpoints) + 1}"
