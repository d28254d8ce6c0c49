"""Anthropic's Messages API.

https://docs.anthropic.com/en/api/messages,
https://docs.anthropic.com/en/docs/build-with-claude/extended-thinking
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any

from tui_agent.model.client import Chunk, EndReason, ModelRequest, UsageChunk
from tui_agent.model.parts import CallPart, Part, TextPart, ThinkingPart
from tui_agent.model.rules import Rules, accepts_temperature, effort_parameters
from tui_agent.model.wires.conversation import CallAnswer, Conversation, ReplyTurn, UserTurn, described
from tui_agent.model.wires.reader import Place, Rendered, ReplyReader, count, mapping

PATH = "/v1/messages"
#: Default output limit for unknown models.
MOST_TOKENS = 8_192
_MARK = "cache_control"
_REASONS: dict[str, EndReason] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "pause_turn": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "refused",
}
_REFUSED_KEYWORDS = frozenset(
    (
        "minLength",
        "maxLength",
        "minItems",
        "maxItems",
        "minimum",
        "maximum",
        "multipleOf",
        "pattern",
        "uniqueItems",
    )
)


def render(
    request: ModelRequest,
    talk: Conversation,
    rules: Rules,
    model: str,
    shape: dict[str, Any] | None,
    most: int = 0,
) -> Rendered:
    """`most` is the output limit."""
    limit = request.most or most or MOST_TOKENS
    mark: dict[str, Any] = {"type": "ephemeral"}
    if request.cache == "long" and rules.long_cache:
        mark["ttl"] = "1h"
    body: dict[str, Any] = {"model": model, "max_tokens": limit, "stream": True}
    if talk.system:
        body["system"] = [{"type": "text", "text": talk.system, _MARK: mark}]
    if request.tools:
        body["tools"] = [
            {
                **described(tool["function"]),
                "input_schema": tool["function"].get("parameters") or {"type": "object"},
            }
            for tool in request.tools
        ]
    if rules.effort != "budget" or _may_think(talk.turns):
        body |= effort_parameters(rules, request.effort, limit)
    if shape is not None:
        output = {"type": "json_schema", "schema": accepted_schema(shape)}
        body["output_config"] = {**body.get("output_config", {}), "format": output}
    if request.temperature is not None and accepts_temperature(rules, request.effort):
        body["temperature"] = request.temperature
    head = {name: body.get(name) for name in ("system", "tools")}
    body["messages"], prefix = _messages(talk.turns, mark, head if rules.thinking_bound else None)
    return Rendered(body, prefix)


def accepted_schema(schema: Any) -> Any:
    """Removes keywords that structured output rejects, and a list of types beside an `enum`."""
    match schema:
        case {"properties": dict(properties)}:
            inner = {name: accepted_schema(one) for name, one in properties.items()}
            rest = {
                name: accepted_schema(one) for name, one in schema.items() if name not in _REFUSED_KEYWORDS
            }
            return {**rest, "properties": inner}
        case dict():
            kept = {
                name: accepted_schema(one) for name, one in schema.items() if name not in _REFUSED_KEYWORDS
            }
            if "enum" in kept and isinstance(kept.get("type"), list):
                del kept["type"]
            return kept
        case list():
            return [accepted_schema(one) for one in schema]
    return schema


def _may_think(turns: Sequence[UserTurn | CallAnswer | ReplyTurn]) -> bool:
    if not turns or not isinstance(turns[-1], CallAnswer):
        return True
    last = next((turn for turn in reversed(turns) if isinstance(turn, ReplyTurn)), None)
    return last is None or (bool(last.parts) and _is_signed(last.parts[0]))


def _messages(
    turns: Sequence[UserTurn | CallAnswer | ReplyTurn], mark: dict[str, Any], head: dict[str, Any] | None
) -> tuple[list[dict[str, Any]], str]:
    """`head` is None for models that do not bind thinking. Merges consecutive turns of one role. Omits
    thinking bound to a different prefix."""
    rendered: list[dict[str, Any]] = []
    digest = _Prefix(head) if head is not None else None
    for turn in turns:
        role = "assistant" if isinstance(turn, ReplyTurn) else "user"
        match turn:
            case ReplyTurn():
                bound = digest is not None and turn.prefix != digest.after(rendered)
                blocks = [block for part in turn.parts if (block := _block(part, bound))]
            case CallAnswer(id, _, content, marked):
                text = {"content": content} if content else {}
                blocks = [
                    {"type": "tool_result", "tool_use_id": id, **text, **({_MARK: mark} if marked else {})}
                ]
            case UserTurn():
                text = turn.text
                blocks: list[dict[str, Any]] = [{"type": "text", "text": text}] if text.strip() else []
                for image in turn.images:
                    source = {"type": "base64", "media_type": image["media_type"], "data": image["data"]}
                    blocks.append({"type": "image", "source": source})
                if turn.mark and blocks:
                    blocks[-1] = {**blocks[-1], _MARK: mark}
        if not blocks:
            continue
        if rendered and rendered[-1]["role"] == role:
            rendered[-1]["content"] += blocks
        else:
            rendered.append({"role": role, "content": blocks})
    return rendered, digest.after(rendered) if digest is not None else ""


class _Prefix:
    """Incremental, without cache marks."""

    def __init__(self, head: dict[str, Any]) -> None:
        self._digest = hashlib.sha256(_plain(head))
        self._taken = 0

    def after(self, messages: Sequence[dict[str, Any]]) -> str:
        # the last message may still grow, so it is not part of the running digest
        while self._taken < len(messages) - 1:
            self._digest.update(_plain(messages[self._taken]))
            self._taken += 1
        whole = self._digest.copy()
        for message in messages[self._taken :]:
            whole.update(_plain(message))
        return whole.hexdigest()[:32]


def _plain(value: dict[str, Any]) -> bytes:
    plain = {
        name: [{key: part for key, part in block.items() if key != _MARK} for block in one]
        if isinstance(one, list)
        else one
        for name, one in value.items()
    }
    return json.dumps(plain, ensure_ascii=False).encode("utf-8", "surrogatepass") + b"\n"


def _is_signed(part: Part) -> bool:
    return isinstance(part, ThinkingPart) and isinstance(part.native, dict)


def _block(part: Part, bound: bool) -> dict[str, Any] | None:
    match part:
        case ThinkingPart():
            return part.native if _is_signed(part) and not bound else None
        case TextPart(text):
            return {"type": "text", "text": text} if text.strip() else None
        case CallPart():
            return {"type": "tool_use", "id": part.id, "name": part.name, "input": arguments(part)}
    return None


def arguments(call: CallPart) -> dict[str, Any]:
    try:
        given = json.loads(call.arguments or "{}")
    except (ValueError, RecursionError):
        return {}
    return given if isinstance(given, dict) else {}


class MessageReader(ReplyReader):
    def __init__(self) -> None:
        super().__init__()
        self._counts: dict[str, Any] = {}
        self._again: dict[int, int] = {}
        #: Of incomplete blocks.
        self._signatures: dict[Place, list[str]] = {}

    def read(self, event: dict[str, Any]) -> list[Chunk]:
        # Some servers use one index for all blocks
        index = event.get("index")
        index = index if isinstance(index, int) and index >= 0 else 0
        place = (index, self._again.get(index, 0))
        if event.get("type") == "content_block_start" and self.has(place):
            place = (index, place[1] + 1)
            self._again[index] = place[1]
        match event:
            case {"type": "message_start"}:
                self._count(mapping(event.get("message")).get("usage"))
                self.thinks = True
            case {"type": "content_block_start", "content_block": {"type": "tool_use"} as block}:
                self.thinks = False
                given = block.get("input")
                text = json.dumps(given, ensure_ascii=False) if given else ""
                return self.call(place, block.get("id"), block.get("name"), text)
            case {"type": "content_block_start", "content_block": {"type": "text"} as block}:
                self.thinks = False
                return self.text(place, block.get("text"))
            case {"type": "content_block_start", "content_block": {"type": "thinking"} as block}:
                self.thinks = True
                self._signatures[place] = []
                self._sign(place, block.get("signature"))
                return self.think(place, block.get("thinking"))
            case {
                "type": "content_block_start",
                "content_block": {"type": "redacted_thinking", "data": str(data)},
            }:
                self.keep(place, ThinkingPart, {"type": "redacted_thinking", "data": data}, len(data))
            case {"type": "content_block_delta", "delta": {"type": "text_delta"} as delta}:
                return self.text(place, delta.get("text"))
            case {"type": "content_block_delta", "delta": {"type": "input_json_delta"} as delta}:
                if self.has(place):
                    return self.call(place, arguments=delta.get("partial_json"))
            case {"type": "content_block_delta", "delta": {"type": "thinking_delta"} as delta}:
                return self.think(place, delta.get("thinking"))
            case {"type": "content_block_delta", "delta": {"type": "signature_delta"} as delta}:
                self._sign(place, delta.get("signature"))
            case {"type": "content_block_stop"}:
                # A thinking block is valid only with its signature
                if pieces := self._signatures.pop(place, []):
                    block = {"type": "thinking", "thinking": self.words(place), "signature": "".join(pieces)}
                    self.keep(place, ThinkingPart, block)
            case {"type": "message_delta"}:
                reason = mapping(event.get("delta")).get("stop_reason")
                if isinstance(reason, str):
                    self.reason = _REASONS.get(reason, "stop")
                self._count(event.get("usage"))
        return []

    def _sign(self, place: Place, signature: Any) -> None:
        if isinstance(signature, str) and signature:
            pieces = self._signatures.setdefault(place, [])
            pieces.append(signature)
            self.keep(place, ThinkingPart, None, len(signature))

    def _count(self, usage: Any) -> None:
        self._counts |= {name: value for name, value in mapping(usage).items() if value is not None}
        read = count(self._counts.get("cache_read_input_tokens"))
        written = count(self._counts.get("cache_creation_input_tokens"))
        hour = count(mapping(self._counts.get("cache_creation")).get("ephemeral_1h_input_tokens"))
        details = mapping(self._counts.get("output_tokens_details"))
        thinking = count(details.get("thinking_tokens") or details.get("reasoning_tokens"))
        output = count(self._counts.get("output_tokens"))
        self.usage = UsageChunk(
            count(self._counts.get("input_tokens")) + read + written,
            output,
            read,
            written=written,
            written_long=min(hour, written),
            thinking=min(thinking, output),
        )
