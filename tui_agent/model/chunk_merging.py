"""Merges consecutive chunks of the same text, received together or within a short interval."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from tui_agent.model.client import CallChunk, Chunk, ReasoningChunk, TextChunk
from tui_agent.processes.serve import Send

#: Interval for merging chunks.
JOINED_SECONDS = 0.02
_GROWING = (TextChunk, ReasoningChunk, CallChunk)


class JoinedChunks:
    """Sends the first chunk immediately and merges its successors within `JOINED_SECONDS`."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._held: Chunk | None = None
        self._sent = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._sending: asyncio.Task[None] | None = None

    async def add(self, chunk: Chunk) -> None:
        if self._held is not None:
            one = joined(self._held, chunk)
            if one is not None:
                self._held = one
                return
            await self.flush()
        loop = asyncio.get_running_loop()
        wait = self._sent + JOINED_SECONDS - loop.time()
        if not isinstance(chunk, _GROWING) or wait <= 0:
            await self._send(chunk)
            self._sent = loop.time()
            return
        self._held = chunk
        self._timer = loop.call_later(wait, self._in_time)

    async def flush(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        held, self._held = self._held, None
        if held is not None:
            await self._send(held)
            self._sent = asyncio.get_running_loop().time()

    def _in_time(self) -> None:
        self._sending = asyncio.create_task(self.flush())


def joined(held: Chunk, chunk: Chunk) -> Chunk | None:
    """The merged chunk, or None if `chunk` does not continue the text of `held`."""
    match held, chunk:
        case (TextChunk(one), TextChunk(other)):
            return TextChunk(one + other)
        case (ReasoningChunk(one), ReasoningChunk(other)):
            return ReasoningChunk(one + other)
        case (CallChunk(), CallChunk(index, "", "", more)) if index == held.index:
            return CallChunk(index, held.id, held.name, held.arguments + more)
    return None


def merged(chunks: Iterable[Chunk]) -> list[Chunk]:
    made: list[Chunk] = []
    for chunk in chunks:
        one = joined(made[-1], chunk) if made else None
        if one is None:
            made.append(chunk)
        else:
            made[-1] = one
    return made
