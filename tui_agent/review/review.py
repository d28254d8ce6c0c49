"""Review of a session: display, edit, apply, skip, undo, redo, compare and commit changes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from msgspec.structs import replace

from tui_agent.edits.change import (
    Change,
    ChangeKind,
    Diff,
    Pick,
    diff_of,
    hunks_under,
    same_hunk,
    text_under,
    texts_under,
)
from tui_agent.edits.merge import ConflictView, Side, rebased, with_texts
from tui_agent.edits.resolve import is_skipped, picked, skip, unskipped
from tui_agent.errors import EditFailed, Outdated, SessionError, TuiAgentError
from tui_agent.files.batch import StillWritten
from tui_agent.files.blobs import Blobs
from tui_agent.files.masking import MASK
from tui_agent.files.text import decode, encode
from tui_agent.git.client import CommitPlan
from tui_agent.log.core import Core, call
from tui_agent.review.apply import Applier
from tui_agent.review.conflicts import ConflictResolver
from tui_agent.review.open_files import OpenFiles
from tui_agent.review.undo import Overwrites, Preview, UndoHistory
from tui_agent.review.versions import Version, Versions
from tui_agent.review.writer import CurrentFile, Writer, WriteTarget, recorded_names
from tui_agent.store import events as e
from tui_agent.store.state import State

if TYPE_CHECKING:
    from tui_agent.sandbox.layer_changes import ChangedPath
    from tui_agent.workspace.workspace import FileChange


_KINDS: dict[str, ChangeKind] = {"new": "create", "changed": "edit", "mode": "edit", "deleted": "delete"}
_LEFT = {"link": "it is a link", "special": "it is not a file"}


async def changes_of(
    written: Sequence[ChangedPath], run: str, command: str, turn: int, writer: Writer, blobs: Blobs
) -> tuple[list[Change], list[str]]:
    """Returns a change for each text file, and a sentence per omitted path. Replaces pending changes that
    the view contained.
    """
    changes: list[Change] = []
    left: list[str] = []
    for number, one in enumerate(written, 1):
        try:
            if one.meanwhile:
                raise ValueError("it was changed in the folder while the command ran")
            named = Change(f"r{run}.{number}", turn, one.path, "edit", reason=f"from `{command}`")
            changes.append(await change_of(one, named, writer, blobs))
        except (ValueError, TuiAgentError) as error:
            left.append(left_out(one.path, error))
    return changes, left


def left_out(path: str, error: Exception) -> str:
    return f"{path} is left out: {error.what if isinstance(error, TuiAgentError) else error}"


async def change_of(
    one: ChangedPath, named: Change, writer: Writer, blobs: Blobs, base: str | None = None
) -> Change:
    """`named` gives id, turn and reason. `base` is the hash of the file that the program changed ("" for
    none) if it may differ from the current file; then both are merged. Raises ValueError with the reason
    if there is no such change, and `TuiAgentError`.
    """
    if one.kind not in _KINDS:
        raise ValueError(_LEFT[one.kind])
    if one.why:
        raise ValueError(one.why)
    now = await writer.current(one.path)
    content = await asyncio.to_thread(lambda: one.after)
    new = "" if content is None else decode(content, one.path).text
    if one.kind == "mode":
        new = now.text or ""
    if one.kind == "deleted" and now.text is None:
        raise ValueError("it was deleted, but is only proposed so far: skip it in the review")
    if MASK in new and MASK not in (now.text or ""):
        raise ValueError(f"{MASK} in it stands for a secret, and is never written to a file")
    kind = "create" if now.text is None else _KINDS[one.kind]
    if one.kind == "new" and now.text is not None:
        kind = "edit"
    ran = bool((now.mode or 0) & 0o100)
    runs = one.executable if kind != "delete" and one.executable != ran else None
    change = replace(named, kind=kind, executable=runs)
    return await asyncio.to_thread(_on_base, change, base, now, new, blobs)


def _on_base(change: Change, base: str | None, now: CurrentFile, new: str, blobs: Blobs) -> Change:
    if base is None or base == now.md5:
        text = now.text or ""
        base = "" if now.text is None else blobs.put(encode(now.stored, text))
        return with_texts(replace(change, base=base), text, new, blobs.put_text)
    kind: ChangeKind = change.kind if base or change.kind == "delete" else "create"
    before = text_under(blobs, base) or ""
    change = with_texts(replace(change, base=base, kind=kind), before, new, blobs.put_text)
    return rebased(change, before, new, now.text, now.md5, blobs.put_text)


def with_skips(change: Change, known: Change, blobs: Blobs) -> Change:
    """Skips the hunks that an earlier change of the file skipped. Blocking."""
    parts = hunks_under(blobs, known.base, known.new)
    skipped = {
        (part.removed, part.added)
        for part, state in zip(parts, known.hunks, strict=False)
        if state == "skipped"
    }
    if not skipped:
        return change
    parts = hunks_under(blobs, change.base, change.new)
    states = ("skipped" if (part.removed, part.added) in skipped else "pending" for part in parts)
    return replace(change, hunks=tuple(states))


class Review:
    """One decision at a time.

    `look` finds moved files; `complete` waits for the streaming reply and returns False if another call
    already waits; `ask_again` sends conflicts back to the model; `draft` requests a commit message.
    """

    def __init__(
        self,
        core: Core,
        open_files: OpenFiles,
        *,
        look: Callable[[], Awaitable[None]],
        complete: Callable[[], Awaitable[bool]],
        ask_again: Callable[[Sequence[Change]], None],
        draft: Callable[[str], Awaitable[str]],
    ) -> None:
        self._journal = journal = core.journal
        self._blobs = blobs = core.blobs
        workspace = core.workspace
        self._look = look
        self._complete = complete
        self._ask_again = ask_again
        self._draft = draft
        self._writer = Writer(core, open_files)
        self._applier = Applier(journal, workspace, blobs, self._writer)
        self._history = UndoHistory(journal, blobs, self._writer)
        self._versions = Versions(journal, workspace, self._writer)
        self._conflicts = ConflictResolver(journal, blobs, self._writer)
        #: Awaited with the changes of an apply before it writes; raises a `TuiAgentError` to refuse it.
        self.before_apply: Callable[[Sequence[Change]], Awaitable[None]] | None = None
        self._one_at_a_time = asyncio.Lock()
        self._overwrites = Overwrites(core, self._writer, self._one_at_a_time)

    @property
    def state(self) -> State:
        return self._journal.store.state

    @call(changes=True)
    async def propose_written(
        self, written: Sequence[ChangedPath], run: str, command: str
    ) -> tuple[int, list[str]]:
        """Returns the number of changes, and reasons for omitted files."""
        async with self._one_at_a_time:
            turn = self.state.turn.number
            changes, left = await changes_of(written, run, command, turn, self._writer, self._blobs)
            await self._journal.record(*(e.ChangeProposed(change) for change in changes))
        return len(changes), left

    @call(changes=True)
    async def propose_live(
        self,
        source: str,
        name: str,
        written: Sequence[ChangedPath],
        same: Collection[str],
        bases: Mapping[str, str],
    ) -> list[str]:
        """Proposes the files written so far by a running program. Returns reasons for omitted files.

        A path keeps the id of its change until a decision about it. If another change of the path is
        open, which the program does not know, this one conflicts with it.

        - source, name: prefix of the ids, and the program's name.
        - same: paths that equal the folder's again; their open changes are withdrawn.
        - bases: hashes of the files that the program changed, by path; "" for none.
        """
        left: list[str] = []
        async with self._one_at_a_time:
            for one in written:
                known = self._live(source, one.path)
                number = sum(change.id.startswith(f"{source}.") for change in self.state.review.changes) + 1
                named = Change(
                    f"{source}.{number}", self.state.turn.number, one.path, "edit", reason=f"from {name}"
                )
                try:
                    change = await change_of(one, named, self._writer, self._blobs, bases.get(one.path))
                except (ValueError, TuiAgentError) as error:
                    left.append(left_out(one.path, error))
                    continue
                others = (c for c in self.state.review.open if not c.id.startswith(f"{source}."))
                if (
                    rival := next((change for change in others if change.path == one.path), None)
                ) is not None:
                    why = "another open change of this file was first"
                    change = replace(change, state="conflict", rival=rival.id, reason=why)
                if known is not None and known.waits and "applied" not in known.hunks:
                    before = (known.version, known.executable, known.state == "conflict", known.rival)
                    if before != (
                        change.version,
                        change.executable,
                        change.state == "conflict",
                        change.rival,
                    ):
                        change = await asyncio.to_thread(with_skips, change, known, self._blobs)
                        await self._journal.record(e.ChangeReworked(replace(change, id=known.id)))
                    continue
                if known is not None:
                    change = await asyncio.to_thread(with_skips, change, known, self._blobs)
                if not change.hunks or "pending" in change.hunks:
                    await self._journal.record(e.ChangeProposed(change))
            for path in same:
                known = self._live(source, path)
                if known is not None and known.waits:
                    await self._journal.record(
                        e.ChangeMoved(known.id, "skipped", reason=f"{name} withdrew it")
                    )
        return left

    def _live(self, source: str, path: str) -> Change | None:
        ours = (c for c in reversed(self.state.review.changes) if c.path == path)
        return next((change for change in ours if change.id.startswith(f"{source}.")), None)

    @call(changes=False)
    async def diff(self, change_id: str) -> Diff:
        """A deletion shows all lines as removed. Raises `SessionError` for an unknown id."""
        change = self._named(change_id)
        base, new = await asyncio.to_thread(texts_under, self._blobs, change.base, change.new)
        return await asyncio.to_thread(diff_of, change.path, base or "", new or "")

    @call(changes=True)
    async def apply(self, picks: Sequence[Pick] = ()) -> None:
        """Applies all pending changes by default, all or nothing; waits for a streaming reply. Raises
        `EditFailed` on a conflict; the model is then asked again.
        """
        if picks or await self._complete():
            await self._look()
            before = self.state.review.changes
            try:
                async with self._alone():
                    picks = await self._as_seen(picks)
                    changes = self._open_changes(picks)
                    if not picks:
                        # A batch contains all changes of a turn; a failed or conflicting one blocks it.
                        turns = {change.turn for change in changes}
                        broken = [
                            change
                            for change in self.state.review.changes
                            if change.turn in turns and change.state in ("failed", "conflict")
                        ]
                        self._refuse_broken(broken)
                    if self.before_apply is not None:
                        await self.before_apply(changes)
                    await self._looked_at_again(lambda: self._applier.apply(changes, picks))
            except EditFailed:
                self._ask_again([change for change in self.state.review.changes if change not in before])
                raise

    @call(changes=False)
    async def would_write(self) -> tuple[list[WriteTarget], list[str]]:
        """Returns the files with all open changes, and a sentence per unplaceable change."""
        async with self._one_at_a_time:
            return await self._applier.would_write(self._journal.store.state.review.open)

    @call(changes=True)
    async def skip(self, picks: Sequence[Pick] = ()) -> None:
        """Skips all pending and conflicting changes by default."""
        async with self._one_at_a_time:
            picks = await self._as_seen(picks)
            waiting = [change for change in self.state.review.changes if change.waits]
            events: list[e.Lasting] = []  # One record: a slow disk is waited for once.
            for change in self._open_changes(picks) if picks or not waiting else waiting:
                state, hunks = skip(change, picks)
                chosen = picked(change, picks)
                if len(chosen) == len(change.hunks):
                    skipped = f"{change.called} was skipped by the person."
                else:
                    numbers = ", ".join(str(number + 1) for number in sorted(chosen))
                    skipped = f"{change.called}: the person skipped hunk {numbers} of {len(change.hunks)}."
                events += [e.ChangeMoved(change.id, state, hunks), e.ModelOwesNews(skipped)]
            await self._journal.record(*events)

    @call(changes=True)
    async def revert(self, picks: Sequence[Pick]) -> None:
        """Removes applied changes from their files (later edits stay); reopens skipped changes. Raises
        `EditFailed` if none is decided.
        """
        await self._look()
        async with self._alone():
            picks = await self._as_seen(picks)
            changes = self._picked(picks)
            skipped = [change for change in changes if is_skipped(change, picks)]
            await self._journal.record(
                *(e.ChangeMoved(change.id, *unskipped(change, picks)) for change in skipped)
            )
            applied = [change for change in changes if change not in skipped]
            if applied:
                await self._looked_at_again(lambda: self._history.revert(applied, picks))

    @call(changes=False)
    async def preview(self, checkpoint: str) -> list[Preview]:
        return await self._history.preview(checkpoint)

    @call(changes=False)
    async def conflict(self, change_id: str) -> ConflictView:
        return await self._conflicts.conflict(self._named(change_id))

    @call(changes=True)
    async def resolve(
        self, change_id: str, sides: Sequence[Side], by_hand: Mapping[int, str] | None = None, seen: str = ""
    ) -> None:
        """`sides` has one entry per conflict region, in order; `by_hand` has texts by region, from 0. Raises
        `EditFailed` if the file has changed since `seen`.
        """
        async with self._alone():
            change = self._named(change_id)
            if change.state != "conflict":
                raise SessionError(f"{change.path} is {change.state}", "only a conflict can be resolved")
            await self._conflicts.resolve(change, sides, by_hand or {}, seen)

    @call(changes=True)
    async def edit_hunk(self, pick: Pick, text: str) -> None:
        async with self._one_at_a_time:
            (pick,) = await self._as_seen([pick])
            await self._conflicts.edit_hunk(self._named(pick.change), pick.hunk or 0, text)

    @call(changes=True)
    async def comment(self, pick: Pick, text: str) -> None:
        if text.strip():
            async with self._one_at_a_time:
                (pick,) = await self._as_seen([pick])
                await self._conflicts.comment(self._named(pick.change), pick, text.strip())

    @call(changes=True)
    async def undo(self, checkpoint: str = "") -> None:
        await self._look()
        async with self._alone():
            await self._looked_at_again(lambda: self._history.move(checkpoint, redo=False))

    @call(changes=True)
    async def redo(self, checkpoint: str = "") -> None:
        await self._look()
        async with self._alone():
            await self._looked_at_again(lambda: self._history.move(checkpoint, redo=True))

    @call(changes=False)
    def versions(self) -> list[Version]:
        return self._versions.all()

    @call(changes=False)
    async def version_diff(self, path: str, version: str) -> Diff:
        return await self._versions.diff(path, version)

    @call(changes=False)
    async def commit_plan(self) -> CommitPlan:
        """Raises `SessionError` without any contents."""
        return await self._versions.commit_plan()

    @call(changes=False)
    async def commit_file(self, path: str) -> Diff:
        return await self._versions.commit_file(path)

    @call(changes=True)
    async def draft_commit(self, plan: CommitPlan) -> str:
        """Raises a `ModelError`."""
        return await self._draft(await self._versions.for_model(plan))

    @call(changes=True)
    async def commit(self, message: str, plan: CommitPlan) -> str:
        """Commits exactly the plan's files, with hooks."""
        return await self._versions.commit(message, plan)

    @call(changes=False)
    def keep_no_versions(self) -> None:
        self._versions.keep_none()

    @call(changes=False)
    def on_batch(self, changes: Sequence[FileChange]) -> None:
        self._overwrites.look_later(change.path for change in changes)

    @call(changes=False)
    async def close(self) -> None:
        await self._overwrites.close()
        await self._versions.wait_for_commits()

    @call(changes=False)
    async def heal(self) -> list[str]:
        return await self._writer.heal(recorded_names(self.state.review))

    @asynccontextmanager
    async def _alone(self) -> AsyncGenerator[None]:
        async with self._one_at_a_time:
            if self._writer.unfinished:
                said = await self.heal()
                await self._journal.record(*(e.NoticeGiven("warning", sentence) for sentence in said))
            yield

    async def _looked_at_again(self, write: Callable[[], Awaitable[None]]) -> None:
        try:
            await write()
        except StillWritten:
            raise
        except Outdated:
            await write()

    def _refuse_broken(
        self, broken: Sequence[Change], remedy: str = "skip it, or apply the others one by one"
    ) -> None:
        if broken:
            why = [f": {change.reason}" if change.reason else "" for change in broken]
            names = ", ".join(
                f"{change.path} ({change.state}{because})"
                for change, because in zip(broken, why, strict=True)
            )
            raise EditFailed(f"Nothing was written, because of {names}", remedy)

    def _open_changes(self, picks: Sequence[Pick]) -> list[Change]:
        """Oldest first. Raises `SessionError` for undecidable picks."""
        review = self.state.review
        if not picks:
            if not review.open:
                broken = [change for change in review.changes if change.state in ("failed", "conflict")]
                ids = ", ".join(change.id for change in broken)
                self._refuse_broken(broken, f"skip {ids}, or ask the model again")
                raise SessionError("Nothing is pending", "ask the model for a change first")
            return list(review.open)
        changes = self._picked(picks)
        for change in changes:
            if not change.is_open and change.state not in ("conflict", "failed"):
                raise SessionError(f"{change.path} is {change.state}", "only a pending change can be decided")
        return changes

    async def _as_seen(self, picks: Sequence[Pick]) -> Sequence[Pick]:
        if all(not pick.seen or pick.seen == self._named(pick.change).version for pick in picks):
            return picks
        return await asyncio.to_thread(lambda: [self._found_again(pick) for pick in picks])

    def _found_again(self, pick: Pick) -> Pick:
        change = self._named(pick.change)
        if not pick.seen or pick.seen == change.version:
            return pick
        number = None
        if pick.hunk is not None:
            before, now = (hunks_under(self._blobs, *of.split(":")) for of in (pick.seen, change.version))
            number = same_hunk(before[pick.hunk], now) if pick.hunk < len(before) else None
        if number is None:
            raise SessionError(
                f"The change to {change.path} was another when you decided",
                "look at it as it is now, then decide",
            )
        return Pick(pick.change, number)

    def _picked(self, picks: Sequence[Pick]) -> list[Change]:
        return [self._named(name) for name in dict.fromkeys(pick.change for pick in picks)]

    def _named(self, change_id: str) -> Change:
        change = self.state.review.change(change_id)
        if change is None:
            raise SessionError(f"There is no change {change_id}", "choose one from the review")
        return change
