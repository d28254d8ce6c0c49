"""Cache of the sent messages by hash, byte for byte."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence

from msgspec import Struct

from tui_agent.files.blobs import Blobs
from tui_agent.model.client import Message
from tui_agent.store.conversation import SentMessage

#: Seconds of inactivity after which a provider's five-minute cache has likely expired.
LONG_PAUSE = 270.0


class CachedMessage(Struct, frozen=True):
    """A message and its JSON text as sent."""

    text: str
    message: Message


class ConversationCache:
    """Messages of one conversation. Not thread-safe."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._kept: dict[str, CachedMessage] = {}
        self._clock = clock
        self._sent = -LONG_PAUSE
        #: Consecutive failed summaries by model name.
        self.no_summary: dict[str, int] = {}

    @property
    def paused(self) -> bool:
        """Whether the provider's cache has likely expired since this process's last request."""
        return self._clock() - self._sent >= LONG_PAUSE

    def note_sent(self) -> None:
        self._sent = self._clock()

    def read(self, blobs: Blobs, messages: Sequence[SentMessage]) -> list[CachedMessage]:
        """The messages in order; evicts messages of other conversations. Raises `FileError`."""
        found = {
            message.blob: self._kept.get(message.blob) or _read(blobs, message.blob) for message in messages
        }
        self._kept = found
        return [found[message.blob] for message in messages]


def shared_beginning(before: Sequence[str], now: Sequence[str]) -> float:
    """The share of `before` in bytes that is a prefix of `now`; 0 if `before` is empty."""
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


def _read(blobs: Blobs, blob: str) -> CachedMessage:
    text = blobs.get_text(blob)
    return CachedMessage(text, json.loads(text))
