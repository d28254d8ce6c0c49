"""Messages on a child's standard streams: one JSON object per line.

parent → child   Call, Cancel child → parent   Ready once, Announced at any time; for each call
StreamItems, then CallResult or CallFailed
"""

from __future__ import annotations

import json
from asyncio import StreamReader
from collections.abc import AsyncGenerator
from typing import Any, Generic, TypeVar

import msgspec
from msgspec import Struct

from tui_agent import debug_log, errors
from tui_agent.errors import ChildFailed, TuiAgentError


class Call(Struct, tag="call", tag_field="t"):
    id: int
    method: str
    params: dict[str, Any]


class Cancel(Struct, tag="cancel", tag_field="t"):
    id: int


class Ready(Struct, tag="ready", tag_field="t"):
    """The child is ready to receive calls."""


class StreamItem(Struct, tag="item", tag_field="t"):
    """One item of a stream."""

    id: int
    value: Any


class CallResult(Struct, tag="answer", tag_field="t"):
    """The result of a call."""

    id: int
    value: Any = None


class CallFailed(Struct, tag="failure", tag_field="t"):
    """The error of a call; `kind` is the name of a class in `tui_agent.errors`."""

    id: int
    kind: str
    what: str
    remedy: str


class Announcement(Struct, tag="announced", tag_field="t"):
    """An unsolicited message from the child."""

    event: dict[str, Any]


FromParent = Call | Cancel
FromChild = Ready | StreamItem | CallResult | CallFailed | Announcement

_T = TypeVar("_T")


class Reader(Generic[_T]):
    """Decodes the lines of one direction. Preserves lone surrogates, which only Python's own JSON parser
    accepts."""

    def __init__(self, kinds: Any) -> None:
        self._kinds = kinds
        self._decoder: msgspec.json.Decoder[_T] = msgspec.json.Decoder(kinds)

    def decode(self, line: bytes) -> _T:
        """Raises `ValueError`, or its subclass from msgspec, for an invalid message."""
        try:
            return self._decoder.decode(line)
        except msgspec.ValidationError:
            raise
        except msgspec.DecodeError:
            return msgspec.convert(json.loads(line), self._kinds)


_encoder = msgspec.json.Encoder()
from_parent: Reader[FromParent] = Reader(FromParent)
from_child: Reader[FromChild] = Reader(FromChild)


def encode(message: FromParent | FromChild) -> bytes:
    """One line with its newline. Raises `TypeError` or `ValueError` for values that JSON cannot represent."""
    try:
        return _encoder.encode(message) + b"\n"
    except (
        UnicodeEncodeError,
        OverflowError,
    ):  # Lone surrogates and arbitrarily large integers are valid JSON.
        return json.dumps(msgspec.to_builtins(message)).encode() + b"\n"


def failure(id: int, error: TuiAgentError) -> CallFailed:
    return CallFailed(id, type(error).__name__, error.what, error.remedy)


def as_error(failure: CallFailed) -> TuiAgentError:
    """The child's exception as its original class; otherwise `ChildFailed`, which refers to the debug log."""
    kind = getattr(errors, failure.kind, None)
    if isinstance(kind, type) and issubclass(kind, TuiAgentError):
        told = kind(failure.what, failure.remedy)
    else:
        told = ChildFailed(failure.what, failure.remedy)
    path = debug_log.place()
    if isinstance(told, ChildFailed) and path:
        told.remedy = f"{told.remedy}; what it wrote is in {path}"
    return told


CHUNK_BYTES = 1 << 18


async def lines(reader: StreamReader) -> AsyncGenerator[bytes, None]:
    """Yields lines without newlines. Drops an incomplete last line, left by a writer that died."""
    parts: list[bytes] = []
    while chunk := await reader.read(CHUNK_BYTES):
        first, *rest = chunk.split(b"\n")
        parts.append(first)
        for following in rest:
            yield b"".join(parts)
            parts = [following]
