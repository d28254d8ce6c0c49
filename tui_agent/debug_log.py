"""Debug log: tracebacks and child output, redacted, rotating, written on a separate thread.

Modules use standard `logging` with names below `tui_agent`. The log contains no keys, tokens or file
contents: secrets are masked, and exception messages are kept only for types whose messages describe code
instead of data.
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
from contextlib import contextmanager, suppress
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from tui_agent.errors import Fault, TuiAgentError

if TYPE_CHECKING:
    from logging.handlers import QueueListener

NAME = "debug.log"
#: Bytes of a file, rotated files, queued records.
FILE_BYTES, OLDER, WAITING = 1_000_000, 3, 10_000
#: Characters of a foreign line; seconds to wait for pending records on exit.
LINE, LAST_SECONDS = 500, 1.0
_OURS = "tui_agent"
#: Builtin exceptions whose messages name types, attributes and modules; other messages may quote a file.
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
#: The last line of a foreign traceback: its type, and the part of the message to keep.
_EXCEPTION = r"^(?P<before>[\s|+]*)(?P<type>(?:\w+\.)*[A-Z]\w+): (?P<errno>\[Errno \d+\] [A-Za-z ]+)?.*"


def start(folder: Path, *, verbose: bool = False) -> None:
    """Creates `debug.log` with the first record. `verbose` includes level DEBUG. A second call switches
    folders.
    """
    stop()
    logging.getLogger().addHandler(_LazyHandler(folder))
    logging.getLogger(_OURS).setLevel(logging.DEBUG if verbose else logging.INFO)
    threading.excepthook = _thread_failed
    atexit.register(stop)


def stop() -> None:
    """Writes pending records, for a second at most."""
    atexit.unregister(stop)
    if handler := _installed():
        logging.getLogger().removeHandler(handler)
        handler.close()


def flush(within: float = LAST_SECONDS) -> None:
    if handler := _installed():
        handler.flush_within(within)


def place() -> str:
    """Returns "" if there is no log or it is not writable."""
    handler = _installed()
    return str(handler.folder / NAME) if handler and handler.writable() else ""


def fault(what: str, error: BaseException) -> Fault:
    """Returns an error for the user that ends with the log's path."""
    from tui_agent.files.text import escaped

    logging.getLogger(_OURS).error("%s", what, exc_info=error)
    if _is_short_of_memory(error):
        return Fault("the system gives no more memory or threads", "raise `ulimit -v` and `ulimit -u`")
    path = place()
    remedy = (
        f"report it with `tui-agent doctor --bundle FILE`; the traceback is in {path}"
        if path
        else "run it with --debug and report it"
    )
    return Fault(f"{what}: {type(error).__name__}: {escaped(str(error))}", remedy)


def _is_short_of_memory(error: BaseException) -> bool:
    """Whether the error, or one that led to it, is a refusal of memory or of a thread."""
    seen: set[int] = set()
    cause: BaseException | None = error
    while cause is not None and id(cause) not in seen:
        if isinstance(cause, MemoryError) or str(cause) == "can't start new thread":
            return True
        seen.add(id(cause))
        cause = cause.__cause__ or cause.__context__
    return False


def show(write: Callable[[str], object]) -> Callable[[], None]:
    """Shows unredacted records, for `--debug`. Returns a function that stops it."""
    root, ours = logging.getLogger(), logging.getLogger(_OURS)
    handler = _TerminalHandler(write)
    root.addHandler(handler)
    ours.setLevel(logging.DEBUG)

    def end() -> None:
        root.removeHandler(handler)
        ours.setLevel(logging.INFO)

    return end


@contextmanager
def defer_output() -> Generator[None]:
    """Holds output back until a full-screen interface has ended."""
    shown = [one for one in logging.getLogger().handlers if isinstance(one, _TerminalHandler)]
    for handler in shown:
        handler.kept = []
    try:
        yield
    finally:
        for handler in shown:
            handler.release()


def to_stream(stream: TextIO) -> None:
    """Logs to standard error, which the parent of a child logs."""
    handler = logging.StreamHandler(stream)
    handler.setFormatter(_Redacting("%(name)s: %(message)s"))
    logging.getLogger().addHandler(handler)
    logging.getLogger(_OURS).setLevel(logging.INFO)


def redacted(text: str) -> str:
    """Masks secrets and replaces the home folder with `~`."""
    from tui_agent.files.masking import masked

    home = os.path.expanduser("~")
    masks = masked(text)
    return masks.replace(home, "~") if len(home) > 1 else masks


def formatted(error: BaseException) -> str:
    """Causes first, with messages that cannot contain file content; no locals, no notes."""
    return redacted("".join(_chain(error, set())))


def _installed() -> _LazyHandler | None:
    return next((one for one in logging.getLogger().handlers if isinstance(one, _LazyHandler)), None)


class _LazyHandler(logging.Handler):
    """Creates thread, queue and file with the first record."""

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
        for path in (self.folder / NAME, self.folder, *self.folder.parents):
            if os.path.lexists(path):
                return os.access(path, os.W_OK) and (path.is_dir() or path.name == NAME)
        return False

    def flush_within(self, seconds: float) -> bool:
        if self._listener is None:
            return True
        queue: Any = self._listener.queue
        with queue.all_tasks_done:
            return queue.all_tasks_done.wait_for(lambda: not queue.unfinished_tasks, seconds)

    def close(self) -> None:
        if self._listener is not None and self.flush_within(LAST_SECONDS):
            self._listener.stop()
            for file in self._listener.handlers:
                file.close()
        super().close()


class _TerminalHandler(logging.Handler):
    """Does not mask."""

    def __init__(self, write: Callable[[str], object]) -> None:
        super().__init__()
        self._write = write
        self.kept: list[str] | None = None

    def emit(self, record: logging.LogRecord) -> None:
        text = self.format(record)
        try:
            self._write(text) if self.kept is None else self.kept.append(text)
        except OSError:
            pass

    def release(self) -> None:
        kept, self.kept = self.kept, None
        for text in kept or ():
            self._write(text)


class _Redacting(logging.Formatter):
    """Also redacts tracebacks. Runs on the writer thread."""

    def format(self, record: logging.LogRecord) -> str:
        from tui_agent.files.text import one_line

        message = record.getMessage()
        ours = record.name.split(".")[0] == _OURS and not record.name.startswith(f"{_OURS}.child")
        record.message = one_line(message if ours else _foreign(message))
        record.asctime = self.formatTime(record)
        line = redacted(self.formatMessage(record))
        error = record.exc_info[1] if record.exc_info else None
        return line if error is None else f"{line}\n{formatted(error)}".rstrip("\n")


def _writer(folder: Path) -> tuple[QueueListener, logging.Handler]:
    from copy import copy
    from logging.handlers import QueueHandler, QueueListener, RotatingFileHandler
    from queue import Queue

    from tui_agent.files.private import make_private, open_private

    class Feeding(QueueHandler):
        def prepare(self, record: logging.LogRecord) -> logging.LogRecord:
            """Formats arguments before they can change; the thread formats tracebacks."""
            kept = copy(record)
            kept.msg, kept.args = record.getMessage(), None
            return kept

        def handleError(self, record: logging.LogRecord) -> None:
            """Drops the record if the queue is full, because output would corrupt the screen."""

    class Private(RotatingFileHandler):
        """A file readable only by this user and shared with their other processes."""

        def _open(self) -> TextIOWrapper:
            make_private(folder)
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW
            return open(
                open_private(self.baseFilename, flags), "a", encoding="utf-8", errors="backslashreplace"
            )

        def emit(self, record: logging.LogRecord) -> None:
            if self.stream is not None and not _is_at(self.baseFilename, self.stream.fileno()):
                with suppress(OSError):
                    self.stream.close()
                self.stream = None
            super().emit(record)

        def close(self) -> None:
            with suppress(OSError):  # the disk is full
                super().close()

        def handleError(self, record: logging.LogRecord) -> None:
            """Drops the record if the disk is full."""

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
    """Removes quoted text, which can be file content, and exception messages from foreign output."""
    found = re.match(_EXCEPTION, text)
    if found and found["type"] not in _SPEAKING_NAMES:
        return f"{found['before']}{found['type']}: {found['errno'] or ''}…"
    return re.sub(_QUOTED, "'…'", text)[:LINE]


def _thread_failed(failure: threading.ExceptHookArgs) -> None:
    if failure.exc_type is not SystemExit and failure.exc_value is not None:
        logging.getLogger(_OURS).error("a thread ended with a fault", exc_info=failure.exc_value)
    if _installed() is None:
        sys.__excepthook__(failure.exc_type, failure.exc_value or failure.exc_type(), failure.exc_traceback)
