"""Every way in which a streamed answer can end, over both wires, for an answer whose first events got through."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from support.openai_wire import Answer, RawAnswer

Events = Sequence[bytes]
Make = Callable[[Events, int], RawAnswer]
WIRES = ("openai", "anthropic")
#: The time-out for requests whose answers are held open, in seconds.
TIMEOUT = 0.6


@dataclass(frozen=True)
class Ending:
    """`make` gives what the server sends of the events when it ends after so many of them.

    `leaves` is what is left of the answer then: a part of it (`cut`) with a cause that fits `why`, or all of it.
    One that is `held` open is waited for until the time-out.
    """

    name: str
    make: Make
    why: str = ""
    leaves: Literal["cut", "all"] = "cut"
    held: bool = False


def _plain(**how: Any) -> Make:
    return lambda events, at: RawAnswer(tuple(events[:at]), **how)


def _with(*extra: bytes, **how: Any) -> Make:
    return lambda events, at: RawAnswer((*events[:at], *extra), **how)


def _of_length(more: int) -> Make:
    def make(events: Events, at: int) -> RawAnswer:
        body = b"".join(events[:at])
        length, headers = len(body) + more, {"content-length": str(len(body) + more)}
        pieces = (body[:length], body[length:]) if more < 0 else (body,)
        return RawAnswer(pieces, headers=headers, pause=0.05)

    return make


def _packed(keep: Callable[[bytes], bytes]) -> Make:
    """Packed, and then not all of it, or not as it was."""

    def make(events: Events, at: int) -> RawAnswer:
        # each event is flushed by itself, as a server that streams has to
        packer = zlib.compressobj(wbits=31)
        pieces = [packer.compress(event) + packer.flush(zlib.Z_SYNC_FLUSH) for event in events[:at]]
        return RawAnswer((*pieces, keep(packer.flush())), headers={"content-encoding": "gzip"})

    return make


def _half_an_event(events: Events, at: int) -> RawAnswer:
    return RawAnswer((*events[:at], events[at][: len(events[at]) // 2]))


def _without(*words: bytes) -> Make:
    """The whole answer, but for its events with these words."""
    return lambda events, at: RawAnswer(
        tuple(event for event in events if not any(word in event for word in words))
    )


def _finished(**how: Any) -> Make:
    """The whole answer up to the model's own end, and then nothing of what should follow."""

    def make(events: Events, at: int) -> RawAnswer:
        last = max(i for i, event in enumerate(events) if _ENDED in event or _STOPPED in event)
        return RawAnswer(tuple(events[: last + 1]), **how)

    return make


def _empty(delta: bytes, of_messages: bytes) -> Make:
    """Held open with events that say nothing, again and again, in the form of the wire."""

    def make(events: Events, at: int) -> RawAnswer:
        form = EMPTY_OF_MESSAGES if any(b"content_block" in event for event in events) else EMPTY
        beats = form % (of_messages if form is EMPTY_OF_MESSAGES else delta)
        return RawAnswer(tuple(events[:at]), ends="beat", beats=beats)

    return make


EMPTY = b'data: {"choices": [{"index": 0, "delta": %s}]}\n\n'
EMPTY_OF_MESSAGES = (
    b'event: content_block_delta\ndata: {"type": "content_block_delta", "index": 0, "delta": %s}\n\n'
)
_ENDED, _STOPPED = b'"finish_reason": "', b'"stop_reason": "'
MALFORMED = b'data: {"choices": [{"index": 0, "delta": {"con\n\n'
INVALID = b'data: {"choices": [{"index": 0, "delta": {"content": "caf\xe9"}}]}\n\n'
FAULT = b'event: error\ndata: {"type": "error", "error": {"type": "invalid_request_error", "message": "No more"}}\n\n'
PLAIN_FAULT = b'data: {"error": {"message": "No more", "type": "invalid_request_error", "code": 400}}\n\n'
WORDS_FAULT = b"event: error\ndata: No more\n\n"

ENDINGS = (
    Ending(
        "held open without an end", _plain(ends="hold"), f"sent nothing more within {TIMEOUT} s", held=True
    ),
    Ending(
        "held open with comments", _plain(ends="beat"), f"sent nothing more within {TIMEOUT} s", held=True
    ),
    Ending(
        "held open with pings",
        _plain(ends="beat", beats=b'event: ping\ndata: {"type": "ping"}\n\n'),
        f"sent nothing more within {TIMEOUT} s",
        held=True,
    ),
    Ending(
        "held open with empty words",
        _empty(b'{"content": ""}', b'{"type": "text_delta", "text": ""}'),
        f"sent nothing more within {TIMEOUT} s",
        held=True,
    ),
    Ending(
        "held open with empty events",
        _empty(b"{}", b"{}"),
        f"sent nothing more within {TIMEOUT} s",
        held=True,
    ),
    Ending("malformed last event", _with(MALFORMED), "sent an event that is not valid JSON"),
    Ending("malformed last event, held open", _with(MALFORMED, ends="hold"), "not valid JSON"),
    Ending("half an event", _half_an_event, "ended the answer early"),
    Ending("error event", _with(FAULT), r"ended the answer with an error \(No more\)"),
    Ending("error without an event", _with(PLAIN_FAULT), r"ended the answer with an error \(No more\)"),
    Ending("invalid UTF-8", _with(INVALID), "sent bytes that are not UTF-8"),
    Ending("connection reset", _plain(ends="reset"), "broke the connection"),
    Ending("half closed", _plain(ends="half"), "broke the connection"),
    Ending("content-length too long", _of_length(1000), "broke the connection"),
    Ending("content-length too short", _of_length(-20), "ended the answer early"),
    Ending("packed, cut", _packed(lambda rest: b""), "ended the answer early"),
    Ending("packed, damaged", _packed(lambda rest: b"\xff\xff damaged"), "cannot be unpacked"),
    Ending("closed without a reason", _plain(), "ended the answer early"),
    Ending("comments, then closed", _with(b": x\n\n", b": y\n\n"), "ended the answer early"),
    Ending("no end marker", _finished(), leaves="all"),
    Ending("no end marker, held open", _finished(ends="hold"), leaves="all", held=True),
    Ending("no end marker, reset", _finished(ends="reset"), leaves="all"),
    Ending("no usage", _without(b'"prompt_tokens"'), leaves="all"),
)
#: Errors of servers that have too much to do, as they stand inside a stream.
OVERLOADS = {
    name: f"data: {json.dumps({'type': 'error', 'error': error})}\n\n".encode()
    for name, error in {
        "overloaded_error": {"type": "overloaded_error", "message": "Overloaded"},
        "529": {"message": "Too busy", "code": 529},
        "503": {"message": "No capacity", "code": "503"},
        "429": {"message": "Slow down", "code": 429, "type": "rate_limit_error"},
        "500": {"message": "Internal error", "status": 500},
        "server_error": {"message": "The server had an error", "type": "server_error", "code": None},
    }.items()
}


def whole_body(answer: Answer, wire: str, **headers: str) -> RawAnswer:
    """The answer as one JSON body."""
    from support import anthropic_wire, openai_wire

    body = anthropic_wire.message(answer, {}) if wire == "anthropic" else openai_wire.completion(answer, {})
    raw = json.dumps(body, indent=1).encode()
    return RawAnswer((raw[:40], raw[40:]), headers={"content-type": "application/json", **headers})
