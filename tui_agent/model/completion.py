"""One reply over any transport: repeats the request without rejected parts and reads the stream."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import re
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Any, Protocol

from msgspec.structs import replace

from tui_agent.errors import ContextTooLong, EmptyReply, ModelError, Refused, SchemaRefused, Unreachable
from tui_agent.model import model_table
from tui_agent.model.client import (
    Abilities,
    CallChunk,
    Chunk,
    EndChunk,
    LeftOutChunk,
    ModelRequest,
    ProgressChunk,
    ReasoningChunk,
    TextChunk,
    UsageChunk,
)
from tui_agent.model.event_stream import BrokenStream, Wire, watch
from tui_agent.model.failures import Failure
from tui_agent.model.parts import Message, Origin, calls_of
from tui_agent.model.provider_errors import AttemptFailed, Meaning, broke_off, explain, timed_out
from tui_agent.model.rules import level_of
from tui_agent.model.wires.reader import ReplyReader

_log = logging.getLogger(__name__)
#: Maximum multiple of the time-out with keep-alives, because a model may reason silently for that long.
KEPT_ALIVE = 5
#: Consecutive empty events that are subject to the time-out; fewer may start a part.
MOST_EMPTY = 3
#: Minimum share of the time-out between extensions, which limits the cost per event.
WORTH_EXTENDING = 0.01
#: Seconds for the usage, which follows the end reason.
_LAST_WORDS_SECONDS = 5.0
#: Optional parts of a request, each with the words by which servers reject it. The first match is left out.
#: Parts most valuable to the conversation are last, because a message about thinking without a parameter name
#: may refer to any of three.
OPTIONAL = (
    (
        "schema",
        re.compile(r"(?i)schema|response_format|grammar|guided|structured output|output_config\.format"),
    ),
    ("summary", re.compile(r"(?i)reasoning\.summary|reasoning summ")),
    (
        "effort",
        re.compile(
            r"(?i)effort|output_config|enable_thinking|thinking[_ ]?(?:budget|level|config)"
            r"|thinking\.(?:type|budget|display)|budget \d+ is|adaptive thinking"
            r"|(?:parameter|argument|field|name):?\W{1,4}(?:reasoning|thinking)\b"
            r"|(?<![\w.])(?<!property ')(?:reasoning|thinking)\b\W{0,3}(?:is not support|is unsupported|extra inputs)"
            r"|not support (?:\w+ )?(?:reasoning|thinking)\b"
        ),
    ),
    (
        "items",
        re.compile(
            r"(?i)thinking|signature|reasoning_content|reasoning_details|encrypted[_ ]content|different conversation"
            r"|reasoning' was provided|item with id|item '(?:rs|msg|fc)_|input\[\d+\]\.id|property 'reasoning'"
        ),
    ),
    (
        "calls",
        re.compile(
            r"(?i)function[_ ]call|tool[_ ](?:use|call|result)|thinking|signature|reasoning|'fc_|invalid 'input\["
        ),
    ),
    ("effort", re.compile(r"(?i)reasoning|thinking")),
    ("temperature", re.compile(r"(?i)temperature|sampling")),
)
_VALUES = ("effort", "temperature")
_EMPTY = (TextChunk(""), ReasoningChunk(""))


class IncomingReply(Protocol):
    reader: ReplyReader
    origin: Origin

    async def __anext__(self) -> list[Chunk]: ...

    async def aclose(self) -> None: ...


class Transport(Protocol):
    async def abilities(self, model: str) -> Abilities: ...

    async def open(self, request: ModelRequest, wire: Wire, shape: dict[str, Any] | None) -> IncomingReply:
        """May raise any exception; see `explain`."""
        ...

    async def cost(self, model: str, usage: UsageChunk) -> float | None: ...


class Refusals:
    """Optional parts rejected by servers, by model, or by reply if the part belongs to one."""

    def __init__(self) -> None:
        self._parts: set[tuple[str, str, object]] = set()
        #: Digests of replies with rejected items, and of conversations (by first messages) with rejected
        #: calls.
        self._replies: set[bytes] = set()
        self._in_words: set[bytes] = set()

    def copy(self) -> Refusals:
        copied = Refusals()
        copied.take(self)
        return copied

    def take(self, other: Refusals) -> None:
        """Merges the rejections of a request that then succeeded."""
        self._parts |= other._parts
        self._replies |= other._replies
        self._in_words |= other._in_words

    def add(self, request: ModelRequest, part: str) -> None:
        match part:
            case "items":
                provider = (model_table.split(request.model) or request.model.split("/", 1))[0]
                own = (
                    it
                    for it in filter(_has_items, request.messages)
                    if it["origin"].get("provider") == provider
                )
                self._replies.update(map(_digest, own))
            case "calls":
                self._in_words.add(_beginning(request))
            case _:
                value = getattr(request, part) if part in _VALUES else None
                self._parts.add((request.model, part, value))

    def left_out(self, request: ModelRequest) -> ModelRequest:
        refused = {
            part
            for model, part, value in self._parts
            if model == request.model and (part not in _VALUES or value == getattr(request, part))
        }
        without = request.without | refused
        if self._in_words and _beginning(request) in self._in_words:
            without |= {"calls"}
        messages = request.messages
        if self._replies:
            messages = tuple(
                {name: value for name, value in message.items() if name != "origin"}
                if _has_items(message) and _digest(message) in self._replies
                else message
                for message in messages
            )
        temperature = None if "temperature" in without else request.temperature
        return replace(request, messages=messages, without=without, temperature=temperature)


def _digest(value: Any) -> bytes:
    return hashlib.sha256(json.dumps(value).encode()).digest()


def _beginning(request: ModelRequest) -> bytes:
    return _digest(request.messages[:2])


def _has_items(message: Message) -> bool:
    return "origin" in message


async def complete(
    transport: Transport, request: ModelRequest, refusals: Refusals
) -> AsyncGenerator[Chunk, None]:
    """Streams the reply. Raises `AttemptFailed` if a retry may succeed, otherwise a `ModelError`.

    A reply interrupted after its first content ends as `cut`. If the server rejects an optional part,
    repeats the request without it and records that in `refusals`.
    """
    known = await transport.abilities(request.model)
    if request.schema is not None and request.schema_form == "guided_json":
        request = replace(request, options={**request.options, "guided_json": request.schema}, schema=None)
    elif request.schema is not None and not (request.schema_form or known.schema or not known.known):
        request = replace(request, schema=None)
    tried = refusals.copy()
    told: list[Chunk] = []
    while True:
        request = tried.left_out(request)
        refused = ""
        async with aclosing(_attempt(transport, request)) as attempt:
            try:
                async for chunk in attempt:
                    refusals.take(tried)
                    while told:
                        yield told.pop(0)
                    yield chunk
            except _PartRefused as error:
                refused = error.part
                if refused in _VALUES and request.purpose == "main":  # other requests use no configured value
                    if refused == "temperature":
                        value = f"temperature {request.temperature:g}"
                    else:
                        level = level_of(model_table.rules_for(request.model), request.effort)
                        value = f"effort {level or request.effort}"
                    words = f"{request.model} is asked without {value}, which its provider rejects ({error.detail})"
                    told.append(LeftOutChunk(words))
        if not refused:
            return
        tried.add(request, refused)


class _PartRefused(Exception):
    """Raised before any content."""

    def __init__(self, part: str, detail: str) -> None:
        super().__init__(part)
        self.part = part
        self.detail = detail


async def _attempt(transport: Transport, request: ModelRequest) -> AsyncGenerator[Chunk, None]:
    wire = Wire()
    watch(wire)
    shape = None if "schema" in request.without else request.schema
    try:
        async with asyncio.timeout(None) as limit:  # preparing the first request has no limit
            _extend(limit, wire, request.timeout)
            stream = await transport.open(request, wire, shape)
    except (ModelError, AttemptFailed):
        raise
    except Exception as error:
        _raise_refusal(error, request, wire)
        meaning = _meaning(error, request, wire)
        raise (AttemptFailed(meaning) if meaning.again else meaning.error) from error
    reader = stream.reader
    silence = _Silence()
    try:
        while True:
            seconds = _patience(request, reader)
            async with asyncio.timeout(seconds) as limit:
                _extend(limit, wire, seconds)
                chunks = await anext(stream, None)
            if chunks is None:
                break
            silence.check(chunks, reader, _patience(request, reader))
            for chunk in chunks:
                yield chunk
            if progress := getattr(reader, "progress", None):
                yield ProgressChunk(*progress)
    except Exception as error:
        _log.info("the answer was interrupted", exc_info=True)
        if isinstance(error, BrokenStream):
            wire.broken = wire.broken or str(error)
        if not reader.has_content:
            _raise_refusal(error, request, wire)
        if reader.reason is None:
            # An interrupted reply with content ends as `cut`; otherwise its error is raised. An overloaded
            # server raises `AttemptFailed` with that end.
            meaning = _meaning(error, request, wire)
            if not reader.has_content:
                raise (AttemptFailed(meaning) if meaning.again else meaning.error) from error
            why = meaning.error.what
            if wire.error is not None or wire.broken or meaning.connection:
                why = broke_off(request.model, wire)
            end = _cut(stream, why)
            if meaning.again:
                raise AttemptFailed(meaning, end) from error
            yield end
            return
        # Errors after the end reason do not affect the reply.
    finally:
        await stream.aclose()
    if reader.usage is not None and (wire.usage or not wire.checked):  # Otherwise fabricated by litellm.
        cost = await transport.cost(request.model, reader.usage)
        yield replace(reader.usage, cost=cost)
    yield _end(stream, request.model)


def _raise_refusal(error: Exception, request: ModelRequest, wire: Wire) -> None:
    """If the server rejects an optional part. After a local server's internal error, also suspects the schema."""
    status = wire.error.status if wire.error else getattr(error, "status_code", 0)
    has_schema = request.schema is not None or "guided_json" in request.options
    if isinstance(_meaning(error, request, wire).error, ContextTooLong):
        return
    # litellm fabricates other statuses
    if request.schema_form and has_schema and wire.error and status == 500:
        part = "schema"
    elif status in (400, 422, 403, 404):
        words = f"{error} {wire.error.body if wire.error else ''}"
        invalid = status in (400, 422)
        present = {
            "schema": has_schema and invalid,
            "summary": status in (400, 403, 404),
            "items": invalid and any(map(_has_items, request.messages)),
            "calls": invalid and any(map(calls_of, request.messages)),
            "effort": invalid,
            "temperature": invalid and request.temperature is not None,
        }
        fitting = (
            part
            for part, sign in OPTIONAL
            if present[part] and part not in request.without and sign.search(words)
        )
        part = next(fitting, "")
    else:
        return
    if part == "schema" and request.schema_form:
        raise SchemaRefused(
            f"The server of {request.model} does not take the schema", "ask it without"
        ) from error
    if part:
        _log.info("the server refuses the %s", part, exc_info=True)
        raise _PartRefused(part, Failure(error, wire.error).detail) from error


def _patience(request: ModelRequest, reader: ReplyReader) -> float:
    if reader.reason is not None:
        return min(request.timeout, _LAST_WORDS_SECONDS)
    return request.timeout * KEPT_ALIVE if reader.thinks else request.timeout


class _Silence:
    def __init__(self) -> None:
        self._since = asyncio.get_running_loop().time()
        self._events = 0
        self._progress: object = None

    def check(self, chunks: Sequence[Chunk], reader: ReplyReader, seconds: float) -> None:
        """Raises `TimeoutError` after `seconds` of empty events."""
        now = asyncio.get_running_loop().time()
        progress = getattr(reader, "progress", None)
        says_something = (
            chunk.arguments if isinstance(chunk, CallChunk) else chunk not in _EMPTY for chunk in chunks
        )
        if any(says_something) or progress != self._progress:
            self._since, self._events, self._progress = now, 0, progress
            return
        self._events += 1
        if self._events > MOST_EMPTY and now - self._since > seconds:
            raise TimeoutError


def _extend(limit: asyncio.Timeout, wire: Wire, seconds: float) -> None:
    """Extends the deadline at signs of activity, up to a maximum: litellm hides empty events."""
    loop = asyncio.get_running_loop()
    begun = since = loop.time()

    def alive() -> None:
        nonlocal since
        now = loop.time()
        is_long = limit.when() is not None and now - begun > seconds * KEPT_ALIVE
        if limit.when() is None or (now - since > seconds * WORTH_EXTENDING and not is_long):
            since = now
            limit.reschedule(since + seconds)

    def kept_alive() -> None:
        if loop.time() - since < seconds * KEPT_ALIVE:
            limit.reschedule(loop.time() + seconds)

    wire.on_sent = wire.on_sign_of_life = alive
    wire.on_keep_alive = kept_alive


def _cut(stream: IncomingReply, why: str) -> EndChunk:
    return EndChunk("cut", why, stream.reader.parts(), stream.origin)


def _end(stream: IncomingReply, model: str) -> EndChunk:
    reader = stream.reader
    if reader.refusal and not reader.has_content:
        what = f"{model} declined, saying: {reader.refusal.strip()}"
        raise Refused(what, "change the request, or choose another model")
    if not reader.has_content:
        match reader.reason:
            case None if reader.failure:
                what = f"The provider of {model} ended the answer because of an error ({reader.failure})"
                raise Unreachable(what, "send the request again")
            case None:
                what = f"The server of {model} ended the answer before any text"
                raise Unreachable(what, "send the request again")
            case "refused":
                what = f"{model} refused to answer (content filter)"
                raise Refused(what, "change the request, or choose another model")
            case "length":
                what = f"{model} reached its output limit before any text"
                raise EmptyReply(what, "send the request again with fewer files, or choose another model")
        raise EmptyReply(f"{model} sent an empty answer", "send the request again, or choose another model")
    if reader.failure:
        return _cut(
            stream, f"The provider of {model} ended the answer because of an error ({reader.failure})"
        )
    if reader.reason is None:
        return _cut(stream, f"The server of {model} ended the answer early")
    why = ""
    if reader.reason == "length":
        why = f"{model} reached the length limit of its answers"
    elif reader.reason == "refused":
        why = f"The content filter of {model}'s provider ended the answer"
    return EndChunk(reader.reason, why, reader.parts(), stream.origin)


def _meaning(error: Exception, request: ModelRequest, wire: Wire) -> Meaning:
    if type(error) is TimeoutError:
        return Meaning(timed_out(request.model, request.timeout, more=wire.accepted))
    return explain(error, request.model, wire)
