"""A turn of many steps: what it sends, what ends it, what the person is asked and shown."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from support.program import json_lines, of_type, run
from support.recordings import recorded
from support.sessions import Reply, calls, model_of, open_session
from support.trees import make_tree

from tui_agent.model.client import CallChunk, EndChunk, UsageChunk
from tui_agent.model.parts import text_of
from tui_agent.session.session import Session
from tui_agent.store import events as e

STEPS = 20
LOOK = ("search_text", {"pattern": "x"})


@pytest.fixture
def work(tmp_path: Path) -> Path:
    return make_tree(tmp_path / "work", {"a.py": "x = 0\n"})


async def send(session: Session, request: str = "Look at a.py") -> None:
    await session.chat.submit(request)
    await session.chat.finished()


def warnings(session: Session) -> list[str]:
    return [notice.text for notice in session.state.notices.items if notice.level == "warning"]


def step(number: int) -> Reply:
    change = {"path": "a.py", "edits": [{"search": "x = 0", "replace": f"x = {number + 1}"}]}
    return calls(("propose_changes", {"changes": [change]}), ("search_text", {"pattern": f"x = {number}"}))


async def test_many_steps_share_their_beginning_and_are_one_message(work: Path) -> None:
    replies = [*(step(number) for number in range(STEPS - 1)), calls(text="Done.")]
    shares: list[float] = []
    free = ["limits.ask_at_cost=0"]
    async with open_session(work, replies, protocol="tools", overrides=free) as session:
        session.subscribe(
            lambda event, _: shares.append(event.prefix_share) if isinstance(event, e.RequestSent) else None
        )
        await send(session)
        state = session.state
        assert state.turn.ok and state.turn.step == STEPS, state.turn.error
        asked = [request.messages for request in model_of(session).requests]
        assert all(now[: len(before)] == before for before, now in pairwise(asked))
        assert min(shares[1:]) >= 0.99
        said = [message for message in state.chat.messages if message.kind == "agent"]
        assert [len(message.calls) for message in said] == [2 * (STEPS - 1), 0]
        (change,) = state.review.open
        assert session.storage.blobs.get(change.new) == f"x = {STEPS - 1}\n".encode()
        assert not warnings(session)


async def test_a_circle_is_said_to_both_once_it_is_one(work: Path) -> None:
    replies = [calls(LOOK)] * 4 + [calls(text="Done.")]
    async with open_session(work, replies, protocol="tools") as session:
        await send(session)
        (said,) = warnings(session)
        assert said == "The model repeats itself: search_text “x” was called 3 times with the same result"
        results = [
            [text_of(message) for message in request.messages if message["role"] == "tool"][-1:]
            for request in model_of(session).requests
        ]
        told = ["exactly this call" in "".join(one) for one in results]
        assert told == [False, False, False, True, True]


async def test_the_same_call_after_another_change_is_no_circle(work: Path) -> None:
    def again(number: int) -> Reply:
        change = {"path": "a.py", "edits": [{"search": "x = 0", "replace": f"x = {number + 1}"}]}
        return calls(
            ("propose_changes", {"changes": [change]}), ("list_directory", {"requests": [{"path": "."}]})
        )

    async with open_session(work, [*map(again, range(5)), calls(text="Done.")], protocol="tools") as session:
        await send(session)
        assert session.state.turn.ok and not warnings(session)


def paid(cost: float | None) -> list[Any]:
    return [
        CallChunk(0, "call_0", "search_text", '{"pattern": "x"}'),
        UsageChunk(100, 10, 0, cost),
        EndChunk("tool_calls"),
    ]


async def until_asked(session: Session) -> None:
    while session.state.asked is None:
        assert session.state.turn.running, session.state.turn.error
        await asyncio.sleep(0)


@pytest.mark.parametrize("answer", ["once", "no"])
async def test_a_turn_that_costs_much_asks_once(work: Path, answer: str) -> None:
    replies: list[Reply] = [*([paid(0.6)] * 4), calls(text="Done.")]
    async with open_session(
        work, replies, protocol="tools", interactive=True, overrides=["limits.ask_at_cost=1"]
    ) as session:
        await session.chat.submit("Look at a.py")
        await until_asked(session)
        question = session.state.asked
        assert question is not None and question.words.startswith("This turn has cost $1.20 (limits.ask_at")
        await session.chat.permit(question.call, answer)
        await session.chat.finished()
        went_on = answer == "once"
        assert len(model_of(session).requests) == (5 if went_on else 2)
        assert session.state.turn.limit == ("" if went_on else "limits.ask_at_cost")


async def test_without_a_price_half_of_the_requests_are_asked_about(work: Path) -> None:
    over = ["limits.requests=2"]
    replies: list[Reply] = [*([paid(None)] * 4), calls(text="Done.")]
    async with open_session(work, replies, protocol="tools", overrides=over) as session:
        await send(session)
        assert session.state.turn.limit == "limits.ask_at_cost"
        assert len(model_of(session).requests) == 1
        assert session.state.turn.error.startswith("This turn has made 1 request at an unknown price (")
        assert "limits.requests asks later" in session.state.turn.error
    free: list[Reply] = [*([paid(0.0)] * 2), calls(text="Done.")]
    async with open_session(work, free, protocol="tools", overrides=["limits.requests=3"]) as session:
        await send(session)
        assert session.state.turn.ok and not session.state.turn.limit


@pytest.mark.parametrize(
    ("setting", "requests"),
    [
        ("max_steps=2", 2),
        ("limits.requests=3", 3),
        ("limits.ask_at_cost=0.5", 1),
        ("limits.turn_cost=0.7", 1),
    ],
)
def test_a_limit_ends_a_run_with_its_name(work: Path, tmp_path: Path, setting: str, requests: int) -> None:
    asked = [("Look at a.py", paid(0.6))] * 5
    recording = recorded(tmp_path / "recording.jsonl", *asked, protocol="tools")
    done = run("run", "--json", "--replay", str(recording), "--set", setting, "Look at a.py", folder=work)
    lines = json_lines(done)
    assert (done.returncode, lines[-1]["ok"]) == (1, False)
    assert lines[-1]["limit"] == setting.partition("=")[0]
    assert len(of_type(lines, "request")) == requests


def test_a_run_that_comes_to_its_end_names_no_limit(work: Path, tmp_path: Path) -> None:
    recording = recorded(tmp_path / "recording.jsonl", ("Hello", '{"summary": "Good day."}'))
    done = run("run", "--json", "--replay", str(recording), "Hello", folder=work)
    assert (done.returncode, json_lines(done)[-1]["limit"]) == (0, None)


async def test_of_many_commands_the_newest_is_shown_and_the_others_are_calls(work: Path) -> None:
    def command(number: int) -> Reply:
        return calls(
            ("run_command", {"command": f"echo {number}; exit {number % 2}"}), ("search_text", LOOK[1])
        )

    replies = [*map(command, range(3)), calls(text="Done.")]
    async with open_session(work, replies, protocol="tools") as session:
        await send(session)
        _, agent, shown, end = session.state.chat.messages
        assert [use.shown for use in agent.calls if use.name == "run_command"] == [
            "echo 0; exit 0",
            "echo 1; exit 1",
        ]
        assert sum(use.name == "search_text" for use in agent.calls) == 3
        assert shown.command is not None and shown.command.output == "2\n"
        assert (shown.number, end.number, end.text) == (3, 4, "Done.")
        assert [m.text for m in await session.chat.earlier(5)] == [
            m.text for m in session.state.chat.messages
        ]
