"""Recordings for programs that tests start: what would come from a provider, without the seconds that one costs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import cast

import msgspec

from tui_agent.errors import ModelError
from tui_agent.model.client import Chunk, EndChunk, Pass, TextChunk, UsageChunk
from tui_agent.model.recording import Header, RecordedError, RecordedExchange

Came = str | Sequence[Chunk] | ModelError


def recorded(
    path: Path, *exchanges: tuple[str, Came] | tuple[str, Came, str], protocol: str = "structured"
) -> Path:
    """A recording of requests and what came back to each: a text, the chunks themselves, or an error. A third part
    names the pass, where it is not the main one."""
    lines: list[object] = [Header(protocol=protocol, window=100_000)]  # ty: ignore[invalid-argument-type]
    for ask, came, *others in exchanges:
        error = None
        if isinstance(came, ModelError):
            came, error = (), RecordedError(type(came).__name__, came.what, came.remedy)
        elif isinstance(came, str):
            came = (TextChunk(came), UsageChunk(100, 10), EndChunk("stop"))
        chunks = tuple((0.0, chunk) for chunk in came)
        lines.append(
            RecordedExchange(ask, chunks, purpose=cast(Pass, others[0] if others else "main"), error=error)
        )
    path.write_bytes(b"".join(msgspec.json.encode(line) + b"\n" for line in lines))
    return path
