"""The plan pass: what the planner is sent, when it is not asked, and what happens when its answer is no plan."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.sessions import Reply, calls, model_of, open_session, reply

from tui_agent.errors import RequestRejected, Unreachable
from tui_agent.model.parts import text_of
from tui_agent.session.session import Session
from tui_agent.store import events as e

VAGUE = "Make the requests more robust"


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    for path in ("src/api.py", "src/retry.py", "docs/a.md", "docs/b.md", "README.md"):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(f"# {path}\n")
    return folder


def plan(*actions: dict[str, Any]) -> dict[str, Any]:
    return {"actions": list(actions)}


RETRY = {"type": "file", "name": "Retries", "patterns": ["lib/retry.py", "**/retry.py"], "required": True}


async def asked(session: Session, request: str = VAGUE) -> list[e.Event]:
    """Run one turn; everything that happened."""
    happened: list[e.Event] = []
    end = session.subscribe(lambda event, state: happened.append(event))
    await session.chat.submit(request)
    await session.chat.finished()
    end()
    assert session.state.turn.ok, session.state.turn.error
    return happened


def purposes(session: Session) -> list[str]:
    return [request.purpose for request in model_of(session).requests]


async def test_the_planner_is_sent_request_outline_and_known_files_and_nothing_that_grows(
    workspace: Path,
) -> None:
    async with open_session(workspace, [reply(), reply()], plans=[plan(RETRY), plan(RETRY)]) as session:
        happened = await asked(session)
        first = model_of(session).requests[0]
        assert purposes(session) == ["plan", "main"] and [m["role"] for m in first.messages] == [
            "system",
            "user",
        ]
        words = first.messages[1]["content"]
        assert "src/ (2)" in words and words.endswith(f"<user_query>\n{VAGUE}\n</user_query>")
        assert "KNOWN FILES" not in words
        state = session.state
        assert (state.plan.source, state.plan.actions[0].loaded) == ("model", ("src/retry.py",))
        assert state.usage.turn.input == 200  # both requests are paid for
        sent = [event for event in happened if isinstance(event, e.RequestSent)]
        assert [event.purpose for event in sent] == ["plan", "main"] and sent[0].tokens > 0
        await asked(session)
        again = model_of(session).requests[2].messages
        assert len(again) == 2 and "| src/retry.py | turn 1 |" in again[1]["content"]
        begun = [message.blob for message in state.conversation.messages]
        assert [message.blob for message in session.state.conversation.messages][: len(begun)] == begun


@pytest.mark.parametrize("protocol", ["structured", "tools"])
async def test_on_one_slot_the_plan_is_asked_for_at_the_end_of_the_conversation(
    workspace: Path, protocol: str
) -> None:
    def prepare(session: Session) -> None:
        model_of(session).slots = 1

    change = {"path": "new.txt", "content": "x\n"}
    first = calls(("propose_changes", {"changes": [change]})) if protocol == "tools" else reply()
    plans = [plan(RETRY), "no plan", plan(RETRY)]
    async with open_session(
        workspace,
        [first, "Done."],
        plans=plans,
        protocol=protocol,
        prepare=prepare,
        overrides=["planner_model=scripted"],
    ) as session:
        await asked(session)
        before = len(model_of(session).requests)
        await asked(session)
        assert purposes(session) == ["plan", "main", "plan", "plan", "main"]
        requests = model_of(session).requests
        sent = requests[before - 1]
        for one in requests[before:]:
            assert one.messages[: len(sent.messages)] == sent.messages and one.tools == sent.tools
        answered = [one["tool_call_id"] for one in requests[before].messages if one["role"] == "tool"]
        assert len(answered) == (protocol == "tools")
        assert requests[before].messages[-1]["content"].startswith("You choose which files")
        assert (session.state.plan.source, len(session.state.plan.actions)) == ("model", 1)


async def test_a_request_that_names_its_files_costs_no_planner_call(workspace: Path) -> None:
    async with open_session(workspace, [reply()], plans=[plan(RETRY)]) as session:
        await asked(session, "Rename the title in src/api.py")
        assert purposes(session) == ["main"] and session.state.plan.source == "words"


async def test_what_is_mentioned_is_loaded_whatever_the_planner_says(workspace: Path) -> None:
    async with open_session(workspace, [reply()], plans=[plan(RETRY)]) as session:
        await asked(session, "Make the calls more robust everywhere, see @docs/a.md")
        assert [slot.loaded for slot in session.state.plan.actions] == [("docs/a.md",), ("src/retry.py",)]


async def test_directories_of_a_plan_are_listed(workspace: Path) -> None:
    folder = {"type": "directory", "path": "docs", "filter": "*.md"}
    async with open_session(workspace, [reply()], plans=[plan(folder)]) as session:
        await asked(session)
        assert "a.md" in model_of(session).requests[-1].messages[-1]["content"]


async def test_an_answer_that_is_no_plan_is_asked_for_once_more_with_the_fault_named(workspace: Path) -> None:
    async with open_session(workspace, [reply()], plans=["I would look around.", plan(RETRY)]) as session:
        happened = await asked(session)
        assert purposes(session) == ["plan", "plan", "main"]
        again = model_of(session).requests[1].messages
        assert text_of(again[2]) == "I would look around."
        assert "The plan contains no list of actions." in again[3]["content"]
        assert session.state.plan.source == "model"
        assert not [event for event in happened if isinstance(event, e.NoticeGiven)]


@pytest.mark.parametrize(
    ("plans", "why"),
    [
        (["no", '{"actions": [7]}'], "not of type"),
        ([Unreachable("openai/x cannot be reached", "look at the address")], "cannot be reached"),
        ([""], "empty"),
    ],
)
async def test_without_a_plan_the_words_of_the_request_are_taken(
    workspace: Path, plans: list[Reply], why: str
) -> None:
    async with open_session(workspace, [reply()], plans=plans) as session:
        await asked(session, "Make everything related to src/retry.py more robust")
        state = session.state
        assert (state.plan.source, state.plan.actions[0].loaded) == ("words", ("src/retry.py",))
        (notice,) = state.notices.items
        assert notice.level == "warning" and why in notice.text


async def test_an_error_that_the_model_itself_meets_is_told_once(workspace: Path) -> None:
    unknown = RequestRejected("The server does not know scripted", "check its name")
    async with open_session(workspace, [unknown], plans=[unknown]) as session:
        await session.chat.submit(VAGUE)
        await session.chat.finished()
        assert purposes(session) == ["plan", "main"]
        assert session.state.turn.error == str(unknown)
        assert not [notice for notice in session.state.notices.items if "does not know" in notice.text]


async def test_a_plan_of_the_older_form_and_one_that_is_mended_are_taken(workspace: Path) -> None:
    older = {"filesToLoad": [{"name": "Retries", "pattern": "**/retry.py"}]}
    broken = "```json\n" + json.dumps(plan(RETRY))[:-2] + "\n```"
    for answer in (older, broken):
        async with open_session(workspace, [reply()], plans=[answer]) as session:
            await asked(session)
            assert session.state.plan.actions[0].loaded == ("src/retry.py",)
            assert purposes(session) == ["plan", "main"]


async def test_a_plan_with_five_hundred_actions_is_cut_and_says_so(workspace: Path) -> None:
    many = [
        {"type": "file", "name": f"n{n}", "patterns": [f"n{n}.py"], "required": False} for n in range(500)
    ]
    async with open_session(workspace, [reply()], plans=[plan(*many)]) as session:
        await asked(session)
        assert len(session.state.plan.actions) == 20
        assert "500 actions" in session.state.plan.faults[-1]


async def test_nothing_needed_is_a_plan(workspace: Path) -> None:
    async with open_session(workspace, [reply()], plans=[plan()]) as session:
        await asked(session, "Hello")
        assert purposes(session) == ["plan", "main"] and session.state.plan.actions == ()


async def test_going_on_from_memory_needs_no_plan(workspace: Path) -> None:
    async with open_session(workspace, [reply(), reply()], plans=[plan(RETRY)]) as session:
        await asked(session)
        await asked(session, "continue")
        assert purposes(session) == ["plan", "main", "main"]
