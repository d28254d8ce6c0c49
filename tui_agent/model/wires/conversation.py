"""The messages of a request as every provider accepts them: whole pairs of calls and results, under ids that it takes.

Provider items go back only to the wire, provider and family that made them.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from typing import Any

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

#: The result of a call that was never answered.
NO_RESULT = "Error: there is no result of this call. Call again if you still need it."
#: A name that every provider accepts, for a call whose model wrote another.
_NAME = re.compile(r"[^a-zA-Z0-9_-]")


class Asked(Struct, frozen=True):
    """A message of the person. `content` is text, or a list of parts in the shape of the OpenAI chat API."""

    content: Any
    images: tuple[dict[str, str], ...] = ()
    mark: bool = False


class CallAnswer(Struct, frozen=True):
    """The result of the call `id` of the function `name`."""

    id: str
    name: str
    content: str
    mark: bool = False


class Said(Struct, frozen=True):
    """A reply, without empty parts; `own` says that its items are those of this wire, provider and family.

    `prefix` is the digest that its thinking is bound to.
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
    """What a request says: the system prompt, and the turns of both sides in order."""

    system: str
    turns: tuple[Asked | CallAnswer | Said, ...]


def conversation(
    messages: Sequence[Message],
    rules: Rules,
    origin: Origin,
    *,
    sees: bool,
    words: bool = False,
    marks: frozenset[int] = frozenset(),
) -> Conversation:
    """The messages for one provider. `origin` is what a reply of this request would have.

    A result whose call is not in the reply before it becomes a message of the person, and a call without a result
    gets one that says so. `marks` are places of messages behind which a provider may cache. With `words` calls and
    their results are told as text, for a provider that refuses the calls of this conversation.
    """
    system: list[str] = []
    turns: list[Asked | CallAnswer | Said] = []
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
                said = _told(message) if words else _said(message, ids, origin)
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
                    turns.append(Asked(content, mark=mark))
            case _:
                close()
                images = tuple(message.get("images") or ()) if sees else ()
                if message.get("content") or images:
                    turns.append(Asked(message.get("content") or "", images, mark))
    close()
    return Conversation("\n\n".join(filter(None, system)), tuple(_spaced(turns, rules)))


def _told(message: Message) -> Said:
    """A reply as text alone."""
    calls = (f"[called {call.name}]\n{call.arguments}" for call in calls_of(message))
    return Said((TextPart("\n\n".join(filter(None, (text_of(message), *calls)))),))


def _said(message: Message, ids: _Ids, origin: Origin) -> Said:
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
    return Said(tuple(parts), own, came_from.prefix if own else "")


def _spaced(turns: Sequence[Asked | CallAnswer | Said], rules: Rules) -> list[Asked | CallAnswer | Said]:
    """The turns with what some providers want between a result and a message of the person."""
    spaced: list[Asked | CallAnswer | Said] = []
    for turn in turns:
        before = spaced[-1] if spaced else None
        if rules.after_tool and isinstance(turn, Asked) and isinstance(before, CallAnswer):
            spaced.append(Said((TextPart(rules.after_tool),)))
        spaced.append(turn)
    return spaced


class _Ids:
    """Ids of calls in a form that the provider accepts: the same for the same id, different for different ids."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._accepted = re.compile(rules.call_id)

    def of(self, call: str) -> str:
        if self._accepted.fullmatch(call):
            return call
        digest = hashlib.sha256(call.encode("utf-8", "replace")).hexdigest()
        return digest[: self._rules.call_id_length]


def whole_text(turn: Asked) -> str:
    """The words of a message of the person."""
    if isinstance(turn.content, str):
        return turn.content
    return "".join(part.get("text", "") for part in turn.content if isinstance(part, dict))


def cache_marks(messages: Sequence[Message]) -> frozenset[int]:
    """The messages behind which a provider is asked to keep what it has read: the end of the request before this one,
    where it was kept, and the end of this one. The system prompt has a mark of its own."""
    replies = [place for place, message in enumerate(messages) if message["role"] == "assistant"]
    ends = {replies[-1] - 1} if replies else set()
    ends.add(len(messages) - 1)
    return frozenset(place for place in ends if place > 0 and messages[place]["role"] in ("user", "tool"))
