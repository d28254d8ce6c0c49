"""A command's changes, read from its layer.

The command controls paths, sizes and counts, so a separate process (`layer_comparison.main`) with a budget reads
each layer. Contents are in an unnamed file, which disappears with its last reference.
"""

from __future__ import annotations

import ast
import asyncio
import marshal
import os
import socket
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import IO, Any, Literal, Self

import msgspec

from tui_agent.files.names import display_path
from tui_agent.sandbox.layer_comparison import LEFT_OUT, Budget
from tui_agent.sandbox.view_plan import MEGABYTE, OURS, PYTHON, ViewPlan

BUDGET = Budget(
    files=20_000,
    entries=200_000,
    depth=256,
    largest=5 * MEGABYTE,
    texts=64 * MEGABYTE,
    read=1024 * MEGABYTE,
    seconds=20.0,
)
_PATIENCE, _MOST_TOLD = 60.0, 64 * MEGABYTE
#: Short commands end before the process is started.
_READY_AFTER = 0.1
_PROGRAM = (
    f"import sys; sys.path.insert(0, {OURS!r}); from tui_agent.sandbox.layer_comparison import main; main"
)

#: Size, time and mode of each copied file.
Copied = Mapping[str, tuple[int, int, int]]
Kind = Literal["new", "changed", "deleted", "mode", "link", "special"]


@dataclass(frozen=True, slots=True)
class ChangedPath:
    """A path that a command changed.

    - executable: of a regular file, after the command.
    - target: of a link.
    - meanwhile: the file in the folder changed after the view was created, so the command saw another
      version.
    - contents: file with the content, `size` bytes from `at`; None if missing, with the reason in `why`.
    - digest: hash of the content, even if it is not kept.
    """

    path: str
    kind: Kind
    executable: bool = False
    target: str = ""
    size: int = 0
    meanwhile: bool = False
    contents: IO[bytes] | None = field(default=None, compare=False, repr=False)
    at: int = field(default=0, compare=False)
    digest: str = ""
    why: str = ""

    @property
    def after(self) -> bytes | None:
        return None if self.contents is None else os.pread(self.contents.fileno(), self.size, self.at)


#: Changes by path, and a sentence if they are incomplete.
Read = tuple[tuple[ChangedPath, ...], str]


class _FoundChange(msgspec.Struct, frozen=True, array_like=True):
    path: str
    kind: Kind
    executable: bool
    target: str
    size: int
    meanwhile: bool
    at: int
    digest: str
    why: str


class _LayerReport(msgspec.Struct, frozen=True):
    found: list[_FoundChange]
    left: dict[str, tuple[int, list[str]]]


class LayerReader:
    """Process that reads a layer, started ahead of time while a long command runs; ends with the `async
    with` block.
    """

    def __init__(self) -> None:
        self._needed = asyncio.Event()
        self._line: socket.socket | None = None
        self._process: asyncio.subprocess.Process | None = None
        self._starting: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._starting = asyncio.create_task(self._start(), name="layer reader")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._starting is not None
        if self._line is None:
            self._starting.cancel()
        try:
            # An await of the task itself raises the same for its cancellation and for the caller's.
            await asyncio.wait([self._starting])
            if not self._starting.cancelled():
                self._starting.exception()  # `_read` reported it
        finally:
            if self._line is not None:
                self._line.close()
            if self._process is not None:
                with suppress(ProcessLookupError):
                    self._process.kill()
                await self._process.wait()

    async def of_layer(self, layers: int, plan: ViewPlan, since: float, apart: Sequence[str] = ()) -> Read:
        """`since` is the Unix time of the view. Omits git's files, caches, and paths below `apart`."""
        path = f"{len(plan.overlays) - 1}/u"
        of_workspace = (seed.path for seed in plan.seeds if seed.overlay in ("", plan.workspace))
        is_seeded = any(seed.partition("/")[0] not in LEFT_OUT for seed in of_workspace)
        is_bare = plan.isolated == "overlay" or not is_seeded
        if is_bare and await asyncio.to_thread(_is_empty, path, layers, apart):
            return (), ""
        return await self._read(path, layers, plan, since, apart=apart)

    async def of_paths(self, layers: int, plan: ViewPlan, since: float, paths: Sequence[str]) -> Read:
        return await self._read(f"{len(plan.overlays) - 1}/u", layers, plan, since, paths=paths)

    async def of_copy(self, plan: ViewPlan, files: Copied, since: float, apart: Sequence[str] = ()) -> Read:
        """`files` are the original files. Omits paths below `apart`."""
        return await self._read(plan.root, None, plan, since, files=files, apart=apart)

    async def _read(
        self,
        path: str,
        below: int | None,
        plan: ViewPlan,
        since: float,
        *,
        files: Copied | None = None,
        apart: Sequence[str] = (),
        paths: Sequence[str] | None = None,
    ) -> Read:
        asked = {
            # A seed counts as the original; an "owned" one equals the file.
            "seeds": {
                seed.path: (seed.kind, seed.content, seed.mode)
                for seed in plan.seeds
                if seed.overlay in ("", plan.workspace) and seed.kind != "owned"
            },
            "root": plan.workspace,
            "since": since,
            "budget": tuple(BUDGET),
            "files": None if files is None else dict(files),
            "apart": list(apart),
            "paths": None if paths is None else list(paths),
            "beside": plan.isolated == "overlay",
        }
        try:
            assert self._starting is not None
            self._needed.set()
            await asyncio.shield(self._starting)  # ends with the block, not with a cancelled caller
            async with asyncio.timeout(_PATIENCE):
                assert self._line is not None
                contents = tempfile.TemporaryFile()  # noqa: SIM115
                await asyncio.to_thread(lambda: (marshal.dump(asked, contents), contents.flush()))
                flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
                layer = os.open(path, flags, dir_fd=below)
                try:
                    socket.send_fds(self._line, [b"read"], [contents.fileno(), layer])
                finally:
                    os.close(layer)
                answer = await asyncio.get_running_loop().sock_recv(self._line, 1 << 12)
                at, size = ast.literal_eval(answer.decode())
                return await asyncio.to_thread(_read_report, contents, at, size)
        except TimeoutError:
            why = f"it took more than {_PATIENCE:.0f} s"
        except (OSError, ValueError, SyntaxError, EOFError, TypeError, msgspec.ValidationError) as error:
            why = error.strerror or "" if isinstance(error, OSError) else ""
        why = why or "the process that reads it ended before it was done"
        return (), f"The written files are not listed: {why}"

    async def _start(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(_READY_AFTER):
                await self._needed.wait()
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.setblocking(False)
        self._line = ours
        with theirs:
            command = [PYTHON, "-IS", "-c", f"{_PROGRAM}({theirs.fileno()})"]
            self._process = await start_apart(command, theirs)


async def start_apart(command: Sequence[str], line: socket.socket) -> asyncio.subprocess.Process:
    """Starts a program that has only the descriptor of `line`. Raises OSError."""
    return await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
        pass_fds=(line.fileno(),),
        env={"PATH": os.defpath},
        cwd="/",
        start_new_session=True,
    )


def _is_empty(path: str, below: int, apart: Sequence[str]) -> bool:
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    layer = os.open(path, flags, dir_fd=below)
    try:
        with os.scandir(layer) as found:
            return all(entry.name in LEFT_OUT or entry.name in apart for entry in found)
    finally:
        os.close(layer)


def _read_report(contents: IO[bytes], at: int, size: int) -> Read:
    if not 0 < size <= _MOST_TOLD:
        raise ValueError("it tells too much")
    answer: Any = marshal.loads(os.pread(contents.fileno(), size, at))
    told = msgspec.convert(answer, _LayerReport)
    os.ftruncate(contents.fileno(), at)
    written = (
        ChangedPath(
            *(one.path, one.kind, one.executable, one.target, one.size, one.meanwhile),
            None if one.at < 0 else contents,
            one.at,
            one.digest,
            one.why,
        )
        for one in told.found
    )
    words = {
        "files": f"more than {BUDGET.files:,} files were written",
        "deleted": f"more than {BUDGET.files:,} files were deleted",
        "entries": f"there are more than {BUDGET.entries:,} names",
        "depth": f"folders lie more than {BUDGET.depth} deep in others",
        "texts": f"it is more than {BUDGET.texts // MEGABYTE} MB of text",
        "read": f"it is more than {BUDGET.read // MEGABYTE:,} MB",
        "seconds": f"it takes more than {BUDGET.seconds:.0f} s to read",
        "unreadable": "it could not be read",
    }
    reasons = []
    for why, (count, paths) in told.left.items():
        shown = map(display_path, paths)
        some = ", ".join(path if len(path) <= 80 else f"{path[:40]}…{path[-39:]}" for path in shown)
        some += " and others" if count > len(paths) else ""
        reasons.append(f"{some} ({words.get(why, why)})")
    return tuple(written), (
        f"Not all written files are listed; left out: {'; '.join(reasons)}" if reasons else ""
    )
