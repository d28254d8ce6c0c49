"""A local server that only the address of OpenAI's API names: used without a key, examined once, held to a schema."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from support.local_servers import LocalFake, local_server

from tui_agent.model import servers
from tui_agent.model.servers import Kind
from tui_agent.session import doctor, opening
from tui_agent.session.opening import Opening
from tui_agent.settings.folders import user_folders

NAME = "openai/tiny"


@pytest.fixture(autouse=True)
def no_key(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_API_BASE", "OPENAI_BASE_URL", "TUI_AGENT_PLANNER_MODEL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TUI_AGENT_HOME", str(tmp_path / "home"))


async def asked(server: LocalFake, folder: Path, *questions: str) -> list[str]:
    """The errors of a session that asks them."""
    work = folder / "work"
    work.mkdir(exist_ok=True)
    (work / "part.py").write_text("def part(url):\n    return get(url)\n")
    session = await opening.open_session(Opening(work, overrides=(f"model={NAME}", "protocol=structured")))
    try:
        await session.start_services()
        await session.files.ready()
        session.models.check()
        errors = []
        for question in questions:
            await session.chat.submit(question)
            await session.chat.finished()
            errors.append(session.state.turn.error)
        return errors
    finally:
        await session.close()


def said(messages: list[dict[str, Any]]) -> str:
    """A plan without files for who asks for one, else a reply."""
    words = json.dumps(messages[-1]["content"])
    return json.dumps({"actions": []} if "Outline of the workspace" in words else {"summary": "It fetches."})


def counted(server: LocalFake) -> Counter[str]:
    """Requests by what they are: trials, answers that stream, questions about the server by their paths."""
    kinds = Counter[str]()
    for method, path, body in server.asked:
        kinds[("answer" if body.get("stream") else "trial") if body else f"{method} {path}"] += 1
    return kinds


@pytest.mark.parametrize("variable", ["OPENAI_API_BASE", "OPENAI_BASE_URL"])
@pytest.mark.parametrize("kind", ["llama.cpp", "llama-cpp-python", "LM Studio", "vLLM"])
async def test_it_is_a_local_server_like_any_other(
    kind: Kind, variable: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with local_server(kind, window=32_000, answer=said) as server:
        monkeypatch.setenv(variable, f"{server.root}/v1")
        assert await asked(server, tmp_path, "What does it do?", "And what else?") == ["", ""]
        seen = counted(server)
        plans = 2 if kind == "vLLM" else 0  # it works on several requests at once
        assert (seen["answer"], seen["trial"]) == (2 + plans, 1), seen
        assert seen["GET /v1/models"] == 1, seen
        assert all("response_format" in body for _, _, body in server.asked if body and body.get("stream"))


async def test_it_is_tried_out_while_the_first_message_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with local_server("llama.cpp", window=32_000, answer=said) as server:
        monkeypatch.setenv("OPENAI_API_BASE", f"{server.root}/v1")
        (tmp_path / "work").mkdir()
        opened = Opening(tmp_path / "work", overrides=(f"model={NAME}",), interactive=True)
        session = await opening.open_session(opened)
        try:
            await session.start_services()
            await session.files.ready()
            assert server.asked == [], "a mere start reaches nobody"
            session.chat.set_draft("Wh")
            async with asyncio.timeout(30):
                while not counted(server)["trial"]:  # noqa: ASYNC110
                    await asyncio.sleep(0.01)
            before = len(server.asked)
            session.chat.set_draft("What does it do?")
            await session.chat.submit("What does it do?")
            await session.chat.finished()
            assert session.state.turn.error == ""
            assert [bool(body and body["stream"]) for _, _, body in server.asked[before:]] == [True]
        finally:
            await session.close()


@pytest.mark.parametrize("variable", ["OPENAI_API_BASE", "OPENAI_BASE_URL"])
async def test_the_doctor_names_its_address_and_its_models(
    variable: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with local_server("llama.cpp", models=("tiny", "other")) as server:
        monkeypatch.setenv(variable, f"{server.root}/v1")
        report = await doctor.examine(tmp_path, user_folders())
        assert report.model.servers[f"{server.root}/v1"] == ["openai/tiny", "openai/other"]


@pytest.mark.parametrize("kind", ["llama.cpp", ""])
async def test_a_fault_for_the_schema_is_a_refusal(
    kind: Kind, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is tried out without one then, and asked without one."""
    async with local_server(kind, window=32_000, answer=said, constrains=False, refusal=500) as server:
        monkeypatch.setenv("OPENAI_API_BASE", f"{server.root}/v1")
        assert await asked(server, tmp_path, "What does it do?", "And what else?") == ["", ""]
        seen = counted(server)
        assert (seen["answer"], seen["trial"]) == (2, 3), seen
        assert not any(
            "response_format" in body for _, _, body in server.asked if body and body.get("stream")
        )


@pytest.mark.parametrize(("base", "lists"), [("/v1", True), ("/api/v3", True), ("/api", False)])
async def test_a_server_of_an_unknown_kind_is_asked_once_for_a_question(
    base: str, lists: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with local_server("", window=32_000, answer=said, base=base, lists=lists) as server:
        monkeypatch.setenv("OPENAI_API_BASE", f"{server.root}{base}")
        assert await asked(server, tmp_path, "What does it do?", "And what else?") == ["", ""]
        seen = counted(server)
        assert (seen["answer"], seen["trial"]) == (2, 1), seen
        first, second = (body for _, _, body in server.asked if body and body.get("stream"))
        assert first["response_format"]["type"] == second["response_format"]["type"] == "json_schema"
        assert second["messages"][: len(first["messages"])] == first["messages"]
        monkeypatch.setenv("TUI_AGENT_MODEL", NAME)
        report = await doctor.examine(tmp_path, user_folders())
        assert report.model.servers[f"{server.root}{base}"] == [NAME]


@pytest.mark.parametrize(
    ("host", "key", "kind"),
    [
        ("127.0.0.1", "dummy", "local"),
        ("localhost", "sk-xxx", "local"),
        ("127.0.0.1", "sk-1234", "gateway"),
        ("gateway.internal", "dummy", "gateway"),
        ("10.9.8.7", "sk-mine", "gateway"),
    ],
)
async def test_a_server_with_a_key_is_not_tried_out_but_with_a_word_in_place_of_one_on_this_machine(
    host: str, key: str, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may be a gateway, which would hand the trial on to a provider who is paid for it."""
    monkeypatch.setenv("OPENAI_API_KEY", key)
    async with local_server("", window=32_000, answer=said) as server:
        monkeypatch.setenv("OPENAI_API_BASE", f"http://{host}:{server.port}/v1")
        connect = asyncio.open_connection
        monkeypatch.setattr(
            asyncio, "open_connection", lambda _, *rest, **named: connect("127.0.0.1", *rest, **named)
        )
        session = await opening.open_session(Opening(tmp_path, overrides=(f"model={NAME}",)))
        try:
            await session.models.get_ready()
            assert session.state.model.server == kind
            assert counted(server)["trial"] == (1 if kind == "local" else 0)
        finally:
            await session.close()


@pytest.mark.parametrize("key", ["none", "dummy", "sk-xxxxxxxx"])
async def test_a_key_that_its_client_wants_changes_nothing_at_a_server_on_this_machine(
    key: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", key)
    async with local_server("", window=32_000, answer=said) as server:
        monkeypatch.setenv("OPENAI_API_BASE", f"{server.root}/v1")
        assert await asked(server, tmp_path, "What does it do?", "And what else?") == ["", ""]
        seen = counted(server)
        assert (seen["answer"], seen["trial"]) == (2, 1), seen


@pytest.mark.parametrize(
    ("address", "here"),
    [
        ("http://127.0.0.1:1/v1", True),
        ("http://[::1]:1", True),
        ("http://0.0.0.0:8000/v1", True),
        ("http://[::ffff:127.0.0.2]/v1", True),
        ("http://api.localhost/v1", True),
        ("http://192.168.1.2/v1", False),
        ("http://box/v1", False),
        ("http://localhost.example.com/v1", False),
        ("", False),
    ],
)
def test_which_addresses_are_on_this_machine(address: str, here: bool) -> None:
    assert servers.is_here(address) is here


@pytest.mark.parametrize(
    ("key", "none"),
    [
        *(
            (word, True)
            for word in ("NONE", "dummy", "sk-dummy", "sk-xxx", "EMPTY", "x", "not-needed", "lm-studio")
        ),
        *(
            (word, True)
            for word in ("sk-no-key-required", "no-key", "your-api-key-here", "<your_api_key>", "ollama")
        ),
        *((word, False) for word in ("", "test", "sk-1234", "sk-proj-nonesuch", "localkey99", "xoxb-123")),
    ],
)
def test_which_words_stand_in_place_of_a_key(key: str, none: bool) -> None:
    assert servers.is_no_key(key) is none


async def test_a_planner_that_is_named_is_asked_at_the_end_of_the_conversation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TUI_AGENT_PLANNER_MODEL", NAME)
    async with local_server("", window=32_000, answer=said) as server:
        monkeypatch.setenv("OPENAI_API_BASE", f"{server.root}/v1")
        assert await asked(server, tmp_path, "What does it do?", "And what else?") == ["", ""]
        bodies = [body["messages"] for _, _, body in server.asked if body]
        first, plan, second = bodies[-3:]
        assert plan[: len(first)] == first and second[: len(first)] == first


@pytest.mark.parametrize("kind", ["llama.cpp", ""])
async def test_a_schema_that_is_refused_later_is_left_out_at_once(
    kind: Kind, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with local_server(kind, window=32_000, answer=said) as server:
        monkeypatch.setenv("OPENAI_API_BASE", f"{server.root}/v1")
        assert await asked(server, tmp_path, "What does it do?") == [""]
        server.constrains = False
        assert await asked(server, tmp_path, "And what else?") == [""]
        streamed = [body for _, _, body in server.asked if body and body.get("stream")]
        assert ["response_format" in body for body in streamed] == [True, True, False]
