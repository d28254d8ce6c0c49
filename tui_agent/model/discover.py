"""Which models could be used here: keys in the environment, by name only, and servers on this machine.

Only a first run and `tui-agent doctor` look; the servers are asked for the names of their models, and nothing
leaves the machine.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct

from tui_agent.model.providers import PROVIDERS

#: A local server answers at once or is not there.
TIMEOUT_SECONDS = 0.5
MOST_MODELS = 20
_MOST_BYTES = 1 << 20


class Suggestion(Struct, frozen=True):
    """A model that could be used. `because` is where it was found; `environment` is what must be set for it."""

    model: str
    because: str
    environment: dict[str, str] = {}


class LocalServer(Struct, frozen=True):
    """A server on loopback: where it lists its models, and how litellm is told to use it."""

    name: str
    port: int
    listing: str
    prefix: str
    #: The variable that litellm reads the address from; none where the port is what it expects.
    address: str = ""


LOCAL_SERVERS = (
    LocalServer("Ollama", 11434, "/api/tags", "ollama_chat/"),
    LocalServer("LM Studio", 1234, "/v1/models", "lm_studio/", "LM_STUDIO_API_BASE"),
    LocalServer("llama.cpp", 8080, "/v1/models", "openai/", "OPENAI_API_BASE"),
    LocalServer("vLLM", 8000, "/v1/models", "hosted_vllm/", "HOSTED_VLLM_API_BASE"),
)


async def discover(
    environment: Mapping[str, str] | None = None, servers: tuple[LocalServer, ...] = LOCAL_SERVERS
) -> tuple[Suggestion, ...]:
    """What was found, keys first. Takes half a second at most; whatever does not answer is left out."""
    found = with_keys(os.environ if environment is None else environment)
    answers = await asyncio.gather(*(_models(server) for server in servers))
    return (*found, *(suggestion for suggestions in answers for suggestion in suggestions))


def with_keys(environment: Mapping[str, str]) -> list[Suggestion]:
    """A model for each provider whose key is set."""
    found = []
    for provider in PROVIDERS:
        key = next((name for name in provider.keys if environment.get(name)), None)
        if key and provider.suggestion:
            found.append(Suggestion(provider.suggestion, f"{key} is set"))
    return found


async def _models(server: LocalServer) -> list[Suggestion]:
    try:
        async with asyncio.timeout(TIMEOUT_SECONDS):
            names = _names(await _get(server.port, server.listing))
    except (OSError, TimeoutError, ValueError):
        return []  # nobody there, or nobody that speaks of models
    address = {server.address: f"http://127.0.0.1:{server.port}/v1"} if server.address else {}
    because = f"{server.name} answers on port {server.port}"
    return [Suggestion(server.prefix + name, because, address) for name in names[:MOST_MODELS]]


async def _get(port: int, path: str) -> Any:
    """The JSON at an address on loopback. Raises `OSError`, and `ValueError` for anything but JSON."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        request = f"GET {path} HTTP/1.0\r\nHost: 127.0.0.1:{port}\r\nAccept: application/json\r\n\r\n"
        writer.write(request.encode())
        raw = await _up_to(reader, _MOST_BYTES)
    finally:
        writer.close()
    head, _, body = raw.partition(b"\r\n\r\n")
    if b" 200 " not in head.partition(b"\r\n")[0]:
        raise ValueError("not there")
    return msgspec.json.decode(body)


async def _up_to(reader: asyncio.StreamReader, most: int) -> bytes:
    raw = b""
    while len(raw) < most and (more := await reader.read(most - len(raw))):
        raw += more
    return raw


def _names(listing: Any) -> list[str]:
    """From `{"models": [{"name": …}]}` (Ollama) or `{"data": [{"id": …}]}` (the OpenAI API)."""
    match listing:
        case {"models": list(models)}:
            names = [model.get("name") for model in models if isinstance(model, dict)]
        case {"data": list(models)}:
            names = [model.get("id") for model in models if isinstance(model, dict)]
        case _:
            names = []
    return [name for name in names if isinstance(name, str) and name]
