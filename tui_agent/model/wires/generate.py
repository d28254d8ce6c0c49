"""Gemini's `streamGenerateContent`.

https://ai.google.dev/api/generate-content, https://ai.google.dev/gemini-api/docs/thought-signatures
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from tui_agent.model.client import Chunk, EndReason, ModelRequest, UsageChunk
from tui_agent.model.parts import CallPart, Part, TextPart, ThinkingPart
from tui_agent.model.rules import Rules, accepts_temperature, effort_parameters
from tui_agent.model.wires.conversation import CallAnswer, Conversation, ReplyTurn, UserTurn, described
from tui_agent.model.wires.messages import arguments
from tui_agent.model.wires.reader import Rendered, ReplyReader, count, items, mapping

#: Documented by Google for calls of other models.
NO_SIGNATURE = "skip_thought_signature_validator"
_REASONS: dict[str, EndReason] = {"STOP": "stop", "MAX_TOKENS": "length"}
#: Reasons that report a fault, not a content decision.
_FAILURES = frozenset(
    (
        "MALFORMED_FUNCTION_CALL",
        "UNEXPECTED_TOOL_CALL",
        "TOO_MANY_TOOL_CALLS",
        "MISSING_THOUGHT_SIGNATURE",
        "MALFORMED_RESPONSE",
        "OTHER",
        "FINISH_REASON_UNSPECIFIED",
    )
)


def path(model: str) -> str:
    return f"/models/{model}:streamGenerateContent"


def render(
    request: ModelRequest, talk: Conversation, rules: Rules, model: str, shape: dict[str, Any] | None
) -> Rendered:
    contents: list[dict[str, Any]] = []
    before: UserTurn | CallAnswer | ReplyTurn | None = None
    native_ids: dict[str, str] = {}
    for turn in talk.turns:
        match turn:
            case UserTurn():
                parts: list[dict[str, Any]] = [{"text": turn.text}] if turn.text else []
                for image in turn.images:
                    inline = {"mimeType": image["media_type"], "data": image["data"]}
                    parts.append({"inlineData": inline})
                contents.append({"role": "user", "parts": parts})
            case CallAnswer(id, name, content):
                answer: dict[str, Any] = {"name": name, "response": {"result": content}}
                if id in native_ids:
                    answer["id"] = native_ids[id]
                if not isinstance(before, CallAnswer):
                    contents.append({"role": "user", "parts": []})
                contents[-1]["parts"].append({"functionResponse": answer})
            case ReplyTurn():
                own = {call.id: mapping(call.native).get("id") for call in turn.calls}
                native_ids |= {id: own_id for id, own_id in own.items() if own_id}
                if parts := _model_parts(turn.parts, rules):
                    contents.append({"role": "model", "parts": parts})
        before = turn
    body: dict[str, Any] = {"contents": contents}
    if talk.system:
        body["systemInstruction"] = {"parts": [{"text": talk.system}]}
    if request.tools:
        declarations = []
        for function in (tool["function"] for tool in request.tools):
            parameters = function.get("parameters") or {}
            schema = {"parametersJsonSchema": parameters} if parameters.get("properties") else {}
            declarations.append({**described(function), **schema})
        body["tools"] = [{"functionDeclarations": declarations}]
    config: dict[str, Any] = {}
    if thinking := effort_parameters(rules, request.effort, request.most):
        config["thinkingConfig"] = thinking
    if shape is not None:
        config |= {"responseMimeType": "application/json", "responseJsonSchema": shape}
    if request.most:
        config["maxOutputTokens"] = request.most
    if request.temperature is not None and accepts_temperature(rules, request.effort):
        config["temperature"] = request.temperature
    if config:
        body["generationConfig"] = config
    return Rendered({**body, **rules.body})


def _model_parts(parts: Sequence[Part], rules: Rules) -> list[dict[str, Any]]:
    rendered: list[dict[str, Any]] = []
    calls = [part for part in parts if isinstance(part, CallPart)]
    unsigned = rules.thinking_required and not any(
        mapping(call.native).get("thoughtSignature") for call in calls
    )
    for part in parts:
        signature = mapping(part.native).get("thoughtSignature")
        match part:
            case TextPart(text) if text:
                rendered.append({"text": text})
            case CallPart():
                id = mapping(part.native).get("id")
                call = {"name": part.name, "args": arguments(part), **({"id": id} if id else {})}
                rendered.append({"functionCall": call})
                if unsigned and part is calls[0]:
                    signature = NO_SIGNATURE
            case _:
                continue
        if signature:
            rendered[-1]["thoughtSignature"] = signature
    return rendered


class GenerateReader(ReplyReader):
    """Parts have no numbers: consecutive pieces of one type form one part."""

    def __init__(self) -> None:
        super().__init__()
        self._last: type[Part] | None = None
        self._number = 0

    def read(self, event: dict[str, Any]) -> list[Chunk]:
        chunks: list[Chunk] = []
        self.thinks = not self.has_content
        if usage := mapping(event.get("usageMetadata")):
            given = count(usage.get("promptTokenCount")) + count(usage.get("toolUsePromptTokenCount"))
            thinking = count(usage.get("thoughtsTokenCount"))
            output = count(usage.get("candidatesTokenCount")) + thinking
            cached = count(usage.get("cachedContentTokenCount"))
            self.usage = UsageChunk(given, output, min(cached, given), thinking=thinking)
        feedback = mapping(event.get("promptFeedback"))
        if isinstance(feedback.get("blockReason"), str):
            self.refusal = f"the prompt was blocked ({feedback['blockReason']})"
        for candidate in items(event.get("candidates"))[:1]:
            for part in items(mapping(candidate.get("content")).get("parts")):
                chunks += self._part(part)
            reason = candidate.get("finishReason")
            if isinstance(reason, str) and reason:
                if reason in _FAILURES:
                    self.failure = reason
                    continue
                calls = any(isinstance(part, CallPart) for part in self.parts())
                self.reason = _REASONS.get(reason, "refused")
                if self.reason == "stop" and calls:
                    self.reason = "tool_calls"
        return chunks

    def _part(self, part: dict[str, Any]) -> list[Chunk]:
        signature = part.get("thoughtSignature") or part.get("thought_signature")
        native = {"thoughtSignature": signature} if isinstance(signature, str) and signature else {}
        call = part.get("functionCall")
        if isinstance(call, dict):
            place = self._next(CallPart)
            id, args = call.get("id"), call.get("args")
            arguments = json.dumps(args if isinstance(args, dict) else {}, ensure_ascii=False)
            chunks = self.call(place, id, call.get("name"), arguments)
            native |= {"id": id} if isinstance(id, str) and id else {}
            if native:
                self.keep(place, CallPart, native, len(str(signature or "")))
            return chunks
        kind = ThinkingPart if part.get("thought") is True else TextPart
        text = part.get("text")
        if not isinstance(text, str) or (not text and self._last is not kind):
            return []
        place = (
            self._next(kind)
            if self._last is not kind or self.native((self._number, 0))
            else (self._number, 0)
        )
        if native and kind is TextPart:
            self.keep(place, TextPart, native, len(str(signature)))
        return self.think(place, text) if kind is ThinkingPart else self.text(place, text)

    def _next(self, kind: type[Part]) -> tuple[int, int]:
        self._number += 1
        self._last = kind
        return (self._number, 0)
