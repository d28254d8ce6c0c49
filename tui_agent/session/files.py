"""Files of a session: the index, open files, and external changes to known files."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal

from tui_agent.context.known_files import MAX_BYTES, Freshness, KnownFile, Touch
from tui_agent.edits.merge import ConflictView, Side, followed
from tui_agent.errors import ChildFailed, TuiAgentError
from tui_agent.files.gate import Gate, read_for_person
from tui_agent.files.operating_system import Stamp, is_settled, stamp_of
from tui_agent.files.text import md5
from tui_agent.git.client import MissingFile
from tui_agent.log.core import Core, call
from tui_agent.processes.background import start_task
from tui_agent.review.open_files import OpenFiles
from tui_agent.store import events as e
from tui_agent.store.files import Buffer
from tui_agent.store.state import State
from tui_agent.workspace.workspace import FileChange, GitStatus, Workspace
from tui_agent.workspace.workspace import Watching as WatchState


class FreshnessWatch:
    """Turns workspace notifications, which only trigger hashing, into events."""

    def __init__(self, core: Core, open_files: OpenFiles) -> None:
        self._journal = core.journal
        self._workspace = workspace = core.workspace
        self._open_files = open_files
        self._waiting: set[str] = set()
        self._doubted: set[str] = set()
        #: Whether added files may be copies or new names of known files.
        self._added = False
        self._hashes = Hashes(workspace.gate)
        self._renames = Renames(workspace)
        self._looking: asyncio.Task[None] | None = None
        self._notices: set[asyncio.Task[None]] = set()

    def listen(self, also: Callable[[Sequence[FileChange]], object]) -> None:
        self._workspace.listen(
            on_index=self.on_index,
            on_batch=lambda changes: (self.on_batch(changes), also(changes)),
            on_status=self.on_status,
            on_watch=self.on_watch,
            on_notice=self.on_notice,
        )

    def on_index(self, files: int, complete: bool) -> None:
        self._journal.publish(e.IndexChanged(files, complete))

    def on_watch(self, state: WatchState, why: str) -> None:
        self._journal.publish(e.WatchChanged(state))
        if state != "starting":
            self.on_batch(())
        if state in ("polling", "failed") and why:
            self.on_notice("warning", why)

    def on_status(self, status: GitStatus) -> None:
        self._journal.publish(
            e.GitStatusRead(status.is_repository, status.branch, status.ahead, status.behind, status.marks)
        )

    def on_notice(self, level: Literal["info", "warning", "error"], text: str) -> None:
        start_task(self._notices, self._journal.record(e.NoticeGiven(level, text)))

    def on_batch(self, changes: Sequence[FileChange]) -> None:
        """An empty batch means any file."""
        if not changes:
            self._doubted.update(self._journal.store.state.known.files)
        self._added = self._added or any(change.kind == "added" for change in changes)
        self._wait_for(change.path for change in changes)

    def on_text(self, path: str) -> None:
        if path in self._journal.store.state.known.files:
            self._doubted.add(path)
            self._wait_for(())

    async def close(self) -> None:
        for task in (self._looking, *self._notices):
            if task is not None:
                task.cancel()

    def _wait_for(self, paths: Iterable[str]) -> None:
        self._waiting.update(paths)
        if self._looking is None or self._looking.done():
            self._looking = asyncio.get_running_loop().create_task(self._check_waiting())

    async def _check_waiting(self) -> None:
        while self._waiting or self._doubted:
            paths, self._waiting = self._waiting, set()
            doubted, self._doubted = self._doubted - paths, set()
            if self._added:
                self._added = False
                await asyncio.to_thread(self._renames.note, list(self._journal.store.state.known.files))
            await self.check_paths(paths)
            files = self._journal.store.state.known.files
            await self._check([files[path] for path in doubted if path in files])

    async def check_paths(self, paths: Iterable[str]) -> None:
        paths = set(paths)
        state = self._journal.store.state
        await self._check(
            [entry for path, entry in state.known.files.items() if path in paths or _lies_in(path, paths)]
        )
        for buffer in state.buffers.open:
            if buffer.path in paths:
                await self._open_files.reload_changed(buffer.path)

    async def check_everything(self) -> None:
        state = self._journal.store.state
        await self.check_paths([*state.known.files, *(buffer.path for buffer in state.buffers.open)])

    async def check_known_files(self) -> None:
        await self._check(list(self._journal.store.state.known.files.values()))

    async def find_renamed(self) -> None:
        known = self._journal.store.state.known
        entries = [entry for entry in known.files.values() if entry.freshness not in ("deleted", "renamed")]
        gone = await asyncio.to_thread(self._renames.missing, entries)
        await self._check(gone)

    async def _check(self, entries: Sequence[KnownFile]) -> None:
        if not entries:
            return
        missing = await asyncio.to_thread(self._renames.missing, entries)
        renamed = (
            await self._renames.find(missing, self._journal.store.state.known.touches) if missing else {}
        )
        buffers = {b.path: b for b in self._journal.store.state.buffers.open if b.unsaved}
        # Includes the record: a concurrent check would report the same change twice.
        async with self._open_files.files_at_rest:
            found = await asyncio.to_thread(self._freshness_of, entries, buffers, renamed)
            await self._journal.record_then(lambda: self._news(entries, found))

    def _news(
        self, entries: Sequence[KnownFile], found: Mapping[str, tuple[Freshness, str]]
    ) -> list[e.Lasting]:
        news: list[e.Lasting] = []
        for entry in entries:
            freshness, renamed_to = found[entry.path]
            now = self._journal.store.state.known.files.get(entry.path)
            if now is None or _looked_at(now) != _looked_at(entry):
                continue  # changed since the check began
            if (now.freshness, now.renamed_to) == (freshness, renamed_to):
                continue
            news.append(e.FreshnessChanged(entry.path, freshness, renamed_to, time.time()))
            waiting = [c for c in self._journal.store.state.review.changes if c.path == entry.path]
            if freshness == "renamed":
                news += [e.ChangeReworked(followed(c, renamed_to)) for c in waiting if c.waits]
        return news

    def _freshness_of(
        self, entries: Sequence[KnownFile], unsaved: Mapping[str, Buffer], renamed: Mapping[str, str]
    ) -> dict[str, tuple[Freshness, str]]:
        self._hashes.keep_only(self._journal.store.state.known.files)
        found: dict[str, tuple[Freshness, str]] = {}
        for entry in entries:
            buffer = unsaved.get(entry.path)
            if buffer is None:
                found[entry.path] = self._hashes.freshness(entry, renamed.get(entry.path, ""))
                continue
            now = self._open_files.hash_of(buffer)
            if now == entry.written and entry.freshness == "undone":
                found[entry.path] = "undone", ""
            elif now == entry.md5:
                found[entry.path] = "fresh", ""
            else:
                found[entry.path] = "edited" if now == entry.written else "buffer", ""
        return found


def _looked_at(entry: KnownFile) -> tuple[str, str, Freshness, str]:
    return entry.md5, entry.written, entry.freshness, entry.renamed_to


def _lies_in(path: str, folders: set[str]) -> bool:
    folder = path.rpartition("/")[0]
    while folder:
        if folder in folders:
            return True
        folder = folder.rpartition("/")[0]
    return False


class Hashes:
    """Hashes by path and file stamp. Not thread-safe."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate
        self._root = str(gate.root)
        self._seen: dict[str, tuple[Stamp, str]] = {}

    def get(self, path: str) -> str:
        """Raises `FileError` or `PathRefused`."""
        stamp = stamp_of(f"{self._root}/{path}")
        seen = self._seen.get(path)
        if seen is not None and seen[0] == stamp:
            return seen[1]
        self._seen.pop(path, None)
        found = md5(read_for_person(self._gate, path, MAX_BYTES))
        if stamp is not None and is_settled(stamp) and stamp == stamp_of(f"{self._root}/{path}"):
            self._seen[path] = stamp, found
        return found

    def keep_only(self, paths: Iterable[str]) -> None:
        kept = set(paths)
        for path in [path for path in self._seen if path not in kept]:
            del self._seen[path]

    def freshness(self, entry: KnownFile, renamed_to: str = "") -> tuple[Freshness, str]:
        try:
            found = self.get(entry.path)
        except TuiAgentError:
            if os.path.lexists(f"{self._root}/{entry.path}"):
                return "disk", ""
            for path in filter(None, (renamed_to, entry.renamed_to)):
                if os.path.isfile(f"{self._root}/{path}"):
                    return "renamed", path
            return "deleted", ""
        if entry.freshness == "undone" and found == entry.written:
            return "undone", ""
        if found == entry.md5:
            return "fresh", ""
        return ("edited", "") if found == entry.written else ("disk", "")


#: Seconds of searching a missing file.
LOOKED_FOR = 60.0


class Renames:
    """A file that existed elsewhere before a known file disappeared is a copy, not a new name."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._there_at: dict[str, float] = {}
        #: Search result of a missing file ("": none), index revision, and the time it was missed.
        self._found: dict[str, tuple[str, int, float]] = {}
        self._one_at_a_time = asyncio.Lock()

    def missing(self, entries: Sequence[KnownFile]) -> list[KnownFile]:
        self.note(entry.path for entry in entries)
        return [
            entry
            for entry in entries
            if not any(
                path and os.path.lexists(self._workspace.root / path)
                for path in (entry.path, entry.renamed_to)
            )
        ]

    def note(self, paths: Iterable[str]) -> None:
        now = time.time()
        there = [path for path in paths if os.path.lexists(self._workspace.root / path)]
        self._there_at.update(dict.fromkeys(there, now))
        for path in there:
            self._found.pop(path, None)

    async def find(self, gone: Sequence[KnownFile], touches: Sequence[Touch]) -> dict[str, str]:
        """Returns new paths by old path. Repeats the search for a while after index changes, because a
        checkout removes files first.
        """
        async with self._one_at_a_time:
            revision, now = self._workspace.index.revision, time.time()
            wanted = []
            for entry in gone:
                _, asked, since = self._found.get(entry.path, ("", -1, now))
                if asked != revision and now - since < LOOKED_FOR:
                    wanted.append(entry)
            if wanted:
                touched = {touch.path: touch.at for touch in touches if touch.kind in ("read", "edited")}
                files = [
                    MissingFile(
                        entry.path,
                        tuple(filter(None, (entry.md5, entry.written))),
                        entry.size,
                        entry.inode,
                        max(touched.get(entry.path, 0.0), self._there_at.get(entry.path, 0.0)),
                    )
                    for entry in wanted
                ]
                try:
                    found = await self._workspace.repository.renamed(files)
                except ChildFailed:
                    found = {}  # Deleted, until the child has restarted.
                for path in (entry.path for entry in wanted):
                    _, _, since = self._found.get(path, ("", 0, now))
                    self._found[path] = found.get(path, ""), revision, since
            answers = {entry.path: self._found.get(entry.path, ("", 0, 0.0))[0] for entry in gone}
        return {path: new for path, new in answers.items() if new}


#: Best matches that the picker reorders.
MOST_FITTING = 100


class Files:
    def __init__(self, core: Core, open_files: OpenFiles, freshness: FreshnessWatch) -> None:
        self._journal = core.journal
        self._workspace = core.workspace
        self._open_files = open_files
        self._freshness = freshness

    @property
    def state(self) -> State:
        return self._journal.store.state

    @call(changes=False)
    async def ready(self) -> None:
        await self._workspace.ready()

    @call(changes=False)
    def paths(self) -> Sequence[str]:
        return self._workspace.index.paths

    @call(changes=False)
    def folder(self, path: str = "") -> tuple[list[str], list[str]]:
        return self._workspace.index.folder(path)

    @call(changes=False)
    def find(self, query: str, limit: int = 20) -> list[str]:
        return self._workspace.index.fuzzy(query, limit)

    @call(changes=False)
    def suggest(self, query: str, limit: int) -> list[str]:
        """Returns open files first, then changed files, then known files."""
        state = self.state
        open_first = [
            buffer.path
            for buffer in sorted(state.buffers.open, key=lambda it: it.path != state.buffers.active)
        ]
        changed = [change.path for change in state.review.open] + list(state.workspace.marks)
        worked_on = list(dict.fromkeys((*open_first, *changed, *state.known.files)))
        place = {path: at for at, path in enumerate(worked_on)}
        if not query.strip():
            found = [
                *(path for path in worked_on if self._workspace.index.contains(path)),
                *self.find("", limit),
            ]
            return list(dict.fromkeys(found))[:limit]
        return sorted(self.find(query, MOST_FITTING), key=lambda path: place.get(path, len(place)))[:limit]

    @call(changes=False)
    async def open(self, path: str, line: int = 0, last_line: int = 0) -> None:
        await self._open_files.open(path, line, last_line)

    @call(changes=False)
    async def activate(self, path: str) -> None:
        if self.state.buffers.active != path and self.state.buffers.get(path) is not None:
            await self._journal.record(e.BufferActivated(path))

    @call(changes=True)
    def edit(self, path: str, text: str, cursor: tuple[int, int], anchor: tuple[int, int]) -> None:
        self._open_files.edit(path, text, cursor, anchor)
        self._freshness.on_text(path)

    @call(changes=False)
    def move_cursor(self, path: str, cursor: tuple[int, int], anchor: tuple[int, int]) -> None:
        self._open_files.move_cursor(path, cursor, anchor)

    @call(changes=False)
    def scroll(self, path: str, scroll: tuple[int, int]) -> None:
        self._open_files.scroll(path, scroll)

    @call(changes=True)
    async def save(self, path: str, overwrite: bool = False) -> None:
        """Raises `Outdated` if the disk has changed, unless `overwrite`."""
        await self._open_files.save(path, overwrite)
        await self._freshness.check_paths([path])

    @call(changes=False)
    async def reload(self, path: str) -> None:
        await self._open_files.load(path)

    @call(changes=False)
    async def clash(self, path: str) -> ConflictView:
        return await self._open_files.clash(path)

    @call(changes=True)
    async def resolve(self, path: str, sides: Sequence[Side], by_hand: Mapping[int, str], seen: str) -> None:
        await self._open_files.resolve(path, sides, by_hand, seen)
        self._freshness.on_text(path)

    @call(changes=False)
    async def close(self, path: str, discard: bool = False) -> None:
        """Raises `SessionError` for unsaved text, unless `discard`."""
        await self._open_files.close(path, discard)
