"""Bodies of requests to a provider, and replies as the conversation keeps them, without a server."""

from __future__ import annotations

from typing import Any

from tui_agent.model.client import Chunk, ModelRequest
from tui_agent.model.direct_client import render
from tui_agent.model.model_table import Route, route
from tui_agent.model.parts import CallPart, Message, Origin, Part, message_of
from tui_agent.model.rules import providers, rules_of
from tui_agent.model.wires.reader import ReplyReader

#: Keys for every provider, and addresses for those that have none.
ENVIRONMENT = {
    **{key: "k" for name in providers() for key in rules_of(name).keys},
    **{
        rules_of(name).addresses[0]: "http://127.0.0.1:9"
        for name in providers()
        if not rules_of(name).address
    },
}
SYSTEM = {"role": "system", "content": "Be brief."}
USER = {"role": "user", "content": "Hello"}
READ: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "read",
        "description": "Reads.",
        "parameters": {"type": "object", "properties": {"path": {"type": "string"}}},
    },
}
STRICT: dict[str, Any] = {
    "type": "object",
    "properties": {"a": {"type": "string"}},
    "required": ["a"],
    "additionalProperties": False,
}
CALL = CallPart("call_1", "read", '{"path": "a"}')


def way(model: str) -> Route:
    """The direct way to a model at its provider's own address."""
    found = route(model, ENVIRONMENT)
    assert found is not None
    return found


def rendered(
    model: str,
    *messages: Message,
    shape: dict[str, Any] | None = None,
    made: Route | None = None,
    **options: Any,
) -> tuple[dict[str, Any], Origin]:
    """The body of a request, and the origin of its reply."""
    made = made or way(model)
    request = ModelRequest(model, messages or (SYSTEM, USER), **options)
    _, body, origin = render(request, made, made.wire, shape)
    return body.body, origin


def body(model: str, *messages: Message, **options: Any) -> dict[str, Any]:
    return rendered(model, *messages, **options)[0]


def origin_of(model: str, *before: Message, **options: Any) -> Origin:
    """The origin of a model's reply to a request with these messages."""
    return rendered(model, *before, **options)[1]


def reply(*parts: Part, of: Origin | None = None) -> Message:
    return message_of(parts, of)


def result(call: str = "call_1", content: str = "text of a") -> Message:
    return {"role": "tool", "tool_call_id": call, "content": content}


def user(content: str = "Go on") -> Message:
    return {"role": "user", "content": content}


def fed(reader: ReplyReader, *events: dict[str, Any]) -> list[Chunk]:
    """The chunks of events."""
    return [chunk for event in events for chunk in reader.read(event)]
