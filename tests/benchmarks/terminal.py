"""A program on a pseudo-terminal of its own: what it draws, when it drew it, keys for it."""

from __future__ import annotations

import fcntl
import os
import re
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

#: CSI, OSC and two-character sequences.
ESCAPES = re.compile(rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[()][A-Z0-9]|[@-Z\\-_=>])")
#: What some programs ask a terminal before they draw, and what one of this size says: where the cursor is, what it
#: is, and its colours. See "XTerm Control Sequences", Device Status Report, Device Attributes and OSC 10 and 11.
ANSWERS = {
    b"\x1b[6n": b"\x1b[1;1R",
    b"\x1b[c": b"\x1b[?62;22c",
    b"\x1b]10;?": b"\x1b]10;rgb:d0d0/d0d0/d0d0\x1b\\",
    b"\x1b]11;?": b"\x1b]11;rgb:1010/1010/1010\x1b\\",
}


class Terminal:
    """Start `command` on a terminal of 160 by 48 cells. Leave the `with` to end it.

    `started` is the moment before the start, by `time.monotonic()`.
    """

    def __init__(self, command: Sequence[str], cwd: Path, env: Mapping[str, str] | None = None) -> None:
        self._master, slave = os.openpty()
        self._set_size(160, 48)
        _no_echo(slave)
        self._drawn = b""
        self.started = time.monotonic()
        self.process = subprocess.Popen(
            command,
            cwd=cwd,
            env={**os.environ, "TERM": "xterm-256color", "COLORTERM": "truecolor", **(env or {})},
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
        )
        os.close(slave)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def resize(self, width: int, height: int) -> None:
        """Make the terminal another size; the program, which does not have it as its own, is told with SIGWINCH."""
        self._set_size(width, height)
        self.process.send_signal(signal.SIGWINCH)

    def _set_size(self, width: int, height: int) -> None:
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))

    def press(self, keys: str) -> None:
        os.write(self._master, keys.encode())

    def paste(self, text: str) -> None:
        """As terminals send what is pasted; what is drawn meanwhile is read."""
        rest = memoryview(f"\x1b[200~{text}\x1b[201~".encode())
        while rest:
            readable, writable, _ = select.select([self._master], [self._master], [])
            if readable:
                self.read(0)
            if writable:
                rest = rest[os.write(self._master, rest[:4096]) :]

    def wait_for(self, text: str, timeout: float = 30.0) -> float:
        """Read until `text`, an expression, has been drawn since the last `forget`; the moment at which it was.

        Raises `TimeoutError` with the end of what was drawn.
        """
        if re.search(text, self.text):
            return self._moment
        deadline = time.monotonic() + timeout
        while (moment := time.monotonic()) < deadline:
            if self.read(min(0.5, deadline - moment)) and re.search(text, self.text):
                return self._moment
            if self.process.poll() is not None and not self.read(0):
                break
        raise TimeoutError(f"{text!r} was not drawn; the last that was: {self.text[-400:]!r}")

    def read(self, seconds: float) -> int:
        """Wait up to `seconds` for output and take all that is there; how many bytes that was."""
        before = len(self._drawn)
        while select.select([self._master], [], [], seconds)[0]:
            try:
                piece = os.read(self._master, 1 << 16)
            except OSError:
                break
            self._moment = time.monotonic()
            self._drawn += piece
            self._answer(piece)
            seconds = 0
        return len(self._drawn) - before

    def _answer(self, piece: bytes) -> None:
        for question, answer in ANSWERS.items():
            if question in piece:
                os.write(self._master, answer)

    def watch(self, seconds: float) -> None:
        """Take all that is drawn in this time."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            self.read(left)

    def settle(self, quiet: float, timeout: float = 60.0) -> float:
        """Wait until nothing has been drawn for `quiet` seconds; how long that took in all."""
        begin = last = time.monotonic()
        while time.monotonic() - last < quiet:
            if self.read(0.2):
                last = time.monotonic()
            if last - begin > timeout:
                raise TimeoutError(f"it still draws after {timeout:g} s: {self._drawn[-300:]!r}")
        return time.monotonic() - begin

    def forget(self) -> None:
        self._drawn = b""

    @property
    def text(self) -> str:
        """What was drawn since the last `forget`, without escape sequences, in the order of drawing."""
        return ESCAPES.sub(b"", self._drawn).decode(errors="replace")

    def end(self) -> None:
        """End the program: politely, then not; its output is read meanwhile, so that it can restore the screen."""
        for insist in (signal.SIGTERM, signal.SIGKILL):
            if self.process.poll() is None:
                self.process.send_signal(insist)
            deadline = time.monotonic() + 5
            while self.process.poll() is None and time.monotonic() < deadline:
                self.read(0.05)
        self.process.wait()
        os.close(self._master)


def _no_echo(slave: int) -> None:
    """Without this the terminal itself would echo a key that comes before the program listens."""
    attributes = termios.tcgetattr(slave)
    attributes[3] &= ~(termios.ECHO | termios.ICANON)
    termios.tcsetattr(slave, termios.TCSANOW, attributes)
