"""Lines of any length from a stream."""

from __future__ import annotations

from asyncio import StreamReader
from collections.abc import AsyncGenerator

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
