"""Cache breakpoints for providers that keep only what a request marks, set beside the content of its messages.

At most four are allowed (Anthropic's documentation of prompt caching). Ours: the system prompt, the message that
ended the request before, by which what is kept is found again, and the newest one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

Message = dict[str, Any]
MARK = {"cache_control": {"type": "ephemeral"}}


def marked(messages: Sequence[Message]) -> list[Message]:
    """The messages with their breakpoints; the ones that are given stay as they are."""
    places = _places(messages)
    return [{**message, **MARK} if place in places else message for place, message in enumerate(messages)]


def _places(messages: Sequence[Message]) -> set[int]:
    last = len(messages) - 1
    replies = [place for place, message in enumerate(messages) if message["role"] == "assistant"]
    before = replies[-1] - 1 if replies else -1
    return {place for place in (0, before, last) if place >= 0 and messages[place].get("content")}
