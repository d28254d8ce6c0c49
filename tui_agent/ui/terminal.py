"""Textual's terminal driver with non-blocking output and end-of-input handling.

Output to a terminal that stops reading (a stalled connection, a stopped tmux client) waits in a queue;
late frames are dropped.
"""

from __future__ import annotations

import asyncio
import codecs
import os
import selectors
import shutil
import signal
import sys
import threading
from collections import deque
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, ClassVar

from textual import events
from textual.drivers.linux_driver import LinuxDriver
from textual.geometry import Size

from tui_agent.control.shell import can_be_continued
from tui_agent.ui.terminal_input import ASK_BACKGROUND, TerminalInput
from tui_agent.ui.textual_patches.sequences import known

if TYPE_CHECKING:
    from tui_agent.ui.keys.keymap import Keys

#: Maximum queued output in bytes. The rest is dropped, and the screen is redrawn later.
MOST_WAITING = 2_000_000
#: Seconds to flush the queue before restoring the terminal.
LAST_WORDS = 0.5
#: Synchronized update (mode 2026), as Textual writes it.
SYNC_START, SYNC_END = "\x1b[?2026h", "\x1b[?2026l"
#: Requests in-band size reports. Filtered out: signals report each size, and a late response may be outdated.
ASK_SIZES = "\x1b[?2048$p"
READ_AT_ONCE = 64 * 1024


class TerminalWriter(threading.Thread):
    """Writes to a descriptor in order without blocking callers.

    Callers write directly if the terminal accepts the data; handing every frame to this thread would cost
    up to 5 ms. Output waits for an earlier writer to the same terminal.
    """

    _unfinished: ClassVar[list[TerminalWriter]] = []

    def __init__(self, descriptor: int, on_drained: Callable[[], None]) -> None:
        """Calls `on_drained` in this thread once the terminal accepts output after a drop."""
        super().__init__(name="terminal-output", daemon=True)
        #: A copy, because the original may become another terminal during a write.
        self._descriptor = os.dup(descriptor)
        self._at_once = _opened_apart(descriptor)
        self._on_drained = on_drained
        self._waiting: deque[bytes] = deque()
        self._size = 0
        self._writing = self._left_out = False
        self._ended = False
        self._changed = threading.Condition()
        terminal = os.fstat(descriptor).st_rdev
        self._before = [it for it in self._unfinished if os.fstat(it._descriptor).st_rdev == terminal]

    def write(self, text: str) -> None:
        data = text.encode(errors="replace")
        with self._changed:
            if self._ended:
                return
            if not (self._waiting or self._writing or self._before) and self._at_once is not None:
                with suppress(OSError):  # full, or closed, which the thread detects
                    data = data[os.write(self._at_once, data) :]
            if not data:
                return
            if self._size + len(data) > MOST_WAITING:
                while len(self._waiting) > 1:  # the first may be partially written
                    self._waiting.pop()
                self._size, self._left_out = sum(map(len, self._waiting)), True
            else:
                self._waiting.append(data)
                self._size += len(data)
            self._changed.notify()

    def stop(self, within: float) -> None:
        """Stops after the queue is written, or after `within` seconds."""
        with self._changed:
            self._ended = True
            self._changed.notify()
        self.join(within)
        if self.is_alive():
            self._unfinished.append(self)
        if self._at_once is not None:
            os.close(self._at_once)
            self._at_once = None

    def run(self) -> None:
        for writer in self._before:
            writer.join()
        self._before = []
        try:
            while True:
                with self._changed:
                    while not self._waiting and not self._ended:
                        self._changed.wait()
                    if not self._waiting:
                        return
                    view = memoryview(b"".join(self._waiting))
                    self._waiting.clear()
                    self._size, self._writing = 0, True
                while view:
                    view = view[os.write(self._descriptor, view) :]
                self._writing = False
                if self._left_out and not self._waiting:
                    self._left_out = False
                    self._on_drained()
        except OSError:  # the terminal is closed
            with self._changed:
                self._ended = True
                self._waiting.clear()
        finally:
            if self in self._unfinished:
                self._unfinished.remove(self)
            os.close(self._descriptor)


def _opened_apart(descriptor: int) -> int | None:
    try:
        apart = os.open(os.ttyname(descriptor), os.O_WRONLY | os.O_NOCTTY | os.O_NONBLOCK)
    except OSError:
        return None
    if os.fstat(apart).st_rdev == os.fstat(descriptor).st_rdev:
        return apart
    os.close(apart)
    return None


class TerminalDriver(LinuxDriver):
    """Draws on standard output, so that standard error can be redirected."""

    def __init__(self, app: Any, **options: Any) -> None:
        super().__init__(app, **options)
        assert sys.__stdout__ is not None
        self._program, self._rounds = app, asyncio.get_running_loop()
        self._reports = bool(options.get("debug"))
        self.output = sys.__stdout__.fileno()
        self._writer: TerminalWriter | None = None
        self._is_on = self._was_stopped = self._is_given_away = False
        #: Output is dropped if there is no terminal.
        self.is_parked = not os.isatty(self.fileno)
        #: Number of terminals so far, to identify messages of an earlier one.
        self.terminals = 0
        self._draws_errors = os.isatty(2)
        signal.signal(signal.SIGTSTP, self._stop)
        signal.signal(signal.SIGCONT, self._go_on)
        #: The incomplete frame; frames are written as a whole.
        self._frame: list[str] | None = None

    @property
    def _asks_background(self) -> bool:
        follows = getattr(self._program, "follows_background", False)
        return follows and known() and os.environ.get("TERM") not in ("linux", "dumb")

    @property
    def can_suspend(self) -> bool:
        return super().can_suspend and can_be_continued()

    def write(self, data: str) -> None:
        if data == ASK_SIZES:
            return
        if data == SYNC_START:
            self._frame = [data]
        elif self._frame is None:
            self._send(data)
        else:
            self._frame.append(data)
            if data == SYNC_END:
                frame, self._frame = "".join(self._frame), None
                self._send(frame)

    def _send(self, data: str) -> None:
        if self._writer is not None:
            self._writer.write(data)

    def park(self, words: str = "") -> None:
        """Restores and closes the terminal, and prints `words` there. The program continues without one
        until `take`.
        """
        if self.is_parked:
            return
        self.is_parked = True
        if self._is_on:
            self.suspend_application_mode()
        if words:
            writer = TerminalWriter(self.output, lambda: None)
            writer.start()
            writer.write(f"{words}\r\n")
            writer.stop(0)
        null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        self._use(null, null)
        os.close(null)

    def take(self, source: int, target: int) -> None:
        """Draws on another terminal, whose descriptors are copied."""
        self.park()
        self._use(source, target)
        self.terminals += 1
        self.is_parked = self._is_given_away = False
        self.resume_application_mode()
        self._draw_again()

    def _use(self, source: int, target: int) -> None:
        os.dup2(source, self.fileno)
        os.dup2(target, self.output)
        if self._draws_errors:
            os.dup2(target, 2)

    def resized(self) -> None:
        """Handles a new size of a terminal that does not signal this process."""
        if self._is_on or self._is_given_away:
            signal.raise_signal(signal.SIGWINCH)

    def start_application_mode(self) -> None:
        if self.is_parked:
            size = Size(*shutil.get_terminal_size())
            self._rounds.call_soon_threadsafe(self._program.post_message, events.Resize(size, size))
            return
        self._writer = TerminalWriter(self.output, self._draw_again)
        self._writer.start()
        self._is_on = True
        super().start_application_mode()
        if self._was_stopped:
            self._was_stopped = False
            self._draw_again()
        if self._asks_background:
            self.write(ASK_BACKGROUND)
        self.write("\x1b[22;2t")  # saves the title on the terminal's stack

    def stop_application_mode(self) -> None:
        if not self._is_on:
            return
        self._is_on = False
        self.write("\x1b[23;2t")
        super().stop_application_mode()

    def close(self) -> None:
        super().close()  # stops Textual's unused writer thread
        if self._writer is not None:
            self._writer.stop(LAST_WORDS)
            self._writer = None

    def run_input_thread(self) -> None:
        """Reads until stopped, or until the terminal closes, which ends the program."""
        if not known():
            super().run_input_thread()
            return
        gone = TerminalGone(self.terminals)
        parser = TerminalInput(self._reports, self._is_bound, background=self._asks_background)
        # an invalid UTF-8 byte may be a C1 character
        decode = codecs.getincrementaldecoder("utf-8")(errors="surrogateescape").decode
        with selectors.DefaultSelector() as selector:
            selector.register(self.fileno, selectors.EVENT_READ)
            while not self.exit_event.is_set():
                if selector.select(0.1):
                    try:
                        data = os.read(self.fileno, READ_AT_ONCE)
                    except OSError:
                        data = b""
                    if not data:
                        self._rounds.call_soon_threadsafe(self._program.post_message, gone)
                        return
                    if text := decode(data):
                        for event in parser.feed(text):
                            self.process_message(event)
                for event in parser.tick():
                    self.process_message(event)
        for event in parser.close():
            self.process_message(event)

    def _is_bound(self, key: str) -> bool:
        keys: Keys | None = getattr(self._program, "keys", None)
        return keys is not None and any(key in bound for bound in keys.by_action.values())

    @contextmanager
    def given_away(self) -> Generator[None]:
        """Lends the terminal to another program: pauses input and drops output. A keyboard interrupt affects
        only that program.
        """
        before = signal.signal(signal.SIGINT, lambda *_: None)
        self.suspend_application_mode()
        try:
            self._is_given_away = True
            yield
        finally:
            self._is_given_away = False
            if not self._is_on and not self.is_parked:
                self.resume_application_mode()
            signal.signal(signal.SIGINT, before)

    def _stop(self, *_: object) -> None:
        self._give_back()
        os.kill(os.getpid(), signal.SIGSTOP)

    def _give_back(self) -> None:
        if self._is_on and not self._is_given_away:
            self.suspend_application_mode()
            self._was_stopped = True

    def _go_on(self, *_: object) -> None:
        if not self._is_given_away and not self.is_parked:
            self._give_back()
            self.resume_application_mode()

    def _draw_again(self) -> None:
        self._rounds.call_soon_threadsafe(self._program.post_message, self.SignalResume())


class TerminalGone(events.Event, bubble=False):
    """The terminal was closed; `number` is its number in `TerminalDriver.terminals`."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number
