"""One chat completion through litellm, in the model's child only."""

from __future__ import annotations

import asyncio
import inspect
import logging
import os
import sys
from collections.abc import AsyncGenerator, Sequence
from functools import cache
from types import ModuleType
from typing import Any, Final

from tui_agent.model.client import Abilities, Chunk, EndChunk, Message, ModelRequest, UsageChunk
from tui_agent.model.event_stream import Wire, watch, watch_transports
from tui_agent.model.explain import Meaning, broke_off, explain, timed_out
from tui_agent.model.retrying import NotNow
from tui_agent.model.translate import Translator

_log = logging.getLogger(__name__)
#: Providers that keep what they have seen only where the request marks it.
_MARKED = ("anthropic", "bedrock", "bedrock_converse", "vertex_ai-anthropic_models", "databricks")
#: Ours ends a wait first, so that litellm's own limit is never what a person hears of.
_LITELLM_MARGIN_SECONDS = 30.0
#: A server that says that it is there, and nothing else, is waited for so many times as long as a silent one.
_KEPT_ALIVE = 5
#: Once the model has said why it ended, only the count of its tokens is still to come.
_LAST_WORDS_SECONDS = 5.0
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


async def complete(request: ModelRequest, schema_rejected: set[str]) -> AsyncGenerator[Chunk, None]:
    """The answer to `request`. Raises `NotNow` where asking again may help, else a `ModelError`.

    An answer that breaks off after its first word ends as cut, without an error. A server that takes no JSON schema is
    asked again without one, and remembered in `schema_rejected`.
    """
    translator, wire = Translator(request.model), Wire()
    watch(wire)
    stream = await _opened(request, schema_rejected, wire)
    usage: UsageChunk | None = None
    try:
        while (piece := await _next(stream, request, wire)) is not None:
            for chunk in translator.chunks(piece):
                yield chunk
            usage = _usage(request.model, piece) or usage
    except Exception as error:
        _log.info("the answer broke off", exc_info=True)
        if _reason(stream) is None:
            yield _broken(error, translator, request, wire)
            return
        # whatever happened after the model's last word took nothing from its answer
    finally:
        await _close(stream)
    if usage is not None and (wire.usage or not wire.checked):
        yield usage  # else litellm has made it up
    yield translator.end(_reason(stream))


async def _next(stream: Any, request: ModelRequest, wire: Wire) -> Any | None:
    """The next piece, None after the last. Raises `TimeoutError` after a silence of the request's time-out."""
    seconds = request.timeout if _reason(stream) is None else min(request.timeout, _LAST_WORDS_SECONDS)
    async with asyncio.timeout(seconds) as limit:
        _extend(limit, wire, seconds)
        return await anext(stream, None)


def _extend(limit: asyncio.Timeout, wire: Wire, seconds: float) -> None:
    """Have the limit begin again with each sign of life."""
    loop = asyncio.get_running_loop()
    since = loop.time()

    def alive() -> None:
        nonlocal since
        since = loop.time()
        limit.reschedule(since + seconds)

    def kept_alive() -> None:
        if loop.time() - since < seconds * _KEPT_ALIVE:
            limit.reschedule(loop.time() + seconds)

    wire.on_sent = wire.on_sign_of_life = alive
    wire.on_keep_alive = kept_alive


async def _opened(request: ModelRequest, schema_rejected: set[str], wire: Wire) -> Any:
    with_schema = request.schema is not None and request.model not in schema_rejected
    try:
        try:
            return await _open(request, wire, with_schema=with_schema)
        except Exception as error:
            if not (with_schema and _rejects_schema(error)):
                raise
            _log.info("the server takes no schema", exc_info=True)
            schema_rejected.add(request.model)
            wire.error = None
            return await _open(request, wire, with_schema=False)
    except Exception as error:
        meaning = _meaning(error, request, wire)
        raise (NotNow(meaning) if meaning.again else meaning.error) from error


async def _open(request: ModelRequest, wire: Wire, *, with_schema: bool) -> Any:
    options: dict[str, Any] = {}
    if request.tools:
        options["tools"] = list(request.tools)
        options |= _plain_tools()
    if with_schema and await asyncio.to_thread(_takes_schema, request.model):
        options["response_format"] = response_format(request.schema or {})
    messages = list(request.messages)
    if await asyncio.to_thread(_takes_marks, request.model):
        messages = marked(messages)
    async with asyncio.timeout(
        None
    ) as limit:  # litellm imports more for its first request: that is not waiting
        _extend(limit, wire, request.timeout)
        return await litellm().acompletion(
            model=request.model,
            messages=messages,
            stream=True,
            stream_options={"include_usage": True},
            timeout=request.timeout * _KEPT_ALIVE + _LITELLM_MARGIN_SECONDS,
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


def with_images(messages: Sequence[Message], model: str) -> list[Message]:
    """The messages, each with its images as parts behind its text, where litellm says that the model can see."""
    if not any("images" in message for message in messages):
        return list(messages)
    try:
        sees = bool(litellm().supports_vision(model))
    except (
        Exception
    ) as error:  # litellm raises plain exceptions here: whatever it is, the model is unknown to it
        _unknown(model, "sight", error)
        sees = False
    return [_with_parts(message, message.get("images") or () if sees else ()) for message in messages]


def _with_parts(message: Message, images: Sequence[dict[str, str]]) -> Message:
    plain = {key: value for key, value in message.items() if key != "images"}
    if not images:
        return plain
    urls = [f"data:{image['media_type']};base64,{image['data']}" for image in images]
    parts = [{"type": "image_url", "image_url": {"url": url}} for url in urls]
    return {**plain, "content": [{"type": "text", "text": plain["content"]}, *parts]}


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
        prices=_prices(info.get("input_cost_per_token"), info.get("output_cost_per_token")),
    )


def _prices(given: float | None, made: float | None) -> tuple[float, float] | None:
    return None if given is None or made is None else (given, made)


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
    except Exception as error:  # litellm raises plain exceptions here: whatever it is, the price is unknown
        _unknown(model, "price", error)
        return None


def _unknown(model: str, what: str, error: Exception) -> None:
    """Log that litellm does not know something of a model, once."""
    if (model, what) not in _logged:
        _logged.add((model, what))
        _log.info("litellm does not know the %s of %s", what, model, exc_info=error)


def _reason(stream: Any) -> str | None:
    """Why the model ended, by its own word: litellm says "stop" for a stream that was cut off, too."""
    return getattr(stream, "received_finish_reason", None) or getattr(
        stream, "intermittent_finish_reason", None
    )


def _broken(error: Exception, translator: Translator, request: ModelRequest, wire: Wire) -> EndChunk:
    """The end of an answer that broke off: as cut if anything had come, and else as the error that it is.

    Raises `NotNow` where the server says that it is overloaded, with the end that the answer would have had.
    """
    meaning = _meaning(error, request, wire)
    if not translator.said:
        raise (NotNow(meaning) if meaning.again else meaning.error) from error
    why = meaning.error.what
    if wire.error is not None or wire.broken or meaning.connection:
        why = broke_off(request.model, wire)
    end = translator.cut(why)
    if meaning.again:
        raise NotNow(meaning, end) from error
    return end


def _meaning(error: Exception, request: ModelRequest, wire: Wire) -> Meaning:
    if type(error) is TimeoutError:
        return Meaning(timed_out(request.model, request.timeout, more=wire.accepted))
    return explain(error, request.model, wire)


def _rejects_schema(error: Exception) -> bool:
    return getattr(error, "status_code", 0) in (400, 422) and "schema" in str(error).replace(
        "response_format", "schema"
    )


async def _close(stream: Any) -> None:
    if close := getattr(stream, "aclose", None):
        await close()


MARK = {"cache_control": {"type": "ephemeral"}}


def marked(messages: Sequence[Message]) -> list[Message]:
    """The messages with their breakpoints; the ones that are given stay as they are."""
    places = _places(messages)
    return [{**message, **MARK} if place in places else message for place, message in enumerate(messages)]


def _places(messages: Sequence[Message]) -> set[int]:
    last = len(messages) - 1
    replies = [place for place, message in enumerate(messages) if message["role"] == "assistant"]
    before = replies[-1] - 1 if replies else -1
    return {place for place in (0, before, last) if place >= 0 and messages[place].get("content")}
