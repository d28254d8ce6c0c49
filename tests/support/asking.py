"""Asking a model for something, and looking at what it said."""

from __future__ import annotations

from tui_agent.model.client import Chunk, Model, ModelRequest, TextChunk

MODEL = "openai/test-model"
#: The key that the model child of the tests has in its environment.
SECRET = "sk-proj-0123456789abcdefghij"


def request(words: str = "hello", **options: object) -> ModelRequest:
    return ModelRequest(
        **{"model": MODEL, "messages": ({"role": "user", "content": words},), **options}  # ty: ignore[invalid-argument-type]
    )


async def answer(model: Model, asked: ModelRequest | None = None) -> list[Chunk]:
    return [chunk async for chunk in model.stream(asked or request())]


def text(chunks: list[Chunk]) -> str:
    return "".join(chunk.text for chunk in chunks if isinstance(chunk, TextChunk))
