"""A session that was closed, or whose process died, stands where it was: also the second time."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from msgspec.structs import replace
from support.sessions import ScriptedModel, open_session, reply
from support.trees import until

from tui_agent.model.client import ModelRequest, TextChunk
from tui_agent.session.session import Session
from tui_agent.store import events as e
from tui_agent.store.graph import SubTask
from tui_agent.store.state import LayoutSlice


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "api.py").write_text("def fetch(url):\n    return get(url)\n")
    (folder / "b.py").write_text("b = 1\n")
    return folder


CHANGE = reply(
    "Adds a timeout.",
    todos=[{"text": "Add it"}],
    fileChanges=[
        {"path": "api.py", "todoIndex": 0, "edits": [{"search": "get(url)", "replace": "get(url, 5)"}]}
    ],
)


async def turn(session: Session, request: str = "change api.py") -> None:
    await session.chat.submit(request)
    await session.chat.finished()


async def crash(session: Session) -> None:
    """Let go of everything as a process that died would, with what was kept so far."""
    session.journal.flush()
    log = session.storage.log
    assert log is not None
    await asyncio.to_thread(log.count)
    session.journal.log = None


async def test_everything_is_as_it_was(workspace: Path) -> None:
    async with open_session(workspace, [CHANGE]) as session:
        await session.files.open("b.py")
        await session.files.open("api.py", 2)
        await turn(session)
        session.files.edit("b.py", "b = 1\nunsaved = True\n", (1, 3), (1, 0))
        session.chat.set_draft("and then")
        session.set_layout(replace(LayoutSlice(), focus="review", zoomed="review", place={"review": [1, 2]}))
        await session.journal.record(e.QueueChanged(("later",)))
        await until(lambda: session.state.known.files["b.py"].stale, "the unsaved text to be seen")
        before = session.state
    for _ in range(2):
        async with open_session(workspace, session="last") as session:
            now = session.state
            for name in (
                "chat",
                "plan",
                "input",
                "todos",
                "review",
                "known",
                "layout",
                "conversation",
                "usage",
            ):
                assert getattr(now, name) == getattr(before, name), name
            assert now.known.files["api.py"] == before.known.files["api.py"]
            assert now.buffers.active == "api.py"
            assert [buffer.path for buffer in now.buffers.open] == ["b.py", "api.py"]
            kept = now.buffers.get("b.py")
            assert kept is not None and (kept.text, kept.unsaved) == ("b = 1\nunsaved = True\n", True)
            assert (kept.cursor, kept.anchor, kept.clash) == ((1, 3), (1, 0), False)
            assert now.turn.number == 1 and not now.turn.running


async def test_what_changed_meanwhile_is_found(workspace: Path) -> None:
    async with open_session(workspace, [CHANGE]) as session:
        await session.files.open("b.py")
        await turn(session)
        session.files.edit("b.py", "mine\n", (0, 0), (0, 0))
    (workspace / "api.py").write_text("other\n")
    (workspace / "b.py").write_text("theirs\n")
    async with open_session(workspace, session="last") as session:
        assert session.state.known.files["api.py"].freshness == "disk"
        kept = session.state.buffers.get("b.py")
        assert kept is not None and kept.clash and kept.text == "mine\n"


async def test_unsaved_text_of_a_file_that_is_gone(workspace: Path) -> None:
    async with open_session(workspace) as session:
        await session.files.open("b.py")
        session.files.edit("b.py", "mine\n", (0, 0), (0, 0))
    (workspace / "b.py").unlink()
    async with open_session(workspace, session="last") as session:
        kept = session.state.buffers.get("b.py")
        assert kept is not None and kept.clash and not kept.note
        await session.files.save("b.py", overwrite=True)
    assert (workspace / "b.py").read_text() == "mine\n"


async def test_a_crash_between_saving_and_its_record_is_no_clash(workspace: Path) -> None:
    async with open_session(workspace) as session:
        await session.files.open("b.py")
        session.files.edit("b.py", "mine\n", (0, 0), (0, 0))
    (workspace / "b.py").write_text("mine\n")
    async with open_session(workspace, session="last") as session:
        kept = session.state.buffers.get("b.py")
        assert kept is not None and not kept.clash and not kept.unsaved


class Endless(ScriptedModel):
    """Says something, and then nothing for ever."""

    async def stream(self, request: ModelRequest):
        self.requests.append(request)
        yield TextChunk('{"summary": "Half an answer')
        await asyncio.Event().wait()


async def half_answered(session: Session) -> None:
    session.models.model = Endless([])
    came = asyncio.Event()
    session.subscribe(lambda _, state: came.set() if "Half" in state.reply.summary else None)
    await session.chat.submit("go")
    await came.wait()


async def test_a_reply_cut_off_by_a_crash_is_there_as_far_as_it_came_and_stays(workspace: Path) -> None:
    async with open_session(workspace) as session:
        await half_answered(session)
        await crash(session)
    for _ in range(3):
        async with open_session(workspace, session="last") as session:
            said = [(m.kind, m.summary, m.cut) for m in session.state.chat.messages]
            assert said[:2] == [("person", "", False), ("agent", "Half an answer", True)]
            assert len(said) == 3 and "Interrupted" in session.state.chat.messages[2].text
            assert not session.state.turn.running


async def test_a_reply_that_was_stopped_is_there_the_next_time(workspace: Path) -> None:
    async with open_session(workspace) as session:
        await half_answered(session)
        await session.chat.stop()
    async with open_session(workspace, session="last") as session:
        assert session.state.chat.messages[1].summary == "Half an answer"


async def test_what_was_cancelled_is_not_begun_again(workspace: Path) -> None:
    async with open_session(workspace) as session:
        task = SubTask("api", "do", files=(), dependencies=(), auto_execute=True)
        await session.journal.record(e.SubTasksProposed((task,)), e.SubTaskMoved("api", "cancelled"))
        await half_answered(session)
        await session.chat.submit("waits")
        await crash(session)
    async with open_session(workspace, [CHANGE], session="last") as session:
        assert session.state.subtasks.tasks[0].state == "cancelled"
        assert session.state.input.queue == ("waits",)
        await session.chat.finished()
        assert not session.state.turn.running


async def test_a_draft_that_was_sent_does_not_come_back(workspace: Path) -> None:
    async with open_session(workspace) as session:
        session.chat.set_draft("go")
        session.journal.flush()
        await half_answered(session)
        await crash(session)
    async with open_session(workspace, session="last") as session:
        assert session.state.input.draft == ""


async def test_the_folder_is_listed_while_known_files_are_looked_at(workspace: Path) -> None:
    async with open_session(workspace, [reply()]) as session:
        await turn(session, "Look at api.py")
        identity = session.state.session.id
    done: list[str] = []
    async with open_session(workspace, session=identity, services=False) as session:
        begin, look = session.workspace.start, session._freshness.check_everything
        session.workspace.start = lambda: (done.append("list"), begin())[1]  # ty: ignore[invalid-assignment]

        async def looking() -> None:
            done.append("look")
            await look()

        session._freshness.check_everything = looking
        (workspace / "api.py").write_text("changed while nobody looked\n")
        await session.start_services()
        assert done == ["list", "look"]
        assert session.state.known.files["api.py"].freshness == "disk"
