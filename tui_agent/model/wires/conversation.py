"""Normalizes a request's messages for a provider: paired calls and results with valid ids.

Native items are returned only to their own wire, provider and family.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from tui_agent.model.parts import (
    CallPart,
    Message,
    Origin,
    Part,
    TextPart,
    ThinkingPart,
    calls_of,
    origin_of,
    parts_of,
    text_of,
)
from tui_agent.model.rules import Rules

NO_RESULT = "Error: there is no result of this call. Call again if you still need it."
#: Characters replaced in call names, for all providers.
_NAME = re.compile(r"[^a-zA-Z0-9_-]")


class UserTurn(Struct, frozen=True):
    """`content` is text, or a list of parts as in the OpenAI chat API."""

    content: Any
    images: tuple[dict[str, str], ...] = ()
    mark: bool = False

    @property
    def text(self) -> str:
        return text_of({"role": "user", "content": self.content})

    @property
    def urls(self) -> list[str]:
        """Of the images, with their data."""
        return [f"data:{image['media_type']};base64,{image['data']}" for image in self.images]


class CallAnswer(Struct, frozen=True):
    id: str
    name: str
    content: str
    mark: bool = False


class ReplyTurn(Struct, frozen=True):
    """Without empty parts. `own`: its native items have the request's wire, provider and family. `prefix` is
    the digest to which its thinking is bound.
    """

    parts: tuple[Part, ...]
    own: bool = False
    prefix: str = ""

    @property
    def calls(self) -> tuple[CallPart, ...]:
        return tuple(part for part in self.parts if isinstance(part, CallPart))

    @property
    def text(self) -> str:
        return "".join(part.text for part in self.parts if isinstance(part, TextPart))

    @property
    def thinking(self) -> tuple[ThinkingPart, ...]:
        return tuple(part for part in self.parts if isinstance(part, ThinkingPart))


class Conversation(Struct, frozen=True):
    system: str
    turns: tuple[UserTurn | CallAnswer | ReplyTurn, ...]


def conversation(
    messages: Sequence[Message],
    rules: Rules,
    origin: Origin,
    *,
    sees: bool,
    words: bool = False,
    marks: frozenset[int] = frozenset(),
) -> Conversation:
    """`origin` is that of the reply to this request.

    A result without a preceding call becomes a user message; a call without a result gets `NO_RESULT`.
    `marks` are indexes of messages with cache marks. `words` converts calls and results to text, for
    providers that reject them.
    """
    system: list[str] = []
    turns: list[UserTurn | CallAnswer | ReplyTurn] = []
    ids = _Ids(rules)
    open_calls: dict[str, str] = {}

    def close() -> None:
        for call, name in open_calls.items():
            turns.append(CallAnswer(call, name, NO_RESULT))
        open_calls.clear()

    for place, message in enumerate(messages):
        mark = place in marks
        match message["role"]:
            case "system":
                system.append(str(message.get("content") or ""))
            case "assistant":
                close()
                if words:
                    calls = (f"[called {call.name}]\n{call.arguments}" for call in calls_of(message))
                    said = ReplyTurn((TextPart("\n\n".join(filter(None, (text_of(message), *calls)))),))
                else:
                    said = _reply_turn(message, ids, origin)
                if said.parts:
                    turns.append(said)
                open_calls = {call.id: call.name for call in said.calls}
            case "tool":
                call = ids.of(message["tool_call_id"])
                content = str(message.get("content") or "")
                if (name := open_calls.pop(call, None)) is not None:
                    turns.append(CallAnswer(call, name, content, mark))
                elif content:
                    close()
                    turns.append(UserTurn(content, mark=mark))
            case _:
                close()
                images = tuple(message.get("images") or ()) if sees else ()
                if message.get("content") or images:
                    turns.append(UserTurn(message.get("content") or "", images, mark))
    close()
    for place in range(len(turns) - 1, 0, -1) if rules.after_tool else ():
        if isinstance(turns[place], UserTurn) and isinstance(turns[place - 1], CallAnswer):
            turns.insert(place, ReplyTurn((TextPart(rules.after_tool),)))
    return Conversation("\n\n".join(filter(None, system)), tuple(turns))


def _reply_turn(message: Message, ids: _Ids, origin: Origin) -> ReplyTurn:
    came_from = origin_of(message)
    own = bool(came_from.wire) and came_from.is_of(origin)
    parts: list[Part] = []
    for part in parts_of(message):
        match part:
            case ThinkingPart():
                if own:
                    parts.append(part)
            case CallPart():
                name = _NAME.sub("_", part.name)[:64] or "unknown"
                part = replace(part, id=ids.of(part.id), name=name)
                parts.append(part if own else replace(part, native=None))
            case TextPart():
                if part.text or (own and part.native is not None):
                    parts.append(part if own else replace(part, native=None))
    return ReplyTurn(tuple(parts), own, came_from.prefix if own else "")


class _Ids:
    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._accepted = re.compile(rules.call_id)

    def of(self, call: str) -> str:
        if self._accepted.fullmatch(call):
            return call
        digest = hashlib.sha256(call.encode("utf-8", "replace")).hexdigest()
        return digest[: self._rules.call_id_length]


def cache_marks(messages: Sequence[Message]) -> frozenset[int]:
    """The end of the previous request, which is already cached, and the end of this one. The system prompt
    has its own mark.
    """
    replies = [place for place, message in enumerate(messages) if message["role"] == "assistant"]
    ends = {replies[-1] - 1} if replies else set()
    ends.add(len(messages) - 1)
    return frozenset(place for place in ends if place > 0 and messages[place]["role"] in ("user", "tool"))


def described(function: dict[str, Any]) -> dict[str, Any]:
    return {key: function[key] for key in ("name", "description") if function.get(key)}


#: OpenAI's method, llama.cpp's older one, vLLM's older one, none; "" is untested.
SchemaForm = Literal["", "json_schema", "json_object", "guided_json", "none"]


def response_format(schema: dict[str, Any], form: SchemaForm, strict: bool = True) -> dict[str, Any]:
    if form == "json_object":
        return {"type": "json_object", "schema": schema}
    return {"type": "json_schema", "json_schema": {"name": "reply", "schema": schema, "strict": strict}}


def is_strict(schema: Any) -> bool:
    """Whether every object requires all its properties and allows no others."""
    match schema:
        case {"type": "object", "properties": properties}:
            closed = schema.get("additionalProperties") is False
            required = set(schema.get("required", ())) == set(properties)
            return closed and required and all(map(is_strict, schema.values()))
        case dict():
            return schema.get("type") != "object" and all(map(is_strict, schema.values()))
        case list():
            return all(map(is_strict, schema))
    return True
