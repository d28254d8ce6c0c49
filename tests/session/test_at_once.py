"""What happens while something is being written: two messages, a stop, F8, text that is typed."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest
from support.faults import tree
from support.logs import load
from support.sessions import model_of, open_session, reply
from support.trees import until

from tui_agent.errors import EditFailed
from tui_agent.log.log import Log
from tui_agent.session.session import Session
from tui_agent.store import events as e


@contextmanager
def held(session: Session) -> Generator[None]:
    """The log's thread writes nothing until the block ends, as if the disk were slow."""
    log, going = session.storage.log, threading.Event()
    assert isinstance(log, Log)
    log._enqueue(lambda writer: going.wait(20) and writer.number)
    try:
        yield
    finally:
        going.set()


async def test_two_messages_within_one_write_are_two_turns_one_after_the_other(tmp_path: Path) -> None:
    async with open_session(tmp_path, [reply("One."), reply("Two."), reply("Three.")]) as session:
        numbers: list[tuple[int, bool]] = []

        def note(event: e.Event, _: object) -> None:
            if isinstance(event, e.TurnStarted):
                numbers.append((event.turn, bool(session.state.turn.ok)))

        session.subscribe(note)
        with held(session):
            sent = [asyncio.create_task(session.chat.submit(f"message {number}")) for number in range(3)]
            await asyncio.sleep(0)
        await asyncio.gather(*sent)
        await session.chat.finished()
        assert [number for number, _ in numbers] == [1, 2, 3]
        said = [message.text for message in session.state.chat.messages if message.kind == "person"]
        assert said == ["message 0", "message 1", "message 2"]
        assert len(model_of(session).requests) == 3 and session.state.input.queue == ()


async def test_a_message_that_is_queued_as_the_turn_ends_is_sent(tmp_path: Path) -> None:
    async with open_session(tmp_path, [reply("One."), reply("Two.")]) as session:
        late: list[asyncio.Task[None]] = []

        def queue(event: e.Event, _: object) -> None:
            if isinstance(event, e.TurnEnded) and event.turn == 1:
                late.append(asyncio.get_running_loop().create_task(session.chat.submit("late")))

        session.subscribe(queue)
        await session.chat.submit("first")
        await until(lambda: session.state.turn.number == 2 and not session.state.turn.running)
        assert session.state.input.queue == ()


@pytest.mark.parametrize("ticks", [0, 1, 2, 3, 5])
async def test_a_stop_before_the_turn_has_begun_ends_it(tmp_path: Path, ticks: int) -> None:
    async with open_session(tmp_path, [reply("Never asked for."), reply("Next.")]) as session:
        with held(session):
            sent = asyncio.create_task(session.chat.submit("stop me"))
            for _ in range(ticks):
                await asyncio.sleep(0)
            if ticks == 0:
                await asyncio.sleep(0)
            stopped = asyncio.create_task(session.chat.stop())
            await asyncio.sleep(0)
        async with asyncio.timeout(20):
            await asyncio.gather(sent, stopped)
        assert not session.state.turn.running and session.state.turn.number == 1
        assert session.state.turn.kind == "Interrupted"
        assert model_of(session).requests == []
        await session.chat.submit("go on from here")
        await session.chat.finished()
        assert session.state.turn.ok and session.state.turn.number == 2


async def test_text_typed_while_a_save_is_written_stays_unsaved_and_is_kept(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("a = 1\n")
    async with open_session(tmp_path, services=False) as session:
        await session.files.open("a.py")
        session.files.edit("a.py", "a = 2\n", (0, 5), (0, 5))
        with held(session):
            saved = asyncio.create_task(session.files.save("a.py"))
            await until(lambda: (tmp_path / "a.py").read_text() == "a = 2\n")
            session.files.edit("a.py", "a = 2\nb = 3\n", (1, 5), (1, 5))
        await saved
        (buffer,) = session.state.buffers.open
        assert (buffer.text, buffer.unsaved, buffer.clash) == ("a = 2\nb = 3\n", True, False)
        await session.files.save("a.py")
        assert not session.state.buffers.open[0].unsaved
        # back to what was on disk before the save, while the save is written
        session.files.edit("a.py", "c = 4\n", (0, 5), (0, 5))
        with held(session):
            saved = asyncio.create_task(session.files.save("a.py"))
            await until(lambda: (tmp_path / "a.py").read_text() == "c = 4\n")
            session.files.edit("a.py", "a = 2\nb = 3\n", (0, 0), (0, 0))
        await saved
        assert session.state.buffers.open[0].unsaved
    async with open_session(tmp_path, services=False, session="last") as session:
        (buffer,) = session.state.buffers.open
        assert (buffer.text, buffer.unsaved, buffer.clash) == ("a = 2\nb = 3\n", True, False)


async def test_a_draft_typed_while_the_message_before_it_is_written_is_kept(tmp_path: Path) -> None:
    async with open_session(tmp_path, [reply("One.")], prepare=None) as session:
        session.chat.set_draft("first message")
        with held(session):
            sent = asyncio.create_task(session.chat.submit("first message"))
            await asyncio.sleep(0)
            session.chat.set_draft("the next one")
            session.journal.flush()
        await sent
        assert session.state.input.draft == "the next one"
        assert session.storage.log is not None
        loaded = await asyncio.to_thread(load, session.storage.log)
        assert e.DraftChanged("the next one") in loaded.growing
        await session.chat.finished()


async def test_a_draft_typed_while_the_message_waits_its_turn_to_be_written_is_kept(tmp_path: Path) -> None:
    async with open_session(tmp_path, [reply("One.")]) as session:
        session.chat.set_draft("first message")
        with held(session):
            other = asyncio.create_task(session.notice("is written first"))
            await asyncio.sleep(0)
            sent = asyncio.create_task(session.chat.submit("first message"))
            await asyncio.sleep(0)
            session.chat.set_draft("the next one")
        await asyncio.gather(other, sent)
        session.journal.flush()
        assert session.storage.log is not None
        loaded = await asyncio.to_thread(load, session.storage.log)
        assert e.DraftChanged("the next one") in loaded.growing
        await session.chat.finished()


async def test_text_typed_while_the_file_is_read_again_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("a = 1\n")
    async with open_session(tmp_path, services=False) as session:
        await session.files.open("a.py")
        (tmp_path / "a.py").write_text("a = 2\n")
        looking = asyncio.create_task(session._open_files.reload_changed("a.py"))
        await asyncio.sleep(0)
        session.files.edit("a.py", "a = 1\ntyped\n", (1, 5), (1, 5))
        await looking
        (buffer,) = session.state.buffers.open
        assert (buffer.text, buffer.clash) == ("a = 1\ntyped\n", True)


BATCH = reply(
    "Three files.",
    fileChanges=[{"path": name, "content": f"{name}\n"} for name in ("a.txt", "b.txt", "c.txt")],
)


async def test_all_waits_for_a_reply_that_is_still_being_proposed_and_says_so(tmp_path: Path) -> None:
    async with open_session(tmp_path, [BATCH]) as session:
        applied: list[asyncio.Task[None]] = []

        def press(event: e.Event, _: object) -> None:
            if isinstance(event, e.ChangeProposed) and event.change.path == "a.txt":
                applied.extend(
                    asyncio.get_running_loop().create_task(session.review.apply()) for _ in range(2)
                )

        session.subscribe(press)
        await session.chat.submit("make three files")
        await session.chat.finished()
        await asyncio.gather(*applied)
        assert list(tree(tmp_path)) == ["a.txt", "b.txt", "c.txt"]
        assert len(session.state.review.checkpoints) == 1
        said = [notice.text for notice in session.state.notices.items]
        assert len([text for text in said if "when it is complete" in text]) == 1


async def test_all_writes_nothing_of_a_batch_whose_turn_was_stopped(tmp_path: Path) -> None:
    async with open_session(tmp_path, [BATCH]) as session:
        tasks: list[asyncio.Task[None]] = []

        def press(event: e.Event, _: object) -> None:
            if isinstance(event, e.ChangeProposed) and event.change.path == "a.txt":
                tasks.append(asyncio.get_running_loop().create_task(session.review.apply()))
                tasks.append(asyncio.get_running_loop().create_task(session.chat.stop()))

        session.subscribe(press)
        await session.chat.submit("make three files")
        await session.chat.finished()
        with pytest.raises(EditFailed, match="before its reply was complete"):
            await tasks[0]
        await tasks[1]
        assert tree(tmp_path) == {}
        assert session.state.review.open
