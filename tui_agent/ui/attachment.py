"""The terminal of a session: attached, detached and replaced, also through `tui-agent attach`."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from time import monotonic
from typing import TYPE_CHECKING, Any

from tui_agent.control.server import is_busy
from tui_agent.control.shell import adopt, can_be_continued, give_to_shell, is_in_front
from tui_agent.errors import SessionError
from tui_agent.ui.terminal import TerminalDriver

if TYPE_CHECKING:
    from tui_agent.control.server import Client, ControlServer, Terminals
    from tui_agent.session.session import Session
    from tui_agent.ui.host import Host

Serve = Callable[["Session", "Terminals"], "ControlServer"]
#: Seconds between checks of the shell's terminal and of running work.
LOOK_AGAIN = 0.25
NOT_SUSPENDED = "Not suspended: no shell started this program, so it could not be resumed."
_log = logging.getLogger(__name__)


class Attachment:
    def __init__(self, app: Host, driver: TerminalDriver, session: Session) -> None:
        self._app, self._driver, self._session = app, driver, session
        self._server: ControlServer | None = None
        self._client: Client | None = None
        self._is_job = False
        self._waiting: asyncio.Task[None] | None = None
        self._lending: asyncio.Task[None] | None = None
        #: Set when the control socket is open or has failed; `_asked` runs then.
        self._served = asyncio.Event()
        self._asked: list[Callable[[], object]] = []
        self._program: asyncio.Future[int] | None = None

    @property
    def is_attached(self) -> bool:
        return not self._driver.is_parked

    @property
    def linger(self) -> int:
        """Idle seconds without a terminal that end the session; 0 ends it with its terminal."""
        state = self._session.state.session
        return 0 if state.rehearsal else self._session.loaded.settings.session.linger

    @property
    def outlives_terminal(self) -> bool:
        return self.linger > 0 and not self._app.is_leaving

    def serve(self, serve: Serve) -> None:
        """Opens the control socket. A failure is logged."""
        try:
            self._server = serve(self._session, self)
        except (OSError, SessionError) as error:
            _log.warning("no control socket: %s", error)
            self._served.set()
            return
        lent, self._app.lent = self._app.lent, None
        if lent is not None:
            self._client = self._server.adopt(lent)
        elif not self.is_attached:
            self._session.chat.set_attended(False)
            self._park()
        self._served.set()
        for ask in self._asked:
            ask()

    @property
    def _is_too_early(self) -> bool:
        """Whether a launcher exists but the control socket is not open yet."""
        return self._app.lent is not None and not self._served.is_set()

    def close(self, status: int) -> None:
        """Ends the connections. The launcher exits with `status` or waits for the next session."""
        if self._waiting is not None:
            self._waiting.cancel()
        if self._server is not None:
            client, self._client = self._client, None
            if client is not None and self._app.next is not None:
                self._app.lent = self._server.lend(client)
            elif client is not None:
                client.send({"type": "ended", "status": status})
            self._server.close()

    def hang_up(self) -> None:
        self._is_job = False
        if self._client is None and self.is_attached:
            self._park()

    def on_gone(self, number: int) -> None:
        if number == self._driver.terminals and self.is_attached:
            self._let_go(self._client)

    def detach(self) -> None:
        """The session continues. Raises `SessionError` if no program would get the terminal."""
        client, words = self._client, self._words()
        if self._is_too_early:
            self._asked.append(self.detach)
        elif client is not None:
            self._park()
            client.send({"type": "detached", "words": words})
            self._let_go(client)
        elif not self.is_attached:
            return
        elif can_be_continued():
            self._is_job = True
            self._park(f"{words}, and so does `fg`")
            give_to_shell()
        else:
            raise SessionError(
                "No shell started this program, so there is no prompt to return to",
                "close the window; the session continues",
            )

    def visit(self, session: str) -> None:
        """Lends the terminal to another running session."""
        client = self._client
        if client is None:
            self._lending = asyncio.create_task(self._lend(session), name="visit")
        else:
            self._park()
            client.send({"type": "moved", "session": session})
            self._let_go(client)

    async def _lend(self, session: str) -> None:
        source, target = os.dup(self._driver.fileno), os.dup(self._driver.output)
        before = signal.signal(signal.SIGINT, lambda *_: None)
        self._park()
        terminals = self._driver.terminals
        try:
            words = (sys.executable, "-P", "-m", "tui_agent", "attach", session)
            process = await asyncio.create_subprocess_exec(*words, stdin=source, stdout=target, stderr=target)
            await process.wait()
            if self._driver.terminals == terminals:
                self._draw_on(source, target)
            elif can_be_continued():  # some terminal has shown this session since
                self._is_job = True
                give_to_shell()
        finally:
            self._lending = None
            signal.signal(signal.SIGINT, before)
            os.close(source)
            os.close(target)

    def suspend(self) -> bool:
        """Gives the terminal to its shell, whose `fg` returns. `False` without a shell."""
        client = self._client
        if self._is_too_early:
            self._asked.append(self.suspend)
            return True
        if client is None:
            if not can_be_continued():
                return False
            self.detach()
            return True
        if not client.can_stop:
            return False
        self._park()
        self._client = None
        client.send({"type": "suspended"})
        return True

    def _words(self) -> str:
        return f"The session continues: `tui-agent attach {self._session.state.session.id}` returns to it"

    def _let_go(self, client: Client | None) -> None:
        self._client = None
        if client is not None:
            client.close()
        self._park()

    def _park(self, words: str = "") -> None:
        if self.is_attached:
            self._session.journal.flush()
            self._driver.park(words)
            self._session.chat.set_attended(False)
            self._changed()
        if self._waiting is None or self._waiting.done():
            self._waiting = asyncio.create_task(self._wait(), name="without a terminal")

    async def _wait(self) -> None:
        """Waits for the shell's `fg`, or until `linger` has passed."""
        idle = monotonic()
        while True:
            await asyncio.sleep(LOOK_AGAIN)
            in_front = is_in_front() if self._is_job else None
            self._is_job = in_front is not None
            if in_front:
                try:
                    terminal = os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
                except OSError:
                    return
                self._replace_client()
                self._draw_on(terminal, terminal)
                os.close(terminal)
                return
            if self.is_attached and not self._is_job:
                return
            if self._is_job or self._lending or self.is_attached or is_busy(self._session.state):
                idle = monotonic()
            elif monotonic() - idle >= (
                self.linger if self._server is not None else 0
            ):  # else nothing reaches it
                await self.leave(0)
                return

    def attach(self, client: Client, descriptors: tuple[int, int], message: Mapping[str, Any]) -> None:
        """Draws on the client's terminal and returns the current one to its shell."""
        if self._app.is_leaving:
            raise SessionError("The session is ending", "resume it with `tui-agent --resume`")
        if client is not self._client:
            self._replace_client()
        if self._client is None and self.is_attached and can_be_continued():
            self.detach()
        elif self._client is None and self.is_attached:
            self._park(f"{self._words()}; this window can be closed")
        self._client = client
        client.is_launcher, client.can_stop = True, message.get("can_stop") is True
        client.can_run = client.can_stop or message.get("can_run") is True
        variables = message.get("environment")
        adopt(variables if isinstance(variables, dict) else {})
        self._draw_on(*descriptors)
        client.send({"type": "attached"})
        if message.get("stopped") is False:
            self._app.notify(NOT_SUSPENDED, severity="warning", markup=False)

    def _replace_client(self) -> None:
        client = self._client
        if client is not None:
            self._end_program(1)
            self._park()
            client.send({"type": "detached", "words": "The session was opened in another terminal"})
            self._let_go(client)

    def _draw_on(self, source: int, target: int) -> None:
        self._driver.take(source, target)
        self._app.use_theme("")
        self._session.chat.set_attended(True)
        self._changed()

    def _changed(self) -> None:
        if self._server is not None:
            self._server.state_changed()

    def on_message(self, client: Client, message: Mapping[str, Any]) -> None:
        if client is not self._client:
            return
        match message:
            case {"type": "resized"}:
                self._driver.resized()
            case {"type": "ran", "status": int(status)}:
                self._end_program(status)

    async def run_in_terminal(self, words: Sequence[str]) -> int | None:
        """Returns the program's exit status, or `None` without a launcher."""
        if self._is_too_early:
            await self._served.wait()
        if self._client is None or not self._client.can_run:
            return None
        self._program = asyncio.get_running_loop().create_future()
        self._client.send({"type": "run", "words": list(words), "folder": os.getcwd()})
        return await self._program

    def _end_program(self, status: int) -> None:
        program, self._program = self._program, None
        if program is not None and not program.done():
            program.set_result(status)

    def on_lost(self, client: Client) -> None:
        if client is self._client:
            self._client = None
            self._end_program(1)
            self._park()

    async def leave(self, status: int) -> None:
        await self._app.leave(status)
