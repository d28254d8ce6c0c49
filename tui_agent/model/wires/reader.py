"""A reply while it comes: each wire feeds it, it gives chunks at once and the ordered parts at the end."""

from __future__ import annotations

import re
from typing import Any

from msgspec import Struct

from tui_agent.model.client import CallChunk, Chunk, EndReason, ReasoningChunk, TextChunk, UsageChunk
from tui_agent.model.event_stream import BrokenStream
from tui_agent.model.parts import CallPart, Part, TextPart, ThinkingPart, is_empty

_HALF = re.compile("[\ud800-\udfff]")
#: More letters of signed or encrypted items in one reply are not kept, and end it.
MOST_NATIVE = 8_000_000
#: More parts in one reply are a fault of the server.
MOST_PARTS = 10_000
#: Where a part is in the reply.
Place = tuple[int, int]


class _Growing:
    """A part while its pieces come."""

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
    """One reply. A wire overrides `read`, which takes an event and gives what it says.

    `reason` is why the model ended, None until it says so; `failure` is the provider's word for a fault that ended it.
    `thinks` is whether the model may be silent because it thinks.
    """

    def __init__(self) -> None:
        self.reason: EndReason | None = None
        self.failure = ""
        self.refusal = ""
        self.usage: UsageChunk | None = None
        self.thinks = False
        #: Whether words or calls have come.
        self.said = False
        self._parts: dict[Place, _Growing] = {}
        self._native_size = 0
        self._calls = 0

    def read(self, event: Any) -> list[Chunk]:
        raise NotImplementedError

    def parts(self) -> tuple[Part, ...]:
        """What has come, in the provider's order."""
        made = (self._parts[place].part() for place in sorted(self._parts))
        return tuple(part for part in made if not is_empty(part))

    def text(self, place: Place, piece: Any) -> list[Chunk]:
        if not isinstance(piece, str) or not piece:
            return []
        self.said = True
        words = self._add(place, TextPart, piece)
        return [TextChunk(words)] if words else []

    def think(self, place: Place, piece: Any) -> list[Chunk]:
        if not isinstance(piece, str) or not piece:
            return []
        words = self._add(place, ThinkingPart, piece)
        return [ReasoningChunk(words)] if words else []

    def call(self, place: Place, id: Any = "", name: Any = "", arguments: Any = "") -> list[Chunk]:
        """A piece of a call; only the first id and name of a call count."""
        self.said = True
        growing = self._at(place, CallPart)
        new_id = id if isinstance(id, str) and not growing.id else ""
        new_name = name if isinstance(name, str) and not growing.name else ""
        growing.id, growing.name = growing.id or new_id, growing.name or new_name
        words = self._add(place, CallPart, arguments) if isinstance(arguments, str) else ""
        return [CallChunk(growing.index, new_id, new_name, words)]

    def keep(self, place: Place, kind: type[Part], native: Any, size: int = 0) -> None:
        """Keep what the provider wants back with a part; `size` is the number of its letters that are new."""
        self._native_size += size
        if self._native_size > MOST_NATIVE:
            raise BrokenStream(f"sent more than {MOST_NATIVE:,} letters of signed or encrypted thinking")
        self._at(place, kind).native = native

    def native(self, place: Place) -> Any:
        """What is kept with a part; None if nothing is."""
        growing = self._parts.get(place)
        return growing.native if growing else None

    def has(self, place: Place) -> bool:
        return place in self._parts

    def words(self, place: Place) -> str:
        """The text of a part so far."""
        growing = self._parts.get(place)
        return "".join(growing.pieces) if growing else ""

    def _at(self, place: Place, kind: type[Part]) -> _Growing:
        growing = self._parts.get(place)
        if growing is None:
            if len(self._parts) >= MOST_PARTS:
                raise BrokenStream(f"sent more than {MOST_PARTS:,} parts of an answer")
            growing = self._parts[place] = _Growing(kind, self._calls)
            self._calls += kind is CallPart
        return growing

    def _add(self, place: Place, kind: type[Part], piece: str) -> str:
        """The new words in whole characters: half of a pair waits for the other, and alone it is replaced."""
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
    """The body of a request, and the digest of all that precedes its reply ("" for models that bind nothing to it)."""

    body: dict[str, Any]
    prefix: str = ""


def count(value: Any) -> int:
    """A number of tokens that a server counted; 0 for what cannot be one."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return int(value) if number and 0 < value < 1e12 else 0


def mapping(value: Any) -> dict[str, Any]:
    """A JSON object; {} for anything else."""
    return value if isinstance(value, dict) else {}


def items(value: Any) -> list[dict[str, Any]]:
    """The objects of a JSON list; [] for anything else."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
