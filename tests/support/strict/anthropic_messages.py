"""Rules of the messages in a request to Anthropic: roles, blocks, functions and their results, pictures."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from support.strict import pictures
from support.strict.anthropic_rules import ADAPTIVE, FIFTH, only

if TYPE_CHECKING:
    from support.strict.anthropic import Anthropic

ID = "^[a-zA-Z0-9_-]+$"
BLOCKS = {
    "user": {"text", "image", "document", "tool_result", "search_result"},
    "assistant": {"text", "thinking", "redacted_thinking", "tool_use"},
    "system": {"text"},
}
FIELDS = {
    "text": {"type", "text", "cache_control", "citations"},
    "image": {"type", "source", "cache_control"},
    "document": {"type", "source", "cache_control", "title", "context", "citations"},
    "tool_result": {"type", "tool_use_id", "content", "is_error", "cache_control"},
    "search_result": {"type", "source", "title", "content", "cache_control", "citations"},
    "thinking": {"type", "thinking", "signature"},
    "redacted_thinking": {"type", "data"},
    "tool_use": {"type", "id", "name", "input", "cache_control", "caller"},
}
PICTURE_BYTES = 5 * 1024 * 1024


def check(dialect: Anthropic, body: dict[str, Any]) -> None:
    """Raises the refusal of the first rule that the messages break."""
    _check_system(dialect, body.get("system"))
    messages = body["messages"]
    if not isinstance(messages, list):
        dialect.refuse("messages: Input should be a valid list")
    if not messages:
        dialect.refuse("messages: at least one message is required")
    for index, message in enumerate(messages):
        _check_role(dialect, body["model"], messages, index)
        only(dialect, message, ("role", "content"), f"messages.{index}")
        _check_content(dialect, message, f"messages.{index}", last=index == len(messages) - 1)
    _check_end(dialect, body)
    _check_pairs(dialect, messages)


def _check_system(dialect: Anthropic, system: Any) -> None:
    if system is None or isinstance(system, str):
        return
    for index, block in enumerate(system):
        if block.get("type") != "text":
            dialect.refuse(f"system.{index}.type: Input should be 'text'")
        only(dialect, block, FIELDS["text"], f"system.{index}")
        if not block.get("text"):
            dialect.refuse("system: text content blocks must be non-empty")


def _check_role(dialect: Anthropic, model: str, messages: list[dict[str, Any]], index: int) -> None:
    role = messages[index].get("role")
    later = bool(re.search(rf"{FIFTH}|opus-4[-.][8-9]", model)) and index > 0
    if role == "system" and not later:
        dialect.refuse(
            'messages: Unexpected role "system". The Messages API accepts a top-level `system` parameter, not "system"'
            " as an input message role."
        )
    if role not in ("user", "assistant", "system"):
        dialect.refuse(f'messages: Unexpected role "{role}". Allowed roles are "user" or "assistant"')
    if index == 0 and role != "user":
        dialect.refuse('messages: first message must use the "user" role')
    if index and messages[index - 1]["role"] == role:
        dialect.refuse(
            'messages: roles must alternate between "user" and "assistant", but found multiple'
            f' "{role}" roles in a row'
        )


def _check_content(dialect: Anthropic, message: dict[str, Any], path: str, last: bool) -> None:
    content, role = message.get("content"), message["role"]
    if content is None:
        dialect.refuse(f"{path}.content: Field required")
    if not content and not (last and role == "assistant"):
        dialect.refuse(
            f"{path}: all messages must have non-empty content except for the optional final assistant message"
        )
    if isinstance(content, str):
        if content and not content.strip():
            dialect.refuse("messages: text content blocks must contain non-whitespace text")
        return
    for index, block in enumerate(content):
        kind = block.get("type") if isinstance(block, dict) else None
        if kind not in BLOCKS[role]:
            dialect.refuse(
                f"{path}.content.{index}: Input tag '{kind}' found using 'type' does not match any of the expected"
                f" tags: {', '.join(repr(tag) for tag in sorted(BLOCKS[role]))}"
            )
        _check_block(dialect, block, f"{path}.content.{index}")


def _check_block(dialect: Anthropic, block: dict[str, Any], path: str) -> None:
    kind = block["type"]
    only(dialect, block, FIELDS[kind], f"{path}.{kind}")
    match kind:
        case "text":
            if not block.get("text"):
                dialect.refuse("messages: text content blocks must be non-empty")
            if not block["text"].strip():
                dialect.refuse("messages: text content blocks must contain non-whitespace text")
        case "image":
            _check_picture(dialect, block.get("source") or {}, f"{path}.image.source")
        case "tool_use":
            _check_use(dialect, block, f"{path}.tool_use")
        case "tool_result":
            _check_result(dialect, block, f"{path}.tool_result")
        case "thinking":
            for name in ("thinking", "signature"):
                if not isinstance(block.get(name), str):
                    dialect.refuse(f"{path}.thinking.{name}: Field required")
        case "redacted_thinking":
            if not isinstance(block.get("data"), str):
                dialect.refuse(f"{path}.redacted_thinking.data: Field required")


def _check_use(dialect: Anthropic, block: dict[str, Any], path: str) -> None:
    for name in ("id", "name", "input"):
        if name not in block:
            dialect.refuse(f"{path}.{name}: Field required")
    if not re.match(ID, str(block["id"])):
        dialect.refuse(f"{path}.id: String should match pattern '{ID}'")
    if not 1 <= len(block["name"]) <= 200:
        wrong = "at least 1 character" if not block["name"] else "at most 200 characters"
        dialect.refuse(f"{path}.name: String should have {wrong}")
    if not isinstance(block["input"], dict):
        dialect.refuse(f"{path}.input: Input should be a valid dictionary")


def _check_result(dialect: Anthropic, block: dict[str, Any], path: str) -> None:
    if "tool_use_id" not in block:
        dialect.refuse(f"{path}.tool_use_id: Field required")
    if not re.match(ID, str(block["tool_use_id"])):
        dialect.refuse(f"{path}.tool_use_id: String should match pattern '{ID}'")
    content = block.get("content")
    if block.get("is_error") and not content:
        dialect.refuse(f"{path}: content cannot be empty if `is_error` is true")
    for index, part in enumerate(content if isinstance(content, list) else ()):
        if part.get("type") not in ("text", "image", "document", "search_result", "tool_reference"):
            dialect.refuse(
                f"{path}.content.{index}: Input tag '{part.get('type')}' found using 'type' is not expected"
            )
        if part["type"] in FIELDS:
            _check_block(dialect, part, f"{path}.content.{index}")


def _check_picture(dialect: Anthropic, source: dict[str, Any], path: str) -> None:
    kind = source.get("type")
    if kind in ("url", "file"):
        return
    if kind != "base64":
        dialect.refuse(
            f"{path}: Input tag '{kind}' found using 'type' does not match any of the expected tags: 'base64', 'url'"
        )
    data = source.get("data", "")
    match pictures.wrong_with(data, source.get("media_type")):
        case "media_type":
            dialect.refuse(
                f"{path}.base64.media_type: Input should be 'image/jpeg', 'image/png', 'image/gif' or 'image/webp'"
            )
        case "base64":
            dialect.refuse(f"{path}.base64: invalid base64 data")
        case "mismatch":
            dialect.refuse(
                f"{path}.base64.data: Image does not match the provided media type {source['media_type']}"
            )
        case "broken":
            dialect.raise_fault("bad_image")
    if len(data) > PICTURE_BYTES:
        dialect.refuse(
            f"{path}.base64: image exceeds 5 MB maximum: {len(data)} bytes > {PICTURE_BYTES} bytes"
        )


def _check_end(dialect: Anthropic, body: dict[str, Any]) -> None:
    last = body["messages"][-1]
    if last["role"] != "assistant":
        return
    if re.search(ADAPTIVE, body["model"]):
        dialect.refuse(
            "This model does not support assistant message prefill. The conversation must end with a user message."
        )
    content = last["content"]
    text = content if isinstance(content, str) else (content[-1].get("text", "") if content else "")
    if text != text.rstrip():
        dialect.refuse("messages: final assistant content cannot end with trailing whitespace")


def _check_pairs(dialect: Anthropic, messages: list[dict[str, Any]]) -> None:
    seen: set[str] = set()
    asked: list[str] = []
    for index, message in enumerate(messages):
        if message["role"] == "system":
            continue
        blocks = message["content"] if isinstance(message["content"], list) else []
        _check_results(dialect, index, blocks, asked)
        uses = [block["id"] for block in blocks if block["type"] == "tool_use"]
        if len(set(uses)) < len(uses) or seen & set(uses):
            dialect.refuse("messages: `tool_use` ids must be unique")
        seen.update(uses)
        asked = uses
    if asked:
        _unanswered(dialect, len(messages) - 1, asked)


def _check_results(dialect: Anthropic, index: int, blocks: list[dict[str, Any]], asked: list[str]) -> None:
    first = next((place for place, block in enumerate(blocks) if block["type"] != "tool_result"), len(blocks))
    given = [block["tool_use_id"] for block in blocks[:first]]
    for place, block in enumerate(blocks):
        if block["type"] == "tool_result" and block["tool_use_id"] not in asked:
            dialect.refuse(
                f"messages.{index}.content.{place}: unexpected `tool_use_id` found in `tool_result` blocks:"
                f" {block['tool_use_id']}. Each `tool_result` block must have a corresponding `tool_use` block in the"
                " previous message."
            )
        if place < first and given.index(block["tool_use_id"]) != place:
            dialect.refuse(
                f"messages.{index}.content.{place}: each tool_use must have a single result. Found multiple"
                f" `tool_result` blocks with id: {block['tool_use_id']}"
            )
    missing = [call_id for call_id in asked if call_id not in given]
    if missing:
        _unanswered(dialect, index - 1, missing)


def _unanswered(dialect: Anthropic, index: int, ids: list[str]) -> None:
    dialect.refuse(
        f"messages.{index}: `tool_use` ids were found without `tool_result` blocks immediately after:"
        f" {', '.join(ids)}. Each `tool_use` block must have a corresponding `tool_result` block in the next message."
    )
