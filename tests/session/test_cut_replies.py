"""Replies that something cuts: what is complete is proposed, the cause is named, and what it cost is counted."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path
from typing import Any

import pytest
from support.sessions import ScriptedModel, calls, model_of, open_session, reply

from tui_agent.errors import ModelError, RateLimited, TimedOut, Unreachable
from tui_agent.model.client import (
    Abilities,
    CallChunk,
    Chunk,
    EndChunk,
    LeftOutChunk,
    ModelRequest,
    RetryChunk,
    SentChunk,
    TextChunk,
    UsageChunk,
)
from tui_agent.session.session import Session
from tui_agent.store import events as e
from tui_agent.store.state import State

WHY = "The server of scripted broke the connection during the answer"
CUT = EndChunk("cut", why=WHY)
CHANGES = [{"path": "a.py", "content": "x = 2\n"}, {"path": "b.py", "content": "y = 2\n"}]
PRICES = (0.001, 0.01)
REST = [TextChunk("That is all."), EndChunk("stop")]


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "a.py").write_text("x = 1\n")
    return tmp_path / "work"


def begun(protocol: str, complete: int) -> list[Chunk]:
    """A reply with so many complete changes and one that is not finished."""
    changes = json.dumps(CHANGES[:complete])[:-1]
    open_end = changes + (", " if complete else "") + '{"path": "c.py", "content": "z ='
    if protocol == "tools":
        return [TextChunk("Changing."), CallChunk(0, "id", "propose_changes", '{"changes": ' + open_end)]
    return [TextChunk('{"summary": "Changing.", "fileChanges": ' + open_end)]


class Hanging(ScriptedModel):
    """Says what it is given and then nothing more; its prices are known."""

    def __init__(self, said: Sequence[Chunk], fails: Exception | None = None) -> None:
        super().__init__([])
        self._said, self._fails = said, fails
        self.hangs = asyncio.Event()

    async def abilities(self, model: str) -> Abilities:
        return Abilities(model, 100_000, tools=self.tools, known=True, prices=PRICES)

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Chunk, None]:
        self.requests.append(request)
        for chunk in self._said:
            yield chunk
        if self._fails is not None:
            raise self._fails
        self.hangs.set()
        await asyncio.Event().wait()


async def turn(session: Session, request: str = "Change a.py and b.py") -> None:
    await session.chat.submit(request)
    await session.chat.finished()


def notices(session: Session) -> str:
    return "\n".join(notice.text for notice in session.state.notices.items)


@pytest.mark.parametrize("protocol", ["structured", "tools"])
@pytest.mark.parametrize(
    "end", [CUT, EndChunk("length", why="It ran out"), EndChunk("refused", why="A filter")]
)
async def test_complete_changes_stay_whatever_ended_the_reply(
    workspace: Path, protocol: str, end: EndChunk
) -> None:
    async with open_session(workspace, [[*begun(protocol, 2), end], REST], protocol=protocol) as session:
        await turn(session)
        state = session.state
        assert state.turn.ok, state.turn.error
        assert [change.path for change in state.review.open] == ["a.py", "b.py"]
        why = end.why[0].lower() + end.why[1:] if end is CUT else end.why
        assert f"The answer was cut off ({why}): its 2 complete changes are kept" in notices(session)
        assert any(message.cut for message in state.chat.messages)


async def test_a_call_that_was_cut_off_is_answered_with_an_error_and_the_turn_goes_on(
    workspace: Path,
) -> None:
    async with open_session(workspace, [[*begun("tools", 0), CUT], REST], protocol="tools") as session:
        await turn(session)
        assert session.state.turn.ok, session.state.turn.error
        result = model_of(session).requests[1].messages[-1]
        assert result["role"] == "tool" and "was cut off" in result["content"]
        assert "the model was informed" in notices(session)


async def test_a_call_that_is_cut_off_every_time_is_asked_for_twice(workspace: Path) -> None:
    answers = [[*begun("tools", complete), CUT] for complete in (0, 1, 0, 0)]
    async with open_session(workspace, answers, protocol="tools") as session:
        await turn(session)
        assert len(model_of(session).requests) == 2
        assert session.state.turn.ok, session.state.turn.error
        assert "The call was cut off twice" in notices(session)
        assert [change.path for change in session.state.review.open] == ["a.py"]
        await turn(session)
        assert len(model_of(session).requests) == 4, "what the person asks for is asked again"


async def test_where_the_model_cannot_go_on_the_complete_changes_of_a_cut_reply_are_kept(
    workspace: Path,
) -> None:
    answers = [[*begun("tools", 1), CUT], Unreachable("Nobody answers", "try again")]
    async with open_session(workspace, answers, protocol="tools") as session:
        await turn(session)
        assert session.state.turn.ok, session.state.turn.error
        assert [change.path for change in session.state.review.open] == ["a.py"]
        assert "Nobody answers: complete changes are kept" in notices(session)


@pytest.mark.parametrize("protocol", ["structured"])
async def test_without_a_complete_change_the_turn_fails_and_names_the_cause(
    workspace: Path, protocol: str
) -> None:
    async with open_session(workspace, [[*begun(protocol, 0), CUT]], protocol=protocol) as session:
        await turn(session)
        assert not session.state.turn.ok and not session.state.review.open
        assert session.state.turn.error == (
            "The answer was cut off (the server of scripted broke the connection during the answer) "
            "before it was complete: send “continue” for the rest"
        )


@pytest.mark.parametrize("protocol", ["structured", "tools"])
async def test_an_overload_after_a_complete_change_ends_the_reply_there(
    workspace: Path, protocol: str
) -> None:
    chunks = [
        *begun(protocol, 1),
        RetryChunk(2, 2.0, "The provider has too much to do"),
        TextChunk("never read"),
    ]
    async with open_session(workspace, [chunks], protocol=protocol) as session:
        await turn(session)
        assert [change.path for change in session.state.review.open] == ["a.py"]
        assert "cut off (the provider has too much to do): the one change" in notices(session)


@pytest.mark.parametrize("protocol", ["structured", "tools"])
async def test_an_overload_before_that_makes_what_came_void(workspace: Path, protocol: str) -> None:
    good = calls(("propose_changes", {"changes": CHANGES}), text="Both.")
    if protocol == "structured":
        good = [
            TextChunk(json.dumps(reply("Both.", fileChanges=CHANGES))),
            UsageChunk(10, 5),
            EndChunk("stop"),
        ]
    chunks = [*begun(protocol, 0), RetryChunk(2, 1.0, "The provider has too much to do"), *good]
    async with open_session(workspace, [chunks], protocol=protocol) as session:
        await turn(session)
        state = session.state
        assert state.turn.ok, state.turn.error
        assert [change.path for change in state.review.open] == ["a.py", "b.py"]
        last = state.chat.messages[-1]
        assert (last.summary or last.text) == "Both."
        assert "Changing" not in state.chat.messages[-1].text
        assert "discarded the partial answer; retrying" in notices(session)
        assert state.usage.turn.estimated and state.usage.turn.output > 5, (
            "the first attempt was paid for too"
        )


async def test_a_stopped_request_counts_its_tokens_and_its_price(workspace: Path) -> None:
    hanging = Hanging([TextChunk('{"summary": "On it", "message": "' + "word " * 200)])
    async with open_session(
        workspace, prepare=lambda session: setattr(session.models, "model", hanging)
    ) as session:
        await session.chat.submit("Change a.py")
        await hanging.hangs.wait()
        await session.chat.stop()
        usage = session.state.usage.turn
        assert usage.estimated
        assert usage.input >= len(str(hanging.requests[0].messages)) // 8
        assert 200 <= usage.output <= 300
        assert usage.cost == pytest.approx(usage.input * PRICES[0] + usage.output * PRICES[1])
        assert session.state.usage.session == usage


@pytest.mark.parametrize(
    ("said", "error", "counts"),
    [
        ([TextChunk("half a sentence")], Unreachable("It broke", "again"), True),
        ([], TimedOut("Nothing came", "again"), True),
        ([], RateLimited("Too many", "wait"), False),
        ([], ModelError("It cannot be reached", "look"), False),
    ],
)
async def test_a_broken_request_counts_what_the_provider_may_have_read(
    workspace: Path, said: Sequence[Chunk], error: Exception, counts: bool
) -> None:
    failing: Any = Hanging(said, error)
    async with open_session(
        workspace, prepare=lambda session: setattr(session.models, "model", failing)
    ) as session:
        await turn(session)
        usage = session.state.usage.turn
        assert (usage.input > 0, usage.estimated) == (counts, counts)
        assert usage.cost is not None
        assert (usage.cost > 0) == counts


async def test_a_limit_is_kept_with_requests_that_were_stopped(workspace: Path) -> None:
    hanging = Hanging([TextChunk("word " * 4000)])
    limit = ("limits.session_tokens=9000", "limits.repeat=0")
    async with open_session(
        workspace, prepare=lambda session: setattr(session.models, "model", hanging), overrides=limit
    ) as session:
        await session.chat.submit("Change a.py")
        await hanging.hangs.wait()
        await session.chat.stop()
        await turn(session)
        assert "limit" in session.state.turn.error
        assert len(hanging.requests) == 1


async def test_a_plan_that_is_cut_says_why_and_the_words_are_taken(workspace: Path) -> None:
    plans = [[TextChunk('{"actions": [{"type": "file", "na'), CUT]]
    async with open_session(workspace, [reply()], plans=plans) as session:
        await turn(session, "Make it more robust")
        assert session.state.turn.ok, session.state.turn.error
        assert "files were found by your words: The answer was cut off (the server" in notices(session)


async def test_of_a_plan_that_is_cut_complete_actions_are_taken(workspace: Path) -> None:
    action = '{"type": "file", "name": "A", "patterns": ["a.py"]}'
    plans = [[TextChunk(f'{{"actions": [{action}, {{"type": "fi'), CUT]]
    async with open_session(workspace, [reply()], plans=plans) as session:
        await turn(session, "Make it more robust")
        assert [slot.action.name for slot in session.state.plan.actions] == ["A"]


async def test_a_child_that_starts_late_is_progress_of_its_own(workspace: Path) -> None:
    """Its import is not the provider's silence."""
    said = [SentChunk(), TextChunk(json.dumps(reply())), EndChunk("stop")]
    async with open_session(workspace, [said]) as session:
        phases: list[str] = []

        def look(event: e.Event, state: State) -> None:
            if isinstance(event, e.RequestSent):
                session.journal.publish(e.ModelStatusChanged("starting"))
            if not phases or phases[-1] != state.turn.phase:
                phases.append(state.turn.phase)

        session.subscribe(look)
        await turn(session)
        at = phases.index("starting")
        assert phases[at : at + 3] == ["starting", "asking", "streaming"]


async def test_what_a_provider_refuses_and_is_left_out_is_told_once(workspace: Path) -> None:
    refused = LeftOutChunk("openai/m is asked without effort high, which its provider refuses (no)")
    said = [SentChunk(), refused, TextChunk(json.dumps(reply())), EndChunk("stop")]
    async with open_session(workspace, [said, said]) as session:
        await turn(session)
        await turn(session)
        assert session.state.turn.ok, session.state.turn.error
        assert [one.text for one in session.state.notices.items].count(refused.words) == 1
