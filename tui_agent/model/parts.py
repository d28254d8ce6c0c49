"""A reply as ordered parts (text, thinking, calls) with the provider's native items, and its message.

Assistant messages are `{"role": "assistant", "parts": […], "origin": {…}}`; all others, and replies of
earlier versions, have the form of the OpenAI chat API.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import Struct

Message = dict[str, Any]


class TextPart(Struct, frozen=True, tag="text", omit_defaults=True):
    """`native` is provider data to be returned with it."""

    text: str
    native: Any = None


class ThinkingPart(Struct, frozen=True, tag="thinking", omit_defaults=True):
    """Thinking if visible, and the provider's signed or encrypted item."""

    text: str = ""
    native: Any = None


class CallPart(Struct, frozen=True, tag="call", omit_defaults=True):
    """`id` is ours; `arguments` is JSON."""

    id: str
    name: str
    arguments: str
    native: Any = None


Part = TextPart | ThinkingPart | CallPart


class Origin(Struct, frozen=True, omit_defaults=True):
    """Native items are returned only to the same wire, provider and model family.

    `prefix` is the digest of everything before the reply, for models that bind thinking to it.
    """

    wire: str = ""
    provider: str = ""
    family: str = ""
    prefix: str = ""

    def is_of(self, other: Origin) -> bool:
        return (self.wire, self.provider, self.family) == (other.wire, other.provider, other.family)


def message_of(parts: Sequence[Part], origin: Origin | None = None) -> Message:
    message: Message = {"role": "assistant", "parts": [msgspec.to_builtins(part) for part in parts]}
    return message | {"origin": msgspec.to_builtins(origin)} if origin else message


def parts_of(message: Message) -> tuple[Part, ...]:
    """Omits native items stored outside parts by versions before 0.2."""
    if "parts" in message:
        return tuple(msgspec.convert(part, Part) for part in message["parts"])
    content = message.get("content")
    text = [TextPart(content)] if isinstance(content, str) and content else []
    calls = [
        CallPart(call["id"], call["function"]["name"], call["function"]["arguments"])
        for call in message.get("tool_calls") or ()
    ]
    return (*text, *calls)


def origin_of(message: Message) -> Origin:
    return msgspec.convert(message.get("origin") or {}, Origin)


def text_of(message: Message) -> str:
    if message["role"] == "assistant":
        return "".join(part.text for part in parts_of(message) if isinstance(part, TextPart))
    content = message.get("content") or ""
    if isinstance(content, str):
        return content
    return "".join(part.get("text", "") for part in content if isinstance(part, dict))


def calls_of(message: Message) -> tuple[CallPart, ...]:
    if message["role"] != "assistant":
        return ()
    return tuple(part for part in parts_of(message) if isinstance(part, CallPart))


def is_empty(part: Part) -> bool:
    return not isinstance(part, CallPart) and not part.text and part.native is None
