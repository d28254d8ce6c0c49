"""What goes over a child's standard streams: one JSON object a line, in each direction.

parent → child   Call, Cancel
child → parent   Ready once, Announced whenever; for each call any number of StreamItem, then CallResult or CallFailed
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
    """The child has imported what it needs to listen."""


class StreamItem(Struct, tag="item", tag_field="t"):
    """One piece of a stream."""

    id: int
    value: Any


class CallResult(Struct, tag="answer", tag_field="t"):
    """A call is over, and this is what it returned."""

    id: int
    value: Any = None


class CallFailed(Struct, tag="failure", tag_field="t"):
    """A call is over because of an error; `kind` is the name of a class in `tui_agent.errors`."""

    id: int
    kind: str
    what: str
    remedy: str


class Announced(Struct, tag="announced", tag_field="t"):
    """Something happened in the child that nobody asked about."""

    event: dict[str, Any]


FromParent = Call | Cancel
FromChild = Ready | StreamItem | CallResult | CallFailed | Announced

_T = TypeVar("_T")


class Reader(Generic[_T]):
    """Reads lines of one direction. Half characters, which only Python's own reader takes, are kept."""

    def __init__(self, kinds: Any) -> None:
        self._kinds = kinds
        self._decoder: msgspec.json.Decoder[_T] = msgspec.json.Decoder(kinds)

    def decode(self, line: bytes) -> _T:
        """Raises `ValueError` (msgspec's are such) for anything but a message."""
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
    """One line, its newline included. Raises `TypeError` or `ValueError` for what cannot be JSON."""
    try:
        return _encoder.encode(message) + b"\n"
    except (UnicodeEncodeError, OverflowError):  # half characters and numbers of any size are JSON too
        return json.dumps(msgspec.to_builtins(message)).encode() + b"\n"


def failure(id: int, error: TuiAgentError) -> CallFailed:
    return CallFailed(id, type(error).__name__, error.what, error.remedy)


def as_error(failure: CallFailed) -> TuiAgentError:
    """The error that the child raised, as the class it had there; else `ChildFailed`, which names the debug log."""
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
    """Each line without its newline; an unfinished last one is dropped, since its writer died over it."""
    parts: list[bytes] = []
    while chunk := await reader.read(CHUNK_BYTES):
        first, *rest = chunk.split(b"\n")
        parts.append(first)
        for following in rest:
            yield b"".join(parts)
            parts = [following]
