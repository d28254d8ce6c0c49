"""The model runs a command on what it has proposed, and reads what came of it in the same turn."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from support.sessions import calls, model_of, open_session, reply

from tui_agent.model.parts import text_of
from tui_agent.session.session import Session

CHANGE = {"path": "a.py", "edits": [{"search": "print(1)", "replace": "print(2)"}]}
FIXED = {"path": "a.py", "edits": [{"search": "print(1)", "replace": "print(3)"}]}


@pytest.fixture
def work(tmp_path: Path) -> Path:
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "a.py").write_text("print(1)\n")
    return tmp_path / "work"


def told(session: Session, request: int) -> str:
    return "\n".join(text_of(message) for message in model_of(session).requests[request].messages)


@pytest.mark.parametrize("protocol", ["tools", "structured"])
async def test_it_runs_on_what_was_proposed_and_the_model_goes_on(work: Path, protocol: str) -> None:
    command = {"command": "cat a.py; echo x > new.txt; exit 3", "why": "look"}
    if protocol == "tools":
        first = calls(("propose_changes", {"changes": [CHANGE]}), ("run_command", command))
        then = calls(("propose_changes", {"changes": [FIXED]}))
    else:
        first = reply("Tries it.", fileChanges=[CHANGE], commands=[command])
        then = reply("Mends it.", fileChanges=[FIXED])
    async with open_session(work, [first, then], protocol=protocol) as session:
        await session.chat.submit("Look at a.py and change it")
        await session.chat.finished()
        assert session.state.turn.ok, session.state.turn.error
        (result,) = session.state.commands.results
        assert (result.by, result.output, result.status) == ("model", "print(2)\n", 3)
        answer = told(session, 1)
        assert "exit 3" in answer
        assert "print(2)" in answer
        assert "that was thrown away: new.txt" in answer
        (change,) = session.state.review.open
        assert session.storage.blobs.get(change.new) == b"print(3)\n"
    assert (work / "a.py").read_text() == "print(1)\n"
    assert not (work / "new.txt").exists()


async def test_a_long_output_is_cut_in_the_middle_and_secrets_are_masked(work: Path) -> None:
    key = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    command = {"command": f"echo {key}; seq 100000"}
    replies = [calls(("run_command", command)), calls(text="Done.")]
    async with open_session(work, replies, protocol="tools") as session:
        await session.chat.submit("Count")
        await session.chat.finished()
        answer = told(session, 1).partition("## COMMAND RESULT")[2].partition("\n\n")[2]
        assert "99999\n100000" in answer
        assert "lines left out" in answer
        assert key not in answer
        assert len(answer) < 3 * 2000 + 200


async def test_it_is_stopped_by_its_time_and_with_the_turn(work: Path) -> None:
    slow = {"command": "echo begun; sleep 600", "timeout": 1}
    async with open_session(
        work, [calls(("run_command", slow)), calls(text="Done.")], protocol="tools"
    ) as session:
        await session.chat.submit("Wait")
        await session.chat.finished()
        assert session.state.commands.results[-1].how == "time-out"
        assert "it exceeded its time limit" in told(session, 1)
        model_of(session).replies = [calls(("run_command", {"command": "sleep 600"}))]
        begun = asyncio.Event()
        session.subscribe(
            lambda _, state: begun.set() if any(not one.preparing for one in state.commands.running) else None
        )
        await session.chat.submit("Wait again")
        await asyncio.wait_for(begun.wait(), 20)
        await session.chat.stop()
        assert not session.state.commands.running
        assert session.state.commands.results[-1].how == "stopped"


async def test_headless_a_command_that_would_have_to_be_asked_about_is_denied(work: Path) -> None:
    replies = [calls(("run_command", {"command": "echo ran"})), calls(text="Done.")]
    async with open_session(work, replies, protocol="tools", overrides=("commands.ask=always",)) as session:
        await session.chat.submit("Run it")
        await session.chat.finished()
        assert not session.state.commands.results
        assert "confirmation is not possible" in told(session, 1)
