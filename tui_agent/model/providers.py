"""Providers: what each model's name and key belong to, and which are found on this machine."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct


class Provider(Struct, frozen=True):
    """A provider as litellm names it. Any one of `keys` will do; none are needed where it is empty."""

    name: str
    keys: tuple[str, ...]
    address: str = ""
    #: A model to suggest to somebody who has the key and has chosen none.
    suggestion: str = ""


PROVIDERS = (
    Provider("anthropic", ("ANTHROPIC_API_KEY",), "ANTHROPIC_API_BASE", "anthropic/claude-sonnet-4-5"),
    Provider("openai", ("OPENAI_API_KEY",), "OPENAI_API_BASE", "openai/gpt-5"),
    Provider("gemini", ("GEMINI_API_KEY", "GOOGLE_API_KEY"), "GEMINI_API_BASE", "gemini/gemini-2.5-pro"),
    Provider(
        "openrouter", ("OPENROUTER_API_KEY",), "OPENROUTER_API_BASE", "openrouter/anthropic/claude-sonnet-4.5"
    ),
    Provider("deepseek", ("DEEPSEEK_API_KEY",), "DEEPSEEK_API_BASE", "deepseek/deepseek-chat"),
    Provider("mistral", ("MISTRAL_API_KEY",), "MISTRAL_API_BASE", "mistral/mistral-large-latest"),
    Provider("xai", ("XAI_API_KEY",), "XAI_API_BASE", "xai/grok-4"),
    Provider("groq", ("GROQ_API_KEY",), "GROQ_API_BASE", "groq/openai/gpt-oss-120b"),
    Provider("cohere", ("COHERE_API_KEY", "CO_API_KEY"), "COHERE_API_BASE"),
    Provider("together_ai", ("TOGETHERAI_API_KEY", "TOGETHER_API_KEY")),
    Provider("fireworks_ai", ("FIREWORKS_API_KEY", "FIREWORKS_AI_API_KEY")),
    Provider("azure", ("AZURE_API_KEY",), "AZURE_API_BASE"),
    Provider("bedrock", ("AWS_ACCESS_KEY_ID", "AWS_PROFILE", "AWS_BEARER_TOKEN_BEDROCK")),
    Provider("vertex_ai", ("GOOGLE_APPLICATION_CREDENTIALS",)),
    Provider("ollama", (), "OLLAMA_API_BASE"),
    Provider("ollama_chat", (), "OLLAMA_API_BASE"),
    Provider("lm_studio", (), "LM_STUDIO_API_BASE"),
    Provider("hosted_vllm", (), "HOSTED_VLLM_API_BASE"),
)


def provider_of(model: str) -> Provider | None:
    """By the part of the model's name before the first slash, or by the names that litellm takes without one."""
    prefix, slash, _ = model.partition("/")
    if not slash:
        prefix = _bare(model)
    return next((provider for provider in PROVIDERS if provider.name == prefix), None)


def _bare(model: str) -> str:
    if model.startswith(("gpt-", "o1", "o3", "o4", "chatgpt-", "codex-")):
        return "openai"
    return "anthropic" if model.startswith("claude-") else ""


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
