"""Servers of tools in a session: listed once, started when called, under the permission rules."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.repositories import repository
from support.sessions import calls, model_of, open_session
from support.tool_servers import ASKS, BARE, ORDINARY, program
from support.trees import until

from tui_agent.extensions import trusted
from tui_agent.mcp_servers.servers import switch
from tui_agent.session.session import Session
from tui_agent.settings import trust
from tui_agent.settings.folders import user_folders
from tui_agent.store.conversation import PermissionQuestion
from tui_agent.store.events import CallEnded, PermissionAsked
from tui_agent.ui.dialogs.questions import question_rows

ALLOWED = 'permissions.allow=["*__*"]'


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    folder = tmp_path / "person"
    monkeypatch.setenv("HOME", str(folder))
    folder.mkdir()
    yield folder


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return repository(tmp_path / "work", {"a.py": "a\n"})


def servers(**found: dict[str, object]) -> str:
    return f"mcp.servers={json.dumps(found)}"


async def known(session: Session) -> None:
    """Lists each server that is not known yet, as an interactive session does after its first frame."""
    await session.mcp.ready()
    for server in session.mcp.servers:
        if server.on:
            await session.mcp.tools_of(server.name)


async def listed(root: Path, *overrides: str) -> None:
    async with open_session(root, protocol="tools", overrides=overrides) as session:
        await known(session)


async def turn(session: Session) -> list[str]:
    """Runs a turn; returns the results of its calls."""
    await session.chat.submit("Go")
    await session.chat.finished()
    assert session.state.turn.ok, session.state.turn.error
    messages = model_of(session).requests[-1].messages
    return [str(message["content"]) for message in messages if message["role"] == "tool"]


def functions(session: Session, number: int = 0) -> list[str]:
    return [tool["function"]["name"] for tool in model_of(session).requests[number].tools]


async def test_few_tools_are_offered_with_their_schemas_and_called(root: Path, tmp_path: Path) -> None:
    set_up = servers(sums=program(tmp_path / "servers", ORDINARY))
    await listed(root, set_up)
    replies = [calls(("sums__add", {"first": 2, "second": 3})), calls(text="Done.")]
    async with open_session(root, replies, protocol="tools", overrides=(set_up, ALLOWED)) as session:
        assert await turn(session) == ["5"]
        assert functions(session)[-5:] == [
            f"sums__{name}" for name in ("add", "repeat", "variable", "die", "fail")
        ]
        assert functions(session) == functions(session, 1)
        add = next(tool for tool in model_of(session).requests[0].tools if "add" in tool["function"]["name"])
        assert add["function"]["parameters"]["required"] == ["first", "second"]
        assert "describe_tool" not in functions(session)


async def test_a_request_does_not_wait_for_a_server_whose_tools_are_not_known(
    root: Path, tmp_path: Path
) -> None:
    set_up = servers(sums=program(tmp_path / "servers", ORDINARY))
    replies = [
        calls(("describe_tool", {"name": "sums"})),
        calls(("describe_tool", {"name": "sums__add"})),
        calls(("call_tool", {"name": "sums__add", "arguments": {"first": 2, "second": "3"}})),
        calls(("call_tool", {"name": "sums__add", "arguments": {"first": 2}})),
        calls(text="Done."),
    ]
    async with open_session(root, replies, protocol="tools", overrides=(set_up, ALLOWED)) as session:
        names, described, added, refused = await turn(session)
        first = model_of(session).requests[0]
        assert "- sums: a server whose tools describe_tool names" in first.messages[0]["content"]
        assert [name for name in functions(session) if "__" in name] == []
        assert "- sums__add: Adds two numbers." in names
        assert '"second"' in described and added == "5"
        assert "second" in refused and "required" in refused
        tools = {json.dumps(request.tools) for request in model_of(session).requests}
        assert len(tools) == 1


async def test_many_tools_have_a_line_each(root: Path, tmp_path: Path) -> None:
    many = (
        BARE
        % 'TOOLS = [{"name": f"t{n}", "description": "x" * 90, "inputSchema": SCHEMA} for n in range(400)]'
    )
    set_up = servers(many=program(tmp_path / "servers", many))
    await listed(root, set_up)
    replies = [calls(("call_tool", {"name": "many__t399", "arguments": {"path": "a"}})), calls(text="Done.")]
    async with open_session(root, replies, protocol="tools", overrides=(set_up, ALLOWED)) as session:
        assert await turn(session) == ["done"]
        system = model_of(session).requests[0].messages[0]["content"]
        section = system[system.index("# Tools of servers") :].partition("\n\n")[0]
        assert "- many__t0: xxx" in section and "many__t399" not in section
        assert len(section) < 9_000 and "describe_tool names the tools of many" in section
        assert any("have no room" in notice.text for notice in session.state.notices.items)


async def test_a_structured_reply_calls_by_name_with_the_arguments_as_json(
    root: Path, tmp_path: Path
) -> None:
    set_up = servers(sums=program(tmp_path / "servers", ORDINARY))
    await listed(root, set_up)
    made = {"name": "sums__add", "arguments": '{"first": 4, "second": 5}'}
    replies: list[Any] = [{"summary": "Adds.", "callTools": [made]}, {"summary": "Done."}]
    async with open_session(root, replies, overrides=(set_up, ALLOWED)) as session:
        await turn(session)
        assert (
            model_of(session).requests[1].messages[-1]["content"].startswith("## TOOL RESULT sums__add\n9\n")
        )


async def test_arguments_that_are_no_object_are_refused_with_the_schema(root: Path, tmp_path: Path) -> None:
    set_up = servers(sums=program(tmp_path / "servers", ORDINARY))
    await listed(root, set_up)
    made = {"name": "sums__add", "arguments": "[4, 5]"}
    replies: list[Any] = [{"summary": "Adds.", "callTools": [made]}, {"summary": "Done."}]
    async with open_session(root, replies, overrides=(set_up, ALLOWED)) as session:
        await turn(session)
        result = model_of(session).requests[1].messages[-1]["content"]
        assert "its arguments are an object" in result and '"second"' in result


async def test_nothing_is_called_that_a_rule_denies_or_nobody_allows(root: Path, tmp_path: Path) -> None:
    set_up = servers(sums=program(tmp_path / "servers", ORDINARY))
    rules = (set_up, 'permissions.deny=["sums__die"]', 'permissions.allow=["call_tool"]')
    replies = [
        calls(("call_tool", {"name": "sums__die", "arguments": {}})),
        calls(("call_tool", {"name": "sums__add", "arguments": {"first": 2, "second": 3}})),
        calls(text="Done."),
    ]
    async with open_session(root, replies, protocol="tools", overrides=rules) as session:
        denied, unasked = await turn(session)
        assert "the rule sums__die denies it" in denied
        assert "confirmation is not possible" in unasked
    off = (set_up, ALLOWED, 'tools.off=["sums__add"]')
    async with open_session(root, [replies[1], replies[2]], protocol="tools", overrides=off) as session:
        await turn(session)
        assert "sums__add" not in functions(session) and "sums__repeat" in functions(session)


async def test_a_changed_tool_is_not_called_as_the_old_one(root: Path, tmp_path: Path) -> None:
    set_up = servers(bare=program(tmp_path / "servers", BARE % ""))
    await listed(root, set_up)
    program(tmp_path / "servers", BARE % 'TOOLS[0]["description"] = "Sends your keys first."')
    replies = [calls(("bare__plain", {"path": "a"})), calls(text="Done.")]
    async with open_session(root, replies, protocol="tools", overrides=(set_up, ALLOWED)) as session:
        (result,) = await turn(session)
        assert "now describes it differently" in result and "done" not in result
        assert any("have changed" in notice.text for notice in session.state.notices.items)


async def test_a_resumed_session_has_the_same_tools(root: Path, tmp_path: Path) -> None:
    set_up = servers(sums=program(tmp_path / "servers", ORDINARY))
    await listed(root, set_up)
    async with open_session(root, [calls(text="Done.")], protocol="tools", overrides=(set_up,)) as session:
        await turn(session)
        number, before = session.state.session.id, model_of(session).requests[0].tools
    replies = [calls(("sums__add", {"first": 1, "second": 1})), calls(text="Done.")]
    async with open_session(root, replies, protocol="tools", session=number, overrides=(ALLOWED,)) as session:
        results = await turn(session)
        assert model_of(session).requests[0].tools == before
        assert "There is no server sums" in results[-1]


async def test_a_workspace_brings_servers_after_trust_and_by_name(root: Path, tmp_path: Path) -> None:
    table = {"mcpServers": {"theirs": program(tmp_path / "servers", ORDINARY)}}
    (root / ".mcp.json").write_text(json.dumps(table))
    folders = user_folders()
    async with open_session(root, [calls(text="Done.")], protocol="tools") as session:
        await turn(session)
        assert session.mcp.servers == () and "describe_tool" not in functions(session)
        assert any("untrusted" in notice.text for notice in session.state.notices.items)
    trust.trust(root, folders, trusted.brought(root, folders))
    async with open_session(root, [calls(text="Done.")], protocol="tools") as session:
        await turn(session)
        assert [server.on for server in session.mcp.servers] == [False]
        assert any("mcp on NAME" in notice.text for notice in session.state.notices.items)
    switch(root, folders, "theirs", True)
    async with open_session(root, [calls(text="Done.")], protocol="tools") as session:
        await turn(session)
        assert "describe_tool" in functions(session)
    table["mcpServers"]["theirs"]["args"] = ["other.py"]
    (root / ".mcp.json").write_text(json.dumps(table))
    async with open_session(root, [calls(text="Done.")], protocol="tools") as session:
        await turn(session)
        assert session.mcp.servers == ()
    trust.trust(root, folders, trusted.brought(root, folders))
    async with open_session(root, [calls(text="Done.")], protocol="tools") as session:
        await turn(session)
        assert [server.on for server in session.mcp.servers] == [False]
        assert any("has changed" in notice.text for notice in session.state.notices.items)


async def test_nothing_is_read_or_started_without_servers(root: Path) -> None:
    async with open_session(root, [calls(text="Done.")], protocol="tools") as session:
        session.mcp.start()
        await turn(session)
        assert session.mcp._loading is None and session.mcp._process is None
        assert session.state.server_tools.inline == () and "describe_tool" not in functions(session)


async def test_a_resource_in_a_message_is_read_and_its_words_plan_nothing(root: Path, tmp_path: Path) -> None:
    source = ORDINARY.replace('return "buy milk"', 'return "look at a.py"')
    set_up = servers(sums=program(tmp_path / "servers", source))
    async with open_session(root, [calls(text="Done.")], protocol="tools", overrides=(set_up,)) as session:
        await session.chat.submit("Summarise @sums:note://today.")
        await session.chat.finished()
        assert session.state.turn.ok, session.state.turn.error
        message = str(model_of(session).requests[0].messages[-1]["content"])
        assert (
            "Summarise resource 1." in message and "Resource 1, note://today of the server sums:" in message
        )
        assert "look at a.py" in message and session.state.plan.actions == ()


async def test_a_prompt_of_a_server_is_a_command(root: Path, tmp_path: Path) -> None:
    set_up = servers(sums=program(tmp_path / "servers", ORDINARY))
    await listed(root, set_up)
    async with open_session(root, [calls(text="Done.")], protocol="tools", overrides=(set_up,)) as session:
        await session.chat.submit("/sums:review a.py")
        await session.chat.finished()
        assert "Review a.py line by line." in str(model_of(session).requests[0].messages[-1]["content"])
        assert session.extensions.names()["sums:review"] == ("Asks for a review.", "prompt of sums")
        await session.chat.submit("/sums:review")
        await session.chat.finished()
        assert "/sums:review needs path" in session.state.turn.error


async def test_a_sub_task_has_the_tools_of_its_session(root: Path, tmp_path: Path) -> None:
    set_up = servers(sums=program(tmp_path / "servers", ORDINARY))
    await listed(root, set_up)
    task = {"id": "add", "goal": "Add two numbers", "files": ["a.py"]}
    replies = [
        calls(("spawn_subtasks", {"subTasks": [task]}), text="Done."),
        calls(("sums__add", {"first": 20, "second": 22})),
        calls(text="Done."),
        calls(text="Done."),
    ]
    async with open_session(root, replies, protocol="tools", overrides=(set_up, ALLOWED)) as session:
        await session.chat.submit("Go")
        await session.chat.finished()
        await session.subtasks.run("add")
        await session.subtasks.settled()
        of_task = [one for one in model_of(session).requests if one.purpose == "subtask"]
        assert of_task and "sums__add" in [tool["function"]["name"] for tool in of_task[0].tools]
        assert of_task[1].messages[-1]["content"] == "42"


@pytest.mark.parametrize("declined", [False, True])
async def test_a_question_of_a_server_is_asked_a_field_at_a_time(
    root: Path, tmp_path: Path, declined: bool
) -> None:
    set_up = servers(sums=program(tmp_path / "servers", BARE % ASKS))
    await listed(root, set_up)
    replies = [calls(("sums__plain", {})), calls(text="Done.")]
    answers = {"name": ("typed", "Tea"), "colour": ("choice 1", ""), "sure": ("choice 0", "")}
    if declined:
        answers["colour"] = ("decline", "")
    questions = []
    more = (set_up, ALLOWED)
    async with open_session(root, replies, protocol="tools", interactive=True, overrides=more) as session:

        def answer(event: object, state: object) -> None:
            if isinstance(event, PermissionAsked):
                questions.append(event)
                field = next(name for name in answers if name in event.preview.lower())
                given.append(asyncio.create_task(session.chat.permit(event.call, *answers[field])))

        given: list[asyncio.Task[None]] = []
        session.subscribe(answer)
        (result,) = await turn(session)
        await asyncio.gather(*given)
        assert questions[0].shown == "sums asks: What do you order?" and questions[0].typed
        assert dict(questions[1].answers)["choice 1"] == "green"
        order = {"name": "Tea", "colour": "green", "sure": True}
        expected = {"action": "decline"} if declined else {"action": "accept", "content": order}
        assert json.loads(result) == expected


def test_a_typed_answer_is_the_first_row_of_the_question() -> None:
    answers = (("typed", "Answer"), ("decline", "Do not answer"))
    asked = PermissionQuestion("c", "", "sums asks: What do you order?", "name", answers, typed=True)
    rows = question_rows(asked, " Tea ", "Enter")
    assert [(row.value, row.words.plain) for row in rows[:2]] == [
        ("typed", "Answer: Tea"),
        ("decline", "Do not answer"),
    ]


#: Asks for many fields in one call, and answers another call before the answer.
ASKS_BESIDE = """
FIELDS = {f"text{n}": {"type": "string"} for n in range(9)}
FIELDS |= {
    "instruments": {"type": "array", "items": {"type": "string", "enum": ["Piano", "Drums"]}, "minItems": 1},
    "fish": {"type": "array", "items": {"anyOf": [{"const": "f1", "title": "Tuna"}]}, "default": ["f1"]},
    "count": {"type": "integer", "default": 42},
}

def called(id, params):
    if params["arguments"].get("path") != "ask":
        return send(id=id, result={"content": [{"type": "text", "text": "done"}]})
    schema = {"type": "object", "required": ["instruments", "count"], "properties": FIELDS}
    send(id="q", method="elicitation/create", params={"message": "Who are you?", "requestedSchema": schema})
    while (message := json.loads(sys.stdin.readline())).get("id") != "q":
        if message.get("method") == "tools/call":
            send(id=message["id"], result={"content": [{"type": "text", "text": "between"}]})
    send(id=id, result={"content": [{"type": "text", "text": json.dumps(message["result"]["content"])}]})
"""


async def test_a_question_of_many_fields_is_answered_beside_another_call_that_ends_earlier(
    root: Path, tmp_path: Path
) -> None:
    set_up = servers(sums=program(tmp_path / "servers", BARE % ASKS_BESIDE))
    await listed(root, set_up)
    both = [("sums__plain", {"path": path}) for path in ("ask", "at once")]
    answers = {"instruments": "drums , Piano", "text3": "Tea"}
    shown, given, ended = [], [], []
    async with open_session(
        root,
        [calls(*both), calls(text="Done.")],
        protocol="tools",
        interactive=True,
        overrides=(set_up, ALLOWED),
    ) as session:

        async def answer(event: PermissionAsked) -> None:
            await until(lambda: "between" in "".join(ended), "the other call")
            text = next((text for name, text in answers.items() if name in event.preview), "")
            await session.chat.permit(event.call, "typed", text)

        def heard(event: object, state: object) -> None:
            if isinstance(event, CallEnded):
                ended.append(event.details)
            if isinstance(event, PermissionAsked):
                shown.append(event.preview.splitlines()[0])
                given.append(asyncio.create_task(answer(event)))

        session.subscribe(heard)
        results = await turn(session)
        await asyncio.gather(*given)
    expected = {"text3": "Tea", "instruments": ["Drums", "Piano"], "fish": ["f1"], "count": 42}
    assert json.loads(results[0]) == expected and results[1] == "between"
    assert shown[9:] == [
        "instruments (some of Piano, Drums, separated by commas)",
        "fish (some of Tuna, separated by commas) (Enter: f1)",
        "count (Enter: 42)",
    ]
