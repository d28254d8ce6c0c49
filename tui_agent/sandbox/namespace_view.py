"""Client side of a view: starts the inner program, runs commands, and reads their writes."""

from __future__ import annotations

import ast
import asyncio
import marshal
import os
import re
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

from tui_agent.files.numbers import whole_number
from tui_agent.sandbox.build_cache import RunLayer
from tui_agent.sandbox.environment import is_below, own_folder
from tui_agent.sandbox.inside.mounts import plant
from tui_agent.sandbox.layer_changes import ChangedPath, LayerReader, start_apart
from tui_agent.sandbox.proxy import HostProxy, allowed
from tui_agent.sandbox.run import Over, RunnerResult, RunResult
from tui_agent.sandbox.view_plan import OURS, PYTHON, NoView, ViewPlan

#: Startup timeout in seconds; 0.03 is typical.
STARTED = 20.0
_PROGRAM = f"import sys; sys.path.insert(0, {OURS!r}); from tui_agent.sandbox.inside.main import main; main()"

PACKAGE = tuple(
    f"{OURS}/tui_agent/{name}" for name in ("__init__.py", "sandbox/__init__.py", "sandbox/inside")
)

#: Output; output and input; or a terminal, which becomes the command's own.
Descriptors = Literal["", "input", "terminal"]


class View:
    """An overlay in namespaces, ours or bubblewrap's. `kept`: the build layer below. `shared`: the view stays
    open between commands, and each result has the changes since the previous one.
    """

    def __init__(self, plan: ViewPlan, kept: RunLayer | None = None, *, shared: bool = False) -> None:
        self.plan = plan
        self._kept = kept
        self._shared = shared
        self._since = time.time()
        self._seen: dict[str, ChangedPath] = {}
        self._reader: LayerReader | None = None
        #: Readable after all processes of the view have exited.
        self.layers = -1
        #: The workspace as programs in the view see it, until `end`; writes go to the layers.
        self.merged = -1
        self.listener = -1
        self._process: asyncio.subprocess.Process | None = None
        self._line: socket.socket | None = None
        self._reading: asyncio.Task[None] | None = None
        self._ended: dict[int, asyncio.Future[RunnerResult]] = {}
        self._over: Over = ""
        self._proxy: HostProxy | None = None
        self._runs = 0

    async def __aenter__(self) -> Self:
        lent = self._kept.lent if self._kept else None
        if lent is None or not lent.folder:
            await self._open()
            return self
        bare, self.plan = self.plan, replace(self.plan, kept=lent.folder)
        try:
            await self._open()
        except NoView:
            await asyncio.to_thread(lent.discard)
            self._kept, self.plan = None, bare
            await self._open()
        return self

    @property
    def layer(self) -> str:
        """Path of the writes to the workspace, also for our child processes."""
        return f"/proc/{os.getpid()}/fd/{self.layers}/{len(self.plan.overlays) - 1}/u"

    async def _open(self, rules: Mapping[str, list[str]] | None = None) -> None:
        """`rules`: Landlock's."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.setblocking(False)
        self._line = ours
        with theirs, tempfile.TemporaryFile() as seeds:
            words = [PYTHON, "-IS", "-c", _PROGRAM, str(theirs.fileno())]
            if self.plan.isolated == "bubblewrap":
                words = await asyncio.to_thread(command, self.plan, PACKAGE, words)
            self.plan.write(seeds, rules or {})
            seeds.seek(0)
            socket.send_fds(ours, [b"plan"], [seeds.fileno()])
            self._process = await start_apart(words, theirs)
        try:
            async with asyncio.timeout(STARTED):
                message = await self._message()
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
        if self.plan.hosts:
            self._proxy = HostProxy(allowed(self.plan.hosts))
            await self._proxy.serve(self.listener)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        async with AsyncExitStack() as parts:  # closed from the last to the first
            parts.callback(self.close)
            parts.push_async_callback(self.end)
            if self._reader is not None:
                parts.push_async_exit(self._reader)

    def close(self) -> None:
        if self.layers >= 0:
            os.close(self.layers)
            self.layers = -1

    async def start(self, argv: Sequence[str], variables: Mapping[str, str], output: int) -> int:
        if not self._shared:
            self._reader = await LayerReader().__aenter__()
        return self.start_with(argv, variables, "", output)

    def start_with(
        self, argv: Sequence[str], variables: Mapping[str, str], how: Descriptors, *descriptors: int
    ) -> int:
        """Returns the number of the started command. Raises OSError."""
        assert self._line is not None
        self._runs += 1
        self._ended[self._runs] = asyncio.get_running_loop().create_future()
        message = {
            "run": self._runs,
            "argv": list(argv),
            "env": dict(variables),
            "cwd": self.plan.root,
            "how": how,
        }
        socket.send_fds(self._line, [marshal.dumps(message)], descriptors)
        return self._runs

    def runs(self, number: int) -> bool:
        return number in self._ended and not self._ended[number].done()

    async def ended(self, number: int) -> RunnerResult:
        return await asyncio.shield(self._ended[number])

    def stop(self, number: int) -> None:
        if self._line is not None and not self._ended[number].done():
            with suppress(OSError):
                self._line.send(marshal.dumps({"stop": number}))

    async def with_changes(self, result: RunResult) -> RunResult:
        if self._shared:
            async with LayerReader() as reader:
                return await self._read_by(reader, result)
        assert self._reader is not None
        await self.end()
        return await self._read_by(self._reader, result)

    async def _read_by(self, reader: LayerReader, result: RunResult) -> RunResult:
        names = await self._kept.names(self.layers, self.plan) if self._kept else ()
        written, unread = await reader.of_layer(self.layers, self.plan, self._since, names)
        news = tuple(one for one in written if self._seen.get(one.path) != one)
        self._seen = {one.path: one for one in written}
        full = os.fstatvfs(self.layers).f_bavail == 0
        if self._kept and names and result.how == "exit" and not full:
            await asyncio.to_thread(self._kept.lent.keep, self.layers, self.plan, names)
        return replace(result, changes=news, full=full, unread=unread)

    async def end(self) -> None:
        if self._line is not None:
            asyncio.get_running_loop().remove_reader(self._line)
            self._line.close()
            self._line = None
        if self._reading is not None:
            self._reading.cancel()
        async with AsyncExitStack() as parts:  # closed from the last to the first
            parts.callback(self._all_ended)
            if self._process is not None:
                parts.push_async_callback(_ended, self._process)
            for descriptor in (self.merged, self.listener):
                if descriptor >= 0:
                    parts.callback(os.close, descriptor)
            self.merged = self.listener = -1
            if self._proxy is not None:
                parts.push_async_callback(self._proxy.close)
                self._proxy = None

    async def _read(self) -> None:
        with suppress(OSError):
            while message := await self._message():
                if "over" in message:
                    self._over = message["over"]
                elif "exit" in message and not (future := self._ended[message["exit"]]).done():
                    future.set_result(RunnerResult(message["status"], tuple(message["left"]), self._over))
                    self._over = ""
        self._all_ended()

    def _all_ended(self) -> None:
        for future in self._ended.values():
            if not future.done():
                future.set_result(RunnerResult(-9, (), self._over))

    async def _message(self) -> dict[str, Any]:
        assert self._line is not None
        loop, line = asyncio.get_running_loop(), self._line
        while True:
            try:
                text, descriptors, _, _ = socket.recv_fds(line, 1 << 16, 3)
                break
            except ConnectionError:
                return {}
            except BlockingIOError:
                readable = asyncio.Event()
                loop.add_reader(line, readable.set)
                try:
                    await readable.wait()
                finally:
                    if line.fileno() >= 0:
                        loop.remove_reader(line)
        message = ast.literal_eval(text.decode()) if text else {}
        passed = dict(zip(message.get("ready", ()), descriptors, strict=False))
        self.layers = passed.get("layers", self.layers)
        self.merged = passed.get("merged", self.merged)
        self.listener = passed.get("listener", self.listener)
        return message


#: First version with overlays whose layers are readable afterwards.
LEAST = (0, 11)


async def _ended(process: asyncio.subprocess.Process) -> None:
    """It ends by itself, since its line is closed; a caller that is cancelled does not wait for that."""
    try:
        async with asyncio.timeout(1.0):
            await process.wait()
    except (TimeoutError, asyncio.CancelledError) as error:
        with suppress(ProcessLookupError):  # it ended just now
            process.kill()
        if isinstance(error, asyncio.CancelledError):
            raise
    await process.wait()


def program() -> str:
    """Raises `NoView` if missing."""
    found = shutil.which("bwrap")
    if found is None:
        raise NoView("", 0, "it is not installed")
    return os.path.realpath(found)


def check() -> None:
    """Raises `NoView` without bubblewrap or overlays. Blocking."""
    done = subprocess.run([program(), "--version"], capture_output=True, text=True, timeout=5, check=False)
    found = tuple(whole_number(number) for number in re.findall(r"\d+", done.stdout)[:2])
    if found < LEAST:
        raise NoView(
            "bubblewrap", 0, f"it is {done.stdout.strip() or 'broken'}, and has overlays from 0.11 on"
        )


def command(plan: ViewPlan, package: Sequence[str], inner: Sequence[str]) -> list[str]:
    """Returns the command line that creates the view and runs `inner` as its first process. Blocking. Raises
    `NoView` and OSError. `package`: files and folders that `inner` needs.
    """
    found = program()
    for number, path in enumerate(plan.overlays):
        for name in ("u", "w"):
            os.makedirs(f"{plan.folder}/{number}/{name}")
        shutil.copymode(path, f"{plan.folder}/{number}/u")
    for seed in plan.seeds:
        overlay = seed.overlay or plan.workspace
        layer = f"{plan.folder}/{plan.overlays.index(overlay)}/u"
        plant(overlay, layer, seed.path, seed.kind, seed.mode, seed.content)
    return [found, *arguments(plan, package), "--", *inner]


def arguments(plan: ViewPlan, package: Sequence[str]) -> list[str]:
    """Returns arguments in execution order: later mounts cover earlier ones."""
    told = ["--unshare-user", "--unshare-ipc", "--unshare-pid", "--unshare-cgroup-try", "--die-with-parent"]
    told += ["--new-session", "--as-pid-1", "--cap-drop", "ALL", "--disable-userns"]
    told += [] if plan.network else ["--unshare-net"]
    covering = [one for one in plan.folders if is_below(one[0], plan.binds)]
    told += _in_memory([one for one in plan.folders if one not in covering])
    told += ["--bind", plan.own_home, plan.home] if plan.own_home else []
    for path, target in plan.links.items():
        told += ["--symlink", target, path]
    nothing = f"{plan.folder}/nothing"
    os.makedirs(nothing, exist_ok=True)
    for path in plan.binds:
        if path in plan.tools and os.path.isdir(path):
            # A socket that is made in it later has no listener there.
            told += ["--overlay-src", path, "--overlay-src", nothing, "--ro-overlay", path]
        else:
            told += ["--ro-bind", path, path]
        told += _in_memory([one for one in covering if is_below(one[0], [path])])
    for path in package:
        told += ["--ro-bind", path, path]
    for path, source in plan.stores.items():
        told += ["--ro-bind", source, path]
    for number, (path, content) in enumerate(plan.texts.items()):
        told += ["--ro-bind", _write_file(plan, f"text{number}", content), path]
    for number, path in enumerate(plan.overlays):
        layer = f"{plan.folder}/{number}"
        told += ["--overlay-src", path, "--overlay", f"{layer}/u", f"{layer}/w", path]
    told += ["--dev", "/dev", "--size", str(plan.limits.layer), "--tmpfs", "/dev/shm"]
    empty = _write_file(plan, "empty", b"")
    for path in plan.masks:
        if os.path.islink(path) or not os.path.lexists(path):
            continue
        told += ["--tmpfs", path, "--remount-ro", path] if own_folder(path) else ["--ro-bind", empty, path]
    return [*told, "--proc", "/proc", "--remount-ro", "/proc", "--remount-ro", "/"]


def _in_memory(folders: Sequence[tuple[str, int, int]]) -> list[str]:
    return [
        word
        for path, mode, size in folders
        for word in ("--perms", f"{mode:o}", "--size", str(size), "--tmpfs", path)
    ]


def _write_file(plan: ViewPlan, name: str, content: bytes) -> str:
    place = Path(plan.folder, name)
    place.write_bytes(content)
    return str(place)
