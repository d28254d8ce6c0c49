"""A thousand `kill -9` while something is being done: all that was acknowledged is there when it is opened again.

A kill ends a process that was forked from a warm one. What that process had acknowledged it said through a pipe, so
that nothing is believed which it only meant to do. Acknowledged is what a call returned for; what is typed or
streamed is acknowledged a second after its key or chunk.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import asynccontextmanager
from multiprocessing import get_context
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))  # `support`, as in the tests

from support.faults import before_each_call
from support.repositories import git, repository
from support.sessions import ScriptedModel, model_of, open_session, reply
from support.subtasks import GoalModel
from support.trees import until

from tests.proofs.tally import WHOLE, Part, Tally
from tui_agent.edits.change import Pick
from tui_agent.files.text import md5
from tui_agent.log import directory
from tui_agent.log.log import events_of
from tui_agent.log.snapshot import messages_of, read_state
from tui_agent.log.transfer import fork
from tui_agent.model.client import Chunk, EndChunk, ModelRequest, TextChunk
from tui_agent.session.session import Session
from tui_agent.store import events as e
from tui_agent.store.graph import SubTask

#: Kills of each kind at full scale; a thousand together.
KILLS = {
    "typing": 150,
    "saving": 150,
    "applying": 150,
    "in a batch": 100,
    "undoing": 150,
    "streaming": 150,
    "forking": 130,
    "committing": 60,
    "sub-tasks": 60,
}
NAMES = {"sub-tasks": "running sub-tasks", "in a batch": "putting files in their places"}
#: Kills in one folder and session, one after the other: what was acknowledged before the first is checked at the last.
IN_ONE = 10
#: What tells of each key or piece, and not of what is done.
STEADY = ("typing", "streaming")
#: What breaks the promise that these cases try; each is noticed.
SABOTAGES = ("half batches of other sessions left", "own half batches left", "draft not kept")
#: What is acknowledged only so many seconds later: the keys of such facts.
WITHIN, ON_ITS_WAY = 1.0, {"typed", "streamed"}
#: Calls by which an apply puts files in their places, and one more than it makes of them.
PLACING, CALLS = ("rename", "link", "unlink"), 13
FILES = ("a.txt", "made/b.txt", "c.txt")
Fact = dict[str, Any]
Tell = Callable[..., None]


def prove(tally: Tally, scale: float, part: Part = WHOLE) -> None:
    """Run every kind, two folders at a time."""
    jobs = []
    for kind, kills in KILLS.items():
        left = max(1, round(kills * scale))
        while left > 0:
            jobs.append((kind, len(jobs), min(IN_ONE, left)))
            left -= IN_ONE
    jobs = part.of(jobs)
    with ProcessPoolExecutor(part.processes, get_context("fork")) as pool:
        for (kind, _, _), cases in zip(jobs, pool.map(_series, *zip(*jobs, strict=True)), strict=True):
            for held, what in cases:
                tally.case(f"killed while {NAMES.get(kind, kind)}", held, what=what)


def _series(kind: str, seed: int, kills: int) -> list[tuple[bool, str]]:
    """Kill the same session again and again; for each kill whether all was there, and what was not."""
    chance, cases, facts = random.Random(seed), [], []
    with tempfile.TemporaryDirectory(prefix="tui-agent-kills-", ignore_cleanup_errors=True) as folder:
        os.environ["TUI_AGENT_HOME"] = str(Path(folder) / "home")
        work = Path(folder) / "work"
        _begin(kind, work)
        name = ""
        for number in range(kills):
            facts += _run_and_kill(kind, work, name, chance)
            name = next((fact["session"] for fact in facts if "session" in fact), "")
            held, what = True, ""
            try:
                asyncio.run(_check(kind, work, name, facts))
            except Exception as error:
                held, what = False, f"seed {seed}, kill {number}: {type(error).__name__}: {error}"
            cases.append((held, what))
    return cases


def _begin(kind: str, work: Path) -> None:
    work.mkdir()
    if kind in ("committing", "sub-tasks"):
        repository(work, dict.fromkeys(FILES, "version 0\n"))
        for key, value in (
            ("user.name", "A"),
            ("user.email", "a@example.com"),
        ):  # there need be none of this machine
            git(work, "config", key, value)
    else:
        for name in FILES[::2]:
            (work / name).write_text("version 0\n")


def _run_and_kill(kind: str, work: Path, name: str, chance: random.Random) -> list[Fact]:
    """Go on with the session in a fork and kill it at a random moment; what it had acknowledged by then."""
    reading, writing = os.pipe()
    after, delay = chance.randrange(1, 8), chance.random() * 0.03
    if kind in STEADY:
        after, delay = 2, chance.random() * 1.5
    child = os.fork()
    if child == 0:
        _child(kind, work, name, reading, writing)
    os.close(writing)
    with os.fdopen(reading, "rb") as lines:
        told = [line for _ in range(after) if (line := lines.readline())]
        time.sleep(delay)  # the moment itself is what is tried
        killed_at = time.monotonic()
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        told += lines.readlines()
    facts = [json.loads(line) for line in told if line.endswith(b"\n")]
    return [fact for fact in facts if fact["at"] <= killed_at - WITHIN or not fact.keys() & ON_ITS_WAY]


def _child(kind: str, work: Path, name: str, reading: int, writing: int) -> None:
    os.close(reading)

    def tell(**facts: Any) -> None:
        os.write(writing, json.dumps(facts | {"at": time.monotonic()}).encode() + b"\n")

    try:
        asyncio.run(_work(kind, work, name, tell))
    except BaseException as error:
        tell(fault=f"{type(error).__name__}: {error}")
    os._exit(1)


async def _work(kind: str, work: Path, name: str, tell: Tell) -> None:
    with_child = kind in ("committing", "sub-tasks")
    prepare = None if with_child else _index
    async with open_session(work, session=name, services=with_child, prepare=prepare) as session:
        tell(session=session.state.session.id)
        await _ACTIVITIES[kind](session, tell)


def _index(session: Session) -> None:
    """The few files there are, without the process that lists files."""
    session.workspace.index.update(list(FILES))
    session.workspace.ready = _ready


async def _ready() -> None: ...


# ── what is done until the kill comes ────────────────────────────────────────────────────────────────────


async def _typing(session: Session, tell: Tell) -> None:
    await session.files.open("a.txt")
    text = session.state.buffers.open[0].text
    number = int(text) if text.strip().isdigit() else 0
    while True:
        number += 1
        session.files.edit("a.txt", f"{number}\n", (0, 0), (0, 0))
        session.chat.set_draft(str(number))
        tell(typed=number)
        await asyncio.sleep(0.004)


async def _saving(session: Session, tell: Tell) -> None:
    await session.files.open("a.txt")
    number = int(session.state.buffers.open[0].text.split()[-1])
    while True:
        number += 1
        session.files.edit("a.txt", f"version {number}\n" * 300, (0, 0), (0, 0))
        await session.files.save("a.txt")
        tell(saved=number)


async def _turn(session: Session, **fields: Any) -> int:
    turn = session.state.turn.number + 1
    model_of(session).replies = [reply(f"Answer {turn}.", **fields)]
    await session.chat.submit(f"request {turn}")
    await session.chat.finished()
    if not session.state.turn.ok:
        raise AssertionError(session.state.turn.error)
    return turn


def _batch(version: int) -> list[dict[str, Any]]:
    return [{"path": name, "content": f"version {version}\n"} for name in FILES]


async def _skip_rest(session: Session) -> None:
    """A kill between two proposals of a reply leaves the first in the review, and applying these is no half batch."""
    if rest := _picks(session):
        await session.review.skip(rest)


async def _applying(session: Session, tell: Tell) -> None:
    while True:
        if len(session.state.review.open) < len(FILES):
            await _skip_rest(session)
            turn = await _turn(session, fileChanges=_batch(session.state.turn.number + 1))
            tell(answered=turn)
        await session.review.apply(_picks(session))
        tell(applied=session.state.review.checkpoints[-1].turn)


async def _in_a_batch(session: Session, tell: Tell) -> None:
    """Killed while some of its files are in their places: few kills at random moments meet that."""
    while True:
        if len(session.state.review.open) < len(FILES):
            await _skip_rest(session)
            await _turn(session, fileChanges=_batch(session.state.turn.number + 1))
        last = random.SystemRandom().randrange(1, CALLS)

        def killed(at: int, _: str, last: int = last) -> None:
            if at == last:
                os.kill(os.getpid(), signal.SIGKILL)

        with before_each_call(killed, PLACING):
            await session.review.apply(_picks(session))
        tell(applied=session.state.review.checkpoints[-1].turn)


def _picks(session: Session) -> list[Pick]:
    return [Pick(change.id) for change in session.state.review.open]


async def _undoing(session: Session, tell: Tell) -> None:
    if not session.state.review.checkpoints:
        await _turn(session, fileChanges=_batch(1))
        await session.review.apply(_picks(session))
        tell(undone=False)
    while True:
        undone = session.state.review.checkpoints[-1].undone
        await (session.review.redo() if undone else session.review.undo())
        tell(undone=not undone)


class _Slow(ScriptedModel):
    """Streams a long answer in small pieces."""

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Chunk, None]:
        yield TextChunk('{"summary": "Streams.", "message": "')
        for _ in range(600):
            yield TextChunk("word ")
            await asyncio.sleep(0.004)
        yield TextChunk('"}')
        yield EndChunk("stop")


async def _streaming(session: Session, tell: Tell) -> None:
    session.models.model = _Slow([])

    def note(event: e.Event, _: object) -> None:
        if isinstance(event, e.ReplyStreamed) and event.part == "message":
            tell(turn=session.state.turn.number, streamed=len(session.state.reply.message))

    session.subscribe(note)
    while True:
        await session.chat.submit("say a lot")
        await session.chat.finished()


async def _forking(session: Session, tell: Tell) -> None:
    while True:
        await _turn(session)
        tell(answered=session.state.turn.number)
        made = await asyncio.to_thread(fork, session.folders.data, session.state.session.id)
        tell(forked=made.id, messages=session.state.chat.total)


async def _committing(session: Session, tell: Tell) -> None:
    number = len(git(session.workspace.root, "log", "--format=%h").split())
    while True:
        number += 1
        await _turn(session, fileChanges=[{"path": "a.txt", "content": f"version {number}-{time.time()}\n"}])
        await session.review.apply(_picks(session))
        tell(applied=session.state.review.checkpoints[-1].turn)
        plan = await session.review.commit_plan()
        made = await session.review.commit(f"commit {number}", plan.of(plan.paths))
        tell(committed=made)


async def _subtasks(session: Session, tell: Tell) -> None:
    while True:
        number = time.monotonic_ns()
        goal, path = f"Do part {number} of it", f"part{number}.txt"
        change = {"path": path, "content": f"part {number}\n"}
        session.models.model = GoalModel({goal: [reply(f"Part {number}.", fileChanges=[change])]})
        await session.journal.record(e.SubTasksProposed((SubTask(f"t{number}", goal),)))
        tell(proposed=f"t{number}")
        await session.subtasks.run(f"t{number}")
        await session.subtasks.settled()
        task = next(task for task in session.state.subtasks.tasks if task.id == f"t{number}")
        if task.state != "completed":
            raise AssertionError(task.reason)
        tell(completed=task.id, path=path)


_ACTIVITIES: dict[str, Callable[[Session, Tell], Awaitable[None]]] = {
    "typing": _typing,
    "saving": _saving,
    "applying": _applying,
    "in a batch": _in_a_batch,
    "undoing": _undoing,
    "streaming": _streaming,
    "forking": _forking,
    "committing": _committing,
    "sub-tasks": _subtasks,
}


# ── what must be there ───────────────────────────────────────────────────────────────────────────────────


async def _check(kind: str, work: Path, name: str, facts: list[Fact]) -> None:
    """Open the session again and compare. Raises AssertionError naming what is missing."""
    faults = [fact["fault"] for fact in facts if "fault" in fact]
    facts[:] = [fact for fact in facts if "fault" not in fact]
    assert not faults, f"it ended by itself: {faults}"
    assert name, "killed before it had a name"
    if kind in ("applying", "undoing", "in a batch"):
        await _check_by_another(work)
    async with _opened(kind, work, name) as session:
        assert not session.storage.lost, session.storage.lost
        assert not session.state.turn.running
        left = [path.name for path in work.rglob(".tui-agent-*")]  # noqa: ASYNC240
        assert not left, f"left over: {left}"
        _CHECKS[kind](session, work, facts)
        if kind == "sub-tasks":
            copies = session.folders.data / "worktrees"
            await until(lambda: not list(copies.glob("*/*")), "the copies of killed sub-tasks to go")


async def _check_by_another(work: Path) -> None:
    """Another session that is begun in the folder leaves no half of a batch."""
    async with open_session(work, services=False):
        texts = {(work / name).read_text() if (work / name).exists() else "version 0\n" for name in FILES}
        assert len(texts) == 1, f"half a batch, and another session is open: {texts}"


@asynccontextmanager
async def _opened(kind: str, work: Path, name: str) -> AsyncGenerator[Session]:
    async with open_session(work, session=name, services=kind == "sub-tasks") as session:
        yield session


def _of(facts: list[Fact], key: str) -> Iterator[Any]:
    return (fact[key] for fact in facts if key in fact)


def _check_typing(session: Session, work: Path, facts: list[Fact]) -> None:
    least = max(_of(facts, "typed"), default=0)
    (buffer,) = session.state.buffers.open or (None,)
    there = int(buffer.text) if buffer is not None and buffer.text.strip().isdigit() else 0
    assert there >= least, f"typed {least}, kept {there}"
    assert int(session.state.input.draft or 0) >= least, f"draft {least}, kept {session.state.input.draft}"


def _check_saving(session: Session, work: Path, facts: list[Fact]) -> None:
    least = max(_of(facts, "saved"), default=0)
    versions = {int(line.split()[1]) for line in (work / "a.txt").read_text().splitlines()}
    assert len(versions) == 1, f"half a save: {versions}"
    assert min(versions) >= least, f"saved {least}, there is {versions}"


def _check_batch(session: Session, work: Path, facts: list[Fact]) -> None:
    """The files are what the session says that it wrote, all of one batch, or none of it."""
    points = session.state.review.checkpoints
    turns = {point.turn for point in points}
    missing = [turn for turn in _of(facts, "applied") if turn not in turns]
    assert not missing, f"applied in turns {missing}, and nobody knows"
    if points and not points[-1].undone:
        wrong = [
            step.path
            for step in points[-1].files
            if (md5((work / step.path).read_bytes()) if (work / step.path).exists() else "") != step.after
        ]
        assert not wrong, f"{wrong} are not as the last apply left them"
    if points and points[-1].undone:
        assert not (work / "made").exists(), "a folder of an undone file is left"
        assert (work / "a.txt").read_text() == "version 0\n"


def _check_streaming(session: Session, work: Path, facts: list[Fact]) -> None:
    assert session.storage.log is not None
    kept = {
        m.turn: len(m.text) for m in messages_of(events_of(session.storage.log.path)) if m.kind == "agent"
    }
    for fact in facts:
        if "streamed" in fact:
            there = kept.get(fact["turn"], 0)
            assert there >= fact["streamed"] - 1, (
                f"turn {fact['turn']}: {fact['streamed']} came, {there} kept"
            )


def _check_forking(session: Session, work: Path, facts: list[Fact]) -> None:
    assert session.state.turn.number >= max(_of(facts, "answered"), default=0)
    for fact in [fact for fact in facts if "forked" in fact][-3:]:
        path = directory.existing(session.folders.data, fact["forked"]) / directory.LOG
        read = read_state(path)
        assert not read.lost and read.state.chat.total >= fact["messages"], f"fork {fact['forked']}"


def _check_committing(session: Session, work: Path, facts: list[Fact]) -> None:
    commits = git(work, "log", "--format=%H").split()
    missing = [made for made in _of(facts, "committed") if not any(one.startswith(made) for one in commits)]
    assert not missing, f"commits {missing} are not in the history"
    git(work, "fsck", "--no-dangling", "--connectivity-only")
    turns = {point.turn for point in session.state.review.checkpoints}
    assert turns >= set(_of(facts, "applied"))


def _check_subtasks(session: Session, work: Path, facts: list[Fact]) -> None:
    """By the log: a new graph takes the place of one that is finished."""
    assert session.storage.log is not None
    events = list(events_of(session.storage.log.path))
    known = {task.id for event in events if isinstance(event, e.SubTasksProposed) for task in event.tasks}
    assert known >= set(_of(facts, "proposed")), f"proposed, and nobody knows: {known}"
    done = {event.id for event in events if isinstance(event, e.SubTaskEnded) and event.state == "completed"}
    assert done >= set(_of(facts, "completed")), f"completed, and nobody knows: {done}"
    paths = {change.path for change in session.state.review.changes}
    assert paths >= set(_of(facts, "path")), f"the work of a sub-task is gone: {paths}"
    states = {task.id: task.state for task in session.state.subtasks.tasks}
    assert "running" not in states.values(), states


_CHECKS: dict[str, Callable[[Session, Path, list[Fact]], None]] = {
    "typing": _check_typing,
    "saving": _check_saving,
    "applying": _check_batch,
    "in a batch": _check_batch,
    "undoing": _check_batch,
    "streaming": _check_streaming,
    "forking": _check_forking,
    "committing": _check_committing,
    "sub-tasks": _check_subtasks,
}
