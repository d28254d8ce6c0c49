"""A provider that sends a request on: neither its key nor the prompt goes along to another host."""

from __future__ import annotations

import asyncio

import pytest

from tui_agent.errors import ModelError
from tui_agent.model import direct_client
from tui_agent.model.client import ModelRequest
from tui_agent.model.event_stream import Wire, watch


@pytest.mark.parametrize(
    ("model", "variable"), [("anthropic/claude-sonnet-4-5", "ANTHROPIC"), ("openai/test-model", "OPENAI")]
)
async def test_neither_a_key_nor_a_prompt_goes_to_another_host(
    model: str, variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    came: list[bytes] = []

    async def elsewhere(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        came.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        writer.close()

    async def provider(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        to = f"http://localhost:{other.sockets[0].getsockname()[1]}/v1"
        writer.write(
            f"HTTP/1.1 307 T\r\nLocation: {to}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode()
        )
        writer.close()

    direct_client.client.cache_clear()
    async with (
        await asyncio.start_server(elsewhere, "localhost", 0) as other,
        await asyncio.start_server(provider, "127.0.0.1", 0) as first,
    ):
        monkeypatch.setenv(f"{variable}_API_KEY", "sk-the-key")
        monkeypatch.setenv(f"{variable}_API_BASE", f"http://127.0.0.1:{first.sockets[0].getsockname()[1]}")
        request = ModelRequest(model, ({"role": "user", "content": "Hi"},))
        with pytest.raises(direct_client.RejectedRequest, match="sends the request on to localhost"):
            wire = Wire()
            watch(wire)
            await direct_client.DirectTransport().open(request, wire, None)
    direct_client.client.cache_clear()
    assert came == []


@pytest.mark.parametrize(
    "key", ["sk-one two", "sk-one\n", "sk-one\r\nx: y", "\tsk-one", "sk\u2028one", "clé"]
)
async def test_a_key_that_no_header_can_hold_is_refused_in_a_sentence(
    key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", key)
    monkeypatch.setenv("OPENAI_API_BASE", "http://127.0.0.1:9")
    request = ModelRequest("openai/test-model", ({"role": "user", "content": "Hi"},))
    with pytest.raises(
        ModelError, match="key for openai/test-model contains a space, a line break"
    ) as refused:
        await direct_client.DirectTransport().open(request, Wire(), None)
    assert "one" not in str(refused.value)
