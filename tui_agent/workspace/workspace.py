"""The workspace folder for the interface: index, changes and git status."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Collection, Coroutine, Mapping, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct

from tui_agent.errors import ChildFailed
from tui_agent.files.gate import Gate
from tui_agent.git.client import GitClient
from tui_agent.processes.background import start_task
from tui_agent.processes.child import ChildProcess
from tui_agent.processes.environment import avoid_programs_in
from tui_agent.workspace.copies import WorkCopies
from tui_agent.workspace.early_start import workspace_child
from tui_agent.workspace.index import Index
from tui_agent.workspace.listing import PathListing, list_by_child, list_here
from tui_agent.workspace.related_files import Import

ChangeKind = Literal["added", "changed", "deleted"]
Watching = Literal["starting", "watching", "polling", "failed"]
Level = Literal["info", "warning", "error"]
#: Seconds of quiet before the git status is refreshed.
STATUS_DELAY = 0.3
#: Clock difference to the file system; later changes cause a new listing.
CLOCKS_APART = 2.0
MOST_WATCHES = 3
MOST_LISTINGS = 3


class FileChange(Struct, frozen=True):
    """A deleted path may have been a folder."""

    kind: ChangeKind
    path: str


class GitStatus(Struct, frozen=True):
    """`marks` are two characters by path. Empty without a repository."""

    is_repository: bool = False
    branch: str = ""
    ahead: int = 0
    behind: int = 0
    marks: dict[str, str] = {}


#: (number of files, whether the listing is complete)
OnIndex = Callable[[int, bool], None]
#: Empty if unknown files may have changed.
OnBatch = Callable[[Sequence[FileChange]], object]
OnStatus = Callable[[GitStatus], None]
OnWatch = Callable[[Watching, str], None]
OnNotice = Callable[[Level, str], None]


def _nobody(*_: Any) -> None:
    """The default callback."""


class Workspace:
    """Belongs to the event loop that starts it."""

    def __init__(
        self,
        root: Path,
        *,
        own: Sequence[Path] = (),
        aliases: Collection[str] = (),
        child: ChildProcess | None = None,
        ahead: ChildProcess | None = None,
        filters: str = "",
        watched: bool = True,
    ) -> None:
        """`own`: protected tui-agent folders; `aliases`: additional names of secrets (see `Gate`). Raises
        `PathRefused` if `root` is not a folder.

        `child` is shared and closed by another workspace; `ahead` was started for this one. `filters`:
        fingerprint of trusted filters. Without `watched`, changes on disk are not reported.
        """
        self.gate = Gate(root, own, aliases)
        self.root = self.gate.root
        avoid_programs_in(str(self.root))
        self.index = Index(ignore_case=self.gate.ignore_case)
        self.listen()
        self._child = child or ahead or workspace_child(filters)
        self._owns_child = child is None
        self._watched = watched
        self.repository = GitClient(self._child, self.root)
        self.copies = WorkCopies(self._child, self.gate, self.index)
        self._tasks: set[asyncio.Task[object]] = set()
        self._indexed = asyncio.Event()
        self._listed_at = 0.0
        self._following = False
        self._listing = asyncio.Lock()
        self._status_lock = asyncio.Lock()
        self._status: GitStatus | None = None
        self._status_timer: asyncio.TimerHandle | None = None

    def listen(
        self,
        on_index: OnIndex = _nobody,
        on_batch: OnBatch = _nobody,
        on_status: OnStatus = _nobody,
        on_watch: OnWatch = _nobody,
        on_notice: OnNotice = _nobody,
    ) -> None:
        """Callbacks run on the event loop and must not raise."""
        self._on_index = on_index
        self._on_batch = on_batch
        self._on_status = on_status
        self._on_watch = on_watch
        self._on_notice = on_notice

    def start(self, paths: list[str] | None = None) -> None:
        """`ready()` waits for the index. Sorted `paths` replace the listing."""
        if paths is None:
            self._spawn(self._begin())
            return
        self._take(PathListing(paths))

    def launch(self) -> None:
        self._spawn(self._child.start())

    async def ready(self) -> None:
        await self._indexed.wait()

    @property
    def child(self) -> ChildProcess:
        return self._child

    @property
    def busy(self) -> bool:
        return self._listing.locked() or self._status_lock.locked() or self._status_timer is not None

    async def refresh(self) -> None:
        async with self._listing, self._status_lock:
            for _ in range(MOST_LISTINGS):
                revision = self.index.revision
                try:
                    listed = await list_by_child(self._child, self.root, self.index.paths)
                except ChildFailed as error:
                    listed = await self._list_without(error)
                if self.index.revision == revision:
                    break  # the listing may be older than reported changes
            self._take(listed)

    async def git_status(self) -> GitStatus:
        """Reports a changed status. Empty without a repository, or if the child fails."""
        async with self._status_lock:
            try:
                answer = await self._child.ask("git_status", {"root": str(self.root)})
            except ChildFailed as error:
                self._on_notice("warning", f"{error}; git's marks are not up to date")
                return GitStatus()
        return self._update_status(answer)

    def _update_status(self, answer: dict[str, Any]) -> GitStatus:
        status = msgspec.convert(answer, GitStatus)
        if status != self._status:
            self._status = status
            self._on_status(status)
        return status

    async def ignored(
        self, paths: Sequence[str], *, folders: bool = False, rules: Mapping[str, str] | None = None
    ) -> set[str]:
        """- folders: the paths are folders; returns those in which git ignores each file, and has none.
        - rules: texts of more ignore files by path.
        """
        asked = {"root": str(self.root), "paths": list(paths), "folders": folders, "rules": dict(rules or {})}
        try:
            return set(await self._child.ask("ignored", asked))
        except ChildFailed:
            return set(paths)

    async def tracked(self, paths: Sequence[str]) -> list[str]:
        try:
            return list(await self._child.ask("tracked", {"root": str(self.root), "paths": list(paths)}))
        except ChildFailed:
            return []

    async def layer_changes(self, path: str) -> AsyncGenerator[Sequence[str] | None, None]:
        """Yields None for unknown paths, and at the start. Raises `ChildFailed`."""
        async with aclosing(self._child.stream("watch_layer", {"path": path})) as items:
            async for item in items:
                yield item["paths"]

    async def imports(self, language: str, text: str) -> tuple[Import, ...]:
        try:
            found = await self._child.ask("imports", {"language": language, "text": text})
        except ChildFailed:
            return ()
        return msgspec.convert(found, tuple[Import, ...])

    async def close(self) -> None:
        if self._status_timer is not None:
            self._status_timer.cancel()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.copies.close()
        if self._owns_child:
            await self._child.close()

    async def _begin(self) -> None:
        if self._watched:
            self._on_watch("starting", "")
        self._listed_at = time.time()
        async with self._listing, self._status_lock:
            try:
                listed = await list_by_child(self._child, self.root, [], self._listed)
            except ChildFailed as error:
                listed = await self._list_without(error)
            self._listed(listed)
        if listed.status is None:
            self._spawn(self.git_status())

    def _listed(self, listed: PathListing) -> None:
        self._take(listed)
        if self._watched and not self._following:
            self._following = True
            self._spawn(self._watch())

    async def _list_without(self, error: ChildFailed) -> PathListing:
        self._on_notice("warning", f"{error}; until then files are listed without git's rules")
        return await list_here(self.root)

    def _take(self, listed: PathListing) -> None:
        first = not self._indexed.is_set()
        if first and listed.note:
            self._on_notice("warning", listed.note)
        if first or listed.paths is not self.index.paths:
            before = self.index.paths
            self.index.replace(listed.paths)
            self._on_index(len(self.index), True)
            if not first:
                # Without details, for example after a folder was moved.
                gone, new = set(before).difference(listed.paths), set(listed.paths).difference(before)
                changes = [FileChange("deleted", path) for path in sorted(gone)]
                changes += [FileChange("added", path) for path in sorted(new)]
                if changes:
                    self._on_batch(changes)
        self._indexed.set()
        if listed.status is not None:
            self._update_status(listed.status)

    async def _watch(self) -> None:
        for _ in range(MOST_WATCHES):
            try:
                async for item in self._child.stream("watch", {"root": str(self.root)}):
                    self._on_watch_event(item)
            except ChildFailed as error:
                self._on_watch("failed", str(error))

    def _on_watch_event(self, item: dict[str, Any]) -> None:
        if "state" in item:
            self._on_watch(item["state"], item["why"])
            if item["newest"] > self._listed_at - CLOCKS_APART:
                self._spawn(self.refresh())  # changes before the start of the watch
            return
        changes = [FileChange(kind, path) for kind, path in item["changes"]]
        if changes:
            # The system reports a replaced file as added
            known = [
                FileChange("changed", change.path)
                if change.kind == "added" and self.index.contains(change.path)
                else change
                for change in changes
            ]
            added = [change.path for change in known if change.kind != "deleted"]
            removed = [change.path for change in known if change.kind == "deleted"]
            if self.index.update(added, removed):
                self._on_index(len(self.index), True)
            self._on_batch(known)
        if item["relist"]:
            self._on_batch(())
            self._spawn(self.refresh())
        if item["git"] or (self._status and self._status.is_repository):
            if self._status_timer is not None:
                self._status_timer.cancel()
            self._status_timer = asyncio.get_running_loop().call_later(STATUS_DELAY, self._ask_status)

    def _ask_status(self) -> None:
        self._status_timer = None
        self._spawn(self.git_status())

    def _spawn(self, work: Coroutine[Any, Any, object]) -> None:
        start_task(self._tasks, work)
