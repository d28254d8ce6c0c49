"""OpenAI chat completions API, as implemented by most providers and local servers.

https://platform.openai.com/docs/api-reference/chat. Representations of thinking differ; see `rules.toml`.
"""

from __future__ import annotations

import json
from typing import Any

from tui_agent.model.client import Chunk, EndReason, ModelRequest, UsageChunk
from tui_agent.model.parts import CallPart, ThinkingPart
from tui_agent.model.rules import Rules, accepts_temperature, effort_parameters
from tui_agent.model.wires.conversation import (
    CallAnswer,
    Conversation,
    ReplyTurn,
    SchemaForm,
    UserTurn,
    is_strict,
    response_format,
)
from tui_agent.model.wires.reader import Place, Rendered, ReplyReader, count, items, mapping

PATH = "/chat/completions"
#: Placeholder for providers that require thinking and reject empty text.
NO_THINKING = " "
MARK = "cache_control"
THINKING, TEXT, CALLS = 0, 1, 2
REASONS: dict[str, EndReason] = {
    "stop": "stop",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "length": "length",
    "content_filter": "refused",
}
#: End reasons of a provider's fault.
FAILURES = frozenset({"error", "network_error", "insufficient_system_resource", "abort", "aborted"})


def render(
    request: ModelRequest, talk: Conversation, rules: Rules, model: str, shape: dict[str, Any] | None
) -> Rendered:
    body: dict[str, Any] = {"model": model, "messages": messages(talk, rules, request.cache), "stream": True}
    if rules.stream_usage:
        body["stream_options"] = {"include_usage": True}
    if request.tools:
        body["tools"] = list(request.tools)
    if shape is not None:
        body["response_format"] = schema_format(shape, request)
    if request.most:
        body[rules.output_limit] = request.most
    body |= effort_parameters(rules, request.effort, request.most)
    if request.temperature is not None and accepts_temperature(rules, request.effort):
        body["temperature"] = request.temperature
    if rules.cache == "key" and request.session:
        body["prompt_cache_key"] = request.session
    return Rendered({**body, **request.options, **rules.body})


def schema_format(shape: dict[str, Any], request: ModelRequest) -> dict[str, Any]:
    form: SchemaForm = "json_object" if request.schema_form == "json_object" else "json_schema"
    return response_format(shape, form, is_strict(shape))


def messages(talk: Conversation, rules: Rules, cache: str = "short") -> list[dict[str, Any]]:
    mark: dict[str, Any] = {"type": "ephemeral"}
    if cache == "long" and rules.long_cache:
        mark["ttl"] = "1h"
    rendered: list[dict[str, Any]] = []
    if talk.system:
        system = {"role": "system", "content": talk.system}
        rendered.append(_marked(system, mark) if rules.cache == "marks" else system)
    for turn in talk.turns:
        match turn:
            case UserTurn():
                said = turn.content
                if turn.images:
                    if isinstance(said, str):
                        said = [{"type": "text", "text": said}] if said else []
                    said = [*said, *({"type": "image_url", "image_url": {"url": url}} for url in turn.urls)]
                message = {"role": "user", "content": said}
                rendered.append(_marked(message, mark) if turn.mark else message)
            case CallAnswer(id, _, content):
                message = {"role": "tool", "tool_call_id": id, "content": content}
                rendered.append(_marked(message, mark) if turn.mark else message)
            case ReplyTurn():
                rendered += _assistant_message(turn, rules)
    return rendered


def _marked(message: dict[str, Any], mark: dict[str, Any]) -> dict[str, Any]:
    content = message["content"]
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else list(content)
    return {**message, "content": [*parts[:-1], {**parts[-1], MARK: mark}]} if parts and content else message


def _assistant_message(turn: ReplyTurn, rules: Rules) -> list[dict[str, Any]]:
    if not turn.text and not turn.calls:
        return []
    message: dict[str, Any] = {"role": "assistant", "content": turn.text or None}
    match rules.thinking_field:
        case "content" if turn.thinking:
            message["content"] = [
                {"type": "thinking", "thinking": [{"type": "text", "text": part.text}]}
                if isinstance(part, ThinkingPart)
                else {"type": "text", "text": part.text}
                for part in turn.parts
                if not isinstance(part, CallPart)
            ]
        case "reasoning_details":
            details = [detail for part in turn.thinking for detail in items(part.native)]
            message |= {"reasoning_details": details} if details else {}
        case "reasoning_content" | "reasoning" as field:
            thinking = "".join(part.text for part in turn.thinking)
            if thinking:
                message[field] = thinking
            elif rules.thinking_required and turn.calls:
                message[field] = NO_THINKING
    if turn.calls:
        message["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": call.arguments},
                **mapping(call.native),
            }
            for call in turn.calls
        ]
    return [message]


class ChatReader(ReplyReader):
    def __init__(self, rules: Rules) -> None:
        super().__init__()
        self.progress: tuple[int, int] | None = None
        self._rules = rules
        self._details: list[dict[str, Any]] = []
        self._newest: dict[str, dict[str, Any]] = {}
        self._calls_at: dict[Any, tuple[Place, Any]] = {}
        self._count = 0

    def read(self, event: dict[str, Any]) -> list[Chunk]:
        usage = event.get("usage")
        if isinstance(usage, dict):
            details = mapping(usage.get("prompt_tokens_details"))
            cached = (
                details.get("cached_tokens")
                or usage.get("prompt_cache_hit_tokens")
                or usage.get("cached_tokens")
            )
            written = details.get("cache_creation_tokens") or details.get("cache_write_tokens")
            thinking = count(mapping(usage.get("completion_tokens_details")).get("reasoning_tokens"))
            given, output = count(usage.get("prompt_tokens")), count(usage.get("completion_tokens"))
            if self._rules.thinking_uncounted:
                total = count(usage.get("total_tokens"))
                output = total - given if total >= given + output else output + thinking
            cost = dollars(usage.get("cost"))
            if cost is None and (ticks := dollars(usage.get("cost_in_usd_ticks"))) is not None:
                cost = ticks / 1e10
            if cost is not None and usage.get("is_byok"):  # the user pays the provider separately
                cost += dollars(mapping(usage.get("cost_details")).get("upstream_inference_cost")) or 0.0
            self.usage = UsageChunk(
                given,
                output,
                min(count(cached), given),
                cost,
                written=min(count(written), given),
                thinking=min(thinking, output),
            )
        match event.get("prompt_progress"):
            case {"processed": int(read), "total": int(total)}:
                self.progress = read, total
                return []
        self.progress = None
        choices = items(event.get("choices"))
        if not choices:
            return []
        reason = choices[0].get("finish_reason")
        if isinstance(reason, str) and reason:
            self.failure = reason if reason in FAILURES else ""
            self.reason = None if self.failure else REASONS.get(reason, "stop")
        return self._delta(mapping(choices[0].get("delta")))

    def _delta(self, delta: dict[str, Any]) -> list[Chunk]:
        chunks: list[Chunk] = []
        details = items(delta.get("reasoning_details"))
        if details:
            self._keep_details(details)
        thinking = delta.get("reasoning_content") or delta.get("reasoning")
        thinking = thinking or "".join(str(one.get("text") or one.get("summary") or "") for one in details)
        chunks += self.think((THINKING, 0), thinking)
        content = delta.get("content")
        for part in [{"type": "text", "text": content}] if isinstance(content, str) else items(content):
            if part.get("type") == "thinking":
                inner = part.get("thinking")
                words = (
                    inner
                    if isinstance(inner, str)
                    else "".join(str(p.get("text") or "") for p in items(inner))
                )
                chunks += self.think((THINKING, 0), words)
            else:
                chunks += self.text((TEXT, 0), part.get("text"))
        if isinstance(refusal := delta.get("refusal"), str):
            self.refusal += refusal
        for call in items(delta.get("tool_calls")):
            place = self._place(call.get("index"), call.get("id"))
            function = mapping(call.get("function"))
            arguments = function.get("arguments")
            if isinstance(arguments, dict):
                arguments = json.dumps(arguments, ensure_ascii=False)
            chunks += self.call(place, call.get("id"), function.get("name"), arguments)
            if extra := call.get("extra_content"):
                self.keep(place, CallPart, {"extra_content": extra}, len(str(extra)))
        return chunks

    def _place(self, index: Any, id: Any) -> Place:
        index = index if isinstance(index, int) else None
        taken = self._calls_at.get(index)
        if taken is not None and (not id or not taken[1] or taken[1] == id):
            self._calls_at[index] = (taken[0], taken[1] or id)
            return taken[0]
        place = (CALLS, self._count)
        self._count += 1
        self._calls_at[index] = (place, id)
        return place

    def _keep_details(self, details: list[dict[str, Any]]) -> None:
        """Concatenates texts with the same index and type; overwrites other fields."""
        for detail in details:
            key = repr((detail.get("type"), detail.get("index")))
            entry = self._newest.get(key)
            if entry is None or not _is_one(entry, detail):
                self._newest[key] = dict(detail)
                self._details.append(self._newest[key])
            else:
                for name, value in detail.items():
                    joined = name in ("text", "summary", "data") and isinstance(value, str)
                    if joined and isinstance(entry.get(name), str):
                        entry[name] += value
                    elif value is not None:
                        entry[name] = value
        size = sum(len(value) for one in details for value in one.values() if isinstance(value, str))
        self.keep((THINKING, 0), ThinkingPart, self._details, size)


def dollars(value: Any) -> float | None:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if number and 0 <= value < 1e14 else None


def _is_one(entry: dict[str, Any], detail: dict[str, Any]) -> bool:
    if entry.get("id") and detail.get("id") and entry["id"] != detail["id"]:
        return False
    return "index" in detail or not (entry.get("signature") or detail.get("type") == "reasoning.encrypted")
