"""Calls that cannot be read: each is answered with an error under its own id, and the turn goes on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.sessions import calls, model_of, open_session

from tui_agent.model.client import CallChunk, Chunk, EndChunk, TextChunk, UsageChunk
from tui_agent.model.parts import calls_of
from tui_agent.session.session import Session

CHANGE = {"path": "a.py", "content": "x = 2\n"}


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "a.py").write_text("x = 1\n")
    return tmp_path / "work"


def raw(*made: tuple[str, str, str]) -> list[Chunk]:
    """Calls by id, name and the text of their arguments."""
    chunks: list[Chunk] = [CallChunk(index, *call) for index, call in enumerate(made)]
    return [*chunks, UsageChunk(10, 5), EndChunk("tool_calls")]


def results(session: Session, request: int) -> dict[str, str]:
    """What the calls of the reply before were answered with, by id."""
    messages = model_of(session).requests[request].messages
    last = max(place for place, message in enumerate(messages) if message["role"] == "assistant")
    assert {call.id for call in calls_of(messages[last])} == {
        message["tool_call_id"] for message in messages[last + 1 :] if message["role"] == "tool"
    }, "each call has its result"
    return {m["tool_call_id"]: m["content"] for m in messages[last + 1 :] if m["role"] == "tool"}


@pytest.mark.parametrize(
    ("call", "why"),
    [
        (("x", "delete_everything", "{}"), "There is no function 'delete_everything'"),
        (("x", "", '{"actions": []}'), "The call has no name"),
        (("x", "read_files", '{"actions": [{"patterns": ["a.'), "not valid JSON"),
        (("x", "propose_changes", "}{"), "not valid JSON"),
        (("", "search_text", '{"glob": "*"}'), "pattern"),
    ],
)
async def test_it_is_answered_and_the_model_corrects_itself(
    workspace: Path, call: tuple[str, str, str], why: str
) -> None:
    good = calls(("propose_changes", {"changes": [CHANGE]}), text="Changed.")
    async with open_session(workspace, [raw(call), good], protocol="tools") as session:
        await session.chat.submit("Change a.py")
        await session.chat.finished()
        assert session.state.turn.ok, session.state.turn.error
        (said,) = results(session, 1).values()
        assert said.startswith("Error: ") and why in said
        assert [change.path for change in session.state.review.open] == ["a.py"]
        told = " ".join(notice.text for notice in session.state.notices.items)
        assert why in told, "the person is told too"


async def test_beside_a_good_call_each_gets_its_own_answer(workspace: Path) -> None:
    actions = json.dumps({"actions": [{"type": "file", "name": "A", "patterns": ["a.py"]}]})
    todos = json.dumps({"todos": [{"text": "One"}]})
    twice = json.dumps({"todos": [{"text": "Two"}]})
    both = raw(
        ("same", "read_files", actions),
        ("b", "set_todos", todos),
        ("same", "set_todos", twice),
        ("c", "nothing_such", "{}"),
    )
    async with open_session(
        workspace, [both, [TextChunk("Done."), EndChunk("stop")]], protocol="tools"
    ) as session:
        await session.chat.submit("Look around")
        await session.chat.finished()
        assert session.state.turn.ok, session.state.turn.error
        answered = results(session, 1)
        assert "1: x = 1" in answered["same"]
        assert "nothing_such" in answered["c"]
        repeated = next(text for call, text in answered.items() if call not in ("same", "b", "c"))
        assert "has the id of another call" in repeated
        assert "1 todo" in answered["b"] and len(answered) == 4
        assert [todo.text for todo in session.state.todos] == ["One"]


async def test_a_change_beside_a_bad_call_stays_proposed(workspace: Path) -> None:
    change: Any = json.dumps({"changes": [CHANGE]})
    both = raw(("a", "propose_changes", change), ("b", "nothing_such", "{}"))
    async with open_session(
        workspace, [both, [TextChunk("Done."), EndChunk("stop")]], protocol="tools"
    ) as session:
        await session.chat.submit("Change a.py")
        await session.chat.finished()
        assert [change.path for change in session.state.review.open] == ["a.py"]
        assert "nothing_such" in results(session, 1)["b"]
        assert not results(session, 1)["a"].startswith("Error")


async def test_a_model_that_never_gets_it_right_is_stopped_by_the_limit_on_steps(workspace: Path) -> None:
    bad = [raw((f"x{number}", "nothing_such", "{}")) for number in range(5)]
    async with open_session(workspace, bad, protocol="tools", overrides=("max_steps=3",)) as session:
        await session.chat.submit("Change a.py")
        await session.chat.finished()
        assert len(model_of(session).requests) == 3
        assert not session.state.turn.running
        model_of(session).replies = [[TextChunk("Sorry."), EndChunk("stop")]]
        await session.chat.submit("Try once more")
        await session.chat.finished()
        assert "nothing_such" in results(session, 3)["x2"], "the last one is answered with the next request"
