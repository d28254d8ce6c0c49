"""What goes to a local server beside the messages, and what it says of its progress, without any process."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from support.local_servers import WireModel, local_server

from tui_agent.errors import Unreachable
from tui_agent.model import openai_wire, table
from tui_agent.model.client import EndChunk, ModelRequest
from tui_agent.model.local import LOCAL_TIMEOUT_SECONDS, LocalModels
from tui_agent.model.server_memory import ServerMemory

ASKED = ModelRequest("llamafile/tiny", ({"role": "user", "content": "Hi"},))


def test_a_local_name_needs_no_key_and_goes_to_no_provider() -> None:
    route = table.route("llamafile/tiny", {"OPENAI_API_KEY": "sk-mine", "OPENAI_API_BASE": "http://paid"})
    assert route is not None and (route.address, route.key) == ("http://127.0.0.1:8080/v1", "fake-api-key")
    request = ModelRequest(ASKED.model, ASKED.messages, options={"cache_prompt": True}, most=99)
    body = openai_wire.body(request, route, None)
    assert (body["cache_prompt"], body["max_tokens"], body["model"]) == (True, 99, "tiny")


def test_progress_is_read_from_the_stream() -> None:
    event = {"prompt_progress": {"total": 900, "cache": 0, "processed": 300, "time_ms": 12}}
    delta = {"choices": [{"index": 0, "delta": {"role": "assistant", "content": None}}]}
    reader = openai_wire.ChatReader()
    assert reader.piece({**delta, **event}).progress == (300, 900)
    assert reader.piece(delta).progress is None


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
        assert isinstance((await other)[-1], EndChunk)
        wire = models[1].inner
        assert isinstance(wire, WireModel) and wire.requests[0].timeout == LOCAL_TIMEOUT_SECONDS
        monkeypatch.setenv("LLAMAFILE_API_BASE", "http://127.0.0.1:9/v1")
        with pytest.raises(Unreachable, match=":9/v1"):
            await models[0].test("llamafile/tiny", {})


async def _all_of(model: LocalModels) -> list[object]:
    return [chunk async for chunk in model.stream(ASKED)]
