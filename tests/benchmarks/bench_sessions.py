"""Sessions: resuming a long one, paging it, searching a thousand, appending, kills and damage in numbers."""

from __future__ import annotations

import asyncio
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from bench_idle import resident
from bench_start import start
from figures import Figure, paired, ratio, show
from programs import OUR_MARK, TUI_AGENT, home, small_workspace
from support.killed_session import FILE, check, moment, run_and_kill
from support.sessions import open_session as scripted
from support.sessions import reply

from tui_agent.context.known_files import KnownFile
from tui_agent.errors import TuiAgentError
from tui_agent.files.blobs import Blobs
from tui_agent.log import catalog, directory, snapshot
from tui_agent.log.log import Log, events_of
from tui_agent.log.snapshot import messages_before, read_state
from tui_agent.log.transfer import write
from tui_agent.session.opening import Opening, open_session
from tui_agent.store import events as e
from tui_agent.store.conversation import SentMessage

TURNS, TOUCHES, SESSIONS, PAIRS = 5000, 2000, 1000, 5
MOMENTS = PLACES = 200
WORDS = (
    "timeout",
    "fetch",
    "parser",
    "config",
    "session",
    "window",
    "planner",
    "answer",
    "buffer",
    "review",
    "merge",
)


def main() -> None:
    with small_workspace() as workspace, home() as env:
        os.environ["TUI_AGENT_HOME"] = env["TUI_AGENT_HOME"]
        data = Path(env["TUI_AGENT_HOME"]) / "data"
        show([*resuming(workspace, env, data)])
    with tempfile.TemporaryDirectory() as folder:
        show([*searching(Path(folder)), appending(Path(folder))])
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TUI_AGENT_HOME"] = str(Path(folder) / "home")
        show([size(Path(folder)), killed(Path(folder)), damaged(Path(folder))])


def talk(turns: int, chance: random.Random) -> Iterator[e.Lasting]:
    """Turns of two messages each; every one reads a file."""
    for turn in range(1, turns + 1):
        yield e.TurnStarted(turn, f"request {turn}: {words(chance, 12)}")
        if turn <= TOUCHES:
            file = KnownFile(f"src/module_{turn % 400}.py", f"{turn:032x}", turn, 1000, 40, 300)
            yield e.FileLoaded(file, "")
        yield e.RequestSent(turn, "main", (SentMessage("user", f"{turn:032x}", 100),), tokens=100, model="m")
        sent = SentMessage("assistant", f"{turn + TURNS:032x}", 100)
        yield e.ReplyRead(turn, f"Answer {turn}.", words(chance, 40), sent=sent)
        yield e.TurnEnded(turn, True)


def words(chance: random.Random, count: int) -> str:
    return " ".join(chance.choice(WORDS) for _ in range(count))


# ── resuming ─────────────────────────────────────────────────────────────────────────────────────────────


def resuming(workspace: Path, env: dict[str, str], data: Path) -> Iterator[Figure]:
    """A session of ten thousand messages against an empty one."""
    name = directory.new_id(data)
    events = [e.SessionStarted(name, str(workspace)), *talk(TURNS, random.Random(1))]
    write(data, name, events, workspace=str(workspace), turns=TURNS)
    path = directory.folder_of(data, name) / directory.LOG
    whole = timed(lambda: read_state(path))
    asyncio.run(_open_and_close(workspace, name))
    yield Figure("folding the whole log, without a snapshot", whole * 1000, None, " ms")
    yield Figure("reading its state from the snapshot", timed(lambda: read_state(path)) * 1000, None, " ms")
    empty, long = paired(
        lambda: start([*TUI_AGENT, "."], OUR_MARK, workspace, env),
        lambda: start([*TUI_AGENT, "--resume", name, "."], OUR_MARK, workspace, env),
        PAIRS,
    )
    yield ratio("resume to ready", [run.ready for run in empty], [run.ready for run in long], 1.5)
    small, big = memory(workspace, env), memory(workspace, env, "--resume", name)
    yield Figure("memory", big / small, 1.3, " x", f"{big / 1e6:.0f} MB against {small / 1e6:.0f} MB")
    timed(lambda: messages_before(path, 9000, 20))
    times = [timed(lambda at=at: messages_before(path, at, 20)) * 1000 for at in range(9000, 20, -200)]
    yield Figure("a page of the transcript from disk", max(times), 16, " ms", "slowest of 45")
    snapshot.forget_pages(path.parent)
    yield Figure(
        "the first page, made again", timed(lambda: messages_before(path, 9000, 20)) * 1000, None, " ms"
    )
    shutil.rmtree(path.parent)


async def _open_and_close(workspace: Path, name: str) -> None:
    session = await open_session(Opening(workspace, session=name))
    await session.journal.record(*(e.NoticeGiven("info", "x") for _ in range(50)))
    await session.close()


def memory(workspace: Path, env: dict[str, str], *more: str) -> int:
    from terminal import Terminal

    with Terminal([*TUI_AGENT, *more, "."], workspace, env) as terminal:
        terminal.wait_for(OUR_MARK)
        terminal.settle(quiet=4, timeout=60)
        return resident(terminal.process.pid)


# ── searching, appending, size ───────────────────────────────────────────────────────────────────────────


def searching(data: Path) -> Iterator[Figure]:
    chance = random.Random(2)
    for number in range(SESSIONS):
        events = [e.SessionStarted(str(number), "/w"), *talk(10, chance)]
        if number % 50 == 0:
            events.append(e.TurnStarted(11, "the needle is here"))
        write(data, f"s{number}", events, workspace="/w", turns=10)
    yield Figure(
        "taking in a thousand sessions", timed(lambda: catalog.list_sessions(data)) * 1000, None, " ms"
    )
    yield _median("the list of a thousand sessions", lambda: catalog.list_sessions(data), 50)
    yield _median("search, a rare word", lambda: catalog.search(data, "needle"), 50)
    yield _median("search, words in most messages", lambda: catalog.search(data, "timeout merge"), 50)
    yield _median(
        "sessions with a word, as typed in the picker", lambda: catalog.list_sessions(data, None, "time"), 50
    )
    (data / catalog.NAME).unlink(missing_ok=True)
    yield Figure(
        "made again after it was lost", timed(lambda: catalog.list_sessions(data)) * 1000, None, " ms"
    )


def appending(folder: Path) -> Figure:
    log = Log.create(folder / "one" / directory.LOG)
    times = []
    for number in range(300):
        done = threading.Event()
        begin = time.perf_counter()
        log.append([e.NoticeGiven("info", f"{number}" * 40)], lambda _, done=done: done.set())
        done.wait()
        times.append((time.perf_counter() - begin) * 1000)
    log.close()
    return Figure(
        "appending, with sync, median", statistics.median(times), 2, " ms", f"slowest {max(times):.1f} ms"
    )


def size(folder: Path) -> Figure:
    """The log of fifty turns, each with a file of four kilobytes and an edit of it, against what was said and sent."""
    workspace = _workspace(folder / "size")
    for number in range(10):
        (workspace / f"module_{number}.py").write_text(
            f"value_{number} = 0\n" + "# some line of code\n" * 200
        )
    name = asyncio.run(_fifty_turns(workspace))
    data = folder / "home" / "data"
    path = directory.folder_of(data, name) / directory.LOG
    blobs = Blobs(data / "blobs")
    told = 0
    for event in events_of(path):
        match event:
            case e.RequestSent(messages=messages) | e.ConversationBegun(messages=messages):
                told += sum(len(blobs.get(message.blob)) for message in messages)
            case e.ReplyRead(message=message):
                told += len(message)
    log = path.stat().st_size
    note = f"{log // 1024} kB against {told // 1024} kB"
    return Figure("the log of 50 turns against what was said and seen", log / told, 3, " x", note)


async def _fifty_turns(workspace: Path) -> str:
    replies = [
        reply(
            f"Sets value {turn}.",
            message=words(random.Random(turn), 150),
            fileChanges=[
                {
                    "path": name,
                    "edits": [{"search": f"{value}=", "replace": f"{value} ="}],
                }
            ],
        )
        for turn in range(50)
        for name, value in [(f"module_{turn % 10}.py", f"value_{turn % 10}{' ' * (turn // 10 + 1)}")]
    ]
    async with scripted(workspace, replies) as session:
        for turn in range(50):
            await session.chat.submit(f"change module_{turn % 10}.py: {words(random.Random(turn), 20)}")
            await session.chat.finished()
            if session.state.review.open:
                await session.review.apply()
        return session.state.session.id


# ── faults ───────────────────────────────────────────────────────────────────────────────────────────────


def killed(folder: Path) -> Figure:
    workspace = _workspace(folder / "killed")
    chance = random.Random(3)
    facts, name, failed = [], "", 0
    for _ in range(MOMENTS):
        facts += run_and_kill(workspace, name, *moment(chance))
        try:
            asyncio.run(check(workspace, facts))
        except (AssertionError, TuiAgentError) as error:
            failed += 1
            print(f"   lost: {error}", file=sys.stderr)
        name = facts[0]["session"]
    return Figure(
        f"kill -9 at {MOMENTS} moments: acknowledged things lost", failed, 0, "", f"{len(facts)} acknowledged"
    )


def damaged(folder: Path) -> Figure:
    workspace = _workspace(folder / "damaged")
    name = run_and_kill(workspace, "", 60, 0)[0]["session"]
    data = folder / "home" / "data"
    path = directory.folder_of(data, name) / directory.LOG
    asyncio.run(_open_and_close(workspace, name))
    whole, total = path.read_bytes(), read_state(path).number
    chance = random.Random(4)
    failed = silent = 0
    for number in range(PLACES):
        for found in path.parent.iterdir():
            found.unlink() if found.name != snapshot.NAME or number % 2 else None
        spoilt = bytearray(whole)
        at = chance.randrange(len(whole))
        length = chance.choice([1, 16, 300, 5000])
        spoilt[at : at + length] = b"" if number % 3 == 0 else chance.randbytes(length)
        path.write_bytes(spoilt[:at] if number % 5 == 0 else spoilt)
        try:
            read, lost = asyncio.run(_opened(workspace, name))
            silent += read < total and not lost
        except (TuiAgentError, AssertionError) as error:
            failed += 1
            print(f"   did not start: {error}", file=sys.stderr)
    return Figure(f"damaged at {PLACES} places: not started, or silent", failed + silent, 0)


async def _opened(workspace: Path, name: str) -> tuple[int, tuple[str, ...]]:
    session = await open_session(Opening(workspace, session=name))
    try:
        await session.journal.record(e.NoticeGiven("info", "on"))
        assert session.journal.keeps
        return session.storage.number, session.storage.lost
    finally:
        await session.close()


def _workspace(folder: Path) -> Path:
    folder.mkdir(parents=True)
    (folder / FILE).write_text("version = 0\n")
    subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
    return folder


def timed(call) -> float:
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin


def _median(name: str, call, limit: float) -> Figure:
    times = [timed(call) * 1000 for _ in range(15)]
    return Figure(name, statistics.median(times), limit, " ms", f"slowest {max(times):.0f} ms")


if __name__ == "__main__":
    main()
