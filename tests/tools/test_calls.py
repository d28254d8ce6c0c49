"""Calls of tools: each has its own result under its id, in order, whatever the reply holds."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.sessions import calls, model_of, open_session, reply
from support.trees import make_tree

from tui_agent.headless.event_lines import lines
from tui_agent.model.client import CallChunk, Chunk, EndChunk
from tui_agent.model.parts import calls_of, text_of
from tui_agent.session.session import Session
from tui_agent.tools import tool as tool_module
from tui_agent.tools.read_files import MOST_ACTIONS
from tui_agent.tools.tool import Emit, Invocation, Tool, ToolContext, ToolResult
from tui_agent.turn.calls import HEAD, MOST_CALLS, TAIL
from tui_agent.turn.reply import MOST_KEPT_CALLS

DONE = reply("Done.")
CHANGE = {"path": "a.py", "edits": [{"search": "x = 1", "replace": "x = 2"}]}
WRONG = {"path": "b.py", "edits": [{"search": "nothing like it", "replace": "y"}]}


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    return make_tree(tmp_path / "work", {"a.py": "x = 1\n", "b.py": "y = 1\n", "docs/c.md": "c\n"})


def results(session: Session, request: int = 1) -> dict[str, str]:
    """The results that a request carries, in order, by the calls' ids."""
    messages = model_of(session).requests[request].messages
    return {m["tool_call_id"]: str(m["content"]) for m in messages if m["role"] == "tool"}


async def ask(session: Session) -> None:
    await session.chat.submit("Look around")
    await session.chat.finished()
    assert session.state.turn.ok, session.state.turn.error


def read(path: str) -> tuple[str, dict[str, Any]]:
    return "read_files", {"actions": [{"type": "file", "name": path, "patterns": [path]}]}


async def test_forty_calls_are_answered_in_one_step_in_order(workspace: Path) -> None:
    make_tree(workspace, {f"src/m{n}.py": f"value = {n}\n" for n in range(40)})
    asked = calls(*(read(f"src/m{n}.py") for n in range(40)))
    async with open_session(workspace, [asked, DONE], protocol="tools") as session:
        await ask(session)
        answered = results(session)
        assert list(answered) == [f"call_{n}" for n in range(40)]
        assert all(f"1: value = {n}" in answered[f"call_{n}"] for n in range(40))
        assert len(model_of(session).requests) == 2


async def test_a_call_can_make_two_hundred_requests(workspace: Path) -> None:
    """Each progress of a request costs time in proportion to the number of requests."""
    made = [{"type": "file", "name": str(n), "patterns": [f"{n}.py"]} for n in range(210)]
    made[0]["patterns"] = ["a.py"]
    asked = calls(("read_files", {"actions": made}))
    async with open_session(workspace, [asked, DONE], protocol="tools") as session:
        await ask(session)
        answered = results(session)["call_0"]
        assert "1: x = 1" in answered and "10 of 210 requests are ignored: a call can make 200." in answered
        assert len(session.state.plan.actions) == MOST_ACTIONS == 200


async def test_a_reply_that_changes_and_asks_gets_both_answered(workspace: Path) -> None:
    both = calls(
        ("propose_changes", {"changes": [CHANGE]}),
        read("b.py"),
        ("list_directory", {"requests": [{"path": "docs"}]}),
    )
    async with open_session(workspace, [both, DONE], protocol="tools") as session:
        await ask(session)
        proposed, shown, listed = results(session).values()
        assert proposed == "Proposed; the person decides:\n- a.py"
        assert "1: y = 1" in shown and "a.py" not in shown
        assert "| c.md |" in listed and "y = 1" not in listed
        assert [change.path for change in session.state.review.open] == ["a.py"]


async def test_structured_replies_that_change_and_ask_are_answered_as_well(workspace: Path) -> None:
    asks = [{"type": "file", "name": "B", "patterns": ["b.py"]}]
    both = reply("Both.", fileChanges=[CHANGE], fileRequests=asks)
    async with open_session(workspace, [both, DONE]) as session:
        await ask(session)
        told = str(model_of(session).requests[1].messages[-1]["content"])
        assert "1: y = 1" in told and "Proposed; the person decides:\n- a.py" in told
        assert [change.path for change in session.state.review.open] == ["a.py"]


async def test_the_model_is_told_which_changes_could_not_be_placed(workspace: Path) -> None:
    both = calls(("propose_changes", {"changes": [CHANGE, WRONG]}), read("a.py"))
    async with open_session(workspace, [both, DONE], protocol="tools") as session:
        await ask(session)
        proposed = results(session)["call_0"]
        assert "decides:\n- a.py\nNot taken:\n- b.py: " in proposed


async def test_what_only_proposes_ends_the_turn_and_is_answered_with_the_next(workspace: Path) -> None:
    asked = calls(("set_todos", {"todos": [{"text": "One"}]}), ("propose_changes", {"changes": [CHANGE]}))
    async with open_session(workspace, [asked, DONE], protocol="tools") as session:
        await ask(session)
        assert len(model_of(session).requests) == 1
        await ask(session)
        assert list(results(session).values()) == [
            "The list has 1 todo, 1 of them open.",
            "Proposed; the person decides:\n- a.py",
        ]


@pytest.fixture
def tool(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:
    """A tool that does what its `run` says; more fields may be set."""
    made: dict[str, Any] = {}

    async def run(call: Invocation, context: ToolContext, emit: Emit) -> ToolResult:
        return await made["run"](call, context, emit)

    def tools() -> tuple[Tool, ...]:
        fields = {key: value for key, value in made.items() if key != "run"}
        probe = Tool(
            name="probe",
            key="probes",
            words="For tests.",
            entry={"type": "object"},
            example={},
            place=99,
            run=run,
            **fields,
        )
        return (*shipped, probe)

    shipped = tool_module.all_tools()
    monkeypatch.setattr(tool_module, "all_tools", tools)
    yield made


async def test_independent_calls_run_at_the_same_time(workspace: Path, tool: dict[str, Any]) -> None:
    together = asyncio.Barrier(3)

    async def run(call: Invocation, context: ToolContext, emit: Emit) -> ToolResult:
        await together.wait()  # only calls that run at once get past it
        return ToolResult(f"did {call.entries[0]['n']}")

    tool["run"] = run
    asked = calls(*(("probe", {"n": n}) for n in range(3)))
    async with open_session(workspace, [asked, DONE], protocol="tools") as session:
        await ask(session)
        assert list(results(session).values()) == ["did 0", "did 1", "did 2"]


async def test_a_tool_that_raises_gives_an_error_and_leaves_a_traceback(
    workspace: Path, tool: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    async def run(call: Invocation, context: ToolContext, emit: Emit) -> ToolResult:
        raise ZeroDivisionError("never")

    tool["run"] = run
    with caplog.at_level(logging.ERROR, "tui_agent"):
        async with open_session(
            workspace, [calls(("probe", {"n": 1}), read("a.py")), DONE], protocol="tools"
        ) as session:
            await ask(session)
            failed, shown = results(session).values()
    assert failed.startswith("Error: a fault in probe (ZeroDivisionError)") and "1: x = 1" in shown
    assert any(record.exc_info for record in caplog.records)


async def test_fifty_megabytes_keep_their_head_and_tail(workspace: Path, tool: dict[str, Any]) -> None:
    async def run(call: Invocation, context: ToolContext, emit: Emit) -> ToolResult:
        return ToolResult("HEAD" + "x" * 50_000_000 + "TAIL")

    tool["run"] = run
    async with open_session(workspace, [calls(("probe", {"n": 1})), DONE], protocol="tools") as session:
        await ask(session)
        (told,) = results(session).values()
        assert (
            told.startswith("HEAD")
            and told.endswith("TAIL")
            and "of 50,000,008 characters are left out" in told
        )
        assert len(told) < HEAD + TAIL + 200


@pytest.mark.parametrize("end", ["limit", "stop", "quit"])
async def test_a_tool_that_never_returns_is_ended(workspace: Path, tool: dict[str, Any], end: str) -> None:
    begun = asyncio.Event()

    async def run(call: Invocation, context: ToolContext, emit: Emit) -> ToolResult:
        begun.set()
        await asyncio.Event().wait()
        raise AssertionError

    tool |= {"run": run, "seconds": 0.05 if end == "limit" else 0.0}
    async with open_session(workspace, [calls(("probe", {"n": 1})), DONE], protocol="tools") as session:
        await session.chat.submit("Look")
        await begun.wait()
        if end == "stop":
            await session.chat.stop()
            assert "Stopped" in session.state.turn.error
        elif end == "limit":
            await session.chat.finished()
            assert "stopped after 0.05 s" in results(session)["call_0"]


async def test_an_expression_that_takes_for_ages_is_stopped(workspace: Path) -> None:
    (workspace / "a.py").write_text("a" * 1_000 + "!\n")
    asked = calls(("search_text", {"pattern": "(a|aa)+$", "regex": True}))
    async with open_session(workspace, [asked, DONE], protocol="tools") as session:
        await ask(session)
        assert "took over 1 s on one line" in results(session)["call_0"]


async def test_a_search_for_a_file_name_names_the_files(workspace: Path) -> None:
    (workspace / "Setup.cfg").write_text("[x]\n")
    asked = calls(
        ("search_text", {"pattern": "setup.CFG"}),
        ("search_text", {"pattern": "setup.cfgs"}),
        ("search_text", {"pattern": "setup.cfg", "regex": True}),
    )
    async with open_session(workspace, [asked, DONE], protocol="tools") as session:
        await ask(session)
        first, *rest = results(session).values()
        assert first.endswith("found nowhere in a file; paths that contain it: Setup.cfg")
        assert all(text.endswith("found nowhere") for text in rest)


async def test_of_five_hundred_calls_those_that_a_conversation_takes_get_a_result(workspace: Path) -> None:
    asked = calls(*(("search_text", {"pattern": f"v{n}", "glob": "a.py"}) for n in range(500)))
    async with open_session(workspace, [asked, DONE], protocol="tools") as session:
        await ask(session)
        answered = list(results(session).values())
        assert len(answered) == MOST_KEPT_CALLS
        assert sum("found nowhere" in text for text in answered) == MOST_CALLS
        assert all(f"at most {MOST_CALLS} calls" in text for text in answered[MOST_CALLS:])
        told = str(model_of(session).requests[-1].messages[-1])
        assert f"The answer had 500 calls: only the first {MOST_KEPT_CALLS} of them were taken." in told


async def test_bad_calls_get_errors_and_the_turn_goes_on(workspace: Path) -> None:
    big = json.dumps({"actions": "x" * 5_000_000})
    named = [
        ("a", "rm_\x1b[31m\nrf", "{}"),
        ("a", "read_files", "{}"),
        ("c", "nothing_such", "{}"),
        ("d", "read_files", big),
    ]
    chunks: list[Chunk] = [CallChunk(at, call, name, text) for at, (call, name, text) in enumerate(named)]
    async with open_session(
        workspace, [[*chunks, EndChunk("tool_calls")], DONE], protocol="tools"
    ) as session:
        await ask(session)
        answered = list(results(session).values())
        assert len(answered) == 4 and all(text.startswith("Error: ") for text in answered)
        assert "There is no function" in answered[0] and "has the id of another call" in answered[1]
        sent = model_of(session).requests[1].messages
        made = next(made for message in sent if (made := calls_of(message)))
        assert made[0].name == "rm___31m_rf"
        assert max(len(call.arguments) for call in made) < 5_000, "what is of no use is not sent back"


@pytest.mark.parametrize("protocol", ["tools", "structured"])
async def test_a_tool_that_is_off_is_in_no_prompt_and_no_schema(workspace: Path, protocol: str) -> None:
    asked = (
        calls(("search_text", {"pattern": "x"}))
        if protocol == "tools"
        else reply("Looks.", searches=[{"pattern": "x"}], fileRequests=[{"patterns": ["a.py"]}])
    )
    overrides = ("tools.off=search_text,spawn_subtasks",)
    async with open_session(workspace, [asked, DONE], protocol=protocol, overrides=overrides) as session:
        await ask(session)
        first, second = model_of(session).requests
        sent = json.dumps([first.messages, first.tools, first.schema])
        for word in ("search_text", "searches", "spawn_subtasks", "subTasks", "# Sub-tasks"):
            assert word not in sent, word
        told = "\n".join(text_of(message) for message in second.messages[-2:])
        assert "There is no function 'search_text'" in told or "There is no `searches` here" in told


@pytest.mark.parametrize("protocol", ["tools", "structured"])
async def test_the_first_request_stays_small(workspace: Path, protocol: str) -> None:
    async with open_session(workspace, [DONE], protocol=protocol) as session:
        await ask(session)
        request = model_of(session).requests[0]
        words = sum(len(text_of(message)) for message in request.messages)
        shapes = len(json.dumps([*request.tools, request.schema]))
        assert (words + shapes) / 4 <= 2_500


async def test_each_call_is_told_in_a_line_and_shown_with_the_answer(workspace: Path) -> None:
    told: list[dict[str, Any]] = []
    asked = calls(read("a.py"), ("search_text", {"pattern": "y"}), ("nothing_such", {}), text="Looks.")
    async with open_session(workspace, [asked, DONE], protocol="tools") as session:
        session.subscribe(lambda event, state: told.extend(lines(event, state)))
        await ask(session)
        tools = [line for line in told if line["type"] == "tool"]
        assert {(line["id"], line["name"], line["ok"]) for line in tools} == {
            ("call_0", "read_files", True),
            ("call_1", "search_text", True),
            ("call_2", "nothing_such", False),
        }
        assert all(line["seconds"] >= 0 and "arguments" in line for line in tools)
        message = next(message for message in session.state.chat.messages if message.calls)
        shown = {use.id: use for use in message.calls}
        assert shown["call_0"].amount == "1 file, 1 line" and "b.py:1" in shown["call_1"].details
