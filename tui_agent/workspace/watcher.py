"""Reports changes of relevant files through system events or polling. Runs in the child.

The watcher follows links, and a recursive watch includes ignored folders. So only folders with neither
are watched recursively, others individually. In large trees all are watched individually, because a
recursive watch scans every file.
"""

from __future__ import annotations

import asyncio
import os
import stat
import threading
import time
from collections.abc import AsyncGenerator, Callable, Generator, Iterable, Mapping
from concurrent.futures import Future
from contextlib import aclosing, suppress
from functools import partial
from typing import Any, Final, Literal

from msgspec import Struct
from watchfiles import Change, awatch, watch

from tui_agent.errors import ChildFailed
from tui_agent.files.names import is_text
from tui_agent.files.operating_system import Stamp, stamp_of
from tui_agent.files.staging import is_temporary
from tui_agent.git.repository import (
    Repository,
    find_repository,
    git,
    git_without_repository,
    ignored,
    ignored_folders,
    ignored_folders_without_repository,
    ignored_without_repository,
)
from tui_agent.workspace.git_listing import WITHOUT_CONTROL
from tui_agent.workspace.listing import CONTROL_FOLDERS, as_texts

#: Files in a git folder that may indicate a status change.
GIT_SIGNS: Final = frozenset(
    {"HEAD", "index", "config", "COMMIT_EDITMSG", "FETCH_HEAD", "MERGE_HEAD", "ORIG_HEAD", "packed-refs"}
)
IGNORE_FILE: Final = ".gitignore"
#: In larger trees every folder is watched individually.
MANY_FILES: Final = 5000


class WatchPlan(Struct, frozen=True):
    """Absolute folders: `single` are watched individually, `whole` recursively. `git_folders` belong to git.

    `seen` maps watched folders and their ignore files to their stamps before the scan; while these are
    equal, listing and status are too.
    """

    single: frozenset[str]
    whole: frozenset[str]
    git_folders: frozenset[str] = frozenset()
    seen: Mapping[str, Stamp | None] = {}

    def newest(self) -> float:
        """Time of the latest addition, removal or rename; now if a folder is missing. Uses ctime, which
        programs cannot set.
        """
        try:
            return max((os.lstat(place).st_ctime for place in self.seen), default=0.0)
        except OSError:
            return time.time()

    def holds(self) -> bool:
        """Whether no individually watched folder changed since the plan: folders created before the watch
        would be missed.
        """
        return all(stamp_of(place) == self.seen[place] for place in self.single - self.git_folders)


def make_plan(root: str, repository: Repository | None) -> WatchPlan:
    ignored = ignored_folders(repository) if repository else ignored_folders_without_repository(root)
    folders, mixed, ignore_files, count = _folders(root, ignored)
    if count > MANY_FILES:
        mixed = set(folders)
    single = {_absolute(root, folder) for folder in mixed}
    whole = {
        _absolute(root, folder) for folder in folders.keys() - mixed if not folder or _parent(folder) in mixed
    }
    signs: set[str] = set()
    if repository:
        beside = (os.path.join(repository.common_dir, "info"), os.path.join(repository.git_dir, "logs"))
        signs = {repository.git_dir, *filter(os.path.isdir, beside)}
    seen = {_absolute(root, folder): stamp for folder, stamp in folders.items()}
    seen |= {place: stamp_of(place) for place in (*(_absolute(root, path) for path in ignore_files), *signs)}
    return WatchPlan(frozenset(single | signs), frozenset(whole), frozenset(signs), seen)


def _folders(root: str, ignored: set[str]) -> tuple[dict[str, Stamp | None], set[str], list[str], int]:
    """Returns folders to watch (relative, the root is ""), those with an ignored or linked folder below,
    their ignore files, and the number of files.
    """
    ignore_files: list[str] = []
    count = 0
    folders: dict[str, Stamp | None] = {}
    mixed: set[str] = set()
    waiting = [""]
    while waiting:
        folder = waiting.pop()
        place = _absolute(root, folder)
        folders[folder] = stamp_of(place)
        prefix = folder + "/" if folder else ""
        below: list[str] = []
        links = False
        with suppress(OSError), os.scandir(place) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    below.append(entry.name)
                elif entry.is_symlink():
                    links = links or entry.is_dir()
                else:
                    count += 1
                    if entry.name == IGNORE_FILE:
                        ignore_files.append(prefix + IGNORE_FILE)
        kept = [name for name in below if name not in CONTROL_FOLDERS and prefix + name not in ignored]
        waiting += [prefix + name for name in kept]
        if links or len(kept) < len(below):
            while folder not in mixed:
                mixed.add(folder)
                folder = _parent(folder)
    return folders, mixed, ignore_files, count


def _parent(folder: str) -> str:
    return folder.rpartition("/")[0]


def _absolute(root: str, folder: str) -> str:
    return os.path.join(root, folder) if folder else root


Kind = Literal["added", "changed", "deleted"]
ADDED: Final = 1


class RelevantChanges(Struct):
    """`changes` of files (or of deleted folders). `git`: the status may differ. `relist`: ignore rules
    changed or git failed. `replan`: a new folder among individually watched ones.
    """

    changes: dict[str, Kind] = {}
    git: bool = False
    relist: bool = False
    replan: bool = False


def read_changes(
    root: str, repository: Repository | None, plan: WatchPlan, raw: Iterable[tuple[int, str]]
) -> RelevantChanges:
    seen = RelevantChanges()
    kinds: dict[str, set[int]] = {}
    for kind, absolute in raw:
        if not _is_control(root, absolute, plan, seen) and is_text(absolute):
            kinds.setdefault(os.path.relpath(absolute, root), set()).add(kind)
    new_folders = [path for path, told in kinds.items() if _one(root, path, told, seen)]
    for folder in new_folders:
        seen.replan = seen.replan or os.path.dirname(os.path.join(root, folder)) in plan.single
        # The watcher omits files of a new folder.
        asked = ("ls-files", "-z", "--others", "--exclude-standard")
        below = ("--", f":(literal){folder}/")
        if repository is None:
            told, is_there = git_without_repository(root, *asked, *WITHOUT_CONTROL, *below), os.path.isfile
        else:
            told, is_there = git(root, *asked, "--cached", *below), os.path.lexists
        found = as_texts(told.out).paths
        seen.relist = seen.relist or not told.ok or any(path.endswith("/") for path in found)
        seen.changes.update({path: "added" for path in found if is_there(os.path.join(root, path))})
    present = [path for path, kind in seen.changes.items() if kind != "deleted"]
    if present:
        left_out = ignored(repository, present) if repository else ignored_without_repository(root, present)
        if left_out is None:
            seen.relist = True
            seen.changes = {path: kind for path, kind in seen.changes.items() if kind != "added"}
        for path in left_out or ():
            seen.changes.pop(path, None)
    return seen


def _is_control(root: str, absolute: str, plan: WatchPlan, seen: RelevantChanges) -> bool:
    """Handles events in version control folders. Returns False for a file change."""
    folder, name = os.path.split(absolute)
    if folder in plan.git_folders:
        seen.git = seen.git or name in GIT_SIGNS
        seen.relist = seen.relist or name == "exclude"
        return True
    if absolute == root or not absolute.startswith(root.rstrip("/") + "/"):
        return True
    parts = os.path.relpath(absolute, root).split("/")
    if CONTROL_FOLDERS.isdisjoint(parts):
        return False
    if name == ".git":
        seen.git = seen.relist = seen.replan = True
    return True


def _one(root: str, path: str, told: set[int], seen: RelevantChanges) -> bool:
    """Records a change, except of our temporary files. Returns True for a new folder."""
    if is_temporary(os.path.basename(path)):
        return False
    if os.path.basename(path) == IGNORE_FILE:
        seen.relist = seen.replan = True
    try:
        mode = os.lstat(os.path.join(root, path)).st_mode
    except OSError:
        seen.changes[path] = "deleted"
        return False
    if stat.S_ISDIR(mode):
        return ADDED in told
    if stat.S_ISREG(mode) or (stat.S_ISLNK(mode) and not os.path.isdir(os.path.join(root, path))):
        seen.changes[path] = "added" if ADDED in told else "changed"
    return False


#: Milliseconds without events that end a batch; `DEBOUNCE` is its maximum length.
STEP: Final = 50
DEBOUNCE: Final = 400
#: Milliseconds; each poll checks every file.
POLL_DELAY: Final = 2000
MAX_BATCH: Final = 2000
MOST_PLANS: Final = 3

#: Maximum seconds before a folder is watched again after an undecodable name.
MOST_WAIT: Final = 8.0
_NOT_UTF8: Final = "a file has a name that is not UTF-8, so changes are looked for every two seconds"

Raw = set[tuple[Change, str]]
#: `watchfiles.watch`: system errors are OSErrors, its own are RuntimeErrors.
Watch = Callable[..., Generator[Raw, None, None]]


class _Unreadable(Exception):
    """An undecodable path; the whole batch is lost."""


class Watcher:
    def __init__(self, root: str, *, watch: Watch = watch) -> None:
        self._root = root
        self._polling = False
        self._watch = watch

    async def run(self) -> AsyncGenerator[dict[str, Any], None]:
        """Yields `{"state", "why", "newest"}` when watching begins (see `WatchPlan.newest`), then
        `{"changes", "git", "relist"}` until closed. Raises `ChildFailed`.
        """
        announced, unreadable = False, ""
        loop = asyncio.get_running_loop()
        while True:
            repository, plan, ears, why = await asyncio.to_thread(self._begin, loop)
            why, unreadable = why or unreadable, ""
            try:
                seen = RelevantChanges(replan=not await asyncio.to_thread(plan.holds))
                if not announced or why:
                    newest = await asyncio.to_thread(plan.newest)
                    yield {"state": "polling" if self._polling else "watching", "why": why, "newest": newest}
                if announced:
                    yield {"changes": [], "git": False, "relist": True}  # changes during the restart
                announced = True
                if seen.replan:  # limits new plans in a busy tree
                    await asyncio.sleep(DEBOUNCE / 1000)
                while not seen.replan:
                    try:
                        raw = await ears.hear()
                    except _Unreadable:  # polling does not repeat the name
                        unreadable, self._polling = "" if self._polling else _NOT_UTF8, True
                        break
                    _check_folder(self._root)
                    seen = await asyncio.to_thread(read_changes, self._root, repository, plan, raw)
                    for item in _items(seen):
                        yield item
            finally:
                ears.close()

    def _begin(self, loop: asyncio.AbstractEventLoop) -> tuple[Repository | None, WatchPlan, _Listeners, str]:
        """Polls if system limits are exceeded; the last value is that reason, or ""."""
        _check_folder(self._root)
        why, plans = "", 0
        while True:
            repository = find_repository(self._root)
            plan = make_plan(self._root, repository)
            plans += 1
            try:
                return repository, plan, _Listeners(self._watches(plan), loop), why
            except FileNotFoundError as error:
                if plans >= MOST_PLANS or not os.path.isdir(self._root):
                    raise _failed(error) from error
            except (OSError, RuntimeError) as error:
                if self._polling or isinstance(error, RuntimeError):
                    raise _failed(error) from error
                self._polling = True
                why = f"the system watches no more folders ({error}), so changes are looked for every two seconds"

    def _watches(self, plan: WatchPlan) -> list[Watch]:
        """Each yields batches, empty after each `STEP` without events; the first one confirms the watch."""
        watch = partial(
            self._watch,
            watch_filter=None,
            debounce=DEBOUNCE,
            step=STEP,
            rust_timeout=1,
            yield_on_timeout=True,
            debug=False,
            raise_interrupt=False,
            force_polling=self._polling,
            poll_delay_ms=POLL_DELAY,
            ignore_permission_denied=True,
        )
        parts = ((plan.single, False), (plan.whole, True))
        return [partial(watch, *sorted(folders), recursive=whole) for folders, whole in parts if folders]


async def watch_folder(path: str) -> AsyncGenerator[list[str] | None, None]:
    """Yields None when watching begins, then the changed paths below a folder; None for undecodable names.
    Raises `ChildFailed`.
    """
    wait = DEBOUNCE / 1000
    while True:
        try:
            async with aclosing(_batches(path)) as batches:
                async for batch in batches:
                    yield batch
            return
        except (OSError, RuntimeError, ExceptionGroup) as error:
            one = error.exceptions[0] if isinstance(error, ExceptionGroup) else error
            if "Unable to decode path" not in str(one):  # ends the library's watch
                raise _failed(one) from error
        await asyncio.sleep(wait)
        wait = min(2 * wait, MOST_WAIT)


async def _batches(path: str) -> AsyncGenerator[list[str] | None, None]:
    """Yields a new folder in two batches, since files written before it is watched have no events."""
    begun, new = False, set[str]()
    async for raw in awatch(
        path,
        watch_filter=None,
        debounce=DEBOUNCE,
        step=STEP,
        rust_timeout=DEBOUNCE,
        yield_on_timeout=True,
        raise_interrupt=False,
        ignore_permission_denied=True,
    ):
        if not begun:
            begun = True
            yield None
        found = sorted({changed[len(path) + 1 :] for _, changed in raw} - {""} | new)
        added = (changed for change, changed in raw if change == Change.added)
        new = {changed[len(path) + 1 :] for changed in filter(os.path.isdir, added)} - {""}
        for at in range(0, len(found), MAX_BATCH):
            yield found[at : at + MAX_BATCH]


class _Listeners:
    """Listener threads and their queue. Created on any thread, consumed on the event loop. Raises errors of
    starting a watch.
    """

    def __init__(
        self,
        watches: list[Watch],
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self._loop = loop
        self._stop = threading.Event()
        self._queue: asyncio.Queue[Raw | Exception] = asyncio.Queue()
        begun: list[Future[None]] = [Future() for _ in watches]
        for one, future in zip(watches, begun, strict=True):
            threading.Thread(target=self._listen, args=(one, future), daemon=True).start()
        try:
            for future in begun:
                future.result()
        except BaseException:
            self.close()
            raise

    async def hear(self) -> Raw:
        heard = await self._queue.get()
        if isinstance(heard, RuntimeError) and "decode path" in str(heard):
            raise _Unreadable
        if isinstance(heard, Exception):
            raise _failed(heard)
        return heard

    def close(self) -> None:
        self._stop.set()

    def _listen(self, watch: Watch, begun: Future[None]) -> None:
        try:
            for batch in watch(stop_event=self._stop):
                if not begun.done():
                    begun.set_result(None)
                if batch:
                    self._enqueue(batch)
        except (OSError, RuntimeError) as error:
            if begun.done():
                self._enqueue(error)
            else:
                begun.set_exception(error)

    def _enqueue(self, heard: Raw | Exception) -> None:
        try:
            self._loop.call_soon_threadsafe(self._queue.put_nowait, heard)
        except RuntimeError:
            self._stop.set()


def _items(seen: RelevantChanges) -> list[dict[str, Any]]:
    pairs = [[kind, path] for path, kind in sorted(seen.changes.items())]
    if not pairs and not seen.git and not seen.relist:
        return []
    parts = [pairs[at : at + MAX_BATCH] for at in range(0, len(pairs), MAX_BATCH)] or [[]]
    last = len(parts) - 1
    return [
        {"changes": part, "git": seen.git and n == last, "relist": seen.relist and n == last}
        for n, part in enumerate(parts)
    ]


def _check_folder(root: str) -> None:
    """Raises if the folder is missing, because the system reports no events for it."""
    if not os.path.isdir(root):
        raise _failed(FileNotFoundError(f"{root} is not a folder"))


def _failed(error: Exception) -> ChildFailed:
    what = f"Changes on disk cannot be watched ({error})"
    return ChildFailed(what, "refresh the files by hand, or open the folder again")
