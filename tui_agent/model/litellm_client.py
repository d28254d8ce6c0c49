"""Requests through litellm, in the model's child only."""

from __future__ import annotations

import asyncio
import inspect
import logging
import os
import socket
import sys
from functools import cache
from types import ModuleType
from typing import Any, Final

from tui_agent.model.client import Abilities, ModelRequest
from tui_agent.model.completion import KEPT_ALIVE
from tui_agent.model.event_stream import Wire, watch_transports

_log = logging.getLogger(__name__)
#: Providers that keep what they have seen only where the request marks it.
_MARKED = ("anthropic", "bedrock", "bedrock_converse", "vertex_ai-anthropic_models", "databricks")
#: Ours ends a wait first, so that litellm's own limit is never what a person hears of.
_LITELLM_MARGIN_SECONDS = 30.0
#: What was logged as unknown: a model and what of it.
_logged: Final[set[tuple[str, str]]] = set()


@cache
def litellm() -> ModuleType:
    """litellm, made quiet: prices from its own table, no telemetry, no callbacks, no `.env`, no retries."""
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
    os.environ["LITELLM_MODE"] = "PRODUCTION"  # else it reads a .env file, which may be anybody's
    import litellm

    litellm.telemetry = False
    litellm.suppress_debug_info = True
    litellm.drop_params = True
    litellm.num_retries = 0
    litellm.callbacks = []
    litellm.disable_streaming_logging = True
    # aiohttp drops what has come, and was not read yet, when the connection breaks; httpx hands it over first.
    litellm.disable_aiohttp_transport = True
    litellm.disable_hf_tokenizer_download = True
    # It would end an answer that says one thing a hundred times: a row of zeros, a table of dashes.
    litellm.REPEATED_STREAMING_CHUNK_LIMIT = sys.maxsize
    watch_transports()
    return litellm


#: Providers whose requests go to an address that is given, and ask nobody else before.
_PLAIN = frozenset(
    (
        "openai",
        "azure",
        "anthropic",
        "gemini",
        "mistral",
        "groq",
        "deepseek",
        "openrouter",
        "xai",
        "ollama_chat",
    )
)
_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")


def warm(model: str) -> None:
    """Import what a first completion would import, some 500 modules more: it is sent where nobody listens."""
    proxied = any(os.environ.get(name) or os.environ.get(name.lower()) for name in _PROXIES)
    if model.partition("/")[0] in _PLAIN and not proxied:
        asyncio.run(_fail(model))


async def _fail(model: str) -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        try:
            await litellm().acompletion(
                model=model,
                messages=[{"role": "user", "content": "hello"}],
                stream=True,
                api_base=f"http://127.0.0.1:{nobody.getsockname()[1]}/v1",
                api_key="none",
                num_retries=0,
                max_retries=0,
                **_plain_tools(),
            )
        except Exception as error:  # as it should: litellm raises plain exceptions, too
            _log.debug("warm: %s", type(error).__name__)


class LitellmTransport:
    """What carries requests to every provider that litellm knows."""

    async def abilities(self, model: str) -> Abilities:
        return await asyncio.to_thread(abilities, model)

    async def open(self, request: ModelRequest, wire: Wire, shape: dict[str, Any] | None) -> Any:
        options: dict[str, Any] = {}
        if request.tools:
            options["tools"] = list(request.tools)
            options |= _plain_tools()
        if shape is not None:
            options["response_format"] = shape
        if request.most:
            options["max_tokens"] = request.most
        if request.options:
            # litellm speaks Ollama's own API to it, and knows its options by name
            ollama = request.model.startswith(("ollama/", "ollama_chat/"))
            options |= request.options if ollama else {"extra_body": request.options}
        return await litellm().acompletion(
            model=request.model,
            messages=list(request.messages),
            stream=True,
            stream_options={"include_usage": True},
            timeout=request.timeout * KEPT_ALIVE + _LITELLM_MARGIN_SECONDS,
            num_retries=0,
            max_retries=0,
            **options,
        )

    def cost(self, model: str, usage: Any) -> float | None:
        try:
            return sum(
                litellm().cost_per_token(
                    model=model,
                    prompt_tokens=usage.prompt_tokens,
                    completion_tokens=usage.completion_tokens,
                    usage_object=usage,
                )
            )
        except (
            Exception
        ) as error:  # litellm raises plain exceptions here: whatever it is, the price is unknown
            _unknown(model, "price", error)
            return None


@cache
def _plain_tools() -> dict[str, bool]:
    """Keeps litellm from looking whether the tools are MCP's, for which it imports a package that need not be
    there. The name is internal to it, so it is only given to a version that knows it."""
    name = "_skip_mcp_handler"
    completion = inspect.unwrap(litellm().completion)
    return {name: True} if name in completion.__code__.co_consts else {}


def abilities(model: str) -> Abilities:
    """What litellm's own table says of a model."""
    try:
        info = litellm().get_model_info(model)
        provider = str(info.get("litellm_provider") or "")
    except (
        Exception
    ) as error:  # litellm raises plain exceptions here: whatever it is, the model is unknown to it
        _unknown(model, "abilities", error)
        return Abilities(model)
    return Abilities(
        model=model,
        window=info.get("max_input_tokens") or info.get("max_tokens") or 0,
        tools=bool(info.get("supports_function_calling")),
        schema=bool(info.get("supports_response_schema")),
        cache_marks=provider in _MARKED and bool(info.get("supports_prompt_caching")),
        known=True,
        sees=bool(info.get("supports_vision")),
        prices=_prices(info.get("input_cost_per_token"), info.get("output_cost_per_token")),
    )


def _prices(given: float | None, made: float | None) -> tuple[float, float] | None:
    return None if given is None or made is None else (given, made)


def _unknown(model: str, what: str, error: Exception) -> None:
    """Log that litellm does not know something of a model, once."""
    if (model, what) not in _logged:
        _logged.add((model, what))
        _log.info("litellm does not know the %s of %s", what, model, exc_info=error)
