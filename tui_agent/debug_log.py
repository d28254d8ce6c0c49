"""The debug log: tracebacks of faults and what children say, redacted, rotating, written by a thread of its own.

Modules write to it with standard `logging`, under names below `tui_agent`. It holds no key, no token and nothing of
what a file holds: secrets are masked, and the message of an exception is kept only where its type says that it
speaks of our code and not of somebody's data. Until the first record it costs nothing and makes no file.
"""

from __future__ import annotations

import atexit
import logging
import os
import re
import sys
import threading
import traceback
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from tui_agent.errors import Fault, TuiAgentError

if TYPE_CHECKING:
    from logging.handlers import QueueListener

NAME = "debug.log"
#: A file's size in bytes, how many older ones are kept beside it, and how many records may wait to be written.
FILE_BYTES, OLDER, WAITING = 1_000_000, 3, 10_000
#: Characters of a line that somebody else wrote, and seconds that an ending program waits for the last records.
LINE, LAST_SECONDS = 500, 1.0
_OURS = "tui_agent"
#: Builtin exceptions whose messages name types, attributes and modules; those of others may quote a file.
_SPEAKING = (
    AttributeError,
    ImportError,
    IndexError,
    ModuleNotFoundError,
    NameError,
    RecursionError,
    RuntimeError,
    TypeError,
    UnboundLocalError,
    ZeroDivisionError,
)
_SPEAKING_NAMES = frozenset(kind.__name__ for kind in _SPEAKING)
_QUOTED = r"""(?<!File )(["'])(?:\\.|(?!\1)[^\\\n])*+\1"""
#: The last line of a traceback that somebody else printed: its type, and what may be kept of the message.
_EXCEPTION = r"^(?P<before>[\s|+]*)(?P<type>(?:\w+\.)*[A-Z]\w+): (?P<errno>\[Errno \d+\] [A-Za-z ]+)?.*"


def start(folder: Path, *, verbose: bool = False) -> None:
    """Have records written to `debug.log` in this folder, which is made with the first of them.

    `verbose` keeps what is of level DEBUG, too. Called again, it goes on in the new folder.
    """
    stop()
    logging.getLogger().addHandler(_Lazy(folder))
    logging.getLogger(_OURS).setLevel(logging.DEBUG if verbose else logging.INFO)
    threading.excepthook = _thread_failed
    atexit.register(stop)


def stop() -> None:
    """Write what waits, for a second at most, and take no more."""
    atexit.unregister(stop)
    if handler := _installed():
        logging.getLogger().removeHandler(handler)
        handler.close()


def flush(within: float = LAST_SECONDS) -> None:
    """Wait until what was logged so far is in the file, for so many seconds at most."""
    if handler := _installed():
        handler.flush_within(within)


def place() -> str:
    """The path of the log; empty where there is none or it cannot be written."""
    handler = _installed()
    return str(handler.folder / NAME) if handler and handler.writable() else ""


def fault(what: str, error: BaseException) -> Fault:
    """Log an exception that nobody expected, and make of it what the person is told, which ends with the log's path."""
    from tui_agent.files.visible import escaped

    logging.getLogger(_OURS).error("%s", what, exc_info=error)
    path = place()
    remedy = (
        f"report it with `tui-agent doctor --bundle FILE`; the traceback is in {path}"
        if path
        else "run it again with --debug and report it"
    )
    return Fault(f"{what}: {type(error).__name__}: {escaped(str(error))}", remedy)


def show(write: Callable[[str], object]) -> Callable[[], None]:
    """Give every record to `write` as well, in full, as `--debug` asks for; returns what ends that."""
    root, ours = logging.getLogger(), logging.getLogger(_OURS)
    handler = _Shown(write)
    root.addHandler(handler)
    ours.setLevel(logging.DEBUG)

    def end() -> None:
        root.removeHandler(handler)
        ours.setLevel(logging.INFO)

    return end


@contextmanager
def held() -> Generator[None]:
    """While the screen is shown, keep back what `show` would write, and write it afterwards."""
    shown = [one for one in logging.getLogger().handlers if isinstance(one, _Shown)]
    for handler in shown:
        handler.kept = []
    try:
        yield
    finally:
        for handler in shown:
            handler.release()


def to_stream(stream: TextIO) -> None:
    """In a child: records go to its standard error, which the parent logs."""
    handler = logging.StreamHandler(stream)
    handler.setFormatter(_Redacting("%(name)s: %(message)s"))
    logging.getLogger().addHandler(handler)
    logging.getLogger(_OURS).setLevel(logging.INFO)


def redacted(text: str) -> str:
    """Text that can be given away: secrets masked, the person's home folder as `~`."""
    from tui_agent.files.key_formats import masked

    home = os.path.expanduser("~")
    masks = masked(text)
    return masks.replace(home, "~") if len(home) > 1 else masks


def formatted(error: BaseException) -> str:
    """The traceback, its causes first; only messages that cannot hold a piece of a file; no locals, no notes."""
    return redacted("".join(_chain(error, set())))


def _installed() -> _Lazy | None:
    return next((one for one in logging.getLogger().handlers if isinstance(one, _Lazy)), None)


class _Lazy(logging.Handler):
    """Hands records to a thread that writes them; thread, queue and file are made for the first record."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.folder = folder
        self._listener: QueueListener | None = None
        self._queue_handler: logging.Handler | None = None

    def emit(self, record: logging.LogRecord) -> None:
        if self._queue_handler is None:
            self._listener, self._queue_handler = _writer(self.folder)
        self._queue_handler.emit(record)

    def writable(self) -> bool:
        """Whether the file can be written or made, as far as rights tell."""
        for path in (self.folder / NAME, self.folder, *self.folder.parents):
            if path.exists():
                return os.access(path, os.W_OK) and (path.is_dir() or path.name == NAME)
        return False

    def flush_within(self, seconds: float) -> bool:
        """Whether everything was written in time."""
        if self._listener is None:
            return True
        queue: Any = self._listener.queue
        with queue.all_tasks_done:
            return queue.all_tasks_done.wait_for(lambda: not queue.unfinished_tasks, seconds)

    def close(self) -> None:
        if self._listener is not None and self.flush_within(
            LAST_SECONDS
        ):  # else a disk hangs: the thread is left
            self._listener.stop()
            for file in self._listener.handlers:
                file.close()
        super().close()


class _Shown(logging.Handler):
    """Writes records to the person's terminal: nothing is masked there."""

    def __init__(self, write: Callable[[str], object]) -> None:
        super().__init__()
        self._write = write
        #: What is kept back while a screen is shown.
        self.kept: list[str] | None = None

    def emit(self, record: logging.LogRecord) -> None:
        text = self.format(record)
        try:
            self._write(text) if self.kept is None else self.kept.append(text)
        except OSError:
            pass  # standard error is closed or full

    def release(self) -> None:
        kept, self.kept = self.kept, None
        for text in kept or ():
            self._write(text)


class _Redacting(logging.Formatter):
    """One line a record and the traceback below it, both redacted. Runs in the thread that writes."""

    def format(self, record: logging.LogRecord) -> str:
        from tui_agent.files.visible import one_line

        message = record.getMessage()
        ours = record.name.split(".")[0] == _OURS and not record.name.startswith(f"{_OURS}.child")
        record.message = one_line(message if ours else _foreign(message))
        record.asctime = self.formatTime(record)
        line = redacted(self.formatMessage(record))
        error = record.exc_info[1] if record.exc_info else None
        return line if error is None else f"{line}\n{formatted(error)}".rstrip("\n")


def _writer(folder: Path) -> tuple[QueueListener, logging.Handler]:
    """The thread that writes to the folder's log, and the handler that feeds it without ever waiting."""
    from copy import copy
    from logging.handlers import QueueHandler, QueueListener, RotatingFileHandler
    from queue import Queue

    from tui_agent.files.private import make_private, open_private

    class Feeding(QueueHandler):
        def prepare(self, record: logging.LogRecord) -> logging.LogRecord:
            """The values are put into words here, where they are what they were; tracebacks in the thread."""
            kept = copy(record)
            kept.msg, kept.args = record.getMessage(), None
            return kept

        def handleError(self, record: logging.LogRecord) -> None:
            """A full queue drops the record; nothing may be printed over the screen."""

    class Private(RotatingFileHandler):
        """For this user alone, and shared with other processes of theirs."""

        def _open(self) -> TextIOWrapper:
            make_private(folder)
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW
            return open(
                open_private(self.baseFilename, flags), "a", encoding="utf-8", errors="backslashreplace"
            )

        def emit(self, record: logging.LogRecord) -> None:
            if self.stream is not None and not _is_at(self.baseFilename, self.stream.fileno()):
                self.stream.close()
                self.stream = None  # another process has begun a new file
            super().emit(record)

        def handleError(self, record: logging.LogRecord) -> None:
            """A disk that takes no more loses the record; nothing may be printed over the screen."""

    file = Private(folder / NAME, maxBytes=FILE_BYTES, backupCount=OLDER, delay=True)
    file.setFormatter(_Redacting("%(asctime)s %(process)d %(levelname)s %(name)s: %(message)s"))
    queue: Queue[logging.LogRecord] = Queue(WAITING)
    listener = QueueListener(queue, file)
    listener.start()
    return listener, Feeding(queue)


def _is_at(path: str, descriptor: int) -> bool:
    try:
        return os.path.samestat(os.stat(path), os.fstat(descriptor))
    except OSError:
        return False


def _chain(error: BaseException, seen: set[int]) -> Iterator[str]:
    seen.add(id(error))
    before = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    if before is not None and id(before) not in seen:
        yield from _chain(before, seen)
        yield "\nwhich led to:\n\n"
    yield "Traceback (most recent call last):\n"
    yield from traceback.StackSummary.extract(traceback.walk_tb(error.__traceback__)).format()
    yield f"{type(error).__qualname__}{_message(error)}\n"
    if isinstance(error, BaseExceptionGroup):
        for one in error.exceptions:
            yield from _chain(one, seen)


def _message(error: BaseException) -> str:
    match error:
        case TuiAgentError():
            return f": {error.title}"
        case OSError():
            return f": [Errno {error.errno}] {error.strerror}: {error.filename!r}"
        case _ if type(error) in _SPEAKING:
            return f": {error}"
        case _ if type(error).__module__ == "sqlite3":
            return f": {_foreign(str(error))}"
    return f" (a message of {len(str(error))} characters)" if str(error) else ""


def _foreign(text: str) -> str:
    """What a library or a child wrote: no quoted text, which may be a file's, and no messages of exceptions."""
    found = re.match(_EXCEPTION, text)
    if found and found["type"] not in _SPEAKING_NAMES:
        return f"{found['before']}{found['type']}: {found['errno'] or ''}…"
    return re.sub(_QUOTED, "'…'", text)[:LINE]


def _thread_failed(failure: threading.ExceptHookArgs) -> None:
    if failure.exc_type is not SystemExit and failure.exc_value is not None:
        logging.getLogger(_OURS).error("a thread ended with a fault", exc_info=failure.exc_value)
    if _installed() is None:
        sys.__excepthook__(failure.exc_type, failure.exc_value or failure.exc_type(), failure.exc_traceback)
