"""Rules of the messages of chat completions: roles, content, calls and their results, pictures."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from support.strict import pictures

if TYPE_CHECKING:
    from support.strict.chat import Chat


def check(dialect: Chat, body: dict[str, Any]) -> None:
    """Raises the refusal of the first rule that the messages break."""
    messages = body["messages"]
    if not isinstance(messages, list) or not messages:
        dialect.refuse(
            "Invalid 'messages': empty array. Expected an array with minimum length 1, but got an empty array instead.",
            param="messages",
            code="empty_array",
        )
    for index, message in enumerate(messages):
        path = f"messages[{index}]"
        role = message.get("role")
        if role not in dialect.roles:
            dialect.say("role", role=role, index=index, param=f"{path}.role", code="invalid_value")
        if dialect.message_fields is not None:
            if role not in dialect.message_fields:
                dialect.say("role", role=role, param=f"{path}.role", code="invalid_value")
            for name in message:
                if name not in dialect.message_fields[role]:
                    parameter = f"{path}.{name}"
                    dialect.say(
                        "field",
                        path=path,
                        name=name,
                        index=index,
                        role=role,
                        param=parameter,
                        code="unknown_parameter",
                    )
        _check_content(dialect, body, message, index)
        if role == "assistant":
            _check_calls(dialect, message, path)
    _check_pairs(dialect, messages)
    if not any(message["role"] == "user" for message in messages):
        dialect.say("no_user")
    dialect.check_order(body)


def _check_content(dialect: Chat, body: dict[str, Any], message: dict[str, Any], index: int) -> None:
    content, role, path = message.get("content"), message["role"], f"messages[{index}]"
    calls = message.get("tool_calls")
    if content is None:
        if role != "assistant" or not calls:
            dialect.say("no_content", index=index, role=role, param=f"messages.[{index}].content")
        return
    if content in ("", []):
        dialect.say("empty_content", index=index, role=role, calls=bool(calls))
        return
    if isinstance(content, str):
        return
    if not isinstance(content, list):
        got = "an object" if isinstance(content, dict) else "another type"
        dialect.say("content_type", path=path, got=got, param=f"{path}.content", code="invalid_type")
        return
    for place, part in enumerate(content):
        kind = part.get("type")
        if kind == "text" and not part.get("text"):
            dialect.say("empty_part", index=index, place=place)
        if kind == "image_url":
            _check_picture(dialect, body["model"], part, role, f"{path}.content[{place}]")


def _check_picture(dialect: Chat, model: str, part: dict[str, Any], role: str, path: str) -> None:
    if role != "user":
        dialect.say("picture_role", role=role, param=path, code="invalid_value")
    if not re.search(dialect.sees, model):
        dialect.say("blind", path=path, model=model)
    url = (part.get("image_url") or {}).get("url") if isinstance(part.get("image_url"), dict) else None
    match pictures.wrong_with_url(url):
        case "base64" | "media_type" | "mismatch":
            dialect.say("picture", path=path, param=path, code="invalid_value")
        case "broken":
            dialect.raise_fault("bad_image", model)


def _check_calls(dialect: Chat, message: dict[str, Any], path: str) -> None:
    calls = message.get("tool_calls")
    if calls is None:
        return
    if calls == []:
        dialect.refuse(
            f"Invalid '{path}.tool_calls': empty array. Expected an array with minimum length 1, but got an empty"
            " array instead.",
            param=f"{path}.tool_calls",
            code="empty_array",
        )
    for number, call in enumerate(calls):
        place = f"{path}.tool_calls[{number}]"
        function = call.get("function") or {}
        call_id = call.get("id")
        if not isinstance(call_id, str) or not re.match(dialect.call_id, call_id):
            dialect.say("call_id", path=place, id=call_id, length=len(str(call_id)), param=f"{place}.id")
        if not re.match(dialect.tool_name, str(function.get("name"))):
            dialect.say("call_name", path=place, name=function.get("name"), param=f"{place}.function.name")
        arguments = function.get("arguments")
        if not isinstance(arguments, str):
            dialect.say(
                "arguments_type", path=place, param=f"{place}.function.arguments", code="invalid_type"
            )
            continue
        try:
            whole = isinstance(json.loads(arguments), dict)
        except ValueError:
            whole = False
        if not whole:
            dialect.say("arguments", path=place, id=call_id, name=function.get("name"))


def _check_pairs(dialect: Chat, messages: list[dict[str, Any]]) -> None:
    """Each call is answered once, by the messages directly after its own."""
    expected: list[str] = []
    answered: list[str] = []
    for index, message in enumerate(messages):
        if message["role"] == "tool":
            call_id = message.get("tool_call_id")
            if call_id in answered:
                dialect.say("twice", id=call_id, index=index, param=f"messages.[{index}].tool_call_id")
            if call_id not in expected:
                dialect.say("tool_first", id=call_id, index=index, param=f"messages.[{index}].role")
            answered.append(str(call_id))
            continue
        _all_answered(dialect, expected, answered, index)
        answered = []
        expected = [str(call.get("id")) for call in message.get("tool_calls") or ()]
    _all_answered(dialect, expected, answered, len(messages))


def _all_answered(dialect: Chat, expected: list[str], answered: list[str], index: int) -> None:
    missing = [call_id for call_id in expected if call_id not in answered]
    if missing or len(set(expected)) < len(expected):
        ids = ", ".join(missing or expected)
        dialect.say("unanswered", ids=ids, index=index, param=f"messages.[{index}].role")
