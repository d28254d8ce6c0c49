"""Runs other agents in the user's terminal while our screen is suspended."""

from __future__ import annotations

import asyncio
import fcntl
import os
import re
import signal
import struct
import termios
import tty
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Literal

from tui_agent.errors import TuiAgentError
from tui_agent.outside_agents.terminal_filter import TerminalFilter
from tui_agent.ui.host import Host
from tui_agent.ui.safe_text import counted

if TYPE_CHECKING:
    from tui_agent.session.outside_agents import AgentRun
    from tui_agent.session.session import Session

#: Ctrl+], and the same key in kitty's keyboard protocol, also with Caps Lock and Num Lock, and in xterm's.
LEAVES = re.compile(rb"\x1d|\x1b\[93(?::\d*)*;(?:5|69|133|197)(?::[12])?u|\x1b\[27;5;93~")
_PASTE = re.compile(rb"\x1b\[20([01])~")
#: Maximum bytes of hidden output, and of output waiting for the terminal.
MOST_HIDDEN, MOST_WAITING = 1 << 20, 1 << 18
_PIECE = 1 << 16
#: Seconds between two size changes that make a program redraw.
JIGGLE = 0.05

Outcome = Literal["left", "ended"]


class AgentTerminal:
    """`program` is the program's descriptor, closed after its start."""

    def __init__(self, columns: int, lines: int) -> None:
        self._ours, self.program = os.openpty()
        os.set_blocking(self._ours, False)
        self._set_size(columns, lines)
        self._filter = TerminalFilter()
        self._hidden = bytearray()
        self._is_too_much = False
        self._to_program: deque[bytes] = deque()
        self._shown: _Shown | None = None
        self._is_pasting = False
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._ours, self._read)
        self._is_open = True

    def close(self) -> None:
        self._loop.remove_reader(self._ours)
        self._loop.remove_writer(self._ours)
        os.close(self._ours)
        self._is_open = False

    async def show(self, source: int, target: int, ended: asyncio.Future[int]) -> Outcome:
        before = termios.tcgetattr(source)
        left = self._loop.create_future()
        tty.setraw(source, termios.TCSANOW)
        self._shown = shown = _Shown(self._loop, target, self._read_on)
        missed = b"\x1b[2J\x1b[H" if self._is_too_much else bytes(self._hidden)
        self._hidden, self._is_too_much = bytearray(), False
        shown.write(self._filter.again() + missed)
        self._loop.add_signal_handler(signal.SIGWINCH, self._resize, target)
        self._loop.add_reader(source, self._typed, source, left)
        try:
            columns, lines = os.get_terminal_size(target)
            if self._filter.is_full_screen and lines > 2:
                self._set_size(columns, lines - 1)
                await asyncio.sleep(JIGGLE)
            self._resize(target)
            await asyncio.wait(
                {left, asyncio.ensure_future(asyncio.shield(ended))}, return_when="FIRST_COMPLETED"
            )
            if not left.done():
                self._read()
                await shown.drained()
            return "left" if left.done() else "ended"
        finally:
            self._loop.remove_reader(source)
            self._loop.remove_signal_handler(signal.SIGWINCH)
            self._shown = None
            shown.write(self._filter.leave())
            await shown.drained()
            shown.close()
            with suppress(termios.error):
                termios.tcsetattr(source, termios.TCSANOW, before)
            if self._is_open:
                self._read_on()

    def _resize(self, target: int) -> None:
        with suppress(OSError):
            self._set_size(*os.get_terminal_size(target))

    def _set_size(self, columns: int, lines: int) -> None:
        with suppress(OSError):
            fcntl.ioctl(self._ours, termios.TIOCSWINSZ, struct.pack("4H", lines, columns, 0, 0))

    def _read_on(self) -> None:
        self._loop.add_reader(self._ours, self._read)

    def _read(self) -> None:
        try:
            data = os.read(self._ours, _PIECE)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._loop.remove_reader(self._ours)
            return
        shown = self._filter.feed(data)
        if self._shown is not None:
            if self._shown.write(shown):
                self._loop.remove_reader(self._ours)  # `_read_on` adds it again.
        elif len(self._hidden) + len(shown) > MOST_HIDDEN:
            self._is_too_much = True
            self._hidden.clear()
        elif not self._is_too_much:
            self._hidden += shown

    def _typed(self, source: int, left: asyncio.Future[None]) -> None:
        try:
            data = os.read(source, _PIECE)
        except OSError:
            data = b""
        if not data:
            if not left.done():
                left.set_result(None)
            self._loop.remove_reader(source)
            return
        at = 0
        while True:
            mark, key = _PASTE.search(data, at), LEAVES.search(data, at)
            if not self._is_pasting and key and (mark is None or key.start() < mark.start()):
                data = data[: key.start()]
                if not left.done():
                    left.set_result(None)
                break
            if mark is None:
                break
            self._is_pasting, at = mark[1] == b"0", mark.end()
        self.type(data)

    def type(self, data: bytes) -> None:
        if data and self._is_open:
            self._to_program.append(data)
            self._write()

    def _write(self) -> None:
        while self._to_program:
            data = self._to_program.popleft()
            try:
                count = os.write(self._ours, data)
            except BlockingIOError:
                count = 0
            except OSError:
                self._to_program.clear()
                break
            if count < len(data):
                self._to_program.appendleft(data[count:])
                self._loop.add_writer(self._ours, self._write)
                return
        self._loop.remove_writer(self._ours)


class _Shown:
    def __init__(self, loop: asyncio.AbstractEventLoop, target: int, on_drained: Callable[[], None]) -> None:
        self._loop, self._on_drained = loop, on_drained
        # `O_NONBLOCK` on the shared descriptor would affect all programs in this terminal.
        self._target = os.open(os.ttyname(target), os.O_WRONLY | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC)
        self._waiting = bytearray()
        self._empty = asyncio.Event()
        self._empty.set()

    def write(self, data: bytes) -> bool:
        """Returns whether too much is waiting."""
        self._waiting += data
        self._flush()
        return len(self._waiting) > MOST_WAITING

    async def drained(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(1.0):
                await self._empty.wait()

    def close(self) -> None:
        self._loop.remove_writer(self._target)
        os.close(self._target)

    def _flush(self) -> None:
        was_full = len(self._waiting) > MOST_WAITING
        while self._waiting:
            try:
                count = os.write(self._target, self._waiting[:_PIECE])
            except BlockingIOError:
                self._empty.clear()
                self._loop.add_writer(self._target, self._flush)
                break
            except OSError:
                self._waiting.clear()
                break
            del self._waiting[:count]
        if not self._waiting:
            self._empty.set()
            self._loop.remove_writer(self._target)
        if was_full and len(self._waiting) <= MOST_WAITING:
            self._on_drained()


class Agents:
    def __init__(self, app: Host, session: Session, show_review: Callable[[], None]) -> None:
        self._app, self._session, self._show_review = app, session, show_review
        self._run: AgentRun | None = None
        self._terminal: AgentTerminal | None = None
        self._ended: asyncio.Future[int] | None = None
        self._starting = self._is_shown = False
        #: Whether the program exits after an agent without changes.
        self.ends_with_it = False

    def begin(self, words: Sequence[str] = (), *, by_name: bool = True) -> None:
        """Runs `/agent NAME [ARGUMENT…]`, or shows the running agent. `by_name`: the first word is a
        profile.
        """
        self._app.run_worker(self._do(words, by_name=by_name), group="agent")

    async def _do(self, words: Sequence[str], *, by_name: bool) -> None:
        if self._starting:
            return
        if self._run is not None:
            if words and words[0] != self._run.profile.name:
                said = (
                    f"{self._run.profile.name} is running: /agent shows it; end it before you start another"
                )
                await self._session.notice(said, "warning")
                return
            await self._show()
            return
        if not words:
            names = await asyncio.to_thread(self._session.outside_agents.names)
            await self._session.notice(f"Write /agent and one of {', '.join(names)}")
            return
        self._starting = True
        try:
            await self._session.notice(f"Preparing a view for {words[0]} …")
            run = await self._session.outside_agents.open(words, by_name=by_name)
        except TuiAgentError as error:
            await self._session.notice(str(error), "error")
            return
        finally:
            self._starting = False
        self._terminal = terminal = AgentTerminal(*self._app.size)
        try:
            run.start(words[1:], terminal.program)
        finally:
            os.close(terminal.program)
        self._run = run
        self._ended = asyncio.ensure_future(run.ended())
        await self._show()

    async def _show(self) -> None:
        run, terminal, ended = self._run, self._terminal, self._ended
        assert run is not None and terminal is not None and ended is not None
        self._is_shown = True
        try:
            outcome = await self._app.lend_terminal(
                lambda source, target: terminal.show(source, target, ended)
            )
        finally:
            self._is_shown = False
        if outcome == "left" and not ended.done():
            self._show_review()
            name = run.profile.name
            said = f"{name} is still running: /agent shows it, Ctrl+] opens the review"
            if hosts := [host for _, host, _ in self._session.outside_agents.refused_hosts()]:
                key = self._app.keys.shown("review.allow_host")
                said = f"{said}. It also asked for {', '.join(hosts[:5])}: {key} in the review allows hosts"
            await self._session.notice(said)
            await asyncio.shield(ended)
            if self._run is not run or self._is_shown:
                return
        status, self._run = await ended, None
        terminal.close()
        await self._session.outside_agents.end(run)
        changes = self._session.state.review.changes
        ours = [change for change in changes if change.id.startswith(f"{run.source}.")]
        count = sum(change.waits for change in ours)
        if self.ends_with_it and not count:
            await self._app.leave(status if status >= 0 else 128 - status)
            return
        how = (
            f"was ended by signal {-status}" if status < 0 else f"ended with {status}" if status else "ended"
        )
        left = f"{counted(count, 'changed file')} in the review" if count else "no change is open"
        await self._session.notice(f"{run.profile.name} {how}: {left if ours else 'it changed nothing'}")
        self._show_review()
