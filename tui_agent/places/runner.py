"""Runs commands and workers in a place: a script there starts the command, reports its end, and ends it if the line is
cut.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import shlex
import signal
import time
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from types import TracebackType
from typing import Self

from tui_agent import __version__
from tui_agent.errors import PlaceLost, SessionError, TuiAgentError
from tui_agent.files.numbers import whole_number
from tui_agent.places.contents import Contents
from tui_agent.places.kept_folder import Copy
from tui_agent.places.place import CommandPlace
from tui_agent.processes.ending import ended
from tui_agent.sandbox.run import RunnerResult, RunResult

#: Seconds between the end of standard input, SIGTERM and SIGKILL for the program that reaches a place.
ASKED, TERMINATED = 1.0, 4.0
#: Seconds without output after which an ended program's output counts as complete.
QUIET = 0.25
#: Bytes of output kept in case the command does not begin.
MOST_BEFORE = 64_000

#: A shell without a login lacks the folder of programs that pip and pipx install for one user.
WORKER = 'PATH="$PATH:$HOME/.local/bin" exec tui-agent worker'
_NOT_FOUND = 127

#: The command is in a process group of its own. It ends with the command line that reaches the place:
#: standard input then ends, if the place has it; otherwise the signal arrives. A process that left the group
#: is found by a variable.
_SCRIPT = """\
id={id}
{before}printf '\\001%s\\n' "$id"
exec 3<&0 </dev/null
lead=; command -v setsid >/dev/null 2>&1 && lead=setsid
{exports}TUI_AGENT_RUN=$id $lead sh -c {command} {input}3<&- &
pid=$!
exec 2>/dev/null
end() {{ kill -"$1" -"$pid" || kill -"$1" "$pid"; }}
sweep() {{
  for one in $(grep -lsF "TUI_AGENT_RUN=$id" /proc/[0-9]*/environ); do
    one=${{one#/proc/}}; kill -KILL "${{one%/environ}}"
  done
}}
halt() {{ trap '' INT TERM HUP; end TERM; sleep 0.3 || sleep 1; end KILL; sweep; }}
trap 'halt >/dev/null &' INT TERM HUP
{leash}exec 3<&-
while :; do wait "$pid"; status=$?; kill -0 "$pid" || break; done
kill -KILL "$leash"
end KILL
sweep
{after}printf '\\001%s %s\\n' "$id" "$status"
exit "$status"
"""
#: Ends the command at the end of standard input, which has the id as its first line.
_LEASH = """\
{
  trap '' INT TERM HUP
  read -r first && [ "$first" = "$id" ] && { while read -r _; do :; done; halt; }
} <&3 >/dev/null &
leash=$!
"""
#: A mount of the engine's own configuration can hide the copy. Of the copy and the person's folder, the nearer one
#: counts: the copy can be below the folder.
_NOT_IN = """\
ls -di . >/dev/null || {{ echo 'Commands cannot start there without the program ls'; exit 98; }}
at=$(pwd -P)
while [ "$at" ]; do
  set -- $(ls -di "$at/" 2>/dev/null)
  case "$1" in {copy}) break ;; {folder})
    echo 'Your folder is mounted there, and not the copy: remove its mount from the configuration of the place'
    exit 98
  esac
  at=${{at%/*}}
done
"""
_AFTER = 'rm -rf "${TMPDIR:-/tmp}/tui-agent-worker-$id"\n'


def script(name: str, command: str, before: str = "", exports: str = "", *, reads: bool = False) -> str:
    """Returns the script of a run. `before` are lines that may refuse it; `exports` are assignments for the
    command. With `reads`, the command is a worker, which gets standard input and ends with it.
    """
    input, leash, after = ("<&3 ", "leash=\n", _AFTER) if reads else ("", _LEASH, "")
    parts = {"before": before, "exports": exports, "input": input, "leash": leash, "after": after}
    return _SCRIPT.format(id=name, command=shlex.quote(command), **parts)


class Marks:
    """Separates the output of a command from that of the programs that reach the place, by the marks of its
    script.
    """

    def __init__(self, name: str) -> None:
        self._mark = f"\x01{name}".encode()
        self._rest = b""
        self._open = 0
        self.before = bytearray()
        self.begun = False
        self.status: int | None = None
        self.absent = False

    def feed(self, data: bytes) -> bytes:
        """Returns the command's output in `data`."""
        self._rest += data
        found = []
        while (at := self._rest.find(self._mark)) >= 0 and (end := self._rest.find(b"\n", at)) >= 0:
            found.append(self._take(self._rest[:at]))
            word = self._rest[at + len(self._mark) : end].decode("ascii", "replace").strip()
            if not word:
                self.begun, self._open = True, self._open + 1
            elif word == "absent":
                self.absent = True
            else:
                self._open -= 1
                self.status = max(self.status or 0, whole_number(word, 1))
            self._rest = self._rest[end + 1 :]
        begun = range(min(len(self._mark), len(self._rest)), 0, -1)
        cut = next((size for size in begun if self._rest.endswith(self._mark[:size])), 0)
        kept = len(self._rest) - at if at >= 0 else cut
        if kept > 200:
            kept = 0
        whole = len(self._rest) - kept
        found.append(self._take(self._rest[:whole]))
        self._rest = self._rest[whole:]
        return b"".join(found)

    def _take(self, data: bytes) -> bytes:
        if self._open > 0:
            return data
        if not self.begun:
            self.before += data[: MOST_BEFORE - len(self.before)]
        return b""


class PlaceRunner:
    """The copy of the contents is there once it is opened."""

    def __init__(
        self,
        place: CommandPlace,
        copy: Copy,
        environment: Mapping[str, str],
        root: str,
        exports: str = "",
        pending: tuple[str, ...] = (),
    ) -> None:
        """`environment` is of the program that reaches the place; `exports` are assignments for commands.
        `pending` are paths with proposed content.
        """
        self.pending = pending
        self._place, self._copy = place, copy
        self._environment, self._root, self._exports = environment, root, exports
        self._view = ""
        self._contents: Contents | None = None
        self._since = time.time()
        self._runs: dict[int, _PlaceRun] = {}

    async def open(self, contents: Contents) -> None:
        """Raises `SessionError` and OSError."""
        self._contents = contents
        self._view = await self._copy.open(contents)
        self._since = time.time()

    async def remove(self) -> None:
        await asyncio.to_thread(self._copy.close)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.remove()

    async def start(self, argv: Sequence[str], variables: Mapping[str, str], output: int) -> int:
        """The last argument is the command for a shell there; `variables` are not sent."""
        number = len(self._runs)
        self._runs[number] = _PlaceRun(self, argv[-1], os.dup(output))
        return number

    async def ended(self, number: int) -> RunnerResult:
        return await self._runs[number].result()

    def stop(self, number: int) -> None:
        self._runs[number].stop()

    async def with_changes(self, result: RunResult) -> RunResult:
        if result.how == "place":
            return result
        changes, unread = await self._copy.changes(self._since)
        return replace(result, changes=changes, unread=unread)

    async def settle(self) -> None:
        """For a worker that ended; see `Copy`."""
        await self._copy.settle()

    async def process(self, name: str, command: str, *, reads: bool = False) -> asyncio.subprocess.Process:
        """Starts the program that reaches the place; for `reads` see `script`. Raises OSError."""
        before, first = self._copy.before(name), ""
        if not self._place.is_far:
            copy, folder = await asyncio.to_thread(
                lambda: (os.stat(self._view).st_ino, os.stat(self._root).st_ino)
            )
            before += _NOT_IN.format(copy=copy, folder=folder)
        if self._place.ssh and self._place.fills_view:  # The command may not see the folders of the host.
            before, first = "", f"id={name}\n{before}"
        words = script(name, command, before, self._exports, reads=reads)
        in_folder = self._place.is_far or self._place.fills_view
        return await asyncio.create_subprocess_exec(
            *self._place.argv(words, self._view, first),
            cwd=self._root if in_folder else self._view,
            env=dict(self._environment),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE if reads else asyncio.subprocess.STDOUT,
            start_new_session=True,
        )

    def reason(self, error: OSError | TuiAgentError) -> TuiAgentError:
        if isinstance(error, TuiAgentError):
            return error
        what = f"{error.filename or self._place.words[0]} cannot be started ({error.strerror})"
        return SessionError(what, f"install it, or correct `run` of the place {self._place.name}")

    async def bring_again(self) -> None:
        """For a place that lost the contents. Raises `SessionError` and OSError."""
        assert self._contents is not None
        self._view = await self._copy.open(self._contents)


class _PlaceRun:
    def __init__(self, runner: PlaceRunner, command: str, output: int) -> None:
        self._runner, self._command, self._output = runner, command, output
        self._stopped = False
        self._process: asyncio.subprocess.Process | None = None
        self._task = asyncio.create_task(self._follow(), name="command in a place")

    async def result(self) -> RunnerResult:
        return await self._task

    def stop(self) -> None:
        self._stopped = True
        if self._process is not None:
            end_soon(self._process)

    async def _follow(self) -> RunnerResult:
        try:
            status, marks = await self._relay()
            if marks.absent and not self._stopped:
                await self._runner.bring_again()
                status, marks = await self._relay()
            if marks.status is not None:
                return RunnerResult(marks.status)
            if self._stopped:
                return RunnerResult(status)
            if not marks.begun:
                await self._print(bytes(marks.before))
            elif status == 0:
                status = 1
            return RunnerResult(status, (), "place")
        except (OSError, TuiAgentError) as error:
            await self._print(f"{self._runner.reason(error)}\n".encode())
            return RunnerResult(1, (), "place")
        finally:
            os.close(self._output)

    async def _relay(self) -> tuple[int, Marks]:
        marks = Marks(name := secrets.token_hex(8))
        self._process = process = await self._runner.process(name, self._command)
        assert process.stdin is not None and process.stdout is not None
        if self._stopped:
            end_soon(process)
        with suppress(OSError):
            process.stdin.write(f"{name}\n".encode())
        try:
            async for data in pieces(process, process.stdout):
                await self._print(marks.feed(data))
        finally:
            if process.returncode is None:
                end_soon(process)
        return process.returncode or 0, marks

    async def _print(self, data: bytes) -> None:
        """The reader runs in this event loop."""
        os.set_blocking(self._output, False)
        rest = memoryview(data)
        while rest:
            try:
                rest = rest[os.write(self._output, rest) :]
            except BlockingIOError:
                await asyncio.sleep(0.001)
            except OSError:
                return


async def pieces(
    process: asyncio.subprocess.Process, output: asyncio.StreamReader
) -> AsyncGenerator[bytes, None]:
    while True:
        has_ended = process.returncode is not None
        try:
            async with asyncio.timeout(QUIET):
                data = await output.read(1 << 18)
        except TimeoutError:
            if has_ended:
                return  # Another process has the output, such as the shared connection (ControlPersist) of ssh.
            continue
        if not data:
            break
        yield data
    await ended(process)


def end_soon(process: asyncio.subprocess.Process) -> None:
    """Ends the program that reaches a place: its standard input first, so that its other side can end the
    command.
    """
    loop = asyncio.get_running_loop()
    if process.stdin is not None:
        process.stdin.close()
    for seconds, what in ((ASKED, signal.SIGTERM), (TERMINATED, signal.SIGKILL)):
        loop.call_later(seconds, _send, process, what)


def _send(process: asyncio.subprocess.Process, what: signal.Signals) -> None:
    if process.returncode is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, what)


_CALL = """\
id={id}; printf '\\001%s\\n' "$id"
( {words} )
status=$?; printf '\\001%s %s\\n' "$id" "$status"; exit "$status"
"""


async def call(
    place: CommandPlace,
    words: str,
    environment: Mapping[str, str],
    given: Iterable[bytes] = (),
    most: int = 1 << 20,
    timeout: float | None = 60.0,
) -> bytes:
    """Returns at most `most` bytes that a script printed. Raises `SessionError` if it fails or takes too long."""
    marks, found, lines = Marks(name := secrets.token_hex(8)), bytearray(), bytearray()
    try:
        process = await asyncio.create_subprocess_exec(
            *place.transport(_CALL.format(id=name, words=words)),
            env=dict(environment),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
    except OSError as error:
        raise failed(place, str(error.strerror).encode()) from error
    assert process.stdin is not None and process.stdout is not None and process.stderr is not None

    async def read() -> None:
        assert process.stdout is not None
        async for data in pieces(process, process.stdout):
            found.extend(marks.feed(data)[: max(0, most - len(found))])

    async def read_errors() -> None:
        assert process.stderr is not None
        async for data in pieces(process, process.stderr):
            lines.extend(data)
            del lines[: max(0, len(lines) - MOST_BEFORE)]

    try:
        async with asyncio.timeout(timeout):
            await asyncio.gather(read(), read_errors(), _give(process.stdin, given))
    except TimeoutError as error:
        raise failed(place, f"no answer within {timeout:.0f} s".encode()) from error
    finally:
        if process.returncode is None:
            end_soon(process)
    if marks.status != 0:
        raise failed(place, bytes(lines).strip() or bytes(marks.before))
    return bytes(found)


async def _give(to: asyncio.StreamWriter, given: Iterable[bytes]) -> None:
    pieces = iter(given)

    def together() -> bytes:
        taken = bytearray()
        while len(taken) < 1 << 20 and (piece := next(pieces, None)) is not None:
            taken += piece
        return bytes(taken)

    with suppress(OSError):
        while data := await asyncio.to_thread(together):
            to.write(data)
            await to.drain()
        to.close()


def failed(place: CommandPlace, said: bytes) -> SessionError:
    line = said.decode("utf-8", "replace").strip().rpartition("\n")[2][:300]
    return SessionError(
        f"The place {place.name} could not be used{f' ({line})' if line else ''}",
        f"try `tui-agent places test {place.name}`",
    )


class ProcessChannel:
    """The standard streams of a worker, as a `Channel`. Its copy of the contents is that of `runner`."""

    def __init__(self, runner: PlaceRunner, name: str) -> None:
        self._runner, self._name = runner, name
        self._process: asyncio.subprocess.Process | None = None
        self._marks = Marks("")
        self._said = bytearray()
        self._listening: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Raises `PlaceLost`."""
        try:
            await self._start()
        except OSError as error:
            raise PlaceLost(f"{self._name} cannot be reached ({error.strerror})", self._try()) from error

    async def _start(self) -> None:
        self._marks = Marks(name := secrets.token_hex(8))
        self._process = await self._runner.process(name, WORKER, reads=True)
        self._listening = asyncio.create_task(self._listen(self._process), name="worker: standard error")

    async def send(self, data: bytes) -> None:
        assert self._process is not None and self._process.stdin is not None
        self._process.stdin.write(data)
        await self._process.stdin.drain()

    async def receive(self) -> bytes:
        while True:
            assert self._process is not None and self._process.stdout is not None
            data = await self._process.stdout.read(1 << 18)
            if found := self._marks.feed(data):
                return found
            if data:
                continue
            await ended(self._process)
            if self._listening is not None:
                await asyncio.wait([self._listening], timeout=1.0)
            if not self._marks.absent:
                return b""
            await self._runner.bring_again()
            await self._start()

    async def close(self) -> None:
        process = self._process
        if process is not None:
            if process.returncode is None:
                end_soon(process)
            await ended(process)
        if self._listening is not None:
            self._listening.cancel()
        try:
            if process is not None and process.returncode == 0:
                await self._runner.settle()
        finally:
            await self._runner.remove()

    def reason(self) -> PlaceLost:
        status = self._marks.status
        if status == _NOT_FOUND:
            return PlaceLost(
                f"tui-agent is not installed in {self._name}", f"install tui-agent {__version__} there"
            )
        text = bytes(self._said).strip() or (b"" if self._marks.begun else bytes(self._marks.before).strip())
        line = text.decode("utf-8", "replace").rpartition("\n")[2][:300]
        how = "ended early" if self._marks.begun else "could not be started"
        return PlaceLost(f"The worker in {self._name} {how}{f' ({line})' if line else ''}", self._try())

    def _try(self) -> str:
        return f"try `tui-agent places test {self._name}`"

    async def _listen(self, process: asyncio.subprocess.Process) -> None:
        assert process.stderr is not None
        while data := await process.stderr.read(1 << 16):
            self._said += data
            del self._said[: max(0, len(self._said) - MOST_BEFORE)]
