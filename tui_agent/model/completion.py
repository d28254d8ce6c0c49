"""One chat completion through litellm, in the model's child only."""

from __future__ import annotations

import asyncio
import inspect
import os
from collections.abc import AsyncGenerator
from functools import cache
from types import ModuleType
from typing import Any

from tui_agent.errors import Unreachable
from tui_agent.model.client import Abilities, Chunk, EndChunk, ModelRequest, UsageChunk
from tui_agent.model.explain import Meaning, explain, timed_out
from tui_agent.model.marking import marked
from tui_agent.model.retrying import NotNow
from tui_agent.model.translate import Translator

#: Providers that keep what they have seen only where the request marks it.
_MARKED = ("anthropic", "bedrock", "bedrock_converse", "vertex_ai-anthropic_models", "databricks")
#: Ours ends a wait first, so that litellm's own limit is never what a person hears of.
_LITELLM_MARGIN_SECONDS = 30.0


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
    litellm.disable_hf_tokenizer_download = True
    return litellm


async def complete(request: ModelRequest, schema_rejected: set[str]) -> AsyncGenerator[Chunk, None]:
    """The answer to `request`. Raises `NotNow` where asking again may help, else a `ModelError`.

    A server that takes no JSON schema is asked again without one, and remembered in `schema_rejected`.
    """
    translator = Translator(request.model)
    stream = await _opened(request, schema_rejected)
    usage: UsageChunk | None = None
    try:
        while (piece := await _next(stream, request)) is not None:
            for chunk in translator.chunks(piece):
                yield chunk
            usage = _usage(request.model, piece) or usage
    except Exception as error:
        yield _broken(error, translator, request)
        return
    finally:
        await _close(stream)
    if usage is not None:
        yield usage
    yield translator.end(_reason(stream))


async def _next(stream: Any, request: ModelRequest) -> Any | None:
    async with asyncio.timeout(request.timeout):
        return await anext(stream, None)


async def _opened(request: ModelRequest, schema_rejected: set[str]) -> Any:
    with_schema = request.schema is not None and request.model not in schema_rejected
    try:
        try:
            return await _open(request, with_schema=with_schema)
        except Exception as error:
            if not (with_schema and _rejects_schema(error)):
                raise
            schema_rejected.add(request.model)
            return await _open(request, with_schema=False)
    except Exception as error:
        meaning = _meaning(error, request)
        raise (NotNow(meaning) if meaning.again else meaning.error) from error


async def _open(request: ModelRequest, *, with_schema: bool) -> Any:
    options: dict[str, Any] = {}
    if request.tools:
        options["tools"] = list(request.tools)
        options |= _plain_tools()
    if with_schema and await asyncio.to_thread(_takes_schema, request.model):
        options["response_format"] = response_format(request.schema or {})
    messages = list(request.messages)
    if await asyncio.to_thread(_takes_marks, request.model):
        messages = marked(messages)
    async with asyncio.timeout(request.timeout):
        return await litellm().acompletion(
            model=request.model,
            messages=messages,
            stream=True,
            stream_options={"include_usage": True},
            timeout=request.timeout + _LITELLM_MARGIN_SECONDS,
            num_retries=0,
            max_retries=0,
            **options,
        )


@cache
def _plain_tools() -> dict[str, bool]:
    """Keeps litellm from looking whether the tools are MCP's, for which it imports a package that need not be
    there. The name is internal to it, so it is only given to a version that knows it."""
    name = "_skip_mcp_handler"
    completion = inspect.unwrap(litellm().completion)
    return {name: True} if name in completion.__code__.co_consts else {}


def response_format(schema: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "json_schema",
        "json_schema": {"name": "reply", "schema": schema, "strict": is_strict(schema)},
    }


def is_strict(schema: Any) -> bool:
    """Whether every object in it names all its properties as required and allows no others."""
    match schema:
        case {"type": "object", "properties": properties}:
            closed = schema.get("additionalProperties") is False
            return (
                closed and set(schema.get("required", ())) == set(properties) and _all_strict(schema.values())
            )
        case dict():
            return schema.get("type") != "object" and _all_strict(schema.values())
        case list():
            return _all_strict(schema)
    return True


def _all_strict(values: Any) -> bool:
    return all(is_strict(value) for value in values)


def _takes_schema(model: str) -> bool:
    """A model that litellm does not know (a local server's, say) is tried with one."""
    known = abilities(model)
    return known.schema or not known.known


def _takes_marks(model: str) -> bool:
    """Every model of Anthropic's does, also one that litellm has not heard of yet."""
    return model.startswith("anthropic/") or abilities(model).cache_marks


def abilities(model: str) -> Abilities:
    """What litellm's own table says of a model."""
    try:
        info = litellm().get_model_info(model)
        provider = str(info.get("litellm_provider") or "")
    except Exception:  # litellm raises plain exceptions here: whatever it is, the model is unknown to it
        return Abilities(model)
    return Abilities(
        model=model,
        window=info.get("max_input_tokens") or info.get("max_tokens") or 0,
        tools=bool(info.get("supports_function_calling")),
        schema=bool(info.get("supports_response_schema")),
        cache_marks=provider in _MARKED and bool(info.get("supports_prompt_caching")),
        known=True,
    )


def _usage(model: str, piece: Any) -> UsageChunk | None:
    usage = getattr(piece, "usage", None)
    if usage is None:
        return None
    details = getattr(usage, "prompt_tokens_details", None)
    return UsageChunk(
        input=usage.prompt_tokens or 0,
        output=usage.completion_tokens or 0,
        cached=getattr(details, "cached_tokens", None) or 0,
        cost=_cost(model, usage),
    )


def _cost(model: str, usage: Any) -> float | None:
    try:
        return sum(
            litellm().cost_per_token(
                model=model,
                prompt_tokens=usage.prompt_tokens,
                completion_tokens=usage.completion_tokens,
                usage_object=usage,
            )
        )
    except Exception:  # litellm raises plain exceptions here: whatever it is, the price is unknown
        return None


def _reason(stream: Any) -> str | None:
    """Why the model ended, by its own word: litellm says "stop" for a stream that was cut off, too."""
    return getattr(stream, "received_finish_reason", None) or getattr(
        stream, "intermittent_finish_reason", None
    )


def _broken(error: Exception, translator: Translator, request: ModelRequest) -> EndChunk:
    """An answer whose connection broke ends as cut; whatever else happened in the middle of it is raised."""
    meaning = _meaning(error, request)
    if type(meaning.error) is Unreachable and (translator.said or not meaning.again):
        return translator.end(None)
    raise (NotNow(meaning) if meaning.again else meaning.error) from error


def _meaning(error: Exception, request: ModelRequest) -> Meaning:
    if type(error) is TimeoutError:
        return Meaning(timed_out(request.model, request.timeout))
    return explain(error, request.model)


def _rejects_schema(error: Exception) -> bool:
    return getattr(error, "status_code", 0) in (400, 422) and "schema" in str(error).replace(
        "response_format", "schema"
    )


async def _close(stream: Any) -> None:
    if close := getattr(stream, "aclose", None):
        await close()
