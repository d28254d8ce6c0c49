"""litellm's stream, piece by piece, as chunks of ours."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from tui_agent.errors import EmptyReply, ModelError, Refused, Unreachable
from tui_agent.model.client import CallChunk, Chunk, EndChunk, EndReason, ReasoningChunk, TextChunk

_HALF = re.compile("[\ud800-\udfff]")
_REASONS: dict[str, EndReason] = {
    "stop": "stop",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "length": "length",
    "content_filter": "refused",
}
#: Words by which providers say that their own fault ended the answer.
_BROKEN = frozenset({"error", "network_error", "insufficient_system_resource", "abort", "aborted"})


class Translator:
    """One answer as it comes: `chunks` for each piece, then `end` once, with the reason that really came."""

    def __init__(self, model: str) -> None:
        self.said = False
        self._model = model
        self._refusal: list[str] = []
        self._thinking: list[dict[str, Any]] = []
        self._unsigned = False
        self._halves: dict[str, str] = {}

    def chunks(self, piece: Any) -> Iterator[Chunk]:
        """`piece` is litellm's `ModelResponseStream`, or anything of that shape."""
        for choice in piece.choices[:1]:
            delta = choice.delta
            self._keep_thinking(getattr(delta, "thinking_blocks", None) or ())
            if refusal := getattr(delta, "refusal", None):
                self._refusal.append(refusal)
            if reasoning := self._letters("reasoning", getattr(delta, "reasoning_content", None)):
                yield ReasoningChunk(reasoning)
            if text := self._letters("text", delta.content):
                self.said = True
                yield TextChunk(text)
            for call in delta.tool_calls or ():
                self.said = True
                function, index = call.function, call.index or 0
                arguments = self._letters(f"call {index}", function.arguments)
                yield CallChunk(index, call.id or "", function.name or "", arguments)

    def end(self, reason: str | None) -> EndChunk:
        """`reason` is the provider's own, None where the stream ended without one. Raises a `ModelError`."""
        if self._refusal:
            what = f"{self._model} declined: {''.join(self._refusal).strip()}"
            raise Refused(what.replace(": ", ", saying: ", 1), "change the request, or choose another model")
        if not self.said:
            raise self._nothing(reason)
        if reason is None:
            return self.cut(f"The server of {self._model} ended the answer before the model did")
        if reason in _BROKEN:
            return self.cut(f"The provider of {self._model} ended the answer because of an error ({reason})")
        meaning = _REASONS.get(reason, "stop")
        return EndChunk(meaning, tuple(self._thinking), self._why(meaning))

    def cut(self, why: str) -> EndChunk:
        """The end of an answer that something else ended than the model."""
        return EndChunk("cut", tuple(self._thinking), why)

    def _why(self, reason: EndReason) -> str:
        match reason:
            case "length":
                return f"{self._model} reached the limit on the length of its answers"
            case "refused":
                return f"The content filter of {self._model}'s provider ended the answer"
        return ""

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
            f"{self._model} sent an empty answer", "send the request again, or choose another model"
        )

    def _letters(self, part: str, piece: str | None) -> str:
        """The piece in whole letters: half of a pair waits for the other, and alone it is nothing."""
        text = self._halves.pop(part, "") + (piece or "")
        if text and "\ud800" <= text[-1] <= "\udbff":
            self._halves[part], text = text[-1], text[:-1]
        if _HALF.search(text):
            text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        return text

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
