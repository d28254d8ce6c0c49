"""Thinking that a chat server sent, and what it does if it does not come back with its calls."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from support.strict.given_back import family_of, thinking_field

if TYPE_CHECKING:
    from support.strict.chat import Chat


class ThoughtMemory:
    """The thinking of each reply, by the ids of its calls."""

    def __init__(self, dialect: Chat) -> None:
        self._dialect = dialect
        self._replies: dict[str, tuple[str, list[dict[str, Any]]]] = {}

    def remember(self, items: list[dict[str, Any]], family: str) -> None:
        """Keep the items of a reply; ids that were given before name none."""
        ids = [item["id"] for item in items if item["type"] == "call"]
        for call_id in ids:
            if not call_id or ids.count(call_id) > 1 or call_id in self._replies:
                self._replies.pop(call_id, None)
                continue
            self._replies[call_id] = (family, items)

    def forget(self, items: list[dict[str, Any]]) -> None:
        """The client saw only a part of these."""
        for item in items:
            self._replies.pop(item.get("id", ""), None)

    def reply_of(self, message: dict[str, Any], model: str) -> list[dict[str, Any]]:
        """The items of the reply that a message with calls brings back, if a model of the same family gave it."""
        for call in message.get("tool_calls") or ():
            family, items = self._replies.get(call["id"], ("", []))
            if items and family == family_of(self._dialect.provider, model):
                return items
        return []

    def check(self, body: dict[str, Any]) -> None:
        """Notes thinking that is left out or changed, and raises the refusal where it is demanded."""
        field = thinking_field(self._dialect.provider, body["model"])
        if field not in ("reasoning_content", "reasoning"):
            return
        for index, message in enumerate(body["messages"]):
            if message["role"] != "assistant" or not message.get("tool_calls"):
                continue
            given = message.get(field)
            if self._dialect.thinking_demanded and not isinstance(given, str):
                self._dialect.say("thinking", index=index)
            items = self.reply_of(message, body["model"])
            sent = "".join(item["text"] for item in items if item["type"] == "think")
            if sent and self._dialect.thinking_out and (given or "").strip() != sent.strip():
                left = "left out" if not given else "changed"
                self._dialect.lose(f"{field} of messages[{index}] is {left}")
