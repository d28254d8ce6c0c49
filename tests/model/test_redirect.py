"""A provider that sends a request on: its key does not go along to another host."""

from __future__ import annotations

import asyncio

import pytest

from tui_agent.model import direct_client
from tui_agent.model.client import ModelRequest
from tui_agent.model.event_stream import Wire


@pytest.mark.parametrize(
    ("model", "variable"), [("anthropic/claude-sonnet-4-5", "ANTHROPIC"), ("openai/test-model", "OPENAI")]
)
async def test_a_key_goes_to_no_other_host(
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
        with pytest.raises(direct_client.RejectedRequest):
            await direct_client.DirectTransport().open(request, Wire(), None)
    direct_client.client.cache_clear()
    assert not any(b"sk-the-key" in request for request in came)
