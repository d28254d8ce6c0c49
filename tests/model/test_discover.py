"""Which models could be used here, found on loopback and by the names of variables, and what their servers are."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from support.local_servers import local_server
from support.provider import Provider, dead_url

from tui_agent.model import servers
from tui_agent.model.discovery import Suggestion, discover, with_keys
from tui_agent.model.model_table import all_providers, provider_of
from tui_agent.model.servers import Kind, ServerMemory, ServerModel

#: Each server as it is found: the model's name, the variable of its address and what is behind the port in it, and what
#: is known of the model.
FOUND: dict[Kind, tuple[str, str, str, ServerModel]] = {
    "Ollama": ("ollama_chat/tiny", "OLLAMA_API_BASE", "", ServerModel("Ollama", 0, 40_960, 1, tools=True)),
    "LM Studio": ("lm_studio/tiny", "LM_STUDIO_API_BASE", "/v1", ServerModel("LM Studio", 4096, slots=1)),
    "llama.cpp": ("llamafile/tiny", "LLAMAFILE_API_BASE", "/v1", ServerModel("llama.cpp", 4096, slots=1)),
    "llama-cpp-python": (
        "llamafile/tiny",
        "LLAMAFILE_API_BASE",
        "/v1",
        ServerModel("llama-cpp-python", slots=1),
    ),
    "vLLM": ("hosted_vllm/tiny", "HOSTED_VLLM_API_BASE", "/v1", ServerModel("vLLM", 4096)),
}
FORMS = {"Ollama": "json_schema", "llama-cpp-python": "json_object"}


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


@pytest.mark.parametrize("kind", FOUND)
async def test_each_server_says_what_it_is_on_whatever_port(kind: Kind, tmp_path: Path) -> None:
    memory = ServerMemory(tmp_path)
    async with local_server(kind) as it:
        name, variable, behind, known = FOUND[kind]
        (found,) = await discover({}, (it.port,), memory)
        assert found == Suggestion(name, f"{kind} answers on port {it.port}", {variable: it.root + behind})
        assert ServerMemory(tmp_path).variables(name) == found.environment, "the address goes with the name"
        assert await servers.examine(found.environment[variable], "tiny") == known
        tried = await servers.try_out(found.environment[variable], "tiny", known)
        assert tried.schema == FORMS.get(kind, "json_schema")
        it.constrains = kind == "Ollama"
        tried = await servers.try_out(found.environment[variable], "tiny", known)
        assert tried.schema == ("json_schema" if it.constrains else "none"), (
            "a fault is a refusal of the schema"
        )
        it.asked.clear()
        async with memory.place(found.environment[variable], known.slots):
            assert memory.is_busy(it.root)
            assert await discover({}, (it.port,), ServerMemory(tmp_path)) == ()
        assert it.asked == [], "who answers one of us is not even looked at"
        assert not memory.is_busy(it.root)


async def test_an_address_that_is_set_is_looked_at_and_keeps_its_name() -> None:
    async with local_server("llama-cpp-python") as it:
        environment = {"OPENAI_API_BASE": f"http://localhost:{it.port}/v1"}
        (found,) = await discover(environment, (it.port,))
        assert found.model == "openai/tiny" and found.environment == {"OPENAI_API_KEY": "none"}
        keyed = {**environment, "OPENAI_API_KEY": "sk-mine"}
        (found,) = await discover(keyed, ())
        assert found.environment == {}, (
            "no model of OpenAI's is offered for a key that belongs to another address"
        )


async def test_what_is_not_there_or_no_model_server_is_left_out() -> None:
    async with (
        server(b"HTTP/1.0 404 Not Found\r\n\r\n{}") as missing,
        server(b"HTTP/1.0 200 OK\r\n\r\n<html>") as page,
        server(b"HTTP/1.0 200 OK\r\n\r\n[1, 2]") as other,
        server(b"220 smtp ready\r\n") as mail,
    ):
        ports = (missing, page, other, mail, port_of(dead_url()))
        assert await discover({}, ports) == ()
    with Provider() as provider:
        (found,) = await discover({}, (provider.port,))
    assert found.environment == {"LLAMAFILE_API_BASE": provider.url}, "a server of no known kind"


@pytest.mark.parametrize(
    ("words", "sizes"),
    [
        ("Requested tokens (2100) exceed context window of 2048", (2048, 2100)),
        ("This model's maximum context length is 512 tokens. However, you requested 900 tokens", (512, 900)),
        ("request (5000 tokens) exceeds the available context size (4096 tokens)", (4096, 5000)),
        ('{"n_prompt_tokens": 5000, "n_ctx": 4096}', (4096, 5000)),
        (
            "Trying to keep the first 9001 tokens … loaded with context length of only 4096 tokens",
            (4096, 9001),
        ),
        ("the request is too long", (0, 0)),
    ],
)
def test_the_sizes_are_read_from_the_words_of_a_refusal(words: str, sizes: tuple[int, int]) -> None:
    assert servers.sizes_in(words) == sizes


def test_keys_are_found_by_the_names_of_variables_and_not_repeated() -> None:
    found = with_keys(
        {"ANTHROPIC_API_KEY": "sk-ant-secret", "OPENAI_API_KEY": "", "GOOGLE_API_KEY": "secret"}
    )
    assert [suggestion.model.partition("/")[0] for suggestion in found] == ["anthropic", "gemini"]
    assert "ANTHROPIC_API_KEY is set" in found[0].because
    assert "secret" not in repr(found)


def test_a_providers_own_suggestion_belongs_to_it() -> None:
    for provider in all_providers():
        if provider.suggestion:
            assert provider_of(provider.suggestion) is provider
    assert provider_of("claude-sonnet-4-5") is provider_of("anthropic/x")
    assert provider_of("unheard-of") is None
