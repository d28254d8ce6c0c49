"""The folder being worked on, as the interface sees it: its index, what changes in it, and what git says."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection, Coroutine, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct

from tui_agent.errors import ChildFailed
from tui_agent.files.gate import Gate
from tui_agent.git.client import GitClient
from tui_agent.processes.child import ChildProcess
from tui_agent.processes.environment import avoid_programs_in
from tui_agent.workspace.ahead import workspace_child
from tui_agent.workspace.copies import WorkCopies
from tui_agent.workspace.import_names import Import
from tui_agent.workspace.index import Index
from tui_agent.workspace.listing import Listed, list_by_child, list_here

ChangeKind = Literal["added", "changed", "deleted"]
Watching = Literal["starting", "watching", "polling", "failed"]
Level = Literal["info", "warning", "error"]
#: How long changes have to have stopped before git is asked for its status, in seconds.
STATUS_DELAY = 0.3
#: Seconds by which the clock of a file system may differ from ours: all is listed again that changed so late.
CLOCKS_APART = 2.0
MOST_WATCHES = 3
MOST_LISTINGS = 3


class FileChange(Struct, frozen=True):
    """One path that was added, changed or deleted on disk; a deleted one may have been a folder."""

    kind: ChangeKind
    path: str


class GitStatus(Struct, frozen=True):
    """What git says: `marks` are its two letters by path. All empty where there is no repository."""

    is_repository: bool = False
    branch: str = ""
    ahead: int = 0
    behind: int = 0
    marks: dict[str, str] = {}


#: (how many files, whether the listing is complete)
OnIndex = Callable[[int, bool], None]
#: What changed on disk, in one go; nothing where anything may have, while nobody watched.
OnBatch = Callable[[Sequence[FileChange]], object]
OnStatus = Callable[[GitStatus], None]
#: (how changes are seen, why that is not by the system's events or not at all)
OnWatch = Callable[[Watching, str], None]
#: (level, one sentence for the person)
OnNotice = Callable[[Level, str], None]


class Workspace:
    """One folder. Belongs to the loop that starts it; nothing runs in it while nothing happens."""

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
        on_index: OnIndex | None = None,
        on_batch: OnBatch | None = None,
        on_status: OnStatus | None = None,
        on_watch: OnWatch | None = None,
        on_notice: OnNotice | None = None,
    ) -> None:
        """`own` are folders of tui-agent's own, which the gate keeps closed, `aliases` are other names of secrets
        (see `Gate`). Raises `PathRefused` for no folder.

        `child` is that of another workspace, which ends it; `ahead` was started for this one. `filters` is the
        fingerprint of the repository whose filters the person trusted: git runs no others. Without `watched` nothing
        is told of what changes on disk.
        The callbacks are called on the loop and must not raise; `listen` sets them later.
        """
        self.gate = Gate(root, own, aliases)
        self.root = self.gate.root
        avoid_programs_in(str(self.root))
        self.index = Index(ignore_case=self.gate.ignore_case)
        self.listen(on_index, on_batch, on_status, on_watch, on_notice)
        self._child = child or ahead or workspace_child(filters)
        self._owns_child = child is None
        self._watched = watched
        self.repository = GitClient(self._child, self.root)
        self.copies = WorkCopies(self._child, self.gate, self.index)
        self._tasks: set[asyncio.Task[None]] = set()
        self._indexed = asyncio.Event()
        self._listed_at = 0.0
        self._following = False
        self._listing = asyncio.Lock()
        self._status_lock = asyncio.Lock()
        self._status: GitStatus | None = None
        self._status_timer: asyncio.TimerHandle | None = None

    def listen(
        self,
        on_index: OnIndex | None = None,
        on_batch: OnBatch | None = None,
        on_status: OnStatus | None = None,
        on_watch: OnWatch | None = None,
        on_notice: OnNotice | None = None,
    ) -> None:
        """Say who is told what: these, and nobody else."""
        self._on_index = on_index or _nobody
        self._on_batch = on_batch or _nobody
        self._on_status = on_status or _nobody
        self._on_watch = on_watch or _nobody
        self._on_notice = on_notice or _nobody

    def start(self, paths: list[str] | None = None) -> None:
        """Begin to list and to watch; returns at once. `ready()` waits for the index.

        With `paths`, sorted, all that there is is known already.
        """
        if paths is None:
            self._spawn(self._begin())
            return
        self._take(Listed(paths))

    def launch(self) -> None:
        """Start the child ahead of its first use; returns at once."""
        self._spawn(self._launch())

    async def _launch(self) -> None:
        with suppress(ChildFailed):  # the first use says so
            await self._child.start()

    async def ready(self) -> None:
        """Wait until the first listing is through."""
        await self._indexed.wait()

    @property
    def child(self) -> ChildProcess:
        """The process that does what is slow, for another workspace to share."""
        return self._child

    @property
    def child_pid(self) -> int | None:
        """The process id of the child while it runs."""
        return self._child.pid

    @property
    def busy(self) -> bool:
        """Whether it lists, asks git, or is about to; watching alone is not being busy."""
        return self._listing.locked() or self._status_lock.locked() or self._status_timer is not None

    async def refresh(self) -> None:
        """List again, and ask git; the index changes only where the folder did."""
        async with self._listing, self._status_lock:
            for _ in range(MOST_LISTINGS):
                revision = self.index.revision
                listed = await self._list_again()
                if self.index.revision == revision:
                    break  # else it may be older than what the watcher told meanwhile
            self._take(listed)

    async def _list_again(self) -> Listed:
        try:
            return await list_by_child(self._child, self.root, self.index.paths)
        except ChildFailed as error:
            return await self._list_without(error)

    async def git_status(self) -> GitStatus:
        """Ask git, and tell the listener if that is news.

        Empty where there is no repository, or the child does not answer.
        """
        async with self._status_lock:
            try:
                answer = await self._child.ask("git_status", {"root": str(self.root)})
            except ChildFailed as error:
                self._on_notice("warning", f"{error}; git's marks are not up to date")
                return GitStatus()
        return self._tell(answer)

    def _tell(self, answer: dict[str, Any]) -> GitStatus:
        status = msgspec.convert(answer, GitStatus)
        if status != self._status:
            self._status = status
            self._on_status(status)
        return status

    async def ignored(self, paths: Sequence[str]) -> set[str]:
        """Those of `paths` that are ignored; all of them where the child cannot be asked."""
        try:
            return set(await self._child.ask("ignored", {"root": str(self.root), "paths": list(paths)}))
        except ChildFailed:
            return set(paths)

    async def tracked(self, paths: Sequence[str]) -> list[str]:
        """Those of `paths` that git tracks; none where the child cannot be asked."""
        try:
            return list(await self._child.ask("tracked", {"root": str(self.root), "paths": list(paths)}))
        except ChildFailed:
            return []

    async def imports(self, language: str, text: str) -> tuple[Import, ...]:
        """What a source text imports, as it is written there; none where the child cannot be asked."""
        try:
            found = await self._child.ask("imports", {"language": language, "text": text})
        except ChildFailed:
            return ()
        return msgspec.convert(found, tuple[Import, ...])

    async def close(self) -> None:
        """Stop watching, and end the child if it is our own."""
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
            self._spawn(self._refresh_status())

    def _listed(self, listed: Listed) -> None:
        """The paths are there; the watcher is not waited for, nor does it wait for git's status."""
        self._take(listed)
        if self._watched and not self._following:
            self._following = True
            self._spawn(self._watch())

    async def _list_without(self, error: ChildFailed) -> Listed:
        self._on_notice("warning", f"{error}; until then files are listed without git's rules")
        return await list_here(self.root)

    def _take(self, listed: Listed) -> None:
        first = not self._indexed.is_set()
        if first and listed.note:
            self._on_notice("warning", listed.note)
        if first or listed.paths is not self.index.paths:
            self.index.replace(listed.paths)
            self._on_index(len(self.index), True)
        self._indexed.set()
        if listed.status is not None:
            self._tell(listed.status)

    async def _watch(self) -> None:
        """Follow the watcher; when its process dies it is restarted, and what was missed is listed."""
        for _ in range(MOST_WATCHES):
            try:
                async for item in self._child.stream("watch", {"root": str(self.root)}):
                    await self._heard(item)
            except ChildFailed as error:
                self._on_watch("failed", str(error))

    async def _heard(self, item: dict[str, Any]) -> None:
        if "state" in item:
            self._on_watch(item["state"], item["why"])
            if item["newest"] > self._listed_at - CLOCKS_APART:
                self._spawn(self.refresh())  # it may have happened between the listing and this moment
            return
        changes = [FileChange(kind, path) for kind, path in item["changes"]]
        if changes:
            self._change(changes)
        if item["relist"]:
            self._on_batch(())
            self._spawn(self.refresh())
        if item["git"] or (self._status and self._status.is_repository):
            self._want_status()

    def _change(self, changes: Sequence[FileChange]) -> None:
        """Follow a batch; a file that was replaced is told as added by the system, and is not news to the index."""
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

    def _want_status(self) -> None:
        if self._status_timer is not None:
            self._status_timer.cancel()
        self._status_timer = asyncio.get_running_loop().call_later(STATUS_DELAY, self._ask_status)

    def _ask_status(self) -> None:
        self._status_timer = None
        self._spawn(self._refresh_status())

    async def _refresh_status(self) -> None:
        await self.git_status()

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _nobody(*_: Any) -> None:
    """Whom nobody asked to be told."""
