"""How often a person waits for the disk: each sync on the home is counted, those that are waited for together once."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncGenerator, Generator
from contextlib import contextmanager
from pathlib import Path

import pytest
from support.sessions import ScriptedModel, model_of, open_session, reply
from support.trees import until

from tui_agent.edits.change import Pick
from tui_agent.errors import EditFailed
from tui_agent.files import operating_system
from tui_agent.log.database import LogWriter
from tui_agent.log.journal import SLOW
from tui_agent.model.client import Chunk, ModelRequest, TextChunk
from tui_agent.session.session import Session

PATIENCE = 60.0
#: What SQLite calls it if each commit waits for the disk.
SYNCED = 2
CHANGES = [{"path": f"{name}.txt", "content": "two\n"} for name in "abc"]


class SlowDisk:
    """Each sync of the home waits until it is let go, with all that wait beside it: that is one round."""

    def __init__(self) -> None:
        self._fast = False
        self._arrived: list[threading.Event] = []
        self._guard = threading.Lock()

    def wait(self, *_: object) -> None:
        event = threading.Event()
        with self._guard:
            self._arrived.append(event)
            if self._fast:
                return
        event.wait()

    def let_go(self) -> None:
        """Nobody waits any more."""
        with self._guard:
            self._fast = True
            for event in self._arrived:
                event.set()

    async def turn_round(self) -> bool:
        """Let go what waits now, when no more comes to it; whether there was anything."""
        for _ in range(5):
            before = len(self._arrived)
            await asyncio.sleep(0.01)  # the others of this round are on their way
            if before and len(self._arrived) == before:
                break
        with self._guard:
            arrived, self._arrived = self._arrived, []
        for event in arrived:
            event.set()
        return bool(arrived)


@contextmanager
def slow(home: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[SlowDisk]:
    disk, sync, commit, end = SlowDisk(), operating_system.sync, LogWriter.commit, LogWriter.end

    def sync_slowly(descriptor: int) -> None:
        if os.readlink(f"/proc/self/fd/{descriptor}").startswith(str(home)):
            disk.wait()
        sync(descriptor)

    def commit_slowly(writer: LogWriter) -> None:
        if writer.connection.execute("PRAGMA synchronous").fetchone() == (SYNCED,):
            disk.wait()
        commit(writer)

    def end_slowly(writer: LogWriter) -> None:
        disk.wait()
        end(writer)

    with monkeypatch.context() as patched:
        patched.setattr(operating_system, "sync", sync_slowly)
        patched.setattr(LogWriter, "commit", commit_slowly)
        patched.setattr(LogWriter, "end", end_slowly)
        try:
            yield disk
        finally:
            disk.let_go()


async def through(disk: SlowDisk, work: asyncio.Task[None]) -> None:
    """However many rounds of the disk it takes."""
    while not work.done():
        await disk.turn_round()
    await work


async def after(disk: SlowDisk, rounds: int, work: asyncio.Task[None]) -> None:
    """Let so many rounds of the disk go by, as they come up; then it must end without another one."""
    while rounds and not work.done():
        rounds -= await disk.turn_round()
    await asyncio.wait_for(work, PATIENCE)


async def said(session: Session) -> None:
    await session.chat.submit("Change a.txt, b.txt and c.txt")


async def written(session: Session) -> None:
    """Also what nobody waited for, such as when the session was last used."""
    assert session.storage.log is not None
    await asyncio.to_thread(session.storage.log.count)


class Silent(ScriptedModel):
    """Never answers."""

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Chunk, None]:
        self.requests.append(request)
        await asyncio.Event().wait()
        yield TextChunk("")


def silent(session: Session) -> None:
    session.models.model = Silent([])


async def asked(session: Session, requests: int) -> None:
    await until(lambda: len(model_of(session).requests) > requests)


@pytest.mark.skipif(not os.path.exists("/proc/self/fd"), reason="where a descriptor leads is asked of Linux")
async def test_a_request_waits_for_two_syncs_and_an_apply_for_three(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "work"
    root.mkdir()
    for name in "abc":
        (root / f"{name}.txt").write_text("one\n")
    async with open_session(root, [reply("All.", fileChanges=CHANGES)]) as session:
        home = session.folders.data
        with slow(home, monkeypatch) as disk:
            begun = asyncio.create_task(said(session))
            await after(disk, 2, asyncio.create_task(asked(session, 0)))
            await through(disk, begun)
            await through(disk, asyncio.create_task(session.chat.finished()))
            await through(disk, asyncio.create_task(written(session)))
            await after(disk, 3, asyncio.create_task(session.review.apply()))
            assert (root / "a.txt").read_text() == "two\n"
            await through(disk, asyncio.create_task(session.close()))


async def test_skipping_many_changes_waits_for_one_sync(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And taking that back, and an apply that many conflicts refuse."""
    for name in "abc":
        (tmp_path / f"{name}.txt").write_text("one\n")
    async with open_session(tmp_path, [reply("All.", fileChanges=CHANGES)]) as session:
        await session.chat.submit("Change a.txt, b.txt and c.txt")
        await session.chat.finished()
        await written(session)
        picks = [Pick(change.id) for change in session.state.review.changes]
        with slow(session.folders.data, monkeypatch) as disk:
            await after(disk, 1, asyncio.create_task(session.review.skip()))
            await after(disk, 1, asyncio.create_task(session.review.revert(picks)))
            for name in "abc":
                (tmp_path / f"{name}.txt").write_text("other\n")
            with pytest.raises(EditFailed, match=r"a\.txt, b\.txt, c\.txt"):
                await after(disk, 2, asyncio.create_task(session.review.apply()))
            await through(disk, asyncio.create_task(session.close()))


async def test_what_is_waited_for_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of an apply that is its note, the files, their names and the log; of a save the file."""
    monkeypatch.setattr("tui_agent.log.journal.SAY_AFTER", 0.0)
    for name in "abc":
        (tmp_path / f"{name}.txt").write_text("one\n")
    said: list[str] = []
    async with open_session(tmp_path, [reply("All.", fileChanges=CHANGES)]) as session:
        await session.chat.submit("Change a.txt, b.txt and c.txt")
        await session.chat.finished()
        await session.files.open("a.txt")
        session.subscribe(lambda event, _: said.append(getattr(event, "waits_for", "")))
        with slow(Path("/"), monkeypatch) as disk:
            await through(disk, asyncio.create_task(session.review.apply()))
            session.files.edit("a.txt", "three\n", (0, 0), (0, 0))
            await through(disk, asyncio.create_task(session.files.save("a.txt")))
            await through(disk, asyncio.create_task(session.close()))
        assert not session.state.session.waits_for
    words = list(filter(None, said))
    ends = ("write files", "journal", "file contents", "renaming files")
    assert [word.endswith(end) for word, end in zip(words, (*ends, SLOW), strict=False)] == [True] * 5
    assert "waiting for the disk to save a.txt" in words[5:]


async def test_quitting_waits_for_the_disk_once_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many records the session leaves: what is typed, the end of a turn, what was in its queue."""
    monkeypatch.setattr("tui_agent.log.journal.SAY_AFTER", 0.0)
    said: list[str] = []
    async with open_session(tmp_path, prepare=silent) as session:
        await session.chat.submit("Change a.txt")
        await session.chat.submit("and then b.txt")
        await asked(session, 0)
        await written(session)
        with slow(session.folders.data, monkeypatch) as disk:
            session.chat.set_draft("typed")
            await after(disk, 1, asyncio.create_task(session.close(say=said.append)))
    assert SLOW in said
    async with open_session(tmp_path, [], session="last") as session:
        assert session.state.input.draft == "typed"
