"""Turns that an agent does, without a terminal and by the Agent Client Protocol."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from support.repositories import repository
from support.sessions import open_session

from tui_agent.outside_agents.printed_text import answer_of

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
        return schema.NewSessionResponse(session_id="one")
    async def prompt(self, prompt, session_id, **_):
        self.turns += 1
        say = lambda update: self.conn.session_update(session_id=session_id, update=update)
        await say(acp.update_agent_thought_text("I think"))
        await say(acp.start_tool_call("t1", "Write made.txt"))
        answer = await self.conn.request_permission(
            session_id=session_id,
            tool_call=schema.ToolCallUpdate(tool_call_id="t1"),
            options=[schema.PermissionOption(option_id="no", name="No", kind="reject_once"),
                     schema.PermissionOption(option_id="yes", name="Yes", kind="allow_once")],
        )
        (self.cwd / "made.txt").write_text(f"{prompt[0].text} {answer.outcome.option_id} {self.turns}\\n")
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
        profile(session.folders.config, "echo", program=sys.executable, acp=[sys.executable, "agent.py"])
        for turn in (1, 2):
            await session.delegate("echo", "go")
            await session.chat.finished()
            assert session.state.turn.ok, session.state.turn.error
            message = session.state.chat.messages[-1]
            assert message.text == "- Write made.txt\n\nIt is done." and message.reasoning == "I think"
            (change,) = session.state.review.open
            assert session.core.blobs.get_text(change.new) == f"go yes {turn}\n"
            assert not (root / "made.txt").exists()
            assert session.state.usage.session.cost == 0.5 * turn and session.state.usage.turn.cost == 0.5


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
