"""One reply of a model, whatever carries it: a request in an accepted form, and the reply read as it comes."""

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
from tui_agent.model import table
from tui_agent.model.client import (
    Abilities,
    CallChunk,
    Chunk,
    EndChunk,
    EndReason,
    LeftOutChunk,
    Message,
    ModelRequest,
    ProgressChunk,
    ReasoningChunk,
    TextChunk,
    UsageChunk,
)
from tui_agent.model.effort import level_of
from tui_agent.model.event_stream import BrokenStream, Wire, watch
from tui_agent.model.explain import Meaning, broke_off, explain, timed_out
from tui_agent.model.failures import Failure
from tui_agent.model.parts import Origin, calls_of
from tui_agent.model.retrying import NotNow
from tui_agent.model.wires.reader import ReplyReader

_log = logging.getLogger(__name__)
#: A server that says that it is there, and nothing else, is waited for so many times as long as a silent one; a model
#: that thinks may be silent as long.
KEPT_ALIVE = 5
#: Empty events in a row that end an answer if they go on as long as a silence may; fewer begin a part of one.
MOST_EMPTY = 3
#: A limit is set again once so much of it has passed: not for each of a thousand events in a moment.
WORTH_EXTENDING = 0.01
#: Once the model has said why it ended, only the count of its tokens is still to come.
_LAST_WORDS_SECONDS = 5.0
#: Parts of a request that it can do without, and how servers name them if they refuse them. The first that is named
#: is left out, and the request is sent again. What costs the conversation most comes last: words about thinking that
#: name no parameter may mean any of three parts.
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
#: Parts that have a value.
_VALUES = ("effort", "temperature")


class Answering(Protocol):
    """A reply that comes: its chunks event by event, and what reads it."""

    reader: ReplyReader
    origin: Origin

    async def __anext__(self) -> list[Chunk]: ...

    async def aclose(self) -> None: ...


class Transport(Protocol):
    """Carries requests to providers."""

    async def abilities(self, model: str) -> Abilities: ...

    async def open(self, request: ModelRequest, wire: Wire, shape: dict[str, Any] | None) -> Answering:
        """The reply that follows the schema `shape`. Raises whatever it may: `explain` says what that means."""
        ...

    async def cost(self, model: str, usage: UsageChunk) -> float | None:
        """Dollars; None if the price is not known."""
        ...


class Refusals:
    """The optional parts that servers have refused: by model, and of replies those that held them.

    A refused effort or temperature says nothing of another one.
    """

    def __init__(self) -> None:
        self._parts: set[tuple[str, str, object]] = set()
        #: Replies whose items were refused, and conversations whose calls were, by their first messages.
        self._replies: set[bytes] = set()
        self._in_words: set[bytes] = set()

    def copy(self) -> Refusals:
        """The same refusals, to which others are added on trial."""
        copied = Refusals()
        copied.take(self)
        return copied

    def take(self, other: Refusals) -> None:
        """Remember what turned out to be refused: the request was accepted without it."""
        self._parts |= other._parts
        self._replies |= other._replies
        self._in_words |= other._in_words

    def add(self, request: ModelRequest, part: str) -> None:
        match part:
            case "items":
                provider = (table.split(request.model) or request.model.split("/", 1))[0]
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
        """The request without everything that was refused before."""
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
    """A value of JSON in few bytes; half characters are JSON too."""
    return hashlib.sha256(json.dumps(value).encode()).digest()


def _beginning(request: ModelRequest) -> bytes:
    """A conversation: all that it says later follows its first two messages."""
    return _digest(request.messages[:2])


def _has_items(message: Message) -> bool:
    """Whether a message may hold items that its provider wants back."""
    return "origin" in message


async def complete(
    transport: Transport, request: ModelRequest, refusals: Refusals
) -> AsyncGenerator[Chunk, None]:
    """The reply to `request`. Raises `NotNow` if asking again may help, else a `ModelError`.

    A reply that breaks off after its first word ends as cut, without an error. A server that refuses an optional part
    is asked again without it, and remembered in `refusals`.
    """
    known = await transport.abilities(request.model)
    if request.schema is not None and request.schema_form == "guided_json":
        request = replace(request, options={**request.options, "guided_json": request.schema}, schema=None)
    elif request.schema is not None and not (request.schema_form or known.schema or not known.known):
        request = replace(request, schema=None)  # one that is not known is tried with a schema
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
                if refused in _VALUES and request.purpose == "main":  # the others are nobody's choice
                    told.append(LeftOutChunk(_left_out_in_words(request, error)))
        if not refused:
            return
        tried.add(request, refused)


def _left_out_in_words(request: ModelRequest, refusal: _PartRefused) -> str:
    """What a person is told of an effort or a temperature that the provider refuses."""
    value = f"temperature {request.temperature:g}" if refusal.part == "temperature" else ""
    value = value or f"effort {level_of(table.rules_for(request.model), request.effort) or request.effort}"
    return f"{request.model} is asked without {value}, which its provider refuses ({refusal.said})"


class _PartRefused(Exception):
    """The server refuses an optional part of a request, and has said nothing else but why."""

    def __init__(self, part: str, said: str) -> None:
        super().__init__(part)
        self.part = part
        self.said = said


async def _attempt(transport: Transport, request: ModelRequest) -> AsyncGenerator[Chunk, None]:
    wire = Wire()
    watch(wire)
    shape = None if "schema" in request.without else request.schema
    try:
        stream = await _open(transport, request, wire, shape)
    except (ModelError, NotNow):
        raise
    except Exception as error:
        _raise_refusal(error, request, wire)
        meaning = _meaning(error, request, wire)
        raise (NotNow(meaning) if meaning.again else meaning.error) from error
    reader = stream.reader
    silence = _Silence()
    try:
        while (chunks := await _next(stream, request, wire)) is not None:
            silence.check(chunks, reader, _patience(request, reader))
            for chunk in chunks:
                yield chunk
            if progress := getattr(reader, "progress", None):
                yield ProgressChunk(*progress)
    except Exception as error:
        _log.info("the answer broke off", exc_info=True)
        if isinstance(error, BrokenStream):  # a reader has found it
            wire.broken = wire.broken or str(error)
        if not reader.said:
            _raise_refusal(error, request, wire)
        if reader.reason is None:
            yield _broken(error, stream, request, wire)
            return
        # whatever happened after the model's last word took nothing from its answer
    finally:
        await stream.aclose()
    if reader.usage is not None and (wire.usage or not wire.checked):  # else it was made up on the way
        cost = await transport.cost(request.model, reader.usage)
        yield replace(reader.usage, cost=cost)
    yield _end(stream, request.model)


def _raise_refusal(error: Exception, request: ModelRequest, wire: Wire) -> None:
    """Raise `_PartRefused` if the server refuses an optional part, `SchemaRefused` for a local server's schema."""
    part = next(iter(_refused(error, request, wire)), "")
    if part == "schema" and request.schema_form:
        raise SchemaRefused(
            f"The server of {request.model} does not take the schema", "ask it without"
        ) from error
    if part:
        _log.info("the server refuses the %s", part, exc_info=True)
        raise _PartRefused(part, Failure(error, wire.error).said) from error


async def _next(stream: Answering, request: ModelRequest, wire: Wire) -> list[Chunk] | None:
    """The next chunks, None after the last. Raises `TimeoutError` after a silence of the request's time-out."""
    seconds = _patience(request, stream.reader)
    async with asyncio.timeout(seconds) as limit:
        _extend(limit, wire, seconds)
        try:
            return await anext(stream)
        except StopAsyncIteration:
            return None


def _patience(request: ModelRequest, reader: ReplyReader) -> float:
    """Seconds for which nothing need come."""
    if reader.reason is not None:
        return min(request.timeout, _LAST_WORDS_SECONDS)
    return request.timeout * KEPT_ALIVE if reader.thinks else request.timeout


class _Silence:
    """How long events have come in which nothing is said."""

    def __init__(self) -> None:
        self._since = asyncio.get_running_loop().time()
        self._events = 0
        self._progress: object = None

    def check(self, chunks: Sequence[Chunk], reader: ReplyReader, seconds: float) -> None:
        """Note an event and what it said. Raises `TimeoutError` after more than so many seconds of empty ones."""
        now = asyncio.get_running_loop().time()
        progress = getattr(reader, "progress", None)
        if any(map(_says_something, chunks)) or progress != self._progress:
            self._since, self._events, self._progress = now, 0, progress
            return
        self._events += 1
        if self._events > MOST_EMPTY and now - self._since > seconds:
            raise TimeoutError


def _says_something(chunk: Chunk) -> bool:
    match chunk:
        case TextChunk(text) | ReasoningChunk(text):
            return bool(text)
        case CallChunk():
            return bool(chunk.arguments)
    return True


def _extend(limit: asyncio.Timeout, wire: Wire, seconds: float) -> None:
    """Have the limit begin again with each sign of life, but at most for a while: litellm hides empty events."""
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


async def _open(
    transport: Transport, request: ModelRequest, wire: Wire, shape: dict[str, Any] | None
) -> Answering:
    async with asyncio.timeout(None) as limit:  # getting ready for a first request is not waiting
        _extend(limit, wire, request.timeout)
        return await transport.open(request, wire, shape)


def _refused(error: Exception, request: ModelRequest, wire: Wire) -> list[str]:
    """The optional parts of the request that the server names in its refusal.

    A local server that ends with a fault is asked without the schema too.
    """
    status = wire.error.status if wire.error else getattr(error, "status_code", 0)
    has_schema = request.schema is not None or "guided_json" in request.options
    if isinstance(_meaning(error, request, wire).error, ContextTooLong):
        return []
    if request.schema_form and has_schema and wire.error and status == 500:  # litellm makes up others
        return ["schema"]
    if status not in (400, 422, 403, 404):
        return []
    words = f"{error} {wire.error.body if wire.error else ''}"
    present = {
        "schema": has_schema and status in (400, 422),
        "summary": status in (400, 403, 404),
        "items": status in (400, 422) and any(map(_has_items, request.messages)),
        "calls": status in (400, 422) and any(map(calls_of, request.messages)),
        "effort": status in (400, 422),
        "temperature": status in (400, 422) and request.temperature is not None,
    }
    return [
        part
        for part, sign in OPTIONAL
        if present[part] and part not in request.without and sign.search(words)
    ]


def _broken(error: Exception, stream: Answering, request: ModelRequest, wire: Wire) -> EndChunk:
    """The end of an answer that broke off: as cut if anything had come, and else as the error that it is.

    Raises `NotNow` if the server says that it is overloaded, with the end that the answer would have had.
    """
    meaning = _meaning(error, request, wire)
    if not stream.reader.said:
        raise (NotNow(meaning) if meaning.again else meaning.error) from error
    why = meaning.error.what
    if wire.error is not None or wire.broken or meaning.connection:
        why = broke_off(request.model, wire)
    end = _cut(stream, why)
    if meaning.again:
        raise NotNow(meaning, end) from error
    return end


def _cut(stream: Answering, why: str) -> EndChunk:
    """The end of an answer that something else ended than the model."""
    return EndChunk("cut", why, stream.reader.parts(), stream.origin)


def _end(stream: Answering, model: str) -> EndChunk:
    """The end of an answer, with the reason that the provider gave. Raises a `ModelError` for one without a word."""
    reader = stream.reader
    if reader.refusal and not reader.said:
        what = f"{model} declined, saying: {reader.refusal.strip()}"
        raise Refused(what, "change the request, or choose another model")
    if not reader.said:
        raise _nothing(model, reader)
    if reader.failure:
        return _cut(
            stream, f"The provider of {model} ended the answer because of an error ({reader.failure})"
        )
    if reader.reason is None:
        return _cut(stream, f"The server of {model} ended the answer before the model did")
    return EndChunk(reader.reason, _why(model, reader.reason), reader.parts(), stream.origin)


def _why(model: str, reason: EndReason) -> str:
    match reason:
        case "length":
            return f"{model} reached the limit on the length of its answers"
        case "refused":
            return f"The content filter of {model}'s provider ended the answer"
    return ""


def _nothing(model: str, reader: ReplyReader) -> ModelError:
    match reader.reason:
        case None if reader.failure:
            what = f"The provider of {model} ended the answer because of an error ({reader.failure})"
            return Unreachable(what, "send the request again")
        case None:
            return Unreachable(
                f"The server of {model} ended the answer before its first word", "send the request again"
            )
        case "refused":
            what = f"{model} refused to answer (content filter)"
            return Refused(what, "change the request, or choose another model")
        case "length":
            what = f"{model} ran out of room before its first word"
            return EmptyReply(what, "send the request again with fewer files, or choose another model")
    return EmptyReply(f"{model} sent an empty answer", "send the request again, or choose another model")


def _meaning(error: Exception, request: ModelRequest, wire: Wire) -> Meaning:
    if type(error) is TimeoutError:
        return Meaning(timed_out(request.model, request.timeout, more=wire.accepted))
    return explain(error, request.model, wire)
