"""A session from the first word to the last undo, with a real workspace and a real log."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from itertools import pairwise
from pathlib import Path

import pytest
from support.sessions import calls, model_of, open_session, reply

from tui_agent import debug_log
from tui_agent.edits.change import Pick
from tui_agent.errors import EditFailed, SessionError, Unreachable
from tui_agent.model.client import Chunk, ModelRequest
from tui_agent.model.parts import calls_of
from tui_agent.session.session import Session
from tui_agent.store.state import State


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    (folder / "src").mkdir(parents=True)
    (folder / "src" / "api.py").write_text(
        "def fetch(url):\n    return get(url)\n\n\ndef push(url):\n    return post(url)\n"
    )
    (folder / "README.md").write_text("# Sample\n")
    return folder


TWO_HUNKS = {
    "path": "src/api.py",
    "todoIndex": 0,
    "edits": [
        {"search": "get(url)", "replace": "get(url, timeout=5)"},
        {"search": "post(url)", "replace": "post(url, timeout=5)"},
    ],
}
CHANGE = reply("Adds timeouts.", todos=[{"text": "Add timeouts"}], fileChanges=[TWO_HUNKS])


async def turn(session: Session, request: str = "Add timeouts in src/api.py") -> None:
    await session.chat.submit(request)
    await session.chat.finished()


async def test_a_turn_finds_the_file_and_proposes_the_change(workspace: Path) -> None:
    async with open_session(workspace, [CHANGE]) as session:
        await turn(session)
        state = session.state
        assert state.turn.ok, state.turn.error
        assert state.plan.actions[0].loaded == ("src/api.py",)
        assert state.known.files["src/api.py"].seen_turn == 1
        change = state.review.changes[0]
        assert (change.id, change.state, change.rung, len(change.hunks)) == ("c1.1", "pending", "exact", 2)
        assert "get(url)\n" in (workspace / "src/api.py").read_text()
        sent = model_of(session).requests[0].messages
        assert "1: def fetch(url):" in sent[-1]["content"]
        assert sent[-1]["content"].endswith("<user_query>\nAdd timeouts in src/api.py\n</user_query>")


async def test_apply_writes_ticks_and_marks_then_undo_takes_it_back(workspace: Path) -> None:
    before = (workspace / "src/api.py").read_bytes()
    async with open_session(workspace, [CHANGE]) as session:
        await turn(session)
        await session.review.apply()
        assert (workspace / "src/api.py").read_text().count("timeout=5") == 2
        assert session.state.review.changes[0].state == "applied"
        assert session.state.todos[0].done
        entry = session.state.known.files["src/api.py"]
        assert (entry.freshness, entry.modified_turn) == ("edited", 1)
        await session.review.undo()
        assert (workspace / "src/api.py").read_bytes() == before
        assert session.state.review.changes[0].state == "undone"
        assert not session.state.todos[0].done
        await session.review.redo()
        assert (workspace / "src/api.py").read_text().count("timeout=5") == 2
        assert session.state.todos[0].done


async def test_one_hunk_is_applied_and_the_other_skipped(workspace: Path) -> None:
    async with open_session(workspace, [CHANGE, reply("Fine.")]) as session:
        await turn(session)
        await session.review.apply([Pick("c1.1", 1)])
        assert session.state.review.changes[0].state == "pending"
        text = (workspace / "src/api.py").read_text()
        assert "get(url)\n" in text and "post(url, timeout=5)" in text
        await session.review.skip([Pick("c1.1", 0)])
        assert session.state.review.changes[0].state == "applied"
        await turn(session, "Thanks")
        last = model_of(session).requests[-1].messages[-1]["content"]
        assert "hunk 2 of 2 was applied" in last and "skipped hunk 1 of 2" in last


async def test_what_the_person_wrote_meanwhile_is_merged(workspace: Path) -> None:
    async with open_session(workspace, [CHANGE]) as session:
        await turn(session)
        path = workspace / "src/api.py"
        path.write_text("# mine\n" + path.read_text())
        await session.review.apply()
        text = path.read_text()
        assert text.startswith("# mine\n") and text.count("timeout=5") == 2
        assert session.state.review.changes[0].reason == "merged with what changed since the model saw it"


async def test_a_conflict_writes_nothing_and_blocks_the_batch(workspace: Path) -> None:
    new = {"path": "new.py", "content": "x = 1\n"}
    both = reply("Two files.", fileChanges=[TWO_HUNKS | {"todoIndex": None}, new])
    async with open_session(workspace, [both]) as session:
        await turn(session)
        path = workspace / "src/api.py"
        mine = path.read_text().replace("get(url)", "mine(url)")
        path.write_text(mine)
        with pytest.raises(EditFailed, match=r"src/api\.py"):
            await session.review.apply()
        assert path.read_text() == mine
        assert not (workspace / "new.py").exists()
        states = {change.path: change.state for change in session.state.review.changes}
        assert states == {"src/api.py": "conflict", "new.py": "pending"}
        with pytest.raises(EditFailed, match="conflict"):
            await session.review.apply()
        await session.review.apply([Pick("c1.2")])
        assert (workspace / "new.py").read_text() == "x = 1\n"


async def test_create_delete_and_rename(workspace: Path) -> None:
    three = reply(
        "Moves things.",
        fileChanges=[
            {"path": "docs/new.md", "content": "# New\n"},
            {"path": "README.md", "delete": True},
            {"path": "src/api.py", "renameTo": "src/web.py"},
        ],
    )
    async with open_session(workspace, [three]) as session:
        await turn(session, "Look at README.md and src/api.py")
        await session.review.apply()
        assert (workspace / "docs/new.md").read_text() == "# New\n"
        assert not (workspace / "README.md").exists()
        assert "def fetch" in (workspace / "src/web.py").read_text()
        assert session.state.known.files["src/api.py"].freshness == "renamed"
        await session.review.undo()
        assert (workspace / "README.md").read_text() == "# Sample\n"
        assert (workspace / "src/api.py").exists() and not (workspace / "src/web.py").exists()
        assert not (workspace / "docs/new.md").exists()


async def test_a_path_that_leads_out_is_a_failed_change(workspace: Path) -> None:
    out = reply(
        "Escapes.", fileChanges=[{"path": "../evil.py", "content": "x"}, {"path": "ok.py", "content": "x\n"}]
    )
    async with open_session(workspace, [out]) as session:
        await turn(session, "Do it")
        states = {change.path: change.state for change in session.state.review.changes}
        assert states == {"../evil.py": "failed", "ok.py": "pending"}
        with pytest.raises(EditFailed, match="evil"):
            await session.review.apply()
        await session.review.apply([Pick("c1.2")])
        assert (workspace / "ok.py").exists() and not (workspace.parent / "evil.py").exists()


async def test_a_secret_is_neither_sent_nor_written_with_the_rest(workspace: Path) -> None:
    (workspace / ".env").write_text("KEY=hidden\n")
    changes = reply(
        "Sets it.", fileChanges=[{"path": ".env", "content": "KEY=x\n"}, {"path": "ok.py", "content": "x\n"}]
    )
    async with open_session(workspace, [changes]) as session:
        await turn(session, "Look at .env and README.md")
        assert "hidden" not in str(model_of(session).requests[0].messages)
        try:
            await session.review.apply()
        except EditFailed:
            pass
        assert (workspace / ".env").read_text() == "KEY=hidden\n"


async def test_the_model_asks_for_a_file_and_is_answered_in_the_same_turn(workspace: Path) -> None:
    asks = reply(
        "Needs it.", fileRequests=[{"type": "file", "name": "API", "patterns": ["lib/api.py", "**/api.py"]}]
    )
    lists = reply("And that.", directoryRequests=[{"path": "src"}])
    async with open_session(workspace, [asks, lists, CHANGE]) as session:
        await turn(session, "Add timeouts")
        assert session.state.turn.ok and session.state.turn.number == 1
        requests = model_of(session).requests
        assert len(requests) == 3
        assert "1: def fetch(url):" in requests[1].messages[-1]["content"]
        assert "| api.py | file |" in requests[2].messages[-1]["content"]
        outcomes = [attempt.outcome for attempt in session.state.plan.actions[0].attempts]
        assert outcomes == ["miss", "hit"]


async def test_the_tools_dialect_carries_the_same(workspace: Path) -> None:
    asks = calls(("read_files", {"actions": [{"type": "file", "name": "API", "patterns": ["src/api.py"]}]}))
    does = calls(
        ("set_todos", {"todos": [{"text": "Add timeouts"}]}),
        ("propose_changes", {"changes": [TWO_HUNKS]}),
        text="Adds timeouts.",
    )
    async with open_session(workspace, [asks, does, reply()["summary"]], protocol="tools") as session:
        await turn(session, "Add timeouts")
        assert session.state.review.changes[0].path == "src/api.py"
        second = model_of(session).requests[1].messages
        assert second[-1]["role"] == "tool" and "1: def fetch(url):" in second[-1]["content"]
        await session.review.apply()
        await turn(session, "Thanks")
        third = model_of(session).requests[2].messages
        assert [message["role"] for message in third[-3:]] == ["tool", "tool", "user"]
        answered = {message["tool_call_id"] for message in third if message["role"] == "tool"}
        asked = {call.id for message in third for call in calls_of(message)}
        assert asked == answered


@pytest.mark.parametrize("protocol", ["structured", "tools"])
async def test_each_request_is_the_one_before_and_an_ending(workspace: Path, protocol: str) -> None:
    replies = [reply(str(number)) if protocol == "structured" else f"Answer {number}." for number in range(4)]
    async with open_session(workspace, replies, protocol=protocol) as session:
        for number in range(4):
            if number == 2:
                (workspace / "src/api.py").write_text("changed = True\n")
            await turn(session, f"Question {number} about src/api.py")
        requests = [request.messages for request in model_of(session).requests]
        for before, after in pairwise(requests):
            assert after[: len(before)] == before
            assert len(after) > len(before)


async def test_an_error_ends_the_turn_with_its_sentence_and_the_next_one_goes_on(workspace: Path) -> None:
    lost = Unreachable("openai/x cannot be reached", "check the address")
    async with open_session(workspace, [lost, reply("Here again.")]) as session:
        await turn(session, "Hello")
        assert not session.state.turn.ok
        assert session.state.turn.error == "openai/x cannot be reached: check the address"
        assert session.state.turn.kind == "Unreachable"
        await turn(session, "Hello again")
        assert session.state.turn.ok
        assert session.state.chat.messages[-1].summary == "Here again."


async def test_a_file_nobody_finds_is_named_with_every_pattern(workspace: Path) -> None:
    asks = reply(
        "Needs it.",
        fileRequests=[{"type": "file", "name": "Missing", "patterns": ["a/b.c", "**/b.c"], "required": True}],
    )
    async with open_session(workspace, [asks, reply("Went on.")]) as session:
        await turn(session, "Hello")
        texts = [notice.text for notice in session.state.notices.items]
        assert any("Missing" in text and "a/b.c" in text and "**/b.c" in text for text in texts)
        assert "was not found (tried a/b.c, **/b.c)" in model_of(session).requests[1].messages[-1]["content"]


async def test_the_turn_waits_for_the_person_where_one_can_be_asked(workspace: Path) -> None:
    asks = reply(
        "Needs it.",
        fileRequests=[{"type": "file", "name": "Api", "patterns": ["lib/appi.py"], "required": True}],
    )
    async with open_session(workspace, [asks, reply("Thanks.")], interactive=True) as session:
        offered: list[str] = []

        def note(event: object, state: State) -> None:
            offered.extend(path for action in state.plan.actions for path in action.nearest)
            _answer(session, state)

        waiting = session.subscribe(note)
        await turn(session, "Hello")
        waiting()
        action = session.state.plan.actions[0]
        assert offered[0] == "src/api.py" and not action.nearest
        assert action.loaded == ("src/api.py",)


def _answer(session: Session, state: object) -> None:
    import asyncio

    if session.state.turn.phase == "waiting" and session.state.turn.waiting_for:
        name = session.state.turn.waiting_for
        asyncio.get_running_loop().call_soon(lambda: asyncio.ensure_future(_try_answer(session, name)))


async def _try_answer(session: Session, name: str) -> None:
    try:
        await session.chat.answer(name, "src/api.py")
    except SessionError:
        pass  # it was answered already


async def test_sub_tasks_in_a_circle_are_refused_by_name(workspace: Path) -> None:
    circle = reply(
        "Splits.",
        subTasks=[
            {"id": "a", "goal": "…", "files": [], "dependencies": ["b"]},
            {"id": "b", "goal": "…", "files": [], "dependencies": ["a"]},
        ],
    )
    async with open_session(workspace, [circle]) as session:
        await turn(session, "Split it")
        assert session.state.subtasks.tasks == ()
        assert any("a, b" in notice.text for notice in session.state.notices.items)


async def test_cancelled_work_that_nobody_stopped_is_a_fault(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next turn begins, and the queue is not held back as after a stop."""

    async def cancelled() -> None:
        raise asyncio.CancelledError

    async with open_session(workspace, [CHANGE]) as session:
        with monkeypatch.context() as patched:
            patched.setattr(session.chat._turns, "get_ready", cancelled)
            await turn(session)
        ended = session.state.turn
        assert ended.kind == "Fault" and "was cancelled" in ended.error
        await turn(session)
        assert session.state.turn.ok


async def test_a_fault_of_ours_ends_the_turn_with_the_place_of_its_traceback(
    workspace: Path, tmp_path: Path
) -> None:
    debug_log.start(tmp_path / "state")
    async with open_session(workspace, [ZeroDivisionError("by zero"), CHANGE]) as session:
        await turn(session)
        error = session.state.turn.error
        assert error.startswith("An error in tui-agent ended the turn: ZeroDivisionError: by zero: ")
        assert error.endswith(f" is in {tmp_path / 'state' / 'debug.log'}")
        debug_log.flush()
        assert "in stream" in (tmp_path / "state" / "debug.log").read_text()
        await turn(session)
        assert session.state.turn.ok
    debug_log.stop()


async def test_the_model_is_started_before_it_is_asked_though_nobody_wrote(workspace: Path) -> None:
    happened: list[str] = []

    def prepare(session: Session) -> None:
        model = model_of(session)
        begin, stream = model.start, model.stream

        async def started() -> None:
            happened.append("started")
            await begin()

        def asked(request: ModelRequest) -> AsyncGenerator[Chunk, None]:
            happened.append("asked")
            return stream(request)

        model.start, model.stream = started, asked

    async with open_session(workspace, [reply("Yes.")], prepare=prepare, interactive=True) as session:
        assert happened == []
        await session.chat.submit("go on")
        await session.chat.finished()
        assert happened == ["started", "asked"]
