"""A goal: turns follow each other until it is reached, within the limits, and stop if they do nothing for it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from support.sessions import ScriptedModel, model_of, open_session, reply
from support.trees import until

from tui_agent.errors import RequestRejected, SessionError
from tui_agent.model.client import Chunk, ModelRequest
from tui_agent.model.parts import text_of
from tui_agent.session.session import Session

#: Passes if the file says done.
TEST = f"checks.commands={json.dumps([{'name': 'test', 'command': 'grep -q done a.txt'}])}"


def step(before: str, after: str, message: str = "") -> dict[str, object]:
    edits = [{"search": before, "replace": after}]
    return reply(f"{after}.", message=message, fileChanges=[{"path": "a.txt", "edits": edits}])


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "work"
    root.mkdir()
    (root / "a.txt").write_text("begun\n")
    return root


async def pursue(session: Session, goal: str) -> list[str]:
    """The notes of the chat, after all turns."""
    await session.goals.pursue(goal)
    await session.chat.finished()
    assert not session.state.input.goal
    return [message.text for message in session.state.chat.messages if message.kind == "note"]


async def test_turns_follow_until_the_condition_holds(root: Path) -> None:
    replies = [
        step("begun", "half", "GOAL: open, the rest is missing"),
        step("begun", "done", "All of it.\n\n**GOAL: reached**"),
    ]
    async with open_session(root, replies) as session:
        assert await pursue(session, "a.txt says done") == ["The goal is reached: a.txt says done"]
        first, second = (text_of(request.messages[-1]) for request in model_of(session).requests)
        assert "Work until this holds: a.txt says done" in first and "The goal is not reached" in second
        assert session.state.turn.number == 2 and session.state.turn.first == 1


@pytest.mark.parametrize(("mode", "before"), [("edit", "begun"), ("auto", "half")])
async def test_checks_decide_and_not_the_model(root: Path, mode: str, before: str) -> None:
    replies = [step("begun", "half", "GOAL: reached"), step(before, "done")]
    settings = (TEST, f"mode={mode}", "checks.repairs=0")
    async with open_session(root, replies, overrides=settings) as session:
        assert await pursue(session, "checks") == ["The goal is reached: checks"]
        assert "The goal is not reached: test: failed" in text_of(model_of(session).requests[1].messages[-1])
    assert ("done" in (root / "a.txt").read_text()) == (mode == "auto")


async def test_a_claim_does_not_count_while_a_check_fails(root: Path) -> None:
    (root / "a.txt").write_text("begun, done\n")
    replies = [step("begun, done", "half", "GOAL: reached"), step("begun", "still", "GOAL: reached")]
    async with open_session(root, replies, overrides=(TEST, "checks.repairs=0")) as session:
        assert await pursue(session, "it is right") == ["The goal is reached: it is right"]
        assert len(model_of(session).requests) == 2


@pytest.mark.parametrize(
    ("replies", "overrides", "goal", "why"),
    [
        ([reply("Shall I?")], (), "x", "and the last turn made no progress: x"),
        ([step("begun", "half")] * 2, ("limits.turns=1",), "x", "because limits.turns is reached: x"),
        ([RequestRejected("The model declined", "ask for something else")], (), "x", "its turn failed: x"),
    ],
)
async def test_it_ends_unreached_with_one_sentence(
    root: Path, replies: list[dict[str, object]], overrides: tuple[str, ...], goal: str, why: str
) -> None:
    async with open_session(root, replies, overrides=overrides) as session:
        await session.goals.pursue(goal)
        await session.chat.finished()
        notes = [message.text for message in session.state.chat.messages if message.kind == "note"]
        assert len(model_of(session).requests) == 1 and not session.state.input.goal
        assert notes[-1].endswith(why)


async def test_stopping_gives_it_up(root: Path) -> None:
    class Held(ScriptedModel):
        asked = asyncio.Event()

        async def stream(self, request: ModelRequest) -> AsyncGenerator[Chunk, None]:
            self.asked.set()
            await asyncio.Event().wait()
            yield  # ty: ignore[invalid-yield]

    async with open_session(root) as session:
        session.models.model = held = Held([])
        await session.goals.pursue("x")
        async with asyncio.timeout(20):
            await held.asked.wait()
        with pytest.raises(SessionError, match="A turn is running"):
            await session.goals.pursue("y")
        await session.chat.stop()
        assert not session.state.input.goal and not session.state.turn.running
        assert "abandoned because it was stopped" in session.state.chat.messages[-1].text


async def test_stopping_its_checks_between_two_turns_gives_it_up(root: Path) -> None:
    slow = f"checks.commands={json.dumps([{'name': 'slow', 'command': 'sleep 60'}])}"
    async with open_session(root, [step("begun", "half")], overrides=(slow,)) as session:
        await session.goals.pursue("checks")
        await until(lambda: session.state.turn.ok and session.state.checks.running, "its checks")
        await session.stop_commands()
        await session.chat.finished()
        assert len(model_of(session).requests) == 1 and not session.state.input.goal


@pytest.mark.parametrize(
    ("mode", "goal", "why"), [("ask", "x", "the mode is ask"), ("edit", "checks", "has no checks: add")]
)
async def test_it_is_refused_if_it_cannot_be_reached(root: Path, mode: str, goal: str, why: str) -> None:
    async with open_session(root, overrides=(f"mode={mode}",)) as session:
        with pytest.raises(SessionError, match=why):
            await session.goals.pursue(goal)
        assert not session.state.input.goal and not session.state.chat.messages


async def test_a_goal_is_pursued_without_a_terminal_while_queued_messages_wait(root: Path) -> None:
    replies = [step("begun", "half", "GOAL: open"), step("begun", "done", "GOAL: reached"), reply("Hello.")]
    async with open_session(root, replies) as session:
        session.chat.set_attended(False)
        await session.chat.set_queue(["later"])
        assert await pursue(session, "a.txt says done") == ["The goal is reached: a.txt says done"]
        assert len(model_of(session).requests) == 2 and session.state.input.queue == ("later",)
        session.chat.set_attended(True)
        await session.chat.finished()
        assert "later" in text_of(model_of(session).requests[-1].messages[-1])
