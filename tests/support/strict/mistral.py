"""Mistral: unknown fields are refused, roles have an order, ids have nine letters or digits, thinking is a list."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, ClassVar

from support.strict.chat import WORDS, Chat
from support.strict.dialect import Answering, token
from support.strict.frames import MEGABYTE, Frame
from support.strict.names import names
from support.strict.reply import Call, Refusal
from support.strict.serving import StrictRequest

#: The type and the number of an error by the begin of its words.
_KINDS = (
    ("Unexpected role", "invalid_request_message_order", "3230"),
    ("Expected last role", "invalid_request_message_order", "3230"),
    ("Not the same number", "invalid_request_message_order", "3230"),
    ("Tool call id", "invalid_function_call", "3280"),
    ("Function name", "invalid_function_call", "3280"),
    ("Assistant message", "invalid_request_assistant_message", "3240"),
)
_ROLE_FIELDS = {
    "system": names("role content"),
    "user": names("role content"),
    "assistant": names("role content tool_calls prefix"),
    "tool": names("role content tool_call_id name"),
}
_PART_FIELDS = {
    "text": names("type text"),
    "thinking": names("type thinking closed signature"),
    "image_url": names("type image_url"),
    "document_url": names("type document_url document_name"),
    "reference": names("type reference_ids"),
}


class Mistral(Chat):
    """POST /v1/chat/completions of Mistral."""

    fields = names("""
        model messages stream max_tokens temperature top_p stop random_seed metadata response_format tools tool_choice
        presence_penalty frequency_penalty n prediction parallel_tool_calls prompt_mode reasoning_effort safe_prompt
        guardrails prompt_cache_key
    """)
    message_fields = None
    models = r"mistral|mixtral|ministral|magistral|codestral|devstral|pixtral|glm|vibe|open-"
    sees = r"mistral-(?:small|medium|large)|pixtral|ministral"
    call_id = r"^[a-zA-Z0-9]{9}$"
    words: ClassVar[dict[str, str]] = {
        **WORDS,
        "tool_first": "Unexpected tool call id {id} in tool results",
        "unanswered": "Not the same number of function calls and responses",
        "twice": "Not the same number of function calls and responses",
        "no_content": "Assistant message must have either content or tool_calls, but not none.",
        "empty_content": "Assistant message must have either content or tool_calls, but not none.",
        "call_id": "Tool call id was {id} but must be a-z, A-Z, 0-9, with a length of 9.",
        "call_name": "Function name was {name} but must be a-z, A-Z, 0-9, or contain underscores and dashes, with a"
        " maximum length of 64.",
        "blind": "Image input is not enabled for this model",
    }

    def error_body(self, status: int, message: str, kind: str, code: Any, param: str | None) -> Any:
        if status == 401:
            return {"detail": "Unauthorized"}
        for begin, word, number in _KINDS:
            if message.startswith(begin):
                kind, code = word, number
        return {"object": "error", "message": message, "type": kind, "param": None, "code": code}

    def say(self, key: str, *, param: str | None = None, code: Any = None, **values: Any) -> None:
        if key == "empty_content" and (values["role"] != "assistant" or values.get("calls")):
            return
        super().say(key, param=param, code=code, **values)

    def forbid(self, place: list[Any], given: Any, kind: str = "extra_forbidden", words: str = "") -> None:
        """Refuse an input as the validator does: status 422, the message an object."""
        words = words or "Extra inputs are not permitted"
        detail = {"detail": [{"type": kind, "loc": ["body", *place], "msg": words, "input": given}]}
        body = {
            "object": "error",
            "message": detail,
            "type": "invalid_request_error",
            "param": None,
            "code": None,
        }
        raise Refusal(422, body, f"{'.'.join(map(str, place))}: {words}")

    def check(self, request: StrictRequest) -> None:
        body = request.body
        for name, value in body.items():
            if name not in (self.fields or ()):
                self.forbid([name], value)
        for index, message in enumerate(body.get("messages") or ()):
            self._check_message(message, index)
        super().check(request)

    def _check_message(self, message: dict[str, Any], index: int) -> None:
        role = message.get("role")
        known = _ROLE_FIELDS.get(str(role))
        if known is None:
            words = (
                f"Input tag '{role}' found using 'role' does not match any of the expected tags: 'assistant',"
                " 'system', 'tool', 'user'"
            )
            self.forbid(["messages", index], message, "union_tag_invalid", words)
            return
        for name, value in message.items():
            if name not in known:
                self.forbid(["messages", index, role, name], value)
        for number, call in enumerate(message.get("tool_calls") or ()):
            place = ["messages", index, role, "tool_calls", number]
            for name, value in call.items():
                if name not in ("id", "type", "function", "index"):
                    self.forbid([*place, name], value)
            for name, value in call.get("function", {}).items():
                if name not in ("name", "arguments"):
                    self.forbid([*place, "function", name], value)
        content = message.get("content")
        for number, part in enumerate(content if isinstance(content, list) else ()):
            for name, value in part.items():
                if name not in _PART_FIELDS.get(str(part.get("type")), ()):
                    self.forbid(["messages", index, role, "content", number, name], value)

    def check_limit(self, body: dict[str, Any]) -> None:
        """One name only, which is checked with the fields."""

    def check_sampling(self, body: dict[str, Any]) -> None:
        value = body.get("temperature")
        if value is not None and not 0 <= value <= 1.5:
            self.forbid(
                ["temperature"], value, "less_than_equal", "Input should be less than or equal to 1.5"
            )

    def check_effort(self, body: dict[str, Any]) -> None:
        effort, rules = body.get("reasoning_effort"), self.rules(body["model"])
        if effort is None:
            return
        if not rules.effort:
            self.refuse(
                f"reasoning_effort is not supported for model {body['model']}", kind="invalid_request_error"
            )
        if effort not in rules.levels:
            self.forbid(
                ["reasoning_effort"],
                effort,
                "enum",
                f"Input should be {' or '.join(map(repr, rules.levels))}",
            )

    def check_tool(self, body: dict[str, Any], function: dict[str, Any], path: str) -> None:
        for name, value in function.items():
            if name not in ("name", "description", "parameters", "strict"):
                self.forbid(["tools", 0, "function", name], value)
        if not isinstance(function.get("parameters"), dict):
            self.forbid(["tools", 0, "function", "parameters"], None, "missing", "Field required")
        if not re.match(self.tool_name, str(function.get("name"))):
            self.say("call_name", name=function.get("name"))
        choice = body.get("tool_choice")
        if isinstance(choice, str) and choice not in ("auto", "none", "any", "required"):
            self.forbid(
                ["tool_choice"], choice, "enum", "Input should be 'auto', 'none', 'any' or 'required'"
            )

    def check_form(self, body: dict[str, Any], form: dict[str, Any]) -> None:
        if form.get("type") not in ("text", "json_object", "json_schema"):
            words = "Input should be 'text', 'json_object' or 'json_schema'"
            self.forbid(["response_format", "type"], form.get("type"), "enum", words)
        inner = form.get("json_schema")
        for name, value in (inner or {}).items():
            if name not in ("name", "description", "schema", "strict"):
                self.forbid(["response_format", "json_schema", name], value)

    def check_order(self, body: dict[str, Any]) -> None:
        check_order(self, body["messages"])

    def check_thinking(self, body: dict[str, Any]) -> None:
        for index, message in enumerate(body["messages"]):
            items = self.memory.reply_of(message, body["model"])
            sent = "".join(item["text"] for item in items if item["type"] == "think")
            if sent and sent != thoughts_in(message.get("content")):
                self.lose(f"the thinking of messages[{index}] did not come back as it was")

    def thinks(self, request: StrictRequest) -> bool:
        model, effort = request.body["model"], request.body.get("reasoning_effort")
        return "magistral" in model or effort not in (None, "none")

    def call_name(self, answering: Answering, index: int, part: Call) -> str:
        return token("call", answering.number, index, length=9)

    def thinking(self, answering: Answering, item: dict[str, Any]) -> Iterator[dict[str, Any]]:
        for piece in answering.thoughts(item["text"]):
            yield {"content": [_thinking(piece)]}
        if answering.misbehaves("huge_signature"):
            for _ in range(100):
                yield {"content": [_thinking(MEGABYTE)]}

    def deltas(self, answering: Answering, item: dict[str, Any], number: int) -> Iterator[dict[str, Any]]:
        """A call comes whole."""
        if item["type"] != "call":
            yield from super().deltas(answering, item, number)
            return
        function = {"name": item["name"], "arguments": item["arguments"]}
        yield {"tool_calls": [{"id": item["id"], "type": "function", "function": function, "index": number}]}

    def ending(self, answering: Answering, finish: str) -> Iterator[Frame]:
        """Usage is in the last chunk, without being asked for."""
        last = self.chunk(answering, {"content": ""}, finish).data
        usage = self.usage(answering)
        yield Frame(last if usage is None else {**last, "usage": usage})

    def envelope(self, answering: Answering, kind: str) -> dict[str, Any]:
        named = {
            "id": token("mistral", answering.number, length=32).lower(),
            "object": kind,
            "created": 1700000000,
        }
        return {**named, "model": answering.model}

    def whole(self, answering: Answering, items: list[dict[str, Any]]) -> dict[str, Any]:
        whole = super().whole(answering, items)
        thoughts = [_thinking(item["text"]) for item in items if item["type"] == "think"]
        message = whole["choices"][0]["message"]
        if thoughts:
            text = [{"type": "text", "text": message["content"]}] if message["content"] else []
            message["content"] = [*thoughts, *text]
        return whole

    def listing(self, names: list[str]) -> dict[str, Any]:
        can = {"completion_chat": True, "function_calling": True, "vision": True, "completion_fim": False}
        fixed = {
            "object": "model",
            "owned_by": "mistralai",
            "capabilities": can,
            "max_context_length": 262144,
        }
        return {
            "object": "list",
            "data": [{"id": name, "name": name, "aliases": [], **fixed} for name in names],
        }


def check_order(dialect: Chat, messages: list[dict[str, Any]]) -> None:
    """Raises the refusal of roles in an order that Mistral's templates do not have."""
    before = ""
    for message in messages:
        role = message["role"]
        if (before, role) in (
            ("tool", "user"),
            ("tool", "system"),
            ("", "tool"),
            ("user", "tool"),
            ("system", "tool"),
        ):
            dialect.refuse(f"Unexpected role '{role}' after role '{before or 'start'}'")
        before = role
    last = messages[-1]
    if last["role"] not in ("user", "tool") and not last.get("prefix"):
        dialect.refuse(
            "Expected last role User or Tool (or Assistant with prefix True) for serving but got"
            f" {last['role']}"
        )


def thoughts_in(content: Any) -> str:
    """The thinking in a list of parts."""
    parts = content if isinstance(content, list) else []
    inner = [one for part in parts if part.get("type") == "thinking" for one in part.get("thinking") or ()]
    return "".join(one.get("text", "") for one in inner)


def _thinking(text: str) -> dict[str, Any]:
    return {"type": "thinking", "thinking": [{"type": "text", "text": text}]}
