"""Breakpoints stand on the system prompt, on the end of the request before, and on the newest message."""

from __future__ import annotations

from typing import Any

from tui_agent.model.completion import MARK, marked


def talk(*roles: str) -> list[dict[str, Any]]:
    return [{"role": role, "content": f"{place}"} for place, role in enumerate(roles)]


def places(messages: list[dict[str, Any]]) -> list[int]:
    return [place for place, message in enumerate(marked(messages)) if "cache_control" in message]


def test_where_they_stand() -> None:
    assert places(talk("system", "user")) == [0, 1]
    assert places(talk("system", "user", "assistant", "user")) == [0, 1, 3]
    assert places(talk("system", "user", "assistant", "user", "assistant", "tool", "user")) == [0, 3, 6]


def test_the_content_stays_as_it_is() -> None:
    messages = talk("system", "user", "assistant", "user")
    assert [{k: v for k, v in m.items() if k not in MARK} for m in marked(messages)] == messages
    assert all("cache_control" not in message for message in messages)


def test_an_empty_message_is_not_marked() -> None:
    assert places(
        [*talk("system", "user"), {"role": "assistant", "content": ""}, {"role": "user", "content": ""}]
    ) == [
        0,
        1,
    ]
