"""Which models could be used here, found on loopback and by the names of variables."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from support.provider import Provider, dead_url

from tui_agent.model.providers import PROVIDERS, LocalServer, Suggestion, discover, provider_of, with_keys


def port_of(url: str) -> int:
    return int(url.split(":")[2].split("/")[0])


@asynccontextmanager
async def server(answer: bytes) -> AsyncGenerator[int, None]:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        writer.close()

    async with await asyncio.start_server(talk, "127.0.0.1", 0) as listening:
        yield listening.sockets[0].getsockname()[1]


async def test_a_server_that_speaks_the_openai_api_is_found() -> None:
    with Provider() as provider:
        local = LocalServer("vLLM", provider.port, "/v1/models", "hosted_vllm/", "HOSTED_VLLM_API_BASE")
        found = await discover({}, (local,))
    address = {"HOSTED_VLLM_API_BASE": provider.url}
    because = f"vLLM answers on port {provider.port}"
    assert found == (Suggestion("hosted_vllm/test-model", because, address),)


async def test_ollama_lists_its_models_in_its_own_way() -> None:
    body = json.dumps({"models": [{"name": "qwen3:8b"}, {"name": ""}, "what"]}).encode()
    async with server(b"HTTP/1.0 200 OK\r\n\r\n" + body) as port:
        found = await discover({}, (LocalServer("Ollama", port, "/api/tags", "ollama_chat/"),))
    assert [suggestion.model for suggestion in found] == ["ollama_chat/qwen3:8b"]


async def test_what_is_not_there_or_no_model_server_is_left_out() -> None:
    async with (
        server(b"HTTP/1.0 404 Not Found\r\n\r\n{}") as missing,
        server(b"HTTP/1.0 200 OK\r\n\r\n<html>") as page,
        server(b"HTTP/1.0 200 OK\r\n\r\n[1, 2]") as other,
        server(b"220 smtp ready\r\n") as mail,
    ):
        ports = (missing, page, other, mail, port_of(dead_url()))
        assert await discover({}, tuple(LocalServer("x", port, "/v1/models", "x/") for port in ports)) == ()


def test_keys_are_found_by_the_names_of_variables_and_not_repeated() -> None:
    found = with_keys(
        {"ANTHROPIC_API_KEY": "sk-ant-secret", "OPENAI_API_KEY": "", "GOOGLE_API_KEY": "secret"}
    )
    assert [suggestion.model.partition("/")[0] for suggestion in found] == ["anthropic", "gemini"]
    assert "ANTHROPIC_API_KEY is set" in found[0].because
    assert "secret" not in repr(found)


def test_a_providers_own_suggestion_belongs_to_it() -> None:
    for provider in PROVIDERS:
        if provider.suggestion:
            assert provider_of(provider.suggestion) is provider
    assert provider_of("claude-sonnet-4-5") is provider_of("anthropic/x")
    assert provider_of("unheard-of") is None
