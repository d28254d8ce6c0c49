"""Cache marks: on the system prompt, on the end of the request before, and on the newest message."""

from __future__ import annotations

from typing import Any

import pytest

from tui_agent.model.client import ModelRequest
from tui_agent.model.direct_client import render
from tui_agent.model.model_table import route
from tui_agent.model.wires.conversation import cache_marks

MARKED = ("anthropic/claude-sonnet-4-5", "openrouter/anthropic/claude-sonnet-4.5")
KEYS = {"ANTHROPIC_API_KEY": "k", "OPENROUTER_API_KEY": "k"}


def talk(*roles: str) -> list[dict[str, Any]]:
    """Messages of these roles, whose contents are their places; a tool's result has its call before it."""
    messages: list[dict[str, Any]] = []
    for place, role in enumerate(roles):
        match role:
            case "assistant":
                call = {"type": "call", "id": f"c{place + 1}", "name": "read", "arguments": "{}"}
                calls = [call] if roles[place + 1 : place + 2] == ("tool",) else []
                messages.append({"role": role, "parts": [{"type": "text", "text": f"{place}"}, *calls]})
            case "tool":
                messages.append({"role": role, "tool_call_id": f"c{place}", "content": f"{place}"})
            case _:
                messages.append({"role": role, "content": f"{place}"})
    return messages


def body(model: str, messages: list[dict[str, Any]], **options: Any) -> dict[str, Any]:
    made = route(model, KEYS)
    assert made is not None
    request = ModelRequest(model, tuple(messages), **options)
    return render(request, made, made.wire, None)[1].body


def marked(value: Any) -> list[str]:
    """The texts of the blocks that have a mark."""
    match value:
        case {"cache_control": _}:
            inner = value.get("text", value.get("content"))
            return [inner] if isinstance(inner, str) else ["?"]
        case dict():
            return [text for one in value.values() for text in marked(one)]
        case list():
            return [text for one in value for text in marked(one)]
    return []


PLACES = [
    (("system", "user"), [1]),
    (("system", "user", "assistant", "user"), [1, 3]),
    (("system", "user", "assistant", "tool"), [1, 3]),
    (("system", "user", "assistant", "user", "assistant", "tool", "user"), [3, 6]),
]


@pytest.mark.parametrize(("roles", "places"), PLACES)
def test_marked_messages_are_the_end_of_the_request_before_and_the_newest(
    roles: tuple[str, ...], places: list[int]
) -> None:
    assert sorted(cache_marks(talk(*roles))) == places


def test_the_first_message_has_the_mark_of_the_system_prompt_only() -> None:
    assert cache_marks(talk("user")) == frozenset()
    assert cache_marks(talk("assistant", "user")) == {1}


def test_a_reply_at_the_end_is_never_marked() -> None:
    assert sorted(cache_marks(talk("system", "user", "assistant"))) == [1]


@pytest.mark.parametrize("model", MARKED)
@pytest.mark.parametrize(("roles", "places"), PLACES)
def test_marks_of_a_body_are_the_systems_and_those_of_the_messages(
    model: str, roles: tuple[str, ...], places: list[int]
) -> None:
    found = marked(body(model, talk(*roles)))
    assert sorted(found) == ["0", *map(str, places)]
    assert len(found) <= 4, "Anthropic accepts four marks"


@pytest.mark.parametrize("model", MARKED)
def test_a_long_cache_is_asked_for_an_hour(model: str) -> None:
    messages = talk("system", "user")
    assert '"ttl"' not in str(body(model, messages)).replace("'", '"')
    long = str(body(model, messages, cache="long"))
    assert long.count("'cache_control': {'type': 'ephemeral', 'ttl': '1h'}") == 2


@pytest.mark.parametrize("model", MARKED)
def test_an_empty_message_has_no_mark(model: str) -> None:
    messages = [*talk("system", "user", "assistant"), {"role": "user", "content": ""}]
    assert marked(body(model, messages)) == ["0", "1"]


def test_messages_stay_as_they_are() -> None:
    messages = talk("system", "user", "assistant", "tool")
    before = [dict(message) for message in messages]
    for model in MARKED:
        body(model, messages)
    assert messages == before
