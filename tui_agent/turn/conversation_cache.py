"""The conversation as it was sent, byte for byte: each message is kept under its hash and read once."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence

from msgspec import Struct

from tui_agent.files.blobs import Blobs
from tui_agent.model.client import Message
from tui_agent.store.conversation import SentMessage

#: Seconds after which providers forget a conversation that they keep for five minutes.
LONG_PAUSE = 270.0


class Kept(Struct, frozen=True):
    """A message and the JSON text that is sent for it."""

    text: str
    message: Message


class ConversationCache:
    """Remembers the messages of one conversation. One thread at a time uses it."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._kept: dict[str, Kept] = {}
        self._clock = clock
        self._sent = -LONG_PAUSE
        #: How often in a row a model gave no summary, by its name.
        self.no_summary: dict[str, int] = {}

    @property
    def paused(self) -> bool:
        """Whether the last request of this process was so long ago that a provider has forgotten it."""
        return self._clock() - self._sent >= LONG_PAUSE

    def note_sent(self) -> None:
        """A request goes out now."""
        self._sent = self._clock()

    def read(self, blobs: Blobs, messages: Sequence[SentMessage]) -> list[Kept]:
        """The messages in order; the ones of other conversations are forgotten. Raises `FileError`."""
        found = {
            message.blob: self._kept.get(message.blob) or _read(blobs, message.blob) for message in messages
        }
        self._kept = found
        return [found[message.blob] for message in messages]


def shared_beginning(before: Sequence[str], now: Sequence[str]) -> float:
    """The share of the bytes of `before` that `now` begins with; 0 where there was nothing before."""
    total = sum(map(_bytes, before))
    if not total:
        return 0.0
    same = 0
    for old, new in zip(before, now, strict=False):
        if old != new:
            same += _bytes(_common(old, new))
            break
        same += _bytes(old)
    return same / total


def _common(one: str, other: str) -> str:
    length = next(
        (at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other))
    )
    return one[:length]


def _bytes(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


def _read(blobs: Blobs, blob: str) -> Kept:
    text = blobs.get_text(blob)
    return Kept(text, json.loads(text))
