"""Turns that an agent does, without a terminal and by the Agent Client Protocol."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

import pytest
from support.repositories import repository
from support.sessions import open_session
from support.trees import until

from tui_agent.errors import SessionError
from tui_agent.outside_agents.acp_client import answer_of
from tui_agent.session import agent_turns
from tui_agent.session.agent_turns import MOST_TEXT

#: An agent of the protocol's own SDK: it asks for permission and writes a file.
ACP_AGENT = """
import asyncio, pathlib
import acp
from acp import schema

class Echo(acp.Agent):
    def on_connect(self, conn):
        self.conn = conn
    async def initialize(self, protocol_version, client_capabilities=None, client_info=None, **_):
        assert not client_capabilities.terminal and not client_capabilities.fs.write_text_file
        return schema.InitializeResponse(protocol_version=protocol_version)
    async def new_session(self, cwd, mcp_servers=None, **_):
        self.cwd, self.turns = pathlib.Path(cwd), 0
        modes = [schema.SessionMode(id=one, name=one) for one in ("ask", "all")]
        state = schema.SessionModeState(current_mode_id="ask", available_modes=modes)
        return schema.NewSessionResponse(session_id="one", modes=state)
    async def set_session_mode(self, mode_id, session_id, **_):
        assert mode_id == "all"
    async def prompt(self, prompt, session_id, **_):
        self.turns += 1
        say = lambda update: self.conn.session_update(session_id=session_id, update=update)
        await say(acp.update_agent_thought_text("I think"))
        steps = [acp.plan_entry("Look", status="completed"), acp.plan_entry("Write", status="pending")]
        await say(acp.update_plan(steps))
        await say(acp.start_tool_call("t1", "Write made.txt", kind="edit"))
        answer = await self.conn.request_permission(
            session_id=session_id,
            tool_call=schema.ToolCallUpdate(tool_call_id="t1"),
            options=[schema.PermissionOption(option_id="no", name="No", kind="reject_once"),
                     schema.PermissionOption(option_id="yes", name="Yes", kind="allow_once")],
        )
        chosen = getattr(answer.outcome, "option_id", "none")
        (self.cwd / "made.txt").write_text(f"{prompt[0].text} {chosen} {self.turns}\\n")
        text = acp.tool_content(acp.text_block("written"))
        await say(acp.update_tool_call("t1", status="completed", content=[text]))
        await say(acp.update_plan([acp.plan_entry("Write", status="completed")]))
        await say(acp.start_tool_call("t2", "Look"))
        await say(acp.update_agent_message_text("It is done."))
        cost = schema.Cost(amount=0.5 * self.turns, currency="USD")
        await say(schema.UsageUpdate(session_update="usage_update", used=9, size=99, cost=cost))
        return schema.PromptResponse(stop_reason="end_turn")

asyncio.run(acp.run_agent(Echo()))
"""


def profile(session_folder: Path, name: str, **fields: object) -> None:
    folder = session_folder / "agent-programs"
    folder.mkdir(parents=True, exist_ok=True)
    lines = [f"{key} = {json.dumps(value)}" for key, value in fields.items()]
    (folder / f"{name}.toml").write_text("\n".join(lines))


async def test_an_agent_does_a_turn_by_acp_and_the_next_in_the_same_conversation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("acp")
    root = repository(tmp_path / "work", {"a.py": "a\n"})
    async with open_session(root, []) as session:
        agent = root / "agent.py"
        agent.write_text(ACP_AGENT)
        of_profile = {"program": sys.executable, "acp": [sys.executable, "agent.py"]}
        profile(session.folders.config, "other", **of_profile, acp_mode="none missing")
        await session.delegate("other", "go")
        await session.chat.finished()
        assert "no mode none missing, only ask, all" in session.state.turn.error
        profile(session.folders.config, "echo", **of_profile, acp_mode="missing all")
        for turn in (2, 3):
            await session.delegate("echo", "go")
            await session.chat.finished()
            assert session.state.turn.ok, session.state.turn.error
            message = session.state.chat.messages[-1]
            assert message.text == "It is done."
            first = next(
                one for one in session.state.chat.messages if one.kind == "agent" and one.turn == turn
            )
            assert first.reasoning == "I think"
            calls = [(use.name, use.shown, use.ok, use.details) for use in first.calls]
            assert calls == [
                ("edit", "Write made.txt", True, "written"),
                ("tool", "Look", False, "it did not end"),
            ]
            planned = [(todo.text, todo.done) for todo in session.state.todos if todo.turn == turn]
            assert planned == [("Look", True), ("Write", True)]
            (change,) = session.state.review.open
            assert session.core.blobs.get_text(change.new) == f"go yes {turn - 1}\n"
            assert not (root / "made.txt").exists()
            assert (
                session.state.usage.session.cost == 0.5 * (turn - 1) and session.state.usage.turn.cost == 0.5
            )


async def test_no_view_stays_of_an_agent_that_ended_or_could_not_begin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("acp")
    root = repository(tmp_path / "work", {"a.py": "a\n"})
    async with open_session(root, []) as session:
        (root / "agent.py").write_text(ACP_AGENT)
        of_profile = {"program": sys.executable, "acp": [sys.executable, "agent.py"]}
        profile(session.folders.config, "echo", **of_profile, acp_mode="all")
        running = session.outside_agents.running
        with monkeypatch.context() as patched:

            async def no_sdk() -> None:
                raise SessionError("It is not installed", "install it")

            patched.setattr(agent_turns, "load_sdk", no_sdk)
            await session.delegate("echo", "go")
            await session.chat.finished()
        assert "It is not installed" in session.state.turn.error and running == {}
        for _ in range(2):
            await session.delegate("echo", "go")
            await session.chat.finished()
            assert session.state.turn.ok, session.state.turn.error
            (run,) = running.values()
            run.stop()
            await until(lambda run=run: not run.running)


async def test_a_request_for_permission_is_a_question_in_the_chat(tmp_path: Path) -> None:
    pytest.importorskip("acp")
    root = repository(tmp_path / "work", {"a.py": "a\n", "agent.py": ACP_AGENT})
    async with open_session(root, [], interactive=True) as session:
        profile(session.folders.config, "echo", program=sys.executable, acp=[sys.executable, "agent.py"])
        for turn, (answer, outcome) in enumerate((("yes", "yes"), ("no", "no"), ("decline", "none")), 1):
            await session.delegate("echo", "go")
            await until(lambda: session.state.asked is not None, "the question")
            asked = session.state.asked
            assert asked is not None and session.state.turn.phase == "waiting"
            assert "echo asks: Write made.txt" in asked.shown and "works in a view" in asked.preview
            assert [key for key, _ in asked.answers] == ["yes", "no"]
            await session.chat.answer(asked.call, answer)
            await session.chat.finished()
            assert session.state.turn.ok, session.state.turn.error
            change = next(one for one in reversed(session.state.review.changes) if one.path == "made.txt")
            assert session.core.blobs.get_text(change.new) == f"go {outcome} {turn}\n"
        # A stop while it asks ends the turn, and the agent can go on.
        await session.delegate("echo", "go")
        await until(lambda: session.state.asked is not None, "the question")
        await session.chat.stop()
        await session.chat.finished()
        assert session.state.asked is None
        await session.set_mode("auto")
        await session.delegate("echo", "at once")
        await session.chat.finished()
        assert session.state.turn.ok and session.state.asked is None


#: An agent that breaks the protocol in many ways, by hand.
ODD_AGENT = """
import json, sys, time

def send(**fields):
    print(json.dumps({"jsonrpc": "2.0", **fields}), flush=True)

def update(**fields):
    send(method="session/update", params={"sessionId": "s", "update": fields})

def text(kind, words):
    update(sessionUpdate=kind, content={"type": "text", "text": words})

print("noise that is no JSON", flush=True)
for line in sys.stdin:
    request = json.loads(line)
    method, number = request.get("method"), request.get("id")
    if method == "initialize":
        send(id=number, result={"protocolVersion": 1, "futureField": {}})
    elif method == "session/new":
        send(id=number, result={"sessionId": "s"})
    elif method == "session/prompt":
        words = request["params"]["prompt"][0]["text"]
        if words == "forever":
            text("agent_message_chunk", "working")
            continue
        update(sessionUpdate="mystery", content=1)
        update(sessionUpdate="tool_call_update", toolCallId="unknown", status="completed")
        text("agent_message_chunk", "x" * 300_000)
        send(id=900, method="session/request_permission",
             params={"sessionId": "s", "toolCall": {"toolCallId": "t"}, "options": []})
        send(id=901, method="fs/write_text_file",
             params={"sessionId": "s", "path": "/etc/passwd", "content": "broken"})
        send(id=902, method="terminal/create", params={"sessionId": "s", "command": "sh"})
        answers = sorted((json.loads(sys.stdin.readline()) for _ in range(3)), key=lambda one: one["id"])
        open("answers.txt", "w").write("\\n".join(json.dumps(one) for one in answers))
        send(id=number, result={"stopReason": "end_turn"})
    elif method == "session/cancel":
        send(id=99999, result={})
"""


async def test_what_breaks_the_protocol_harms_no_turn_and_one_without_end_is_stopped(tmp_path: Path) -> None:
    pytest.importorskip("acp")
    root = repository(tmp_path / "work", {"a.py": "a\n", "agent.py": ODD_AGENT})
    async with open_session(root, []) as session:
        profile(session.folders.config, "odd", program=sys.executable, acp=[sys.executable, "agent.py"])
        await session.delegate("odd", "go")
        await session.chat.finished()
        assert session.state.turn.ok, session.state.turn.error
        assert len(session.state.chat.messages[-1].text) == MOST_TEXT
        (change,) = session.state.review.open
        permission, written, terminal = map(json.loads, session.core.blobs.get_text(change.new).splitlines())
        assert permission["result"]["outcome"] == {"outcome": "cancelled"}
        assert "error" in written and terminal.get("result") is None
        await session.delegate("odd", "forever")
        await until(lambda: session.state.reply.message == "working", "its text")
        await session.chat.stop()
        async with asyncio.timeout(10):
            await session.chat.finished()
        await session.delegate("odd", "again")
        await session.chat.finished()
        assert session.state.turn.ok, session.state.turn.error


async def test_an_agent_does_a_turn_without_a_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = repository(tmp_path / "work", {"a.py": "a\n"})
    script = 'echo \'{"type": "result", "result": "Changed."}\'; echo "$1" > b.py; exit $2'
    async with open_session(root, []) as session:
        for name, status in (("good", "0"), ("bad", "4")):
            profile(
                session.folders.config,
                name,
                program="/bin/sh",
                headless=["-c", script, "x", "{prompt}", status],
            )
        await session.delegate("good", "new text")
        await session.chat.finished()
        assert session.state.turn.ok, session.state.turn.error
        assert session.state.chat.messages[-1].text == "Changed."
        assert [change.path for change in session.state.review.open] == ["b.py"]
        await session.delegate("bad", "other")
        await session.chat.finished()
        assert not session.state.turn.ok and "bad ended with 4" in session.state.turn.error
        await session.delegate("nobody", "other")
        await session.chat.finished()
        assert "no agent profile" in session.state.turn.error


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ('{"type":"result","result":"a"}', "a"),
        ('{"type":"item.completed","item":{"type":"agent_message","text":"b"}}', "b"),
        ('{"type":"item.completed","item":{"type":"reasoning","text":"b"}}', ""),
        ('{"type":"text","part":{"text":"c"}}', "c"),
        ('{"type":"message","role":"assistant","content":"d","delta":true}', "d"),
        ('{"role":"assistant","content":[{"type":"text","text":"e"}]}', "e"),
        ('{"type":"error","error":{"message":"f"}}', "Error: f"),
        ('{"type":"system"}', ""),
        ("[1]", ""),
        ("words", None),
    ],
)
def test_the_answer_is_found_in_the_forms_of_the_agents(line: str, text: str | None) -> None:
    assert answer_of(line.encode()) == text


#: It says that it wrote one thing, and writes another.
LIAR = """
import json, sys

def send(**fields):
    print(json.dumps({"jsonrpc": "2.0", **fields}), flush=True)

for line in sys.stdin:
    request = json.loads(line)
    number = request.get("id")
    match request.get("method"):
        case "initialize":
            send(id=number, result={"protocolVersion": 1})
        case "session/new":
            send(id=number, result={"sessionId": "s"})
        case "session/prompt":
            told = {"type": "diff", "path": "a.py", "oldText": "a\\n", "newText": "harmless\\n"}
            far = {"type": "diff", "path": "/etc/passwd", "oldText": "", "newText": "x"}
            update = {"sessionUpdate": "tool_call", "toolCallId": "t", "title": "Edit\\x1b[2J a.py", "kind": "edit",
                      "status": "completed", "content": [told, far], "locations": [{"path": "/etc/passwd"}]}
            send(method="session/update", params={"sessionId": "s", "update": update})
            open("a.py", "w").write("something else\\n")
            send(id=number, result={"stopReason": "end_turn"})
"""


async def test_the_review_has_what_an_agent_wrote_and_not_what_it_says(tmp_path: Path) -> None:
    pytest.importorskip("acp")
    root = repository(tmp_path / "work", {"a.py": "a\n", "agent.py": LIAR})
    async with open_session(root, []) as session:
        profile(session.folders.config, "liar", program=sys.executable, acp=[sys.executable, "agent.py"])
        await session.delegate("liar", "go")
        await session.chat.finished()
        assert session.state.turn.ok, session.state.turn.error
        (change,) = session.state.review.open
        assert (change.path, session.core.blobs.get_text(change.new)) == ("a.py", "something else\n")


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("echo 'Node.js v22 or newer is required' >&2; exit 1", "Node.js v22 or newer is required"),
        ("exec no-such-interpreter", "no-such-interpreter"),
        ("kill -9 $$", "it ended without a word"),
        ("echo '  '; printf 'a\\033[2Jb\\n{\"method\": 1}\\n' & exit 0", "a␛[2Jb"),
    ],
)
async def test_an_agent_that_cannot_start_is_one_sentence_with_its_own_words(
    tmp_path: Path, script: str, why: str
) -> None:
    pytest.importorskip("acp")
    root = repository(tmp_path / "work", {"a.py": "a\n"})
    async with open_session(root, []) as session:
        profile(session.folders.config, "old", program="/bin/sh", acp=["/bin/sh", "-c", script])
        async with asyncio.timeout(60):
            await session.delegate("old", "go")
            await session.chat.finished()
        assert not session.state.turn.ok and why in session.state.turn.error, session.state.turn.error
        assert session.state.review.open == ()
