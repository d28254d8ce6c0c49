"""Text of an agent's answer in the JSON lines that it prints without a terminal."""

from __future__ import annotations

from typing import Any

import msgspec


def answer_of(line: bytes) -> str | None:
    """ "" for other JSON, None for a line that is not JSON. Each agent has its own form: claude `result`,
    codex `item.completed`, opencode `text`, gemini and vibe a message with a role."""
    try:
        found: Any = msgspec.json.decode(line)
    except msgspec.DecodeError:
        return None
    if not isinstance(found, dict):
        return ""
    kind = found.get("type")
    if kind == "result":
        return _text(found.get("result"))
    if kind == "item.completed" and isinstance(item := found.get("item"), dict):
        return _text(item.get("text")) if item.get("type") == "agent_message" else ""
    if kind == "text" and isinstance(part := found.get("part"), dict):
        return _text(part.get("text"))
    if found.get("role") == "assistant":
        return _text(found.get("content"))
    if kind == "error":
        error = found.get("error", found.get("message"))
        return f"Error: {_text(error.get('message') if isinstance(error, dict) else error)}"
    return ""


def _text(value: Any) -> str:
    if isinstance(value, list):
        return "".join(_text(one.get("text")) for one in value if isinstance(one, dict))
    return value if isinstance(value, str) else ""
