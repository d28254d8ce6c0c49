"""Append-only event log: one SQLite file, one writer thread."""

from __future__ import annotations

import logging
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

from msgspec import Struct

from tui_agent.errors import Damaged, RecordRefused, SessionError
from tui_agent.files import operating_system
from tui_agent.files.operating_system import in_background, several_at_once
from tui_agent.files.private import sync_folder
from tui_agent.log import database, records
from tui_agent.log.database import LogWriter, Ranks, read_raw
from tui_agent.log.records import body_of
from tui_agent.store.events import Growing, Lasting

_log = logging.getLogger(__name__)
Done = Callable[[int], object]
Failed = Callable[[SessionError], object]
_SUFFIXES = ("", "-wal", "-shm")


class FirstSync:
    """Syncs a new log and its folder in the background, during its first transaction.

    Opens the file before SQLite and closes it later, because closing it releases SQLite's locks.
    """

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        self._folders = (path.parent, path.parent.parent)
        self._failed: OSError | None = None
        self._begun = in_background(self._begin)

    def wait(self) -> None:
        self._begun.result()

    def try_again(self) -> None:
        """Raises OSError if it fails again."""
        if self._failed is not None:
            self._sync()
            self._failed = None

    def close(self) -> None:
        self._begun.result()
        os.close(self._file)

    def _begin(self) -> None:
        try:
            self._sync()
        except OSError as error:
            self._failed = error

    def _sync(self) -> None:
        several_at_once(
            lambda durable: durable(),
            [
                partial(operating_system.sync, self._file),
                *(partial(sync_folder, folder) for folder in self._folders),
            ],
        )


class _Job(Struct, frozen=True):
    write: Callable[[LogWriter], int]
    done: Done
    failed: Failed


class Log:
    """All methods are thread-safe; only `count` and `close` block.

    Errors are passed to the call's `failed`, or to `on_error`: a `RecordRefused` for invalid data, any
    other SessionError if the disk failed and a retry may succeed. Neither blocks other writes. If the
    thread dies, pending and later calls fail with its error.
    """

    def __init__(
        self,
        path: Path,
        connection: sqlite3.Connection,
        on_error: Failed | None,
        at_least: int = 0,
        first: FirstSync | None = None,
    ) -> None:
        self.path = path
        self.on_error = on_error or _ignore
        #: Runs on the log's thread before each commit, to make durable all data that the records refer to.
        self.before_commit: Callable[[], None] = lambda: None
        self._writer = LogWriter(connection, Ranks(path.parent.parent), at_least)
        self._first = first
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        #: Guards `_closed` and `_ended`, so that no job follows the last one that the thread reads.
        self._putting = threading.Lock()
        self._closed = self._ending = False
        self._ended: SessionError | None = None
        self._thread = threading.Thread(target=self._run, name="session log", daemon=True)
        self._thread.start()

    @classmethod
    def create(cls, path: Path, on_error: Failed | None = None) -> Log:
        """Raises SessionError if it exists or cannot be created."""
        database.make(path, sync=False)
        first = FirstSync(path)
        try:
            return cls.open(path, on_error, first=first)
        except SessionError:
            first.close()
            raise

    @classmethod
    def open(
        cls,
        path: Path,
        on_error: Failed | None = None,
        at_least: int = 0,
        first: FirstSync | None = None,
    ) -> Log:
        """The next record's number is above `at_least`. A new log is durable only after its `first` sync.
        Raises SessionError if it is missing, damaged or of a newer version.
        """
        connection = database.connect(path)
        try:
            return cls(path, connection, on_error, at_least, first)
        except sqlite3.Error as error:
            connection.close()
            raise database.refusal(path, error) from error

    def append(
        self,
        events: Sequence[Lasting],
        done: Done,
        failed: Failed | None = None,
        drop: Sequence[str] = (),
        keep: Sequence[Growing] = (),
    ) -> None:
        """Writes events, deletes the growing events of keys in `drop`, and stores those in `keep`,
        atomically.

        Calls `done(number)` with the number of the last record once it is on disk. Pending appends share
        one transaction, in order. If one event is invalid, the whole call fails.
        """
        try:
            bodies = [body_of(event) for event in events]
        except RecordRefused as error:
            _call_back(failed or self.on_error, error)
            return

        kept = []
        for event in keep:
            try:
                kept.append((event.key, body_of(event)))
            except RecordRefused as error:
                _call_back(self.on_error, error)

        def write(writer: LogWriter) -> int:
            if drop:
                writer.drop(drop)
            number = writer.append(bodies) if bodies else writer.number
            for key, body in kept:
                writer.keep(key, body)
            return number

        self._enqueue(write, done, failed)

    def keep(self, event: Growing, done: Done | None = None, failed: Failed | None = None) -> None:
        """The log's thread serializes the event, which can be megabytes long."""
        self._enqueue(lambda writer: writer.keep(event.key, body_of(event)), done, failed)

    def drop(self, keys: Sequence[str]) -> None:
        self._enqueue(lambda writer: writer.drop(keys))

    def set_meta(self, **values: Any) -> None:
        self._enqueue(lambda writer: writer.set_meta(values))

    def count(self) -> int:
        """Waits for pending writes."""
        settled = threading.Event()
        self._enqueue(lambda writer: writer.number, lambda _: settled.set(), lambda _: settled.set())
        settled.wait()
        return self._writer.number

    def sync_at_end(self) -> None:
        """Syncs later writes only in `close`: a slow disk would sync each record separately."""
        self._ending = True

    def close(self) -> None:
        self.sync_at_end()
        with self._putting:
            if self._closed:
                return
            self._closed = True
            self._jobs.put(None)
        self._thread.join()

    def _enqueue(
        self, write: Callable[[LogWriter], int], done: Done | None = None, failed: Failed | None = None
    ) -> None:
        job = _Job(write, done or _ignore, failed or self.on_error)
        with self._putting:
            refusal = self._ended
            if refusal is None and self._closed:
                refusal = SessionError("the session is closed", "open it again")
            if refusal is None:
                self._jobs.put(job)
        if refusal is not None:
            _call_back(job.failed, refusal)

    def _run(self) -> None:
        taken: list[_Job | None] = []
        try:
            self._writer.prepare()
            while None not in taken:
                taken = [self._jobs.get(), *self._waiting()]
                self._commit([job for job in taken if job is not None])
        except BaseException as error:
            _log.exception("the log's thread ended")
            ended = SessionError(
                f"the session {self.path.parent.name} is no longer saved ({type(error).__name__})",
                "copy the text that you need, then restart with --continue",
            )
            with self._putting:
                self._ended = ended
                taken += self._waiting()
            for job in taken:
                if job is not None:
                    _call_back(job.failed, ended)
        finally:
            self._writer.end()
            if self._first is not None:
                self._first.close()

    def _waiting(self) -> Iterator[_Job | None]:
        with suppress(Empty):
            while True:
                yield self._jobs.get_nowait()

    def _commit(self, jobs: Sequence[_Job]) -> None:
        """Commits all jobs in one transaction; if one is invalid, each in its own."""
        if not jobs:
            return
        try:
            if self._ending:
                self._writer.sync_at_end()
            self.before_commit()
            if self._first is not None:
                self._first.try_again()
            self._writer.begin()
            numbers = [job.write(self._writer) for job in jobs]
            self._writer.commit()
            if self._first is not None:
                self._first.wait()
        except OSError as error:
            refusal = database.not_kept(self.path, error)
            for job in jobs:
                _call_back(job.failed, refusal)
        except sqlite3.OperationalError as error:
            self._roll_back()
            refusal = database.refusal(self.path, error)
            for job in jobs:
                _call_back(job.failed, refusal)
        except Exception as error:
            _log.warning("a transaction failed", exc_info=True)
            self._roll_back()
            if len(jobs) > 1:
                for job in jobs:
                    self._commit([job])
            elif isinstance(error, RecordRefused):
                _call_back(jobs[0].failed, error)
            elif isinstance(error, sqlite3.DatabaseError) and not isinstance(error, sqlite3.DataError):
                _call_back(jobs[0].failed, database.refusal(self.path, error))
            else:
                _call_back(jobs[0].failed, records.refusal("A record", error))
        else:
            for job, number in zip(jobs, numbers, strict=True):
                _call_back(job.done, number)

    def _roll_back(self) -> None:
        with suppress(sqlite3.Error):
            self._writer.roll_back()


def events_of(path: Path, lost: list[str] | None = None) -> Iterator[Lasting]:
    """Raises SessionError. Appends a sentence about each unreadable record to `lost`. Reads the file's pages
    if sqlite cannot open it.
    """
    for _, event in timed_events_of(path, lost):
        yield event


def timed_events_of(path: Path, lost: list[str] | None = None) -> Iterator[tuple[float, Lasting]]:
    """With Unix times."""
    lost = [] if lost is None else lost
    try:
        connection = database.connect_to_read(path)
    except Damaged as error:
        raw = read_raw(path).records
        if not raw:
            raise
        lost.append(f"{error.what}: showing the readable part; `tui-agent --resume` continues it")
        yield from records.lasting_after(0, (raw[number] for number in sorted(raw)), lost)
        return
    with closing(connection):
        yield from records.lasting_after(0, database.read_records(connection), lost)


def growing_of(connection: sqlite3.Connection) -> tuple[list[Growing], list[str]]:
    """The second list has a sentence for each unreadable event."""
    growing: list[Growing] = []
    lost: list[str] = []
    try:
        rows = database.read_growing(connection)
    except sqlite3.Error as error:
        return [], [f"drafts and unsaved text cannot be read ({error})"]
    for key, record in rows:
        found = records.growing(record, key)
        lost.append(found) if isinstance(found, str) else growing.append(found)
    return growing, lost


def set_aside(path: Path) -> Path:
    """Returns the new path of the log. Raises SessionError."""
    stamp = time.strftime("%Y%m%d-%H%M%S", time.gmtime())
    aside = path.with_name(f"{path.name}.damaged-{stamp}")
    count = 1
    while aside.exists():
        count += 1
        aside = path.with_name(f"{path.name}.damaged-{stamp}-{count}")
    try:
        for suffix in _SUFFIXES:
            if os.path.exists(f"{path}{suffix}"):
                os.rename(f"{path}{suffix}", f"{aside}{suffix}")
    except OSError as error:
        why = error.strerror or str(error)
        raise SessionError(f"{path} cannot be set aside ({why})", "move it away by hand") from error
    return aside


def _call_back(callback: Callable[[Any], object], value: object) -> None:
    """Errors, such as that of a closed event loop, must not end the log's thread."""
    try:
        callback(value)
    except Exception:
        _log.exception("whoever was told of a record failed")


def _ignore(_: object) -> None:
    """Default callback."""
