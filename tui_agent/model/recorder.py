"""A model that keeps every exchange with another one in a file."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any

import msgspec

from tui_agent.errors import FileError, ModelError
from tui_agent.files.key_formats import masked, masked_pieces
from tui_agent.files.private import open_private
from tui_agent.model.client import (
    Abilities,
    CallChunk,
    Chunk,
    EndChunk,
    Model,
    ModelRequest,
    ReasoningChunk,
    TextChunk,
    TokenCount,
)
from tui_agent.model.recording import Header, RecordedError, RecordedExchange, asked

Timed = tuple[float, Chunk]
#: Which field of a chunk holds words of the model's.
_TEXTS: dict[type[Chunk], str] = {TextChunk: "text", ReasoningChunk: "text", CallChunk: "arguments"}


class Recorder:
    """A `Model` that answers as `model` does and appends each exchange to `path`, readable by its owner only.

    What looks like a secret is masked. An answer that was stopped half-way is kept as one that was cut.
    """

    def __init__(self, model: Model, path: Path | str, clock: Callable[[], float] = time.monotonic) -> None:
        self._model = model
        self._path = Path(path)
        self._clock = clock
        self._writing = threading.Lock()

    async def start(self) -> None:
        await self._model.start()

    async def close(self) -> None:
        await self._model.close()

    async def abilities(self, model: str) -> Abilities:
        return await self._model.abilities(model)

    async def count(self, model: str, texts: Sequence[str], *, wait: bool = False) -> TokenCount:
        return await self._model.count(model, texts, wait=wait)

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Chunk, None]:
        window = (await self._model.abilities(request.model)).window
        chunks: list[Timed] = []
        error: RecordedError | None = None
        last = self._clock()
        try:
            async with aclosing(self._model.stream(request)) as stream:
                async for chunk in stream:
                    now = self._clock()
                    chunks.append((round(now - last, 3), chunk))
                    last = now
                    yield chunk
        except ModelError as failure:
            error = RecordedError(type(failure).__name__, masked(failure.what), failure.remedy)
            raise
        finally:
            await asyncio.to_thread(self._append, request, window, _ended(chunks, error), error)

    def _append(
        self, request: ModelRequest, window: int, chunks: list[Timed], error: RecordedError | None
    ) -> None:
        ask = masked(asked(request.messages))
        exchange = RecordedExchange(ask, tuple(without_secrets(chunks)), purpose=request.purpose, error=error)
        protocol = "tools" if request.tools else "structured"
        header = Header(model=request.model, protocol=protocol, window=window)
        with self._writing:
            try:
                self._write(header, exchange)
            except OSError as failure:
                what = f"The recording {self._path} cannot be written ({failure.strerror})"
                raise FileError(what, "free the disk or record elsewhere") from failure

    def _write(self, header: Header, exchange: RecordedExchange) -> None:
        descriptor = open_private(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        with open(descriptor, "ab") as file:
            if file.tell() == 0:
                file.write(msgspec.json.encode(header) + b"\n")
            file.write(msgspec.json.encode(exchange) + b"\n")


def _ended(chunks: list[Timed], error: RecordedError | None) -> list[Timed]:
    if error is not None or (chunks and isinstance(chunks[-1][1], EndChunk)):
        return chunks
    return [*chunks, (0.0, EndChunk("cut"))]


def without_secrets(chunks: Sequence[Timed]) -> list[Timed]:
    """The same chunks, masked. What is appended to one text (or to one call) is looked at as one text."""
    clean = [(seconds, _thinking_masked(chunk)) for seconds, chunk in chunks]
    growing: dict[tuple[type[Chunk], int], list[int]] = {}
    for number, (_, chunk) in enumerate(clean):
        if type(chunk) in _TEXTS:
            growing.setdefault((type(chunk), getattr(chunk, "index", 0)), []).append(number)
    for (kind, _), numbers in growing.items():
        field = _TEXTS[kind]
        pieces = masked_pieces([getattr(clean[number][1], field) for number in numbers])
        for number, piece in zip(numbers, pieces, strict=True):
            seconds, chunk = clean[number]
            clean[number] = (seconds, msgspec.structs.replace(chunk, **{field: piece}))
    return clean


def _thinking_masked(chunk: Chunk) -> Chunk:
    if not isinstance(chunk, EndChunk):
        return chunk
    return EndChunk(chunk.reason, tuple(_all_masked(block) for block in chunk.thinking))


def _all_masked(block: dict[str, Any]) -> dict[str, Any]:
    return {name: masked(value) if isinstance(value, str) else value for name, value in block.items()}
