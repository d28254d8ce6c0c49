"""A batch of more files than a request has room for: it is carried on until all are done, and none is done twice."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest
from support.sessions import ScriptedModel, in_pieces, open_session
from support.trees import make_tree

from tui_agent.errors import ModelError
from tui_agent.model.client import Chunk, ModelRequest
from tui_agent.model.parts import text_of
from tui_agent.session.session import Session
from tui_agent.store.event import Event
from tui_agent.store.events import ChangeProposed, FilesLeftOut, NoticeGiven
from tui_agent.store.state import State

COUNT = 24
SETTINGS = ("context.window=12000", "outline_tokens=0", "bundling.enabled=false", "planner_model=none")
AUTO = ("mode=auto", 'checks.commands=[{"name": "true", "command": "true"}]')
ASK = "Add a line to all files in docs/"


class Worker(ScriptedModel):
    """Changes every file whose text comes with a request, and remembers which it saw."""

    def __init__(self) -> None:
        super().__init__([])
        self.seen: Counter[str] = Counter()
        self.batches: list[list[str]] = []
        self.fails_at = 0

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Chunk, None]:
        self.requests.append(request)
        if self.fails_at and len(self.requests) >= self.fails_at:
            raise ModelError("No answer today", "try again")
        paths = []
        for line in text_of(request.messages[-1]).splitlines():
            if line.startswith('{"type": "read_files"'):
                paths = [file["path"] for file in json.loads(line)["files"] if "content" in file]
        self.seen.update(paths)
        self.batches.append(paths)
        changes = [{"path": path, "edits": [{"search": "first", "replace": "first\nmore"}]} for path in paths]
        for chunk in in_pieces(json.dumps({"summary": "Added.", "fileChanges": changes})):
            yield chunk


@pytest.fixture
def work(tmp_path: Path) -> Path:
    text = "first\n" + "some words that take room\n" * 60
    return make_tree(tmp_path / "work", {f"docs/f{n:03}.md": f"{text}file {n}\n" for n in range(COUNT)})


def use(worker: Worker) -> dict[str, Any]:
    return {"prepare": lambda session: setattr(session.models, "model", worker), "overrides": SETTINGS}


async def send(session: Session, text: str) -> None:
    await session.chat.submit(text)
    await session.chat.finished()


def batch_todo(session: Session) -> tuple[str, bool]:
    todo = next(todo for todo in session.state.todos if todo.id.startswith("batch"))
    return todo.text, todo.done


async def test_it_is_carried_on_by_continue_and_survives_the_end_of_the_program(work: Path) -> None:
    worker = Worker()
    async with open_session(work, **use(worker)) as session:
        await send(session, ASK)
        assert session.state.turn.ok, session.state.turn.error
        first = len(worker.batches[0])
        assert 2 <= first < COUNT
        assert session.state.chat.next_steps[0].input_text == "continue"
        assert batch_todo(session)[0].endswith(f"{first} of {COUNT} files") and not batch_todo(session)[1]
        await session.review.apply()
    rounds = 1
    while len(worker.seen) < COUNT:
        async with open_session(work, session="last", **use(worker)) as session:
            before = len(worker.seen)
            await send(session, "continue" if rounds % 2 else ASK)
            assert session.state.turn.ok, session.state.turn.error
            assert len(worker.seen) > before
            if rounds == 1:
                words = text_of(worker.requests[-1].messages[-1])
                assert f"{first} of {COUNT} files are done" in words and ASK in words
            assert len(session.state.review.open) == len(worker.batches[-1])
            await session.review.apply()
            rounds += 1
            done = batch_todo(session)
    assert done[1] and done[0].endswith(f"{COUNT} of {COUNT} files")
    assert set(worker.seen.values()) == {1} and rounds == len(worker.batches)
    assert all(path.read_text().startswith("first\nmore\nsome") for path in (work / "docs").iterdir())


async def test_it_goes_on_by_itself_where_the_person_said_so(work: Path) -> None:
    worker = Worker()
    auto: dict[str, Any] = {**use(worker), "overrides": (*SETTINGS, *AUTO)}
    async with open_session(work, **auto) as session:
        await send(session, ASK)
        assert session.state.turn.ok, session.state.turn.error
        assert batch_todo(session)[1] and not session.state.batches
        assert len(worker.seen) == COUNT and set(worker.seen.values()) == {1}
        assert all(path.read_text().startswith("first\nmore\nsome") for path in (work / "docs").iterdir())


async def test_limits_stop_it_with_the_rest_still_listed(work: Path) -> None:
    worker = Worker()
    auto: dict[str, Any] = {**use(worker), "overrides": (*SETTINGS, *AUTO, "limits.requests=2")}
    async with open_session(work, **auto) as session:
        await send(session, ASK)
        assert session.state.turn.limit in ("limits.requests", "limits.ask_at_cost")
        (batch,) = session.state.batches
        assert len(batch.left) == COUNT - len(worker.seen) and not batch.now
        assert not set(batch.left) & set(worker.seen)


async def test_what_a_failed_turn_did_not_do_waits_again(work: Path) -> None:
    worker = Worker()
    async with open_session(work, **use(worker)) as session:
        await send(session, ASK)
        (before,) = session.state.batches
        worker.fails_at = 2
        await send(session, "continue")
        assert not session.state.turn.ok
        (after,) = session.state.batches
        assert set(after.left) == set(before.left) and after.done == before.done
        worker.fails_at = 0
        (work / before.left[0]).unlink()
        while session.state.batches:
            await send(session, "continue")
        assert len(worker.seen) == COUNT - 1 and set(worker.seen.values()) == {1}


async def test_a_person_lets_it_go_with_its_todo(work: Path) -> None:
    async with open_session(work, **use(Worker())) as session:
        await send(session, ASK)
        (batch,) = session.state.batches
        await session.todos.remove(batch.id)
        assert not session.state.batches


def without_services(work: Path, worker: Worker, **options: Any) -> AbstractAsyncContextManager[Session]:
    """A session that knows the files without the process that lists them, which would outlive a kill."""

    def prepare(session: Session) -> None:
        session.models.model = worker
        session.workspace.index.update([f"docs/{path.name}" for path in (work / "docs").iterdir()])
        session.workspace._indexed.set()

    return open_session(work, prepare=prepare, services=False, overrides=SETTINGS, **options)


def killed_at(work: Path, kind: type[Event]) -> None:
    """Begin the batch in a process that is killed once an event of a kind has happened and is on disk."""

    async def begin() -> None:
        async with without_services(work, Worker()) as session:

            async def end() -> None:
                await session.journal.record(NoticeGiven("info", "this is on disk, and all before it"))
                os.kill(os.getpid(), signal.SIGKILL)

            ending: list[asyncio.Task[None]] = []

            def tell(event: Event, state: State) -> None:
                if isinstance(event, kind) and not ending:
                    ending.append(asyncio.create_task(end()))

            session.subscribe(tell)
            await send(session, ASK)
            await asyncio.gather(*ending)

    child = os.fork()
    if child == 0:
        try:
            asyncio.run(begin())
        finally:
            os._exit(1)
    assert os.WIFSIGNALED(os.waitpid(child, 0)[1])


@pytest.mark.parametrize("kind", [FilesLeftOut, ChangeProposed])
async def test_killed_inside_a_batch_what_it_changed_is_done_and_the_rest_waits(
    work: Path, kind: type[Event]
) -> None:
    await asyncio.to_thread(killed_at, work, kind)
    worker = Worker()
    async with without_services(work, worker, session="last") as session:
        (batch,) = session.state.batches
        changed = {change.path for change in session.state.review.open}
        assert (batch.total, batch.done, batch.now) == (COUNT, len(changed), ())
        assert set(batch.left) | changed == {f"docs/f{n:03}.md" for n in range(COUNT)}
        assert changed or kind is FilesLeftOut
        await send(session, "continue")
        assert session.state.turn.ok, session.state.turn.error
        assert worker.seen and set(worker.seen) <= set(batch.left)
