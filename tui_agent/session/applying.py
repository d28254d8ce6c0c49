"""Applying: each change merged with what its file is now, all of them written, or none."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from tui_agent.context.known import KnownFile
from tui_agent.edits.change import Change, Checkpoint, FileStep, Pick
from tui_agent.edits.hunks import compose, hunks
from tui_agent.edits.merge import merge
from tui_agent.errors import EditFailed, TuiAgentError
from tui_agent.files.blobs import Blobs
from tui_agent.files.text import decode
from tui_agent.session.journal import Journal
from tui_agent.session.picking import Chosen, moved
from tui_agent.session.writing import Current, Target, Writing
from tui_agent.store import events as e
from tui_agent.workspace.languages import language
from tui_agent.workspace.workspace import Workspace

MERGED = "merged with what changed since"


class Resolved(Struct, frozen=True):
    """A choice worked out: the files it writes, whether it was merged, whether it is as the model proposed."""

    chosen: Chosen
    targets: tuple[Target, ...]
    merged: bool
    as_proposed: bool


class Applying:
    def __init__(self, journal: Journal, workspace: Workspace, blobs: Blobs, writing: Writing) -> None:
        self._journal = journal
        self._workspace = workspace
        self._blobs = blobs
        self._writing = writing

    async def apply(self, chosen: Sequence[Chosen], by_name: bool) -> None:
        """Write the choice. What must be asked about by itself is left out unless it was named.

        Raises `EditFailed` naming every change that conflicts; nothing is written then.
        """
        if not by_name:
            chosen = await self._without_guarded(chosen)
        resolved, conflicts = [], []
        for choice in chosen:
            try:
                resolved.append(await self._resolve(choice))
            except TuiAgentError as error:
                conflicts.append((choice, error))
        if conflicts:
            await self._refuse(conflicts)
        if resolved:
            await self._write(resolved)

    async def _without_guarded(self, chosen: Sequence[Chosen]) -> list[Chosen]:
        """Secret-looking files and those that govern what programs do are applied by name only (X1, lesson 25)."""
        free = []
        for choice in chosen:
            place = self._workspace.gate.place(choice.change.path, "write")
            if not (place.secret or place.governing):
                free.append(choice)
                continue
            why = "looks like a secret" if place.secret else "governs what programs do"
            await self._journal.record(
                e.NoticeGiven(
                    "warning",
                    f"{choice.change.path} {why}: it was not applied with the rest; apply it by itself",
                )
            )
        return free

    async def _resolve(self, choice: Chosen) -> Resolved:
        change = choice.change
        now = await self._writing.current(change.path)
        if change.kind == "delete":
            if now.md5 and now.md5 != change.base:
                raise EditFailed(
                    f"{change.path} changed since the model saw it", "look at it, then delete it by hand"
                )
            return Resolved(choice, (Target(now, None),), False, True)
        base, new = await asyncio.to_thread(self._texts, change)
        if now.text is None and change.base:
            raise EditFailed(
                f"{change.path} is not there any more", "skip the change, or bring the file back"
            )
        if now.text is not None and not change.base:
            raise EditFailed(
                f"{change.path} exists already", "look at what is there, then ask the model anew"
            )
        text, merged = await asyncio.to_thread(_merged, choice, base, new, now)
        as_proposed = not merged and choice.done | choice.hunks == frozenset(range(len(change.hunks)))
        if change.rename_to:
            there = await self._writing.current(change.rename_to)
            if there.text is not None:
                raise EditFailed(f"{change.rename_to} exists already", "choose another name")
            there = replace(there, stored=now.stored)
            return Resolved(choice, (Target(now, None), Target(there, text)), merged, as_proposed)
        return Resolved(choice, (Target(now, text),), merged, as_proposed)

    async def _refuse(self, conflicts: Sequence[tuple[Chosen, TuiAgentError]]) -> None:
        for choice, error in conflicts:
            await self._journal.record(
                e.ChangeMoved(choice.change.id, "conflict", reason=str(error)),
                e.ModelOwesNews(f"Your change to {choice.change.path} could not be applied: {error.what}"),
            )
        names = ", ".join(choice.change.path for choice, _ in conflicts)
        raise EditFailed(f"Nothing was written, {names} conflicts", str(conflicts[0][1]))

    async def _write(self, resolved: Sequence[Resolved]) -> None:
        state = self._journal.store.state
        name = f"k{len(state.review.checkpoints) + 1}"
        picks = tuple(
            Pick(item.chosen.change.id, hunk)
            for item in resolved
            for hunk in (sorted(item.chosen.hunks) or [None])
        )

        def events(steps: tuple[FileStep, ...]) -> list[e.Event]:
            after = {step.path: step.after for step in steps}
            told: list[e.Event] = [e.CheckpointMade(Checkpoint(name, state.turn.number, steps, picks))]
            for item in resolved:
                told += self._events(item, after)
            return told

        await self._writing.write(name, [target for item in resolved for target in item.targets], events)

    def _events(self, item: Resolved, after: dict[str, str]) -> list[e.Event]:
        change = item.chosen.change
        written = after.get(change.rename_to or change.path, "")
        told: list[e.Event] = [moved(item.chosen, "applied", MERGED if item.merged else "", written)]
        for target in item.targets:
            told += self._known(target, after[target.now.path], item.as_proposed, change)
        told.append(e.ModelOwesNews(_applied(item)))
        return told

    def _known(self, target: Target, written: str, as_proposed: bool, change: Change) -> list[e.Event]:
        state = self._journal.store.state
        path = target.now.path
        entry = state.known.files.get(path)
        if not written:
            if entry is None:
                return []
            renamed = bool(change.rename_to) and path == change.path
            return [
                e.FreshnessChanged(
                    path, "renamed" if renamed else "deleted", change.rename_to if renamed else ""
                )
            ]
        turn = state.turn.number
        size = len((target.text or "").encode(errors="replace"))
        entry = entry or KnownFile(path, written, turn, size, language=language(path))
        entry = replace(
            entry,
            written=written,
            modified_turn=turn,
            freshness="edited",
            size=size,
            lines=len((target.text or "").splitlines()),
        )
        return [e.KnownFileEdited(entry, as_proposed)]

    def _texts(self, change: Change) -> tuple[str, str]:
        base = decode(self._blobs.get(change.base)).text if change.base else ""
        return base, decode(self._blobs.get(change.new)).text


def _merged(choice: Chosen, base: str, new: str, now: Current) -> tuple[str, bool]:
    """The file's text with the chosen hunks in it, and whether it had moved. Raises `EditFailed` on a conflict."""
    parts = hunks(base, new)
    before = compose(base, parts, set(choice.done))
    wanted = compose(base, parts, set(choice.done | choice.hunks))
    if now.text is None or now.text == before:
        return wanted, False
    result = merge(before, now.text, wanted)
    if result.conflicts:
        raise EditFailed(
            f"{choice.change.path} changed in the same place since the model saw it",
            "look at both, then skip the change or ask the model anew",
        )
    return result.text, True


def _applied(item: Resolved) -> str:
    change = item.chosen.change
    merged = ", merged with what had changed since" if item.merged else ""
    if item.chosen.whole:
        return f"Your change to {change.path} was applied{merged}."
    numbers = ", ".join(str(number + 1) for number in sorted(item.chosen.hunks))
    return f"Of your change to {change.path} hunk {numbers} of {len(change.hunks)} was applied{merged}."
