"""OpenAI's Responses API without server-side storage: reasoning is encrypted and returned in order.

https://platform.openai.com/docs/api-reference/responses, https://platform.openai.com/docs/guides/reasoning
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from tui_agent.model.client import Chunk, EndReason, ModelRequest, UsageChunk
from tui_agent.model.parts import CallPart, Part, TextPart, ThinkingPart
from tui_agent.model.rules import Rules, accepts_temperature, effort_parameters
from tui_agent.model.wires.conversation import (
    CallAnswer,
    Conversation,
    ReplyTurn,
    UserTurn,
    described,
    is_strict,
)
from tui_agent.model.wires.reader import Place, Rendered, ReplyReader, count, items, mapping

PATH = "/responses"
_INCOMPLETE: dict[str, EndReason] = {"max_output_tokens": "length", "content_filter": "refused"}


def render(
    request: ModelRequest, talk: Conversation, rules: Rules, model: str, shape: dict[str, Any] | None
) -> Rendered:
    given: list[dict[str, Any]] = []
    for turn in talk.turns:
        match turn:
            case UserTurn():
                content: Any = turn.text
                if turn.images:
                    content = [{"type": "input_text", "text": content}] if content else []
                    content += [{"type": "input_image", "image_url": url} for url in turn.urls]
                given.append({"type": "message", "role": "user", "content": content})
            case CallAnswer(id, _, answer):
                given.append({"type": "function_call_output", "call_id": id, "output": answer})
            case ReplyTurn(parts):
                whole = all(_may_go_back(part) for part in parts if isinstance(part, ThinkingPart))
                # An item with an id is rejected without its preceding reasoning.
                kept = parts if whole else [replace(part, native=None) for part in parts]
                items = [_item(part, kept[place + 1 :]) for place, part in enumerate(kept)]
                given += [
                    {name: value for name, value in item.items() if rules.item_status or name != "status"}
                    for item in items
                    if item
                ]
    body: dict[str, Any] = {"model": model, "input": given, "stream": True, "store": False}
    if instructions := talk.system or rules.instructions:
        body["instructions"] = instructions
    if request.tools:
        empty = {"type": "object", "properties": {}}
        body["tools"] = [
            {
                "type": "function",
                **described(tool["function"]),
                "parameters": tool["function"].get("parameters") or empty,
                "strict": False,  # the default, strict, does not suit our schemas
            }
            for tool in request.tools
        ]
    if rules.effort:
        body["include"] = ["reasoning.encrypted_content"]
    if level := effort_parameters(rules, request.effort).get("reasoning_effort"):
        summary = {"summary": "auto"} if level != "none" and "summary" not in request.without else {}
        body["reasoning"] = {"effort": level, **summary}
    if shape is not None:
        strict = {"name": "reply", "schema": shape, "strict": is_strict(shape)}
        body["text"] = {"format": {"type": "json_schema", **strict}}
    if request.most and rules.output_limit:
        body["max_output_tokens"] = request.most
    if request.temperature is not None and accepts_temperature(rules, request.effort):
        body["temperature"] = request.temperature
    if rules.cache == "key" and request.session:
        body["prompt_cache_key"] = request.session
    return Rendered({**body, **rules.body})


def _may_go_back(part: ThinkingPart) -> bool:
    return bool(mapping(part.native).get("encrypted_content"))


def _item(part: Part, later: Sequence[Part]) -> dict[str, Any] | None:
    native = mapping(part.native)
    match part:
        case ThinkingPart():
            followed = any(not isinstance(one, ThinkingPart) for one in later)
            return native if followed and _may_go_back(part) else None
        case CallPart(id, name, arguments):
            fresh = {"type": "function_call", "call_id": id, "name": name, "arguments": arguments}
            return native if {**native, **fresh} == native else fresh
        case TextPart(text):
            if text and text == _text(native):
                return native
            said = {"type": "output_text", "text": text, "annotations": []}
            return {"type": "message", "role": "assistant", "content": [said]} if text else None
    return None


def _text(item: dict[str, Any]) -> str:
    return "".join(part["text"] for part in items(item.get("content")) if isinstance(part.get("text"), str))


class ResponsesReader(ReplyReader):
    """Items are identified by index, because some servers give one item several ids."""

    def __init__(self) -> None:
        super().__init__()
        self._numbers: dict[str, int] = {}

    def read(self, event: dict[str, Any]) -> list[Chunk]:
        index = event.get("output_index")
        if isinstance(index, int) and index >= 0:
            place = (index, 0)
        else:
            name = str(event.get("item_id") or mapping(event.get("item")).get("id") or "")
            place = (self._numbers.setdefault(name, len(self._numbers)), 0)
        match event.get("type"):
            case "response.created" | "response.in_progress" | "response.queued":
                self.thinks = True
            case "response.output_item.added":
                item = mapping(event.get("item"))
                self.thinks = item.get("type") == "reasoning"
                if item.get("type") == "function_call":
                    return self.call(place, item.get("call_id"), item.get("name"), item.get("arguments"))
                return []
            case "response.output_text.delta":
                return self.text(place, event.get("delta"))
            case "response.refusal.delta" if isinstance(event.get("delta"), str):
                self.refusal += event["delta"]
            case "response.reasoning_summary_text.delta" | "response.reasoning_text.delta":
                return self.think(place, event.get("delta"))
            case "response.reasoning_summary_part.added" if self.words(place):
                return self.think(place, "\n\n")
            case "response.function_call_arguments.delta" if self.has(place):
                return self.call(place, arguments=event.get("delta"))
            case "response.output_item.done":
                return self._done(place, mapping(event.get("item")))
            case "response.completed" | "response.incomplete":
                return self._completed(mapping(event.get("response")))
        return []

    def _done(self, place: Place, item: dict[str, Any]) -> list[Chunk]:
        chunks: list[Chunk] = []
        item = {
            name: value for name, value in item.items() if value is not None and (name, value) != ("id", "")
        }
        size = len(str(item.get("encrypted_content") or ""))
        match item.get("type"):
            case "reasoning":
                if not self.words(place):
                    parts = [*items(item.get("summary")), *items(item.get("content"))]
                    chunks = self.think(place, "\n\n".join(str(part.get("text") or "") for part in parts))
                self.keep(place, ThinkingPart, item, size)
            case "message":
                if not self.words(place):
                    chunks = self.text(place, _text(item))
                    self.refusal += "".join(
                        str(part.get("refusal") or "") for part in items(item.get("content"))
                    )
                if self.has(place):
                    self.keep(place, TextPart, item)
            case "function_call":
                given = "" if self.words(place) else item.get("arguments")
                chunks = self.call(place, item.get("call_id"), item.get("name"), given)
                self.keep(place, CallPart, item)
        return chunks

    def _completed(self, response: dict[str, Any]) -> list[Chunk]:
        chunks: list[Chunk] = []
        for index, item in enumerate(items(response.get("output"))):
            if not self.has((index, 0)):
                chunks += self._done((index, 0), item)
        usage = mapping(response.get("usage"))
        if usage:
            details = mapping(usage.get("input_tokens_details"))
            given, output = count(usage.get("input_tokens")), count(usage.get("output_tokens"))
            thinking = count(mapping(usage.get("output_tokens_details")).get("reasoning_tokens"))
            self.usage = UsageChunk(
                given,
                output,
                min(count(details.get("cached_tokens")), given),
                written=min(count(details.get("cache_write_tokens")), given),
                thinking=min(thinking, output),
            )
        why = mapping(response.get("incomplete_details")).get("reason")
        if response.get("status") == "incomplete" or why:
            self.reason = _INCOMPLETE.get(str(why), "length")
        else:
            calls = any(isinstance(part, CallPart) for part in self.parts())
            self.reason = "tool_calls" if calls else "stop"
        return chunks
