"""The program on a real pseudo-terminal of its own, which can be typed to, looked at and resized."""

from __future__ import annotations

import fcntl
import os
import pty
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import MappingProxyType

import pyte
from support.nursery import OWN_TERMINAL, Popen

PATIENCE = 60.0
#: `OWN_TERMINAL` as a shell that knows jobs: what it starts has the terminal, and at the first signal has it again.
SHELL = """
import fcntl, os, signal, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
signal.signal(signal.SIGTTOU, signal.SIG_IGN)
job = os.fork()
try:
    os.setpgid(job, job)
except PermissionError:
    pass  # the job was quicker: it has done that, and is the program by now
if not job:
    os.tcsetpgrp(0, os.getpid())
    os.execvp(sys.argv[1], sys.argv[1:])
def foreground(*_):
    os.tcsetpgrp(0, job)
    os.killpg(job, signal.SIGCONT)
signal.signal(signal.SIGUSR1, foreground)
while os.WIFSTOPPED(os.waitpid(job, os.WUNTRACED)[1]):
    os.tcsetpgrp(0, os.getpgrp())
"""


class Program:
    """`tui-agent` in a session of its own whose terminal is the pseudo-terminal; `starter` is what starts it there."""

    def __init__(
        self,
        *words: str,
        folder: Path,
        home: Path,
        starter: Sequence[str] = (OWN_TERMINAL,),
        term: str = "xterm-256color",
        module: str = "tui_agent",
        command: Sequence[str] = (),
        variables: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self.master, slave = pty.openpty()
        self._screen = pyte.Screen(130, 40)
        self._stream = pyte.ByteStream(self._screen)
        self.resize(130, 40)
        os.set_blocking(self.master, False)
        self.process: subprocess.Popen[bytes] = Popen(
            [
                *((sys.executable, "-c", *starter) if starter else ()),
                *(command or (sys.executable, "-m", module)),
                *words,
            ],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            cwd=folder,
            env={
                **os.environ,
                "TUI_AGENT_HOME": str(home),
                "TUI_AGENT_REPLAY_SPEED": "0",
                "TERM": term,
                **variables,
            },
            start_new_session=True,
        )
        os.close(slave)
        self.written = b""

    @property
    def text(self) -> str:
        return "\n".join(line.rstrip() for line in self._screen.display)

    def resize(self, width: int, height: int) -> None:
        """Make the terminal another size; the kernel tells the program with SIGWINCH."""
        self._screen.resize(height, width)
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))

    @property
    def picture(self) -> list[list[pyte.screens.Char]]:
        """Every cell, with its colours."""
        shown = self._screen
        return [[shown.buffer[y][x] for x in range(shown.columns)] for y in range(shown.lines)]

    def blank(self) -> None:
        """Forget what was drawn, as a shell that took the terminal over does."""
        self._screen.reset()

    def look(self) -> None:
        """Take what was written so far."""
        try:
            while data := os.read(self.master, 65536):
                self.written += data
                self._stream.feed(data)
        except OSError:
            pass

    def until(self, holds: Callable[[], object], what: str, patience: float = PATIENCE) -> None:
        deadline = time.monotonic() + patience
        while not holds():
            assert time.monotonic() < deadline, f"never: {what}\n{self.text}"
            self.look()
            time.sleep(0.01)

    def settle(self, quiet: float = 0.3) -> None:
        """Wait until nothing has been written for so many seconds."""
        seen, since = len(self.written), time.monotonic()

        def still() -> bool:
            nonlocal seen, since
            if len(self.written) != seen:
                seen, since = len(self.written), time.monotonic()
            return time.monotonic() - since > quiet

        self.until(still, "nothing written")

    def shows(self, words: str) -> None:
        self.until(lambda: words in self.text, words)

    def type(self, keys: bytes) -> None:
        os.write(self.master, keys)

    def send(self, data: bytes) -> None:
        """Any amount, as fast as the program reads it."""
        rest = memoryview(data)

        def all_sent() -> bool:
            nonlocal rest
            with suppress(BlockingIOError):
                while rest:
                    rest = rest[os.write(self.master, rest) :]
            return not rest

        self.until(all_sent, "read by the program")

    def jobs(self) -> dict[int, set[str]]:
        """The process groups that a shell made in the terminal's session, each with the letters of its processes'
        states: `T` is stopped."""
        asked = ["ps", "-o", "pgid=,state=", "-s", str(self.process.pid)]
        found: dict[int, set[str]] = {}
        for row in subprocess.run(asked, capture_output=True, text=True, check=False).stdout.splitlines():
            group, state = row.split()
            if int(group) != self.process.pid:
                found.setdefault(int(group), set()).add(state[:1])
        return found

    def children(self) -> list[int]:
        found = subprocess.run(
            ["ps", "-o", "pid=", "--ppid", str(self.process.pid)], capture_output=True, text=True, check=False
        )
        return [int(pid) for pid in found.stdout.split()]


@contextmanager
def running(program: Program, sign: str = "recorded replies") -> Generator[Program]:
    """From when it shows this until it is killed."""
    try:
        program.shows(sign)
        yield program
    finally:
        for pid in program.jobs():
            os.killpg(pid, signal.SIGKILL)
        program.process.kill()
        program.process.wait()
        try:
            os.close(program.master)
        except OSError:
            pass
