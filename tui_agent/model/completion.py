"""One chat completion, whatever carries it: sent in the form that the model takes, read piece by piece."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Sequence
from typing import Any, Protocol

from msgspec.structs import replace

from tui_agent.errors import ContextTooLong, SchemaRefused
from tui_agent.model.client import (
    Abilities,
    Chunk,
    EndChunk,
    Message,
    ModelRequest,
    ProgressChunk,
    UsageChunk,
)
from tui_agent.model.event_stream import Wire, watch
from tui_agent.model.explain import Meaning, broke_off, explain, timed_out
from tui_agent.model.retrying import NotNow
from tui_agent.model.servers import SchemaForm, response_format
from tui_agent.model.translate import Translator

_log = logging.getLogger(__name__)
#: A server that says that it is there, and nothing else, is waited for so many times as long as a silent one.
KEPT_ALIVE = 5
#: One of these is in what a server says that takes no schema.
_SCHEMA_SIGNS = ("schema", "response_format", "grammar", "guided", "structured output")
#: A limit is set again once so much of it has passed: not for each of a thousand events in a moment.
WORTH_EXTENDING = 0.01
#: Once the model has said why it ended, only the count of its tokens is still to come.
_LAST_WORDS_SECONDS = 5.0


class Transport(Protocol):
    """What carries requests to providers."""

    async def abilities(self, model: str) -> Abilities: ...

    async def open(self, request: ModelRequest, wire: Wire, shape: dict[str, Any] | None) -> Any:
        """The pieces of the answer, in the shape of litellm's `ModelResponseStream`, as an iterator that can be closed.

        `shape` is a `response_format`. Raises whatever it may: `explain` says what that means.
        """

    def cost(self, model: str, usage: Any) -> float | None:
        """Dollars; None where nobody knows the price."""


async def complete(
    transport: Transport, request: ModelRequest, schema_rejected: set[str]
) -> AsyncGenerator[Chunk, None]:
    """The answer to `request`. Raises `NotNow` where asking again may help, else a `ModelError`.

    An answer that breaks off after its first word ends as cut, without an error. A server that takes no JSON schema is
    asked again without one, and remembered in `schema_rejected`.
    """
    translator, wire = Translator(request.model), Wire()
    watch(wire)
    stream = await _opened(transport, request, schema_rejected, wire)
    usage: UsageChunk | None = None
    try:
        while (piece := await _next(stream, request, wire)) is not None:
            for chunk in translator.chunks(piece):
                yield chunk
            if progress := getattr(piece, "progress", None):
                yield ProgressChunk(*progress)
            usage = _usage(transport, request.model, piece) or usage
    except Exception as error:
        _log.info("the answer broke off", exc_info=True)
        held = request.schema and request.schema_form and not translator.said
        if held and _rejects_schema(error, request, wire):
            raise _schema_refused(request) from error
        if _reason(stream) is None:
            yield _broken(error, translator, request, wire)
            return
        # whatever happened after the model's last word took nothing from its answer
    finally:
        await _close(stream)
    if usage is not None and (wire.usage or not wire.checked):
        yield usage  # else it was made up on the way
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
        now = loop.time()
        if limit.when() is None or now - since > seconds * WORTH_EXTENDING:
            since = now
            limit.reschedule(since + seconds)

    def kept_alive() -> None:
        if loop.time() - since < seconds * KEPT_ALIVE:
            limit.reschedule(loop.time() + seconds)

    wire.on_sent = wire.on_sign_of_life = alive
    wire.on_keep_alive = kept_alive


async def _opened(transport: Transport, request: ModelRequest, schema_rejected: set[str], wire: Wire) -> Any:
    known = await transport.abilities(request.model)
    messages = with_images(request.messages, sees=known.sees)
    if takes_marks(known):
        messages = marked(messages)
    request = replace(request, messages=tuple(messages))
    wanted = request.schema is not None and request.model not in schema_rejected
    # a model that nobody knows (a local server's, say) is tried with a schema
    shape = None
    if wanted and request.schema_form == "guided_json":
        request = replace(request, options={**request.options, "guided_json": request.schema})
    elif wanted and (request.schema_form or known.schema or not known.known):
        schema = request.schema or {}
        form: SchemaForm = "json_object" if request.schema_form == "json_object" else "json_schema"
        shape = response_format(schema, form, is_strict(schema))
    try:
        try:
            return await _open(transport, request, wire, shape)
        except Exception as error:
            held = shape is not None or "guided_json" in request.options
            if not held or not _rejects_schema(error, request, wire):
                raise
            if request.schema_form:
                raise _schema_refused(request) from error
            _log.info("the server takes no schema", exc_info=True)
            schema_rejected.add(request.model)
            wire.error = None
            return await _open(transport, request, wire, None)
    except SchemaRefused:
        raise
    except Exception as error:
        meaning = _meaning(error, request, wire)
        raise (NotNow(meaning) if meaning.again else meaning.error) from error


async def _open(transport: Transport, request: ModelRequest, wire: Wire, shape: dict[str, Any] | None) -> Any:
    async with asyncio.timeout(None) as limit:  # getting ready for a first request is not waiting
        _extend(limit, wire, request.timeout)
        return await transport.open(request, wire, shape)


def takes_marks(known: Abilities) -> bool:
    """Every model of Anthropic's does, also one that nobody has heard of yet."""
    return known.model.startswith("anthropic/") or known.cache_marks


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


def with_images(messages: Sequence[Message], *, sees: bool) -> list[Message]:
    """The messages, each with its images as parts behind its text, where the model can see."""
    if not any("images" in message for message in messages):
        return list(messages)
    return [_with_parts(message, message.get("images") or () if sees else ()) for message in messages]


def _with_parts(message: Message, images: Sequence[dict[str, str]]) -> Message:
    plain = {key: value for key, value in message.items() if key != "images"}
    if not images:
        return plain
    urls = [f"data:{image['media_type']};base64,{image['data']}" for image in images]
    parts = [{"type": "image_url", "image_url": {"url": url}} for url in urls]
    return {**plain, "content": [{"type": "text", "text": plain["content"]}, *parts]}


def _usage(transport: Transport, model: str, piece: Any) -> UsageChunk | None:
    usage = getattr(piece, "usage", None)
    if usage is None:
        return None
    details = getattr(usage, "prompt_tokens_details", None)
    return UsageChunk(
        input=usage.prompt_tokens or 0,
        output=usage.completion_tokens or 0,
        cached=getattr(details, "cached_tokens", None) or 0,
        cost=transport.cost(model, usage),
    )


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


def _rejects_schema(error: Exception, request: ModelRequest, wire: Wire) -> bool:
    """By its words; a local server that ends with a fault is tried without the schema too."""
    status = wire.error.status if wire.error else getattr(error, "status_code", 0)
    if isinstance(_meaning(error, request, wire).error, ContextTooLong):
        return False
    if request.schema_form and wire.error and status == 500:  # said by the server: litellm makes up others
        return True
    words = f"{error} {wire.error.body if wire.error else ''}"
    return status in (400, 422) and any(sign in words for sign in _SCHEMA_SIGNS)


def _schema_refused(request: ModelRequest) -> SchemaRefused:
    return SchemaRefused(f"The server of {request.model} does not take the schema", "ask it without")


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
