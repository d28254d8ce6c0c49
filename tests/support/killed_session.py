"""A scripted session in a process of its own that is killed in the middle: what it had acknowledged must be there."""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import time
from pathlib import Path
from typing import Any

from support.sessions import model_of, open_session, reply

from tui_agent.files.text import md5
from tui_agent.log.log import events_of
from tui_agent.log.snapshot import messages_of as said_in
from tui_agent.session.session import Session
from tui_agent.store.state import State

FILE = "api.py"
ROUNDS = 200


def run_and_kill(workspace: Path, session: str, after: int, delay: float) -> list[dict[str, Any]]:
    """Go on with the session (or begin one) and kill it `delay` seconds after it acknowledged `after` things.

    What it had acknowledged, in order.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(reading)
            asyncio.run(_work(workspace, session, writing))
        finally:
            os._exit(1)
    os.close(writing)
    with os.fdopen(reading, "rb") as said:
        lines = [line for _ in range(after) if (line := said.readline())]
        time.sleep(delay)  # the moment itself is what is tried
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        lines += said.readlines()
    return [json.loads(line) for line in lines if line.endswith(b"\n")]


async def _work(workspace: Path, name: str, writing: int) -> None:
    def acknowledge(**facts: Any) -> None:
        os.write(writing, json.dumps(facts).encode() + b"\n")

    async with open_session(workspace, session=name, services=False, prepare=_index) as session:
        acknowledge(session=session.state.session.id)
        for _ in range(ROUNDS):
            await _round(session, acknowledge)


def _index(session: Session) -> None:
    """The one file there is, without the process that lists files: it would outlive the kill."""
    session.workspace.index.update([FILE])
    session.workspace.ready = _ready


async def _ready() -> None:
    """The index is complete."""


async def _round(session: Session, acknowledge: Any) -> None:
    """A turn with a change, applied, sometimes undone; a message that waits, a todo, a name."""
    turn = session.state.turn.number + 1
    edit = {"path": FILE, "content": f"version = {turn}\n" + "x = 1\n" * 20}
    model_of(session).replies = [reply(f"Answer {turn}.", fileChanges=[edit])]
    await session.chat.submit(f"request {turn} in {FILE}")
    acknowledge(said=f"request {turn} in {FILE}")
    await session.chat.finished()
    acknowledge(answered=f"Answer {turn}.")
    if session.state.review.open:
        await session.review.apply()
        acknowledge(applied=turn)
    await session.todos.add(f"todo {turn}")
    acknowledge(todo=f"todo {turn}")
    if turn % 3 == 0:
        await session.review.undo()
        acknowledge(undone=turn)


async def check(workspace: Path, facts: list[dict[str, Any]]) -> None:
    """Open the session and compare. Raises AssertionError naming what is missing."""
    name = next(fact["session"] for fact in facts if "session" in fact)
    async with open_session(workspace, session=name, services=False) as session:
        state = session.state
        assert not session.storage.lost, session.storage.lost
        assert not state.turn.running
        log = session.storage.log
        assert log is not None
        messages = said_in(events_of(log.path))  # the state has the newest of them only
        said = {message.text for message in messages}
        answered = {message.summary for message in messages}
        undone = {point.turn: point.undone for point in state.review.checkpoints}
        todos = {todo.text for todo in state.todos}
        for fact in facts:
            match fact:
                case {"said": words}:
                    assert words in said, fact
                case {"answered": words}:
                    assert words in answered, fact
                case {"todo": words}:
                    assert words in todos, fact
                case {"applied": turn}:
                    assert turn in undone, fact
                case {"undone": turn}:
                    assert undone[turn], fact
        _check_disk(workspace, state)


def _check_disk(workspace: Path, state: State) -> None:
    """The file is what the session says that it wrote: never half, never of a change that is not recorded."""
    standing = [point for point in state.review.checkpoints if not point.undone]
    if standing:
        assert md5((workspace / FILE).read_bytes()) == standing[-1].files[-1].after, standing[-1]


def moment(chance: random.Random) -> tuple[int, float]:
    """After how many acknowledged things, and how many seconds later, the process is killed."""
    return chance.randrange(1, 14), chance.random() * 0.03
