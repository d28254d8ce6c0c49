"""A view from our side: starting the program inside, running commands in it, reading what they wrote, ending it."""

from __future__ import annotations

import ast
import asyncio
import marshal
import os
import socket
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

from tui_agent.trial import bubblewrap
from tui_agent.trial.on_copy import landlock_rules
from tui_agent.trial.plan import NoView, ViewPlan

#: Seconds until a view that does not come up is given up; it takes 0.03.
STARTED = 20.0
#: The folder that holds the package: all that the program inside imports from besides Python's own library.
OURS = str(Path(__file__).parents[2])
_PROGRAM = f"import sys; sys.path.insert(0, {OURS!r}); from tui_agent.trial.inside.main import main; main()"


Over = Literal["", "memory", "processes", "keyboard"]

#: What of it the program inside imports.
_PACKAGE = tuple(f"{OURS}/tui_agent/{name}" for name in ("__init__.py", "trial/__init__.py", "trial/inside"))

#: The Python behind a virtual environment, which starts quicker.
PYTHON: str = getattr(sys, "_base_executable", sys.executable)


@dataclass(frozen=True, slots=True)
class Ended:
    """A command that ended.

    status: its exit status; minus the number of the signal that ended it.
    left: names of programs that it had left running, which were ended.
    over: "memory" or "processes" if it took more than it may, and was ended; "keyboard" if it waited for one.
    """

    status: int
    left: tuple[str, ...] = ()
    over: Over = ""


class View:
    """A view while it lives: `async with View(plan) as view`. Raises `NoView` where this machine has none."""

    def __init__(self, plan: ViewPlan) -> None:
        self.plan = plan
        #: Where the layers are, as `changed.py` reads them; stays readable when everything in the view has ended.
        self.layers = -1
        self._process: asyncio.subprocess.Process | None = None
        self._line: socket.socket | None = None
        self._reading: asyncio.Task[None] | None = None
        self._ended: dict[int, asyncio.Future[Ended]] = {}
        self._over: Over = ""
        self._runs = 0

    async def __aenter__(self) -> Self:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.setblocking(False)
        self._line = ours
        command = [PYTHON, "-IS", "-c", _PROGRAM, str(theirs.fileno())]
        if self.plan.isolated == "bubblewrap":
            command = await asyncio.to_thread(bubblewrap.command, self.plan, _PACKAGE, command)
        with theirs, tempfile.TemporaryFile() as seeds:
            rules = landlock_rules(self.plan) if self.plan.isolated == "landlock" else {}
            self.plan.write(seeds, rules)
            seeds.seek(0)
            socket.send_fds(ours, [b"plan"], [seeds.fileno()])
            self._process = await asyncio.create_subprocess_exec(
                *command,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.DEVNULL,
                pass_fds=(theirs.fileno(),),
                env={"PATH": os.defpath},
                cwd="/",
                start_new_session=True,
            )
        try:
            message = await asyncio.wait_for(self._message(), STARTED)
        except TimeoutError:
            await self.end()
            raise NoView("start", 0, f"it took more than {STARTED:.0f} s") from None
        except BaseException:
            await self.end()
            raise
        if "ready" not in message:
            await self.end()
            raise NoView(
                message.get("failed", "start"),
                message.get("errno", 0),
                message.get("why", "its program ended at once"),
            )
        if self.plan.isolated == "bubblewrap":
            self.layers = os.open(self.plan.folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        self._reading = asyncio.create_task(self._read())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.end()
        self.close()

    def close(self) -> None:
        """Throws the layers away."""
        if self.layers >= 0:
            os.close(self.layers)
            self.layers = -1

    def run(self, argv: Sequence[str], output: int, *, env: Mapping[str, str], cwd: str) -> int:
        """Starts a command whose output goes to the descriptor `output`; its number."""
        assert self._line is not None
        self._runs += 1
        self._ended[self._runs] = asyncio.get_running_loop().create_future()
        message = {"run": self._runs, "argv": list(argv), "env": dict(env), "cwd": cwd}
        socket.send_fds(self._line, [marshal.dumps(message)], [output])
        return self._runs

    async def ended(self, number: int) -> Ended:
        """Waits for a command."""
        return await asyncio.shield(self._ended[number])

    def stop(self, number: int) -> None:
        """Interrupts a command; 0.3 s later it and all that it started is gone."""
        if self._line is not None and not self._ended[number].done():
            with suppress(OSError):
                self._line.send(marshal.dumps({"stop": number}))

    async def end(self) -> None:
        """Ends all that runs in the view; the layers can be read until `close`."""
        if self._line is not None:
            asyncio.get_running_loop().remove_reader(self._line)  # its number is another's as soon as it is closed
            self._line.close()
            self._line = None
        if self._reading is not None:
            self._reading.cancel()
        if self._process is not None:
            try:
                await asyncio.wait_for(self._process.wait(), 1.0)
            except TimeoutError:
                self._process.kill()
                await self._process.wait()
        self._all_ended()

    async def _read(self) -> None:
        with suppress(OSError):
            while message := await self._message():
                if "over" in message:
                    self._over = message["over"]
                elif "exit" in message and not (future := self._ended[message["exit"]]).done():
                    future.set_result(Ended(message["status"], tuple(message["left"]), self._over))
                    self._over = ""
        self._all_ended()

    def _all_ended(self) -> None:
        for future in self._ended.values():
            if not future.done():
                future.set_result(Ended(-9, (), self._over))

    async def _message(self) -> dict[str, Any]:
        """The next message; an empty one at the end."""
        assert self._line is not None
        loop, line = asyncio.get_running_loop(), self._line
        while True:
            try:
                text, descriptors, _, _ = socket.recv_fds(line, 1 << 16, 1)
                break
            except ConnectionError:
                return {}  # it went without reading what it was sent
            except BlockingIOError:
                readable = asyncio.Event()
                loop.add_reader(line, readable.set)
                try:
                    await readable.wait()
                finally:
                    if line.fileno() >= 0:
                        loop.remove_reader(line)
        if descriptors:
            self.layers = descriptors[0]
        return ast.literal_eval(text.decode()) if text else {}
