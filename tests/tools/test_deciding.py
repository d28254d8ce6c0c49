"""Chains by key: retried, edited, another file chosen, let go; and names that several files have."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.sessions import model_of, open_session, reply

from tui_agent.errors import SessionError
from tui_agent.session.session import Session
from tui_agent.store import events as e
from tui_agent.store.state import ActionSlice, State

PATHS = ("api/schema.py", "web/schema.py", "web/forms/schema.py", "api/models.py", "README.md")


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    for path in PATHS:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(f"# {path}\n")
    return folder


def wants(*patterns: str, name: str = "It", **fields: Any) -> dict[str, Any]:
    return {"type": "file", "name": name, "patterns": list(patterns), "required": True, **fields}


async def asking(session: Session, *actions: dict[str, Any]) -> None:
    """Run until the turn waits for the person."""
    waits = asyncio.Event()
    end = session.subscribe(lambda event, state: waits.set() if state.turn.phase == "waiting" else None)
    await session.chat.submit("Make it more robust")
    await asyncio.wait_for(waits.wait(), 20)
    end()


def action(session: Session, name: str = "It") -> ActionSlice:
    return next(slot for slot in session.state.plan.actions if slot.action.name == name)


def planned(*actions: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"actions": list(actions)}]


def sent(session: Session) -> str:
    return model_of(session).requests[-1].messages[-1]["content"]


async def test_of_files_of_one_name_the_nearest_to_where_it_was_looked_for_is_taken(workspace: Path) -> None:
    plans = planned(wants("src/api/schema.py", "**/schema.py"))
    async with open_session(workspace, [reply()], plans=plans, interactive=True) as session:
        await session.chat.submit("Make it more robust")
        await session.chat.finished()
        assert action(session).loaded == ("api/schema.py",)
        assert set(action(session).others) == {"web/schema.py", "web/forms/schema.py"}


async def test_where_it_is_a_toss_up_the_person_is_asked_and_may_take_them_all(workspace: Path) -> None:
    answers: list[tuple[dict[str, Any], tuple[str, ...]]] = [
        ({"path": "web/schema.py"}, ("web/schema.py",)),
        ({"everything": True}, ("api/schema.py", "web/schema.py", "web/forms/schema.py")),
        ({}, ()),
    ]
    for answer, loaded in answers:
        plans = planned(wants("**/schema.py"))
        async with open_session(workspace, [reply()], plans=plans, interactive=True) as session:
            await asking(session)
            assert action(session).several and len(action(session).nearest) == 3
            await session.chat.decide("It", **answer)
            await session.chat.finished()
            assert action(session).loaded == loaded
            assert (action(session).state == "loaded") == bool(loaded)


async def test_where_nobody_can_be_asked_all_are_loaded(workspace: Path) -> None:
    async with open_session(workspace, [reply()], plans=planned(wants("**/schema.py"))) as session:
        await session.chat.submit("Make it more robust")
        await session.chat.finished()
        assert len(action(session).loaded) == 3


async def test_a_pattern_is_edited_and_looked_for_again(workspace: Path) -> None:
    async with open_session(
        workspace, [reply()], plans=planned(wants("lib/modls.py")), interactive=True
    ) as session:
        await asking(session)
        await session.chat.decide("It", patterns=["lib/modls.py", "**/models.py"])
        await session.chat.finished()
        slot = action(session)
        assert slot.action.patterns == ("lib/modls.py", "**/models.py")
        assert ([a.outcome for a in slot.attempts], slot.loaded) == (["miss", "hit"], ("api/models.py",))


async def test_while_one_question_is_open_another_action_can_be_decided(workspace: Path) -> None:
    plans = planned(wants("README.md", name="Read me"), wants("none.txt"))
    async with open_session(workspace, [reply()], plans=plans, interactive=True) as session:
        await asking(session)
        assert "README.md" in session.state.known.files
        await session.chat.decide("Read me", path="api/models.py")
        await until(
            session, lambda state: state.turn.waiting_for == "It" and "README.md" not in state.known.files
        )
        await session.chat.answer("It")
        await session.chat.finished()
        assert action(session, "Read me").loaded == ("api/models.py",)
        assert "# README.md" not in sent(session) and "# api/models.py" in sent(session)
        assert action(session).state == "skipped"


async def until(session: Session, holds: Callable[[State], bool]) -> None:
    came = asyncio.Event()
    end = session.subscribe(lambda event, state: came.set() if holds(state) else None)
    if not holds(session.state):
        await asyncio.wait_for(came.wait(), 20)
    end()


async def test_what_is_let_go_before_its_turn_comes_is_not_loaded(workspace: Path) -> None:
    plans = planned(wants("none.txt"), wants("README.md", name="Read me"))
    async with open_session(workspace, [reply()], plans=plans, interactive=True) as session:
        await asking(session)
        await session.chat.decide("Read me")
        await until(session, lambda state: state.plan.actions[1].state == "skipped")
        await session.chat.answer("It")
        await session.chat.finished()
        assert action(session, "Read me").state == "skipped"
        assert "README.md" not in session.state.known.files


async def test_what_waits_for_the_next_request_outlives_a_quit(workspace: Path) -> None:
    plans = planned(wants("README.md"))
    async with open_session(workspace, [reply()], plans=plans, interactive=True) as session:
        await session.chat.submit("Make it more robust")
        await session.chat.finished()
        await session.chat.decide("It", path="web/forms/schema.py")
        name = session.state.session.id
    async with open_session(
        workspace, [reply()] * 2, plans=plans * 2, interactive=True, session=name
    ) as session:
        await session.chat.submit("And more")
        await session.chat.finished()
        assert session.state.plan.actions[0].loaded == ("web/forms/schema.py",)
        assert session.state.input.decisions == ()
        await session.chat.submit("And still more")
        await session.chat.finished()
        assert [slot.action.name for slot in session.state.plan.actions] == ["It"]


async def test_after_the_request_has_gone_out_another_file_goes_with_the_next(workspace: Path) -> None:
    async with open_session(
        workspace, [reply(), reply()], plans=planned(wants("README.md")) * 2, interactive=True
    ) as session:
        await session.chat.submit("Make it more robust")
        await session.chat.finished()
        with pytest.raises(SessionError, match="already sent"):
            await session.chat.decide("It")
        with pytest.raises(SessionError, match="no action"):
            await session.chat.decide("That", path="README.md")
        await session.chat.decide("It", path="web/forms/schema.py")
        await session.chat.submit("And more")
        await session.chat.finished()
        assert session.state.plan.actions[0].loaded == ("web/forms/schema.py",)


async def test_a_hit_that_cannot_be_read_passes_on_to_the_next_pattern(workspace: Path) -> None:
    (workspace / "api/blob.py").write_bytes(b"\x00\xff\xfe" * 100)
    plans = planned(wants("api/blob.py", "**/models.py"))
    async with open_session(workspace, [reply()], plans=plans) as session:
        ended: list[e.AttemptEnded] = []
        session.subscribe(
            lambda event, state: ended.append(event) if isinstance(event, e.AttemptEnded) else None
        )
        await session.chat.submit("Make it more robust")
        await session.chat.finished()
        assert [one.attempt.outcome for one in ended] == ["invalid", "hit"]
        assert action(session).loaded == ("api/models.py",)


async def test_a_batch_takes_the_smallest_first_and_names_what_was_left_out(workspace: Path) -> None:
    for number in range(5):
        (workspace / f"api/part{number}.txt").write_text("word " * 10 ** (number + 1))
    plans = planned(wants("api/*.txt", name="Parts", all=True))
    async with open_session(workspace, [reply()], plans=plans, overrides=["context.window=40000"]) as session:
        await session.chat.submit("Make it more robust")
        await session.chat.finished()
        parts = action(session, "Parts")
        assert parts.loaded == tuple(f"api/part{number}.txt" for number in range(4))
        assert parts.left_out == ("api/part4.txt",)
        assert "1 of the 5 files" in session.state.notices.items[-1].text and "part4" in sent(session)


async def test_what_was_tried_stays_when_the_person_picks_a_file_and_after_a_resume(workspace: Path) -> None:
    plans = planned(wants("none.txt", "**/none.txt"), wants("lib/modls.py", name="Models"))
    async with open_session(workspace, [reply()], plans=plans, interactive=True) as session:
        await asking(session)
        await session.chat.answer("It", "api/schema.py")
        await until(session, lambda state: state.turn.waiting_for == "Models")
        await session.chat.decide("Models", patterns=["**/models.py"])
        await session.chat.finished()
        name = session.state.session.id
        plan = session.state.plan
    picked, edited = plan.actions
    assert [(a.pattern, a.outcome) for a in picked.attempts] == [
        ("none.txt", "miss"),
        ("**/none.txt", "miss"),
    ]
    assert picked.loaded == ("api/schema.py",)
    assert [a.pattern for a in edited.earlier] == ["lib/modls.py"]
    assert [(a.pattern, a.outcome) for a in edited.attempts] == [("**/models.py", "hit")]
    async with open_session(workspace, [], session=name, interactive=True) as session:
        assert session.state.plan == plan


async def test_of_several_matches_what_was_found_stays_when_another_file_is_picked(workspace: Path) -> None:
    plans = planned(wants("none.txt", "**/schema.py"))
    async with open_session(workspace, [reply()], plans=plans, interactive=True) as session:
        await asking(session)
        await session.chat.decide("It", path="README.md")
        await session.chat.finished()
        name, slot = session.state.session.id, action(session)
        assert [a.outcome for a in slot.attempts] == ["miss", "hit"] and slot.loaded == ("README.md",)
    async with open_session(workspace, [], session=name, interactive=True) as session:
        assert action(session) == slot
