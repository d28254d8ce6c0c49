"""litellm's stream, piece by piece, as chunks of ours."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tui_agent.errors import EmptyReply, ModelError, Refused, Unreachable
from tui_agent.model.client import CallChunk, Chunk, EndChunk, EndReason, ReasoningChunk, TextChunk

_REASONS: dict[str, EndReason] = {
    "stop": "stop",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "length": "length",
    "content_filter": "refused",
}


class Translator:
    """One answer as it comes: `chunks` for each piece, then `end` once, with the reason that really came."""

    def __init__(self, model: str) -> None:
        self.said = False
        self._model = model
        self._refusal: list[str] = []
        self._thinking: list[dict[str, Any]] = []
        self._unsigned = False

    def chunks(self, piece: Any) -> Iterator[Chunk]:
        """`piece` is litellm's `ModelResponseStream`, or anything of that shape."""
        for choice in piece.choices[:1]:
            delta = choice.delta
            self._keep_thinking(getattr(delta, "thinking_blocks", None) or ())
            if refusal := getattr(delta, "refusal", None):
                self._refusal.append(refusal)
            if reasoning := getattr(delta, "reasoning_content", None):
                yield ReasoningChunk(reasoning)
            if text := delta.content:
                self.said = True
                yield TextChunk(text)
            for call in delta.tool_calls or ():
                self.said = True
                function = call.function
                yield CallChunk(call.index or 0, call.id or "", function.name or "", function.arguments or "")

    def end(self, reason: str | None) -> EndChunk:
        """`reason` is the provider's own, None where the stream ended without one. Raises a `ModelError`."""
        if self._refusal:
            what = f"{self._model} declined: {''.join(self._refusal).strip()}"
            raise Refused(what.replace(": ", ", saying: ", 1), "change the request, or choose another model")
        if not self.said:
            raise self._nothing(reason)
        meaning: EndReason = "cut" if reason is None else _REASONS.get(reason, "stop")
        return EndChunk(meaning, tuple(self._thinking))

    def _nothing(self, reason: str | None) -> ModelError:
        match reason:
            case None:
                what = f"The server of {self._model} ended the answer before its first word"
                return Unreachable(what, "send the request again")
            case "content_filter":
                what = f"{self._model} refused to answer (content filter)"
                return Refused(what, "change the request, or choose another model")
            case "length":
                what = f"{self._model} ran out of room before its first word"
                return EmptyReply(what, "send the request again with fewer files, or choose another model")
        return EmptyReply(
            f"{self._model} ended without a word", "send the request again, or choose another model"
        )

    def _keep_thinking(self, blocks: Any) -> None:
        """Blocks of thought come in pieces; a signature, or another kind of block, ends one."""
        for block in blocks:
            if block.get("type") != "thinking":
                self._thinking.append(dict(block))
                self._unsigned = False
                continue
            if not self._unsigned:
                self._thinking.append({"type": "thinking", "thinking": ""})
            self._thinking[-1]["thinking"] += block.get("thinking") or ""
            if signature := block.get("signature"):
                self._thinking[-1]["signature"] = signature
            self._unsigned = not signature
