"""What goes to a local server beside the messages, and what it says of its progress, without any process."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any
from unittest.mock import ANY

import pytest
from support.asking import answer, text
from support.local_servers import NAMES, WireModel, local_server
from support.provider import Provider

from tui_agent.errors import Unreachable
from tui_agent.model import model_table, servers
from tui_agent.model.child_model import ChildModel
from tui_agent.model.client import EndChunk, ModelRequest, Pass, ProgressChunk
from tui_agent.model.direct_client import render
from tui_agent.model.local import LOCAL_TIMEOUT_SECONDS, WAITS, LocalModels
from tui_agent.model.rules import Rules
from tui_agent.model.servers import Kind, ServerMemory, ServerModel
from tui_agent.model.wires.chat import ChatReader
from tui_agent.model.wires.conversation import SchemaForm

ASKED = ModelRequest("llamafile/tiny", ({"role": "user", "content": "Hi"},))


def test_a_local_name_needs_no_key_and_goes_to_no_provider() -> None:
    route = model_table.route(
        "llamafile/tiny", {"OPENAI_API_KEY": "sk-mine", "OPENAI_API_BASE": "http://paid"}
    )
    assert route is not None and (route.address, route.key) == ("http://127.0.0.1:8080/v1", "fake-api-key")
    request = ModelRequest(ASKED.model, ASKED.messages, options={"cache_prompt": True}, most=99)
    path, rendered, _ = render(request, route, route.wire, None)
    body = rendered.body
    assert path == "/chat/completions"
    assert (body["cache_prompt"], body["max_tokens"], body["model"]) == (True, 99, "tiny")


def test_progress_is_read_from_the_stream() -> None:
    event = {"prompt_progress": {"total": 900, "cache": 0, "processed": 300, "time_ms": 12}}
    delta = {"choices": [{"index": 0, "delta": {"role": "assistant", "content": None}}]}
    reader = ChatReader(Rules())
    assert reader.read({**delta, **event}) == [] and reader.progress == (300, 900)
    assert reader.read(delta) == [] and reader.progress is None


async def test_requests_to_one_slot_wait_for_each_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with local_server("llama.cpp") as server:
        monkeypatch.setenv("LLAMAFILE_API_BASE", f"{server.root}/v1")
        models = [LocalModels(WireModel(), ServerMemory(tmp_path), 8192) for _ in range(2)]
        for model in models:
            await model.abilities("llamafile/tiny")
        first = models[0].stream(ASKED)
        await anext(first)
        other = asyncio.create_task(_all_of(models[1]))
        done, _ = await asyncio.wait([other], timeout=0.3)
        assert not done, "another session waits until the answer is over"
        await first.aclose()
        came = await other
        assert came[:2] == [ProgressChunk(waits=WAITS), ProgressChunk()] and isinstance(came[-1], EndChunk)
        wire = models[1].inner
        assert isinstance(wire, WireModel) and wire.requests[0].timeout == LOCAL_TIMEOUT_SECONDS
        monkeypatch.setenv("LLAMAFILE_API_BASE", "http://127.0.0.1:9/v1")
        with pytest.raises(Unreachable, match=":9/v1"):
            await models[0].test("llamafile/tiny", {})


#: What each server is sent beside the messages: (purpose of the request, slots) and then the fields that it has to see.
SHAPE = {
    "type": "object",
    "properties": {"a": {"type": "string"}},
    "required": ["a"],
    "additionalProperties": False,
}
HELD = {
    "json_schema": {"type": "json_schema", "json_schema": {"name": "reply", "schema": SHAPE, "strict": True}},
    "json_object": {"type": "json_object", "schema": SHAPE},
}
SENT: list[tuple[Kind, Pass, SchemaForm, dict[str, Any]]] = [
    (
        "llama.cpp",
        "main",
        "json_schema",
        {"cache_prompt": True, "return_progress": True, "id_slot": 0, "response_format": HELD["json_schema"]},
    ),
    ("llama.cpp", "plan", "none", {"id_slot": 1, "response_format": None}),
    ("llama-cpp-python", "main", "json_object", {"id_slot": None, "response_format": HELD["json_object"]}),
    ("LM Studio", "main", "json_schema", {"max_tokens": ANY, "response_format": HELD["json_schema"]}),
    ("vLLM", "main", "guided_json", {"max_tokens": None, "guided_json": SHAPE, "response_format": None}),
]


@pytest.mark.asyncio(loop_scope="session")
@pytest.mark.parametrize(("kind", "purpose", "form", "fields"), SENT)
async def test_what_a_server_wants_to_be_told_is_on_the_wire_both_ways(
    both: tuple[ChildModel, ChildModel],
    provider: Provider,
    kind: Kind,
    purpose: Pass,
    form: SchemaForm,
    fields: dict[str, Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def examined(address: str, name: str, key: str = "") -> ServerModel:
        return ServerModel(kind, window=8192, slots=2, schema=form)

    monkeypatch.setattr(servers, "examine", examined)
    name, variable, _ = NAMES[kind]
    monkeypatch.setenv(variable, provider.url)
    bodies = []
    for inner in both:
        await inner.reach({variable: provider.url})
        memory = ServerMemory(tmp_path)
        memory.learn(provider.url, "tiny", ServerModel(kind, schema=form))
        provider.answer("ok")
        asked = ModelRequest(name, ASKED.messages, purpose, schema=SHAPE)
        await answer(LocalModels(inner, memory, 8192), asked)
        bodies.append(provider.requests[-1].body)
    assert bodies[0] == bodies[1], "directly and through litellm"
    for field, value in fields.items():
        assert bodies[0].get(field) == value, field


@pytest.mark.asyncio(loop_scope="session")
async def test_ollama_is_told_its_window_and_the_schema(
    both: tuple[ChildModel, ChildModel], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with local_server("Ollama") as server:
        monkeypatch.setenv("OLLAMA_API_BASE", server.root)
        for inner in both:
            await inner.reach({"OLLAMA_API_BASE": server.root})
            local = LocalModels(inner, ServerMemory(tmp_path), 32_768)
            assert (await local.abilities("ollama_chat/tiny")).schema
            said = await answer(local, ModelRequest("ollama_chat/tiny", ASKED.messages, schema=SHAPE))
            assert text(said) == "Hello."
            path, body = next(
                (path, body) for _, path, body in reversed(server.asked) if "messages" in (body or ())
            )
            assert path == "/api/chat" and body["format"] == SHAPE
            assert body["options"]["num_ctx"] == 8_192 and body["options"]["num_predict"] > 0


async def _all_of(model: LocalModels) -> list[object]:
    return [chunk async for chunk in model.stream(ASKED)]
