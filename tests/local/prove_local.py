"""A real `llama-cpp-python` server with a tiny model of our own: found, tried, overflowed, stopped, killed.

`make local` installs the server into `build/local-server`, beside the program and not with it.
"""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from local import tiny_gguf  # noqa: E402
from msgspec.structs import replace  # noqa: E402

from tests.proofs.tally import Tally  # noqa: E402
from tui_agent.model.client import Chunk, Model, ModelRequest  # noqa: E402
from tui_agent.model.discovery import discover  # noqa: E402
from tui_agent.model.local import LocalModels  # noqa: E402
from tui_agent.session import opening  # noqa: E402
from tui_agent.session.opening import Opening  # noqa: E402
from tui_agent.session.session import Session  # noqa: E402

SERVER = ROOT / "build" / "local-server" / "bin" / "python"
PORT = 18_437
PATIENCE_SECONDS = 60.0
MODEL = "llamafile/tiny"
#: Tokens of a reply.
MOST_REPLY = 100
WINDOWS = (2048, 4096, 8192)
_HIT = re.compile(r"Llama\.generate: (\d+) prefix-match hit, remaining (\d+) prompt tokens")


def prove(tally: Tally, scale: float) -> None:
    turns = max(5, round(50 * scale))
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        os.environ["TUI_AGENT_HOME"] = str(home / "home")
        gguf = home / "tiny.gguf"
        text = "".join(path.read_text() for path in sorted((ROOT / "docs").glob("*.md")))
        tiny_gguf.write(gguf, text + (ROOT / "config" / "system-prompt.json").read_text(), max(WINDOWS) * 4)
        asyncio.run(_found_and_stopped(tally, home, gguf))
        for window in WINDOWS:
            asyncio.run(_never_stuck(tally, home, gguf, window, turns))
        asyncio.run(_reuse(tally, home, gguf))


class Brief:
    """The model behind `inner`, whose replies are cut at a few tokens: what babbles by chance may not end by itself."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def stream(self, request: ModelRequest) -> AsyncGenerator[Chunk]:
        return self._inner.stream(replace(request, most=MOST_REPLY))


class Server:
    """The server's process; what it writes is kept in a file."""

    def __init__(self, gguf: Path, window: int, log: Path) -> None:
        self._command = [str(SERVER), "-m", "llama_cpp.server", "--model", str(gguf), "--model_alias", "tiny"]
        self._command += [
            "--n_ctx",
            str(window),
            "--port",
            str(PORT),
            "--host",
            "127.0.0.1",
            "--n_threads",
            "2",
        ]
        self._log = log

    def start(self) -> None:
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(self._command, stdout=log, stderr=log)
        until = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{PORT}/v1/models", timeout=1).close()
                return
            except (OSError, urllib.error.URLError):
                if time.monotonic() > until or self._process.poll() is not None:
                    raise
                time.sleep(0.2)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    @property
    def log(self) -> str:
        return self._log.read_text(errors="replace")


@contextmanager
def serving(home: Path, gguf: Path, window: int) -> Generator[Server]:
    server = Server(gguf, window, home / f"server-{window}-{time.monotonic_ns()}.log")
    server.start()
    try:
        yield server
    finally:
        server.kill()


@asynccontextmanager
async def session(home: Path, *settings: str) -> AsyncGenerator[Session]:
    """A session over a small project, whose model is the server's, chosen as it was found."""
    work = home / f"work-{time.monotonic_ns()}"
    work.mkdir()
    for number in range(12):
        (work / f"part{number}.py").write_text(f"def part_{number}(url):\n    return get(url, {number})\n")
    opened = await opening.open_session(Opening(work, overrides=("model=", *settings)))
    try:
        await opened.start_services()
        await opened.files.ready()
        local = opened.models.model
        assert isinstance(local, LocalModels)
        local.inner = cast(Model, Brief(local.inner))
        (found,) = await discover({}, (PORT,), local.memory)
        await opened.models.choose(found.model, found.environment)
        yield opened
    finally:
        await opened.close()


async def turn(it: Session, words: str) -> bool:
    await it.chat.submit(words)
    await it.chat.finished()
    return it.state.turn.ok


async def _found_and_stopped(tally: Tally, home: Path, gguf: Path) -> None:
    with serving(home, gguf, 8192) as server:
        (found,) = await discover({}, (PORT,))
        _count(tally, "discovery: found by what it says of itself", found.model == MODEL, found)
        async with session(home, "limits.repeat=0") as it:
            model = it.state.model
            known = (model.server, model.slots, model.planner) == ("llama-cpp-python", 1, "none")
            _count(tally, "discovery: tried, one request at a time, built-in planner", known, model)
            _count(tally, "constrained output: it holds, by its own way", model.takes_schema, model)
            await turn(it, "What does part1.py do?")
            _count(tally, "constrained output: the reply is the object that was asked for", *_is_reply(it))
            await it.chat.submit("What does part2.py do?")
            await _until(lambda: it.state.reply.letters > 0)
            await it.chat.stop()
            await it.chat.finished()
            begun = time.monotonic()
            await it.chat.submit("What does part3.py do?")
            await _until(lambda: it.state.reply.letters > 0 or not it.state.turn.running)
            waited = time.monotonic() - begun
            _count(tally, "stop: the server is free for the next request", waited < 20, f"{waited:.1f} s")
            await it.chat.stop()
            await it.chat.finished()
            server.kill()
            failed = not await turn(it, "What does part4.py do?")
            named = failed and "cannot be reached" in it.state.turn.error
            _count(tally, "killed: the turn says that nobody answers", named, it.state.turn.error)
            server.start()
            again = await turn(it, "What does part4.py do?")
            _count(tally, "restarted: the next turn is answered", again or _is_cut(it), it.state.turn.error)


async def _never_stuck(tally: Tally, home: Path, gguf: Path, window: int, turns: int) -> None:
    with serving(home, gguf, window):
        async with session(home) as it:
            for number in range(turns):
                ok = await turn(it, f"What does part{number % 12}.py do?")
                _count(
                    tally,
                    f"overflow: turns against {window:,} tokens",
                    ok or _is_cut(it),
                    it.state.turn.error,
                )


async def _reuse(tally: Tally, home: Path, gguf: Path) -> None:
    """Of each request, the share of the request before that the server did not read again."""
    with serving(home, gguf, 32_768) as server:
        async with session(home) as it:
            for number in range(10):
                await turn(it, f"What does part{number}.py do?")
        read = [(int(hit), int(hit) + int(rest)) for hit, rest in _HIT.findall(server.log)][-10:]
        for (_, before), (hit, _) in pairwise(read):
            _count(
                tally, "cache: a request's tokens that the next one reuses, 99 %", hit >= 0.99 * before, read
            )
        kept, all_of_it = sum(hit for hit, _ in read[1:]), sum(whole for _, whole in read[:-1])
        share = f"{min(1.0, kept / max(1, all_of_it)):.1%} of {all_of_it:,} tokens"
        tally.figures([("figure", "measured"), ("prompt reuse over ten turns on one slot", share)])


def _count(tally: Tally, kind: str, held: bool, what: object) -> None:
    tally.case(kind, held, what=str(what)[:400])


def _is_reply(it: Session) -> tuple[bool, object]:
    said = next((one for one in reversed(it.state.chat.messages) if one.kind == "agent"), None)
    return said is not None and (bool(said.summary) or said.cut), said


def _is_cut(it: Session) -> bool:
    """A model that babbles until it has no room left has answered all the same."""
    return it.state.turn.kind in ("ReplyCut", "EmptyReply")


async def _until(met: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not met():  # noqa: ASYNC110
            await asyncio.sleep(0.05)
