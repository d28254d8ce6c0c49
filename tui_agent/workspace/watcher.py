"""Reports changes on disk through system events or polling. Runs in the child."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncGenerator, Callable, Collection, Generator
from concurrent.futures import Future
from contextlib import aclosing
from functools import partial
from typing import Any, Final

from watchfiles import Change, awatch, watch

from tui_agent.errors import ChildFailed
from tui_agent.git.repository import Repository, find_repository
from tui_agent.workspace.changes import RelevantChanges, read_changes
from tui_agent.workspace.watch_plan import WatchPlan, make_plan

#: Milliseconds of quiet that end a batch; `DEBOUNCE` is its maximum duration.
STEP: Final = 50
DEBOUNCE: Final = 400
#: Polling interval in milliseconds; each poll checks every file.
POLL_DELAY: Final = 2000
MAX_BATCH: Final = 2000
MOST_PLANS: Final = 3

#: Most seconds until a folder is watched again after a name that cannot be decoded.
MOST_WAIT: Final = 8.0
_NOT_UTF8: Final = "a file has a name that is not UTF-8, so changes are looked for every two seconds"

Raw = set[tuple[Change, str]]
#: `watchfiles.watch`: system errors are OSErrors, the library's own are RuntimeErrors.
Watch = Callable[..., Generator[Raw, None, None]]


class _Unreadable(Exception):
    """A changed path cannot be decoded; the whole batch is lost."""


class Watcher:
    """Watches one root. `poll` forces polling; `watch` is replaceable in tests."""

    def __init__(self, root: str, *, poll: bool = False, watch: Watch = watch) -> None:
        self._root = root
        self._polling = poll
        self._watch = watch

    async def run(self) -> AsyncGenerator[dict[str, Any], None]:
        """Yields `{"state", "why", "newest"}` when watching begins (see `WatchPlan.newest`), then
        `{"changes", "git", "relist"}` until closed.

        Raises `ChildFailed` if watching is impossible.
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
                if seen.replan:  # limits the rate of new plans in a busy tree
                    await asyncio.sleep(DEBOUNCE / 1000)
                while not seen.replan:
                    try:
                        raw = await ears.hear()
                    except _Unreadable:  # system events would repeat the name, polling does not
                        unreadable, self._polling = "" if self._polling else _NOT_UTF8, True
                        break
                    _check_folder(self._root)
                    seen = await asyncio.to_thread(read_changes, self._root, repository, plan, raw)
                    for item in _items(seen):
                        yield item
            finally:
                ears.close()

    def _begin(self, loop: asyncio.AbstractEventLoop) -> tuple[Repository | None, WatchPlan, _Listeners, str]:
        """Plans again if a folder was removed in between."""
        _check_folder(self._root)
        for attempt in range(MOST_PLANS):
            repository = find_repository(self._root)
            plan = make_plan(self._root, repository)
            try:
                return repository, plan, *self._open(plan, loop)
            except FileNotFoundError as error:
                if attempt == MOST_PLANS - 1 or not os.path.isdir(self._root):
                    raise _failed(error) from error
        raise AssertionError("the last attempt returns or raises")

    def _open(self, plan: WatchPlan, loop: asyncio.AbstractEventLoop) -> tuple[_Listeners, str]:
        """Starts watching, by polling if system limits are exceeded. Returns the reason for polling, or
        ""."""
        why = ""
        try:
            if not self._polling:
                try:
                    return _Listeners(self._watches(plan), loop), ""
                except FileNotFoundError:
                    raise
                except OSError as error:
                    self._polling = True
                    why = f"the system watches no more folders ({error}), so changes are looked for every two seconds"
            return _Listeners(self._watches(plan), loop), why
        except FileNotFoundError:
            raise
        except (OSError, RuntimeError) as error:
            raise _failed(error) from error

    def _watches(self, plan: WatchPlan) -> list[Callable[[threading.Event], Generator[Raw, None, None]]]:
        parts = ((plan.single, False), (plan.whole, True))
        return [partial(self._of, sorted(folders), recursive) for folders, recursive in parts if folders]

    def _of(
        self, folders: Collection[str], recursive: bool, stop: threading.Event
    ) -> Generator[Raw, None, None]:
        """Batches, empty after each `STEP` without events; the first batch confirms that the watch is
        active."""
        return self._watch(
            *folders,
            watch_filter=None,
            debounce=DEBOUNCE,
            step=STEP,
            stop_event=stop,
            rust_timeout=1,
            yield_on_timeout=True,
            debug=False,
            raise_interrupt=False,
            force_polling=self._polling,
            poll_delay_ms=POLL_DELAY,
            recursive=recursive,
            ignore_permission_denied=True,
        )


async def watch_folder(path: str) -> AsyncGenerator[list[str] | None, None]:
    """Yields None when watching begins, then the changed paths below a folder, with its subfolders.

    None again means changes with names that cannot be decoded. Raises `ChildFailed`.
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
            if "Unable to decode path" not in str(one):  # The library ends a watch at such a name.
                raise _failed(one) from error
        await asyncio.sleep(wait)
        wait = min(2 * wait, MOST_WAIT)


async def _batches(path: str) -> AsyncGenerator[list[str] | None, None]:
    """None when watching begins, then changed paths. A new folder is in two batches, since files that are written
    before it is watched have no events."""
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
    """Listener threads and their queue. Created on any thread, consumed on the event loop.

    Raises the errors of starting a watch.
    """

    def __init__(
        self,
        watches: list[Callable[[threading.Event], Generator[Raw, None, None]]],
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

    def _listen(
        self, watches: Callable[[threading.Event], Generator[Raw, None, None]], begun: Future[None]
    ) -> None:
        try:
            for batch in watches(self._stop):
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
    """Raises if the folder is missing, because the system reports no events for a missing folder."""
    if not os.path.isdir(root):
        raise _failed(FileNotFoundError(f"{root} is not a folder"))


def _failed(error: Exception) -> ChildFailed:
    what = f"Changes on disk cannot be watched ({error})"
    return ChildFailed(what, "refresh the files by hand, or open the folder again")
