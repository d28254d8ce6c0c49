"""`tui-agent acp`, driven by the client of the official SDK."""

from __future__ import annotations

import asyncio
import base64
import io
import json
import os
import subprocess
import sys
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from support.program import run, started
from support.provider import Answer, Provider, ToolCall
from support.sessions import reply
from support.terminal_program import Program, running

acp = pytest.importorskip("acp", reason="the SDK of ACP is not installed: pip install 'tui-agent[acp]'")
PATIENCE = 60.0
EDIT = {"path": "api.py", "edits": [{"search": "get(url)", "replace": "get(url, timeout=5)"}]}
NEW = {"path": "new.py", "content": "x = 1\n"}


class Editor:
    """A client that keeps the updates, and answers questions by a function."""

    def __init__(self) -> None:
        self.updates: list[Any] = []
        self.questions: list[Any] = []
        #: An option's id, "" for none, or None to leave the question open.
        self.choose: Callable[[Any, list[Any]], str | None] = lambda call, options: options[0].option_id

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        self.updates.append(update)

    async def request_permission(self, session_id: str, tool_call: Any, options: list[Any], **_: Any) -> Any:
        self.questions.append(tool_call)
        chosen = self.choose(tool_call, options)
        if chosen is None:
            await asyncio.Event().wait()
        outcome = (
            acp.schema.AllowedOutcome(option_id=chosen, outcome="selected")
            if chosen
            else acp.schema.DeniedOutcome(outcome="cancelled")
        )
        return acp.RequestPermissionResponse(outcome=outcome)

    def on_connect(self, conn: Any) -> None: ...

    @property
    def text(self) -> str:
        chunks = (one for one in self.updates if one.session_update == "agent_message_chunk")
        return "".join(one.content.text for one in chunks)

    def of(self, kind: str) -> list[Any]:
        return [one for one in self.updates if one.session_update == kind]


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace"
    folder.mkdir()
    (folder / "api.py").write_text("def fetch(url):\n    return get(url)\n")
    return folder


@pytest.fixture
def provider(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, workspace: Path) -> Iterator[Provider]:
    (tmp_path / "sockets").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "sockets"))
    with Provider() as found:
        model = {"TUI_AGENT_MODEL": "openai/test-model", "TUI_AGENT_PLANNER_MODEL": "none"}
        for name, value in (found.environment | model | {"TUI_AGENT_PROTOCOL": "structured"}).items():
            monkeypatch.setenv(name, value)
        yield found
        for line in run("ps", "--json", folder=workspace).stdout.splitlines():
            run("stop", json.loads(line)["id"], folder=workspace)


@asynccontextmanager
async def editor() -> AsyncGenerator[tuple[Editor, Any]]:
    client = Editor()
    async with acp.spawn_agent_process(
        client, sys.executable, "-m", "tui_agent", "acp", env=dict(os.environ), use_unstable_protocol=True
    ) as (connection, _):
        async with asyncio.timeout(PATIENCE):
            about = await connection.initialize(protocol_version=acp.PROTOCOL_VERSION)
        assert about.agent_capabilities.load_session and [one.id for one in about.auth_methods] == [
            "set-up",
            "settings",
        ]
        yield client, connection


def words(text: str) -> list[Any]:
    return [acp.text_block(text)]


def answer(**fields: Any) -> Answer:
    return Answer(json.dumps(reply(**fields)))


async def test_changes_are_written_when_the_editor_agrees(workspace: Path, provider: Provider) -> None:
    provider.answer(
        answer(
            summary="Adds a timeout.",
            message="Both are done.",
            fileChanges=[EDIT, NEW],
            todos=[{"text": "Add a timeout", "done": False}],
        )
    )
    async with editor() as (client, connection):
        session = await connection.new_session(cwd=str(workspace))
        assert (session.modes.current_mode_id, len(session.modes.available_modes)) == ("edit", 3)
        before = (workspace / "api.py").read_text()

        def choose(call: Any, options: list[Any]) -> str:
            assert [one.kind for one in options] == [
                "allow_once",
                "allow_always",
                "reject_once",
                "reject_always",
            ]
            assert (workspace / "api.py").read_text() == before or call.content[0].path.endswith("new.py")
            return "apply" if call.content[0].path.endswith("api.py") else "skip"

        client.choose = choose
        done = await connection.prompt(session_id=session.session_id, prompt=words("add a timeout to api.py"))
        assert done.stop_reason == "end_turn" and done.usage.output_tokens > 0
        diff = client.questions[0].content[0]
        assert (diff.old_text, diff.new_text) == (before, before.replace("get(url)", "get(url, timeout=5)"))
        assert (workspace / "api.py").read_text() == diff.new_text and not (workspace / "new.py").exists()
        assert "Both are done." in client.text
        assert [one.entries[0].content for one in client.of("plan")] == ["Add a timeout"]
        assert client.of("usage_update")[0].used > 0
        assert {one.status for one in client.of("tool_call_update")} == {"completed", "failed"}


async def test_a_session_begun_in_an_editor_goes_on_in_a_terminal(
    workspace: Path, provider: Provider, home: Path
) -> None:
    provider.answer(
        answer(summary="Said in the editor."),
        answer(
            summary="Said in the terminal.",
            fileChanges=[NEW],
            todos=[{"text": "Look at it", "done": False}],
        ),
    )
    async with editor() as (client, connection):
        session = (await connection.new_session(cwd=str(workspace))).session_id
        await connection.prompt(session_id=session, prompt=words("hello there"))
    (running_now,) = [json.loads(line) for line in run("ps", "--json", folder=workspace).stdout.splitlines()]
    assert running_now["id"] == session
    program = Program("attach", folder=workspace, home=home)
    with running(program, sign="Said in the editor."):
        program.type(b"go on\r")
        program.shows("Said in the terminal.")
        program.type(b"\x0f&")
        program.until(lambda: program.process.poll() is not None, "the shell again")
    async with editor() as (client, connection):
        (listed,) = (await connection.list_sessions(cwd=str(workspace))).sessions
        assert (listed.session_id, listed.cwd) == (session, str(workspace))
        await connection.load_session(cwd=str(workspace), session_id=session)
        assert [one.content.text for one in client.of("user_message_chunk")] == ["hello there", "go on"]
        assert "Said in the terminal." in client.text
        (call,) = [one for one in client.of("tool_call") if one.content]
        assert (call.title, call.status, call.content[0].new_text) == ("Change new.py", "pending", "x = 1\n")
        assert [one.entries[0].content for one in client.of("plan")] == ["Look at it"]
        await connection.close_session(session_id=session)
        async with asyncio.timeout(PATIENCE):
            while run("ps", folder=workspace).stdout:  # noqa: ASYNC110 the end of another process
                await asyncio.sleep(0.05)
        client.updates.clear()
        await connection.resume_session(cwd=str(workspace), session_id=session)
        assert client.text == ""


async def test_modes_options_cancel_and_a_client_that_vanishes(workspace: Path, provider: Provider) -> None:
    provider.answer(Answer("one two three four", hold_after=1), Answer("five six seven eight", hold_after=1))
    async with editor() as (_, connection):
        session = (await connection.new_session(cwd=str(workspace))).session_id
        await connection.set_session_mode(session_id=session, mode_id="ask")
        options = await connection.set_config_option(config_id="mode", session_id=session, value="auto")
        assert [one.current_value for one in options.config_options] == ["auto", "openai/test-model"]
        with pytest.raises(acp.RequestError, match="There is no mode 'everything'"):
            await connection.set_session_mode(session_id=session, mode_id="everything")
        with pytest.raises(acp.RequestError, match="values that they list"):
            await connection.set_config_option(config_id="model", session_id=session, value="zz/none")
        asking = asyncio.create_task(connection.prompt(session_id=session, prompt=words("count")))
        await asyncio.to_thread(provider.wait_for, 1)
        with pytest.raises(acp.RequestError, match="another prompt"):
            await connection.prompt(session_id=session, prompt=words("more"))
        await connection.cancel(session_id=session)
        assert (await asking).stop_reason == "cancelled"
        asking = asyncio.create_task(connection.prompt(session_id=session, prompt=words("count on")))
        await asyncio.to_thread(provider.wait_for, 2)
        asking.cancel()
    (state,) = [json.loads(line) for line in run("ps", "--json", folder=workspace).stdout.splitlines()]
    assert (state["id"], state["state"]) == (session, "works"), "the turn goes on without the editor"
    provider.release()


async def test_a_prompt_ends_after_the_checks_of_mode_auto_and_at_a_cancel_that_the_editor_leaves_open(
    workspace: Path, provider: Provider, home: Path
) -> None:
    (home / "config" / "commands").mkdir(parents=True)
    (home / "config" / "commands" / "greet.md").write_text(
        "---\ndescription: Says hello\n---\nGreet $ARGUMENTS\n"
    )
    check = 'name = "compiles"\ncommand = "python3 -m py_compile api.py"\n'
    (home / "config" / "settings.toml").write_text(f"[[checks.commands]]\n{check}")
    provider.answer(answer(summary="Done.", fileChanges=[EDIT]), answer(summary="Hi.", fileChanges=[NEW]))
    async with editor() as (client, connection):
        session = (await connection.new_session(cwd=str(workspace))).session_id
        await connection.set_session_mode(session_id=session, mode_id="auto")
        await connection.prompt(session_id=session, prompt=words("add a timeout"))
        assert "timeout=5" in (workspace / "api.py").read_text() and client.questions == []
        assert "Check compiles: passed" in [one.title for one in client.of("tool_call")]
        (announced,) = client.of("available_commands_update")
        assert [one.name for one in announced.available_commands] == ["greet"]
        await connection.set_session_mode(session_id=session, mode_id="edit")
        asked = asyncio.Event()
        client.choose = lambda call, options: asked.set()
        asking = asyncio.create_task(connection.prompt(session_id=session, prompt=words("/greet Ann")))
        async with asyncio.timeout(PATIENCE):
            await asked.wait()
            await connection.cancel(session_id=session)
            assert (await asking).stop_reason == "cancelled"
        assert not (workspace / "new.py").exists() and "Greet Ann" in json.dumps(provider.requests[1].body)


async def test_thoughts_are_shown_and_a_model_is_chosen_from_those_that_have_a_key(
    workspace: Path, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "secret-of-this-test")
    thought = Answer(json.dumps(reply(summary="Done.")), reasoning="Both ways are open. ")
    provider.answer(thought)
    async with editor() as (client, connection):
        session = await connection.new_session(cwd=str(workspace))
        _, model = session.config_options
        offered = [one.value for one in model.options]
        assert offered[0] == model.current_value == "openai/test-model"
        other = next(name for name in offered if name.startswith("anthropic/"))
        await connection.prompt(session_id=session.session_id, prompt=words("think"))
        said = "".join(one.content.text for one in client.of("agent_thought_chunk"))
        assert said.strip() == "Both ways are open." and said not in client.text
        chosen = await connection.set_config_option(
            config_id="model", session_id=session.session_id, value=other
        )
        assert [one.current_value for one in chosen.config_options] == ["edit", other]


async def test_resources_and_pictures_reach_the_model(workspace: Path, provider: Provider) -> None:
    provider.answer(answer(summary="Seen."))
    data = io.BytesIO()
    Image.new("RGB", (8, 8), "red").save(data, "PNG")
    picture = base64.b64encode(data.getvalue()).decode()
    link = (workspace / "api.py").as_uri()
    prompt = [
        acp.text_block("look"),
        acp.resource_link_block("api.py", link),
        acp.resource_block(acp.embedded_text_resource("file:///elsewhere/note.txt", "remember ``` this")),
        acp.image_block(picture, "image/png"),
    ]
    async with editor() as (client, connection):
        session = (await connection.new_session(cwd=str(workspace))).session_id
        with pytest.raises(acp.RequestError):
            await connection.prompt(session_id=session, prompt=[acp.image_block("%%%", "image/png")])
        with pytest.raises(acp.RequestError):
            await connection.prompt(session_id=session, prompt=[acp.audio_block(picture, "audio/wav")])
        with pytest.raises(acp.RequestError, match="not an address"):
            await connection.prompt(session_id=session, prompt=[acp.resource_link_block("x", "http://[bad")])
        with pytest.raises(acp.RequestError, match="The message is too long"):
            await connection.prompt(session_id=session, prompt=words("word " * 1_000_000))
        assert (await connection.prompt(session_id=session, prompt=prompt)).stop_reason == "end_turn"
    assert client.questions == [], "a resource of another place is no file to look for"
    sent = json.dumps(provider.requests[0].body)
    assert "return get(url)" in sent and "remember ``` this" in sent


async def test_a_permission_is_asked_in_the_editor(
    workspace: Path, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TUI_AGENT_PROTOCOL", "tools")
    monkeypatch.setenv("TUI_AGENT_PERMISSIONS__ASK", '["run_command"]')
    call = ToolCall("run_command", {"command": "echo ran", "why": "a try"})
    provider.answer(Answer(calls=(call,)), Answer("Done."))
    async with editor() as (client, connection):
        session = (await connection.new_session(cwd=str(workspace))).session_id
        await connection.prompt(session_id=session, prompt=words("run it"))
        assert len(client.questions) == 1 and "Done." in client.text
        assert any(one.kind == "execute" and one.status == "completed" for one in client.of("tool_call"))


async def test_bad_requests_are_refused_and_change_nothing(
    workspace: Path, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with editor() as (_, connection):
        for cwd in ("relative", "/missing/folder", str(workspace / "api.py"), "/x\0y"):
            with pytest.raises(acp.RequestError):
                await connection.new_session(cwd=cwd)
        for name in ("unknown", "../../etc", "a/b", ""):
            with pytest.raises(acp.RequestError):
                await connection.load_session(cwd=str(workspace), session_id=name)
            with pytest.raises(acp.RequestError):
                await connection.prompt(session_id=name, prompt=words("x"))
        with pytest.raises(acp.RequestError):
            await connection.ext_method("unknown", {})
        provider.answer(Answer(status=401, message="no such key"))
        session = (await connection.new_session(cwd=str(workspace))).session_id
        with pytest.raises(acp.RequestError, match="key"):
            await connection.prompt(session_id=session, prompt=words("hello"))
        await connection.close_session(session_id=session)
        monkeypatch.delenv("TUI_AGENT_MODEL")
    async with editor() as (_, connection):
        with pytest.raises(acp.RequestError, match="Authentication required"):
            await connection.new_session(cwd=str(workspace))
        listed = (await connection.list_sessions(cwd=str(workspace))).sessions
        assert [one.session_id for one in listed] == [session], "one without a message is not listed"


def frame(number: int | None, method: str, **parameters: Any) -> bytes:
    """A request, or without a number a notification."""
    named = {} if number is None else {"id": number}
    return json.dumps({"jsonrpc": "2.0", **named, "method": method, "params": parameters}).encode() + b"\n"


NO_FRAMES = {
    "list": b"[]\n",
    "nothing": b'{"jsonrpc": "2.0", "id": 1}\n',
    "bytes": b"\xff\xfe\n",
    "deep": b'{"a": ' * 50_000 + b"\n",
    "many": b"null\n" * 1000,
    "100 MB": b'"' + b"x" * 100_000_000 + b'"\n',
    "unknown": frame(1, "no/such_method") + frame(None, "no/such_notice"),
    "doubled": frame(1, "initialize", protocolVersion=1) * 2,
    "too early": frame(1, "session/prompt", sessionId="x", prompt=[])
    + frame(None, "session/cancel", sessionId="x"),
    "answers": b'{"jsonrpc": "2.0", "id": 99, "result": {}}\n{"jsonrpc": "2.0", "id": null, "error": 7}\n',
    "types": frame(1, "initialize", protocolVersion="one") + frame(2, "session/new", cwd=[]),
    "cut": b"{",
}


def test_frames_that_are_none_end_nothing_but_themselves(workspace: Path, provider: Provider) -> None:
    with started("acp", folder=workspace) as program:
        assert program.stdin is not None and program.stdout is not None and program.stderr is not None
        answers = map(json.loads, program.stdout)
        for number, (name, frames) in enumerate(NO_FRAMES.items(), 100):
            program.stdin.write(frames.decode("latin-1"))
            if frames.endswith(b"\n"):
                asked = frame(number, "initialize", protocolVersion=1, clientCapabilities={})
                program.stdin.write(asked.decode())
                program.stdin.flush()
                assert "result" in next(one for one in answers if one.get("id") == number), name
        program.stdin.write("\n\r\n{")
        program.stdin.close()
        assert len([one for one in answers if "error" in one]) == 1, "the cut frame; empty lines are none"
        assert program.wait(PATIENCE) == 0
        assert "Traceback" not in program.stderr.read()


def test_a_file_as_standard_input_is_refused(workspace: Path) -> None:
    words = [sys.executable, "-m", "tui_agent", "acp"]
    done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, timeout=PATIENCE, check=False)
    assert done.returncode == 2 and b"standard input is a file" in done.stderr
