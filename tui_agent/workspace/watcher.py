"""Changes on disk as they happen, by the system's own events or by looking again and again. Lives in the child."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncGenerator, Callable, Collection
from typing import Any, Final

from watchfiles._rust_notify import RustNotify, WatchfilesRustInternalError

from tui_agent.errors import ChildFailed
from tui_agent.git.repository import Repository, find_repository
from tui_agent.workspace.changes import Seen, read_changes
from tui_agent.workspace.watch_plan import WatchPlan, make_plan

#: A batch is closed after so many milliseconds of quiet, and at the latest after `DEBOUNCE`.
STEP: Final = 50
DEBOUNCE: Final = 400
#: Between two looks where the system tells nothing, in milliseconds: each costs a look at every file.
POLL_DELAY: Final = 2000
MAX_BATCH: Final = 2000
MOST_PLANS: Final = 3

_NOT_UTF8: Final = "a file has a name that is not UTF-8, so changes are looked for every two seconds"

Raw = set[tuple[int, str]]
MakeNotify = Callable[..., RustNotify]


class _Unreadable(Exception):
    """A path that changed has no name as text: with it all events of the moment are lost."""


class Watcher:
    """Watches one root. `poll` looks again and again from the start; `make_notify` is for trying out failures."""

    def __init__(self, root: str, *, poll: bool = False, make_notify: MakeNotify = RustNotify) -> None:
        self._root = root
        self._polling = poll
        self._make_notify = make_notify

    async def run(self) -> AsyncGenerator[dict[str, Any], None]:
        """`{"state", "why", "newest"}` when watching begins (see `WatchPlan.newest`), then `{"changes", "git",
        "relist"}`, until it is closed.

        Raises `ChildFailed` where nothing can be watched.
        """
        announced, unreadable = False, ""
        while True:
            repository, plan, ears, why = await asyncio.to_thread(self._begin)
            why, unreadable = why or unreadable, ""
            try:
                seen = Seen(replan=not await asyncio.to_thread(plan.holds))
                if not announced or why:
                    newest = await asyncio.to_thread(plan.newest)
                    yield {"state": "polling" if self._polling else "watching", "why": why, "newest": newest}
                if announced:
                    yield {"changes": [], "git": False, "relist": True}  # what happened while nobody watched
                announced = True
                if seen.replan:  # where much goes on it is planned again now and then, not all the time
                    await asyncio.sleep(DEBOUNCE / 1000)
                while not seen.replan:
                    try:
                        raw = await ears.hear()
                    except _Unreadable:  # the system's events name it again and again, a look does not
                        unreadable, self._polling = "" if self._polling else _NOT_UTF8, True
                        break
                    _check_folder(self._root)
                    seen = await asyncio.to_thread(read_changes, self._root, repository, plan, raw)
                    for item in _items(seen):
                        yield item
            finally:
                ears.close()

    def _begin(self) -> tuple[Repository | None, WatchPlan, _Ears, str]:
        """Plan, and begin to watch. A folder that went in between is a reason to plan again."""
        _check_folder(self._root)
        for attempt in range(MOST_PLANS):
            repository = find_repository(self._root)
            plan = make_plan(self._root, repository)
            try:
                return repository, plan, *self._open(plan)
            except FileNotFoundError as error:
                if attempt == MOST_PLANS - 1 or not os.path.isdir(self._root):
                    raise _failed(error) from error
        raise AssertionError("the last attempt returns or raises")

    def _open(self, plan: WatchPlan) -> tuple[_Ears, str]:
        """Begin to watch, by polling where the system's limits allow no more; and why, if that was so."""
        if not self._polling:
            try:
                return _Ears(self._notifiers(plan)), ""
            except FileNotFoundError:
                raise
            except OSError as error:
                self._polling = True
                why = f"the system watches no more folders ({error}), so changes are looked for every two seconds"
                return _Ears(self._polled(plan)), why
            except WatchfilesRustInternalError as error:
                raise _failed(error) from error
        return _Ears(self._polled(plan)), ""

    def _polled(self, plan: WatchPlan) -> list[RustNotify]:
        try:
            return self._notifiers(plan)
        except FileNotFoundError:
            raise
        except (OSError, WatchfilesRustInternalError) as error:
            raise _failed(error) from error

    def _notifiers(self, plan: WatchPlan) -> list[RustNotify]:
        made: list[RustNotify] = []
        try:
            for folders, recursive in ((plan.single, False), (plan.whole, True)):
                if folders:
                    made.append(self._notifier(folders, recursive))
        except BaseException:
            for notify in made:
                notify.close()
            raise
        return made

    def _notifier(self, folders: Collection[str], recursive: bool) -> RustNotify:
        return self._make_notify(sorted(folders), False, self._polling, POLL_DELAY, recursive, True)


class _Ears:
    """Threads that listen to notifiers, and the queue that they fill. Made in any thread, heard on the loop."""

    def __init__(self, notifiers: list[RustNotify]) -> None:
        self._notifiers = notifiers
        self._stop = threading.Event()
        self._queue: asyncio.Queue[Raw | Exception] | None = None

    async def hear(self) -> Raw:
        """The next batch."""
        if self._queue is None:
            self._queue = asyncio.Queue()
            loop = asyncio.get_running_loop()
            for notify in self._notifiers:
                listen = threading.Thread(target=self._listen, args=(notify, loop, self._queue), daemon=True)
                listen.start()
        heard = await self._queue.get()
        if isinstance(heard, WatchfilesRustInternalError) and "decode path" in str(heard):
            raise _Unreadable
        if isinstance(heard, Exception):
            raise _failed(heard)
        return heard

    def close(self) -> None:
        """Each thread notices within a step, and gives its notifier back."""
        self._stop.set()
        if self._queue is None:
            for notify in self._notifiers:
                notify.close()

    def _listen(
        self, notify: RustNotify, loop: asyncio.AbstractEventLoop, queue: asyncio.Queue[Raw | Exception]
    ) -> None:
        with notify:
            while not self._stop.is_set():
                try:
                    heard = notify.watch(DEBOUNCE, STEP, 0, self._stop)
                except (OSError, WatchfilesRustInternalError) as error:
                    loop.call_soon_threadsafe(queue.put_nowait, error)
                    return
                if isinstance(heard, set):
                    loop.call_soon_threadsafe(queue.put_nowait, heard)


def _items(seen: Seen) -> list[dict[str, Any]]:
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
    """The system takes a folder that is not there for one in which nothing happens."""
    if not os.path.isdir(root):
        raise _failed(FileNotFoundError(f"{root} is not a folder"))


def _failed(error: Exception) -> ChildFailed:
    what = f"Changes on disk cannot be watched ({error})"
    return ChildFailed(what, "refresh the files by hand, or open the folder again")
