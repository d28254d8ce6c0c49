"""A piece of an answer in the shape of litellm's `ModelResponseStream`: what both of our wires are read into."""

from __future__ import annotations

from typing import Any

from msgspec import Struct


class StreamFunction(Struct, frozen=True):
    name: str | None = None
    arguments: str | None = None


class StreamCall(Struct, frozen=True):
    index: int
    id: str | None
    function: StreamFunction


class StreamDelta(Struct, frozen=True):
    content: str | None = None
    reasoning_content: str | None = None
    refusal: str | None = None
    thinking_blocks: tuple[dict[str, Any], ...] = ()
    tool_calls: tuple[StreamCall, ...] = ()


class StreamChoice(Struct, frozen=True):
    delta: StreamDelta


class StreamDetails(Struct, frozen=True):
    """Of the tokens of a request: how many came from a cache, and how many were put into it."""

    cached_tokens: int = 0
    cache_creation_tokens: int = 0


class StreamUsage(Struct, frozen=True):
    prompt_tokens: int
    completion_tokens: int
    prompt_tokens_details: StreamDetails = StreamDetails()


class StreamPiece(Struct, frozen=True):
    choices: tuple[StreamChoice, ...]
    usage: StreamUsage | None = None
    #: How many tokens of the request a local server has read, and of how many.
    progress: tuple[int, int] | None = None

    @classmethod
    def of(cls, delta: StreamDelta, usage: StreamUsage | None = None) -> StreamPiece:
        return cls((StreamChoice(delta),), usage)
