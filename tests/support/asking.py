"""Asking a model for something, and looking at what it said."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing

from tui_agent.model.client import Chunk, EndChunk, Model, ModelRequest, SentChunk, TextChunk

MODEL = "openai/test-model"
#: The key that the model child of the tests has in its environment.
SECRET = "sk-proj-0123456789abcdefghij"


def request(words: str = "hello", **options: object) -> ModelRequest:
    return ModelRequest(
        **{"model": MODEL, "messages": ({"role": "user", "content": words},), **options}  # ty: ignore[invalid-argument-type]
    )


async def answering(model: Model, asked: ModelRequest | None = None) -> AsyncGenerator[Chunk, None]:
    """The chunks after the request is sent, the last without its parts; closing it closes the stream."""
    async with aclosing(model.stream(asked or request())) as stream:
        async for chunk in stream:
            if isinstance(chunk, EndChunk):
                yield EndChunk(chunk.reason, chunk.why)
            elif not isinstance(chunk, SentChunk):
                yield chunk


async def ending(model: Model, asked: ModelRequest | None = None) -> EndChunk:
    """The end of an answer, with its parts."""
    async with aclosing(model.stream(asked or request())) as stream:
        chunks = [chunk async for chunk in stream]
    assert isinstance(chunks[-1], EndChunk)
    return chunks[-1]


async def answer(model: Model, asked: ModelRequest | None = None) -> list[Chunk]:
    """Everything that comes once the request is sent."""
    return [chunk async for chunk in answering(model, asked)]


def text(chunks: list[Chunk]) -> str:
    return "".join(chunk.text for chunk in chunks if isinstance(chunk, TextChunk))
