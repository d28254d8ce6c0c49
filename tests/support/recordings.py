"""Recordings for programs that tests start: what would come from a provider, without the seconds that one costs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from tui_agent.model.client import Chunk, EndChunk, TextChunk, UsageChunk
from tui_agent.model.recording import Header, RecordedExchange


def recorded(path: Path, *exchanges: tuple[str, str | Sequence[Chunk]], protocol: str = "structured") -> Path:
    """A recording of requests and what came back to each: a text, or the chunks themselves."""
    lines: list[object] = [Header(protocol=protocol, window=100_000)]  # ty: ignore[invalid-argument-type]
    for ask, answer in exchanges:
        chunks = (
            (TextChunk(answer), UsageChunk(100, 10), EndChunk("stop")) if isinstance(answer, str) else answer
        )
        lines.append(RecordedExchange(ask, tuple((0.0, chunk) for chunk in chunks)))
    path.write_bytes(b"".join(msgspec.json.encode(line) + b"\n" for line in lines))
    return path
