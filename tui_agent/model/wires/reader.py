"""Base class of reply readers: yields chunks immediately and ordered parts at the end."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from tui_agent.model.client import CallChunk, Chunk, EndReason, ReasoningChunk, TextChunk, UsageChunk
from tui_agent.model.parts import CallPart, Part, TextPart, ThinkingPart, is_empty

if TYPE_CHECKING:
    from tui_agent.model.event_stream import BrokenStream

_HALF = re.compile("[\ud800-\udfff]")
#: Maximum characters of signed or encrypted items; more end the reply.
MOST_NATIVE = 8_000_000
MOST_PARTS = 10_000
#: Sort key of a part within the reply.
Place = tuple[int, int]


def _broken(words: str) -> BrokenStream:
    """Imports httpx only in the process that reads replies."""
    from tui_agent.model.event_stream import BrokenStream

    return BrokenStream(words)


class _PartialPart:
    def __init__(self, kind: type[Part], index: int = 0) -> None:
        self.kind = kind
        self.index = index
        self.pieces: list[str] = []
        self.half = ""
        self.id = ""
        self.name = ""
        self.native: Any = None

    def part(self) -> Part:
        text = "".join(self.pieces)
        if self.kind is CallPart:
            return CallPart(self.id, self.name, text, self.native)
        return TextPart(text, self.native) if self.kind is TextPart else ThinkingPart(text, self.native)


class ReplyReader:
    """Subclasses override `read`, which converts an event to chunks. `reason` is None until the end.
    `failure` is the provider's name for a fault. `thinks`: silence may mean thinking.
    """

    def __init__(self) -> None:
        self.reason: EndReason | None = None
        self.failure = ""
        self.refusal = ""
        self.usage: UsageChunk | None = None
        self.thinks = False
        self.has_content = False
        self._parts: dict[Place, _PartialPart] = {}
        self._native_size = 0
        self._calls = 0

    def read(self, event: Any) -> list[Chunk]:
        raise NotImplementedError

    def parts(self) -> tuple[Part, ...]:
        made = (self._parts[place].part() for place in sorted(self._parts))
        return tuple(part for part in made if not is_empty(part))

    def text(self, place: Place, piece: Any) -> list[Chunk]:
        if not isinstance(piece, str) or not piece:
            return []
        self.has_content = True
        words = self._add(place, TextPart, piece)
        return [TextChunk(words)] if words else []

    def think(self, place: Place, piece: Any) -> list[Chunk]:
        if not isinstance(piece, str) or not piece:
            return []
        words = self._add(place, ThinkingPart, piece)
        return [ReasoningChunk(words)] if words else []

    def call(self, place: Place, id: Any = "", name: Any = "", arguments: Any = "") -> list[Chunk]:
        """Only the first id and name of a call count."""
        self.has_content = True
        growing = self._at(place, CallPart)
        new_id = id if isinstance(id, str) and not growing.id else ""
        new_name = name if isinstance(name, str) and not growing.name else ""
        growing.id, growing.name = growing.id or new_id, growing.name or new_name
        words = self._add(place, CallPart, arguments) if isinstance(arguments, str) else ""
        return [CallChunk(growing.index, new_id, new_name, words)]

    def keep(self, place: Place, kind: type[Part], native: Any, size: int = 0) -> None:
        """`size` is the number of new characters. Raises `BrokenStream` above `MOST_NATIVE`."""
        self._native_size += size
        if self._native_size > MOST_NATIVE:
            raise _broken(f"sent more than {MOST_NATIVE:,} letters of signed or encrypted thinking")
        self._at(place, kind).native = native

    def native(self, place: Place) -> Any:
        growing = self._parts.get(place)
        return growing.native if growing else None

    def has(self, place: Place) -> bool:
        return place in self._parts

    def words(self, place: Place) -> str:
        growing = self._parts.get(place)
        return "".join(growing.pieces) if growing else ""

    def _at(self, place: Place, kind: type[Part]) -> _PartialPart:
        growing = self._parts.get(place)
        if growing is None:
            if len(self._parts) >= MOST_PARTS:
                raise _broken(f"sent more than {MOST_PARTS:,} parts of an answer")
            growing = self._parts[place] = _PartialPart(kind, self._calls)
            self._calls += kind is CallPart
        return growing

    def _add(self, place: Place, kind: type[Part], piece: str) -> str:
        """Returns complete surrogate pairs: holds a high surrogate until the next piece, replaces lone ones."""
        growing = self._at(place, kind)
        text = growing.half + piece
        growing.half = ""
        if text and "\ud800" <= text[-1] <= "\udbff":
            growing.half, text = text[-1], text[:-1]
        if _HALF.search(text):
            text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        growing.pieces.append(text)
        return text


class Rendered(Struct, frozen=True):
    """A request body, and the digest of everything before its reply ("" if thinking is not bound)."""

    body: dict[str, Any]
    prefix: str = ""


def count(value: Any) -> int:
    """0 if invalid."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return int(value) if number and 0 < value < 1e12 else 0


def mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def items(value: Any) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
