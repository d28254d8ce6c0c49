"""A reply as ordered parts (text, thinking, call), each with the provider's own item, and the message that keeps it.

A message of a model is `{"role": "assistant", "parts": […], "origin": {…}}`. Messages of the system, the person and
the tools are in the shape of the OpenAI chat API. Earlier versions kept replies in that shape too: `parts_of` reads
both.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import Struct

Message = dict[str, Any]


class TextPart(Struct, frozen=True, tag="text", omit_defaults=True):
    """Text for the person. `native` is what the provider wants back with it."""

    text: str
    native: Any = None


class ThinkingPart(Struct, frozen=True, tag="thinking", omit_defaults=True):
    """Thinking, as far as the provider shows it, and the provider's item (signed or encrypted), if there is one."""

    text: str = ""
    native: Any = None


class CallPart(Struct, frozen=True, tag="call", omit_defaults=True):
    """A function call under our id; `arguments` is JSON."""

    id: str
    name: str
    arguments: str
    native: Any = None


Part = TextPart | ThinkingPart | CallPart


class Origin(Struct, frozen=True, omit_defaults=True):
    """Where a reply came from. Its items go back to the same wire, provider and model family only.

    `prefix` is the digest of all that preceded the reply in its request, for models that bind their thinking to it.
    """

    wire: str = ""
    provider: str = ""
    family: str = ""
    prefix: str = ""

    def is_of(self, other: Origin) -> bool:
        """Whether both are of one wire, provider and family."""
        return (self.wire, self.provider, self.family) == (other.wire, other.provider, other.family)


def message_of(parts: Sequence[Part], origin: Origin | None = None) -> Message:
    """The message that keeps a reply."""
    message: Message = {"role": "assistant", "parts": [msgspec.to_builtins(part) for part in parts]}
    return message | {"origin": msgspec.to_builtins(origin)} if origin else message


def parts_of(message: Message) -> tuple[Part, ...]:
    """The parts of a model's message; items that versions before 0.2 kept outside of parts are left out."""
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
    """Where a message of a model came from; an empty origin if it is not known."""
    return msgspec.convert(message.get("origin") or {}, Origin)


def text_of(message: Message) -> str:
    """The words of any message."""
    if message["role"] == "assistant":
        return "".join(part.text for part in parts_of(message) if isinstance(part, TextPart))
    content = message.get("content") or ""
    if isinstance(content, str):
        return content
    return "".join(part.get("text", "") for part in content if isinstance(part, dict))


def calls_of(message: Message) -> tuple[CallPart, ...]:
    """The function calls of a message."""
    if message["role"] != "assistant":
        return ()
    return tuple(part for part in parts_of(message) if isinstance(part, CallPart))


def is_empty(part: Part) -> bool:
    """Whether a part holds neither words nor anything that a provider wants back."""
    return not isinstance(part, CallPart) and not part.text and part.native is None
