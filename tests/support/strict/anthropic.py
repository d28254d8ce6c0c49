"""Anthropic's messages: the stream of content blocks, the count by cache marks, the errors."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from support.strict import anthropic_messages, anthropic_rules
from support.strict.anthropic_thinking import ThinkingMemory
from support.strict.counting import Block, Counted, MarkCache, canonical
from support.strict.dialect import Answering, Dialect, seal, token
from support.strict.frames import Frame
from support.strict.reply import Call, Say, Think, View, words
from support.strict.serving import StrictRequest

_STOPS = {"length": "max_tokens", "filtered": "refusal"}
#: Every so many thinking blocks, a redacted one follows.
REDACTED_EVERY = 5


class Anthropic(Dialect):
    """POST /v1/messages."""

    path = "/v1/messages"
    models_path = "/v1/models"

    def __init__(self, provider: str, key: str) -> None:
        super().__init__(provider, key)
        self.memory = ThinkingMemory(self)
        self.cache = MarkCache()
        self._thoughts = 0

    def error_body(self, status: int, message: str, kind: str, code: Any, param: str | None) -> Any:
        error = {"type": kind, "message": message}
        return {"type": "error", "error": error, "request_id": f"req_011C{token(message, length=20)}"}

    def authorize(self, request: StrictRequest) -> None:
        bearer = request.headers.get("authorization", "").removeprefix("Bearer ")
        given = request.headers.get("x-api-key") or bearer
        if not given:
            self.refuse("x-api-key header is required", status=401, kind="authentication_error")
        if given != self.key:
            self.raise_fault("wrong_key")
        if not request.headers.get("anthropic-version"):
            self.refuse("anthropic-version: header is required")
        if request.headers["anthropic-version"] not in ("2023-06-01", "2023-01-01"):
            version = request.headers["anthropic-version"]
            self.refuse(f'anthropic-version: "{version}" is not a valid version')

    def check(self, request: StrictRequest) -> None:
        body = request.body
        anthropic_rules.check(self, body, request.headers.get("anthropic-beta", ""))
        anthropic_messages.check(self, body)
        self.memory.check(body, self.thinks(request))

    def thinks(self, request: StrictRequest) -> bool:
        body = request.body
        rules = self.rules(body["model"])
        default = "adaptive" if re.search(anthropic_rules.FIFTH, body["model"]) else "disabled"
        kind = (body.get("thinking") or {}).get("type", default)
        return bool(rules.effort) and kind != "disabled"

    def view(self, body: dict[str, Any]) -> View:
        messages = body["messages"]
        names = {
            block["id"]: block["name"]
            for message in messages
            for block in blocks_of(message)
            if block["type"] == "tool_use"
        }
        last = max((index for index, one in enumerate(messages) if one["role"] == "assistant"), default=-1)
        told = [
            text
            for message in messages
            if message["role"] == "user"
            and (text := words([block for block in blocks_of(message) if block["type"] == "text"]))
        ]
        results = [
            block
            for one in messages[last + 1 :]
            for block in blocks_of(one)
            if block["type"] == "tool_result"
        ]
        return View(
            text=told[-1] if told else "",
            results=[
                (names.get(block["tool_use_id"], ""), words(block.get("content", ""))) for block in results
            ],
            turns=sum(message["role"] == "assistant" for message in messages),
            tools=[tool["name"] for tool in body.get("tools") or ()],
            schema="format" in (body.get("output_config") or {}),
            images=canonical(messages).count('"type":"image"'),
            system=words(body.get("system") or ""),
            body=body,
        )

    def count(self, request: StrictRequest) -> Counted:
        body = request.body
        blocks = [*body.get("tools", ()), *_system(body)]
        first = len(blocks)
        blocks += [{"role": one["role"], **block} for one in body["messages"] for block in blocks_of(one)]
        marked = [_block(block) for block in blocks]
        if "cache_control" in body and marked:
            marked[-1] = Block(marked[-1].text, body["cache_control"].get("ttl", "5m"))
        if first < len(marked):
            switches = canonical([body.get("thinking"), body.get("tool_choice")])
            marked[first] = Block(marked[first].text + switches, marked[first].ttl)
        return self.cache.count(marked, body["model"], anthropic_rules.cache_minimum(body["model"]))

    def compose(self, answering: Answering) -> list[dict[str, Any]]:
        body, model = answering.body, answering.model
        shown = (body.get("thinking") or {}).get("display", anthropic_rules.default_display(model))
        items: list[dict[str, Any]] = []
        for index, part in enumerate(answering.reply.parts):
            name = token("block", answering.number, index)
            match part:
                case Think(redacted=True):
                    items.append(_redacted(name))
                case Think():
                    self._thoughts += 1
                    text = part.text if shown == "summarized" else ""
                    proof = (
                        "" if answering.misbehaves("no_signature") else f"ErUB{seal(model, part.text, name)}"
                    )
                    items.append({"type": "thinking", "thinking": text, "signature": proof})
                    if self._thoughts % REDACTED_EVERY == 0:
                        items.append(_redacted(name))
                case Say():
                    items.append({"type": "text", "text": part.text})
                case Call():
                    call_id = answering.id(part.id, f"toolu_01{name}", "toolu_1")
                    items.append({"type": "tool_use", "id": call_id, "name": part.name, "input": part.value})
        if not answering.misbehaves("no_signature") and not answering.misbehaves("huge_signature"):
            self.memory.remember(items, body)
        return items

    def forget(self, items: list[dict[str, Any]]) -> None:
        self.memory.forget(items)

    def frames(self, answering: Answering, items: list[dict[str, Any]]) -> Iterator[Frame]:
        usage = _usage(answering.usage)
        message = {**self._message(answering), "content": [], "stop_reason": None, "stop_sequence": None}
        if usage is not None:
            message["usage"] = {**usage, "output_tokens": 1}
        yield _frame("message_start", message=message)
        yield _frame("ping")
        for index, item in enumerate(items):
            start, deltas = self._deltas(answering, item)
            yield _frame("content_block_start", index, index=index, content_block=start)
            for delta in deltas:
                yield _frame("content_block_delta", index, index=index, delta=delta)
            yield _frame("content_block_stop", index, index=index)
        ended: dict[str, Any] = {"delta": {"stop_reason": _stop(answering, items), "stop_sequence": None}}
        if usage is not None:
            ended["usage"] = usage
        yield _frame("message_delta", **ended)
        yield _frame("message_stop")

    def _deltas(
        self, answering: Answering, item: dict[str, Any]
    ) -> tuple[dict[str, Any], Iterator[dict[str, Any]]]:
        match item["type"]:
            case "thinking":
                return {"type": "thinking", "thinking": "", "signature": ""}, _thoughts(answering, item)
            case "text":
                pieces = answering.pieces(item["text"])
                return {"type": "text", "text": ""}, (
                    {"type": "text_delta", "text": piece} for piece in pieces
                )
            case "tool_use":
                text = item["input"] if isinstance(item["input"], str) else json.dumps(item["input"])
                pieces = ("", *answering.arguments(text if item["input"] != {} else ""))
                deltas = ({"type": "input_json_delta", "partial_json": piece} for piece in pieces)
                return {**item, "input": {}}, deltas
        return item, iter(())

    def _message(self, answering: Answering) -> dict[str, Any]:
        fixed = {"id": f"msg_01{token('message', answering.number)}", "type": "message", "role": "assistant"}
        dropped = self.memory.dropped
        changes = (
            {"input_transformations": [{"type": "thinking_dropped", "count": dropped}]} if dropped else {}
        )
        return {"model": answering.model, **fixed, **changes}

    def whole(self, answering: Answering, items: list[dict[str, Any]]) -> dict[str, Any]:
        usage = _usage(answering.usage) or {}
        ended = {"stop_reason": _stop(answering, items), "stop_sequence": None, "usage": usage}
        return {**self._message(answering), "content": items, **ended}

    def unknown_frame(self) -> Frame:
        return Frame({"type": "mystery_event", "payload": {"a": [1]}}, "mystery_event")

    def error_frame(self) -> Frame:
        error = {"type": "overloaded_error", "message": "Overloaded"}
        return Frame({"type": "error", "error": error, "request_id": "req_011C"}, "error")

    def listing(self, names: list[str]) -> dict[str, Any]:
        models = [
            {"type": "model", "id": name, "display_name": name, "created_at": "2026-01-01T00:00:00Z"}
            for name in names
        ]
        ends = {"first_id": names[0], "last_id": names[-1]} if names else {"first_id": None, "last_id": None}
        return {"data": models, "has_more": False, **ends}


def blocks_of(message: dict[str, Any]) -> list[dict[str, Any]]:
    """The blocks of a message, also if its content is a string."""
    content = message["content"]
    return content if isinstance(content, list) else [{"type": "text", "text": content}]


def _system(body: dict[str, Any]) -> list[dict[str, Any]]:
    system = body.get("system") or []
    return system if isinstance(system, list) else [{"type": "text", "text": system}]


def _block(block: dict[str, Any]) -> Block:
    mark = block.get("cache_control")
    rest = {key: value for key, value in block.items() if key != "cache_control"}
    return Block(canonical(rest), mark.get("ttl", "5m") if mark else "")


def _thoughts(answering: Answering, item: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for piece in answering.thoughts(item["thinking"]):
        yield {"type": "thinking_delta", "thinking": piece}
    for piece in answering.secret(item["signature"]):
        yield {"type": "signature_delta", "signature": piece}


def _redacted(name: str) -> dict[str, Any]:
    return {"type": "redacted_thinking", "data": f"EmwK{seal('redacted', name)}"}


def _stop(answering: Answering, items: list[dict[str, Any]]) -> str:
    usual = "tool_use" if any(item["type"] == "tool_use" for item in items) else "end_turn"
    finish = answering.reply.finish
    return _STOPS.get(finish, finish) or usual


def _usage(counted: Counted | None) -> dict[str, Any] | None:
    if counted is None:
        return None
    return {
        "input_tokens": counted.input - counted.cached - counted.cache_write,
        "cache_creation_input_tokens": counted.cache_write,
        "cache_read_input_tokens": counted.cached,
        "cache_creation": {
            "ephemeral_5m_input_tokens": counted.cache_write - counted.long_write,
            "ephemeral_1h_input_tokens": counted.long_write,
        },
        "output_tokens": counted.output,
        "service_tier": "standard",
    }


def _frame(kind: str, item: int | None = None, /, **fields: Any) -> Frame:
    return Frame({"type": kind, **fields}, kind, kind == "message_stop", item)
