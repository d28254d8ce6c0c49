"""OpenRouter: the rules of the provider behind it, and the details of its thinking, which go back as they came."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, ClassVar, NoReturn

from support.strict import mistral
from support.strict.anthropic_rules import cache_minimum
from support.strict.chat import WORDS, Chat
from support.strict.counting import Block, Counted, MarkCache, canonical
from support.strict.dialect import Answering, seal, token
from support.strict.frames import MEGABYTE, Frame
from support.strict.names import names
from support.strict.reply import Refusal
from support.strict.serving import StrictRequest

_EFFORTS = ("max", "xhigh", "high", "medium", "low", "minimal", "none")
_PROVIDERS = {
    "anthropic": "Anthropic",
    "openai": "OpenAI",
    "google": "Google AI Studio",
    "mistralai": "Mistral",
}
_PRESERVE = (
    "Gemini models require OpenRouter reasoning details to be preserved in each request. Please refer to our docs:"
    " https://openrouter.ai/docs/use-cases/reasoning-tokens#preserving-reasoning-blocks. Upstream error: {upstream}\n"
)


class OpenRouter(Chat):
    """POST /api/v1/chat/completions."""

    comment = "OPENROUTER PROCESSING"
    fields = None
    accepted = names("""
        model messages stream stream_options max_tokens max_completion_tokens temperature top_p top_k min_p top_a n stop
        presence_penalty frequency_penalty repetition_penalty logit_bias logprobs top_logprobs user seed tools
        tool_choice parallel_tool_calls response_format reasoning reasoning_effort include_reasoning usage provider
        models route transforms plugins prediction metadata session_id verbosity cache_control prompt_cache_key
    """)
    message_fields = None
    models = r"^~?[\w.-]+/[\w.:-]+$"
    sees = r"anthropic/|openai/gpt-[5-9]|google/|grok-4|kimi-k|qwen3\.[5-9]|mistral-(?:small|medium|large)"
    call_id = r"^.+$"
    words: ClassVar[dict[str, str]] = {
        **WORDS,
        "blind": "No endpoints found that support image input",
        "empty_part": "messages: text content blocks must be non-empty",
    }

    def __init__(self, provider: str, key: str) -> None:
        super().__init__(provider, key)
        self.marks = MarkCache()
        self._model = ""

    def error_body(self, status: int, message: str, kind: str, code: Any, param: str | None) -> Any:
        error: dict[str, Any] = {"message": message, "code": status}
        if message == "Provider returned error":
            error["metadata"] = {
                "raw": kind.replace("{model}", self._model),
                "provider_name": self._upstream(),
            }
        return {"error": error, "user_id": "user_strict"}

    def _upstream(self) -> str:
        return _PROVIDERS.get(self._model.partition("/")[0], "BaseTen")

    def upstream(self, raw: str) -> NoReturn:
        """The refusal of the provider behind: its words are inside of the metadata."""
        raise Refusal(400, self.error_body(400, "Provider returned error", raw, None, None), raw)

    def say(self, key: str, *, param: str | None = None, code: Any = None, **values: Any) -> None:
        if not self.words[key] or (key == "empty_part" and not self._is("anthropic")):
            return
        words = self.words[key].format(**values)
        if key == "blind":
            self.refuse(words, status=404)
        kind = "invalid_request_error"
        inner = {"type": "error", "error": {"type": kind, "message": words}}
        self.upstream(
            canonical(inner if self._is("anthropic") else {"error": {"message": words, "type": kind}})
        )

    def _is(self, vendor: str) -> bool:
        return self._model.startswith(f"{vendor}/")

    def check(self, request: StrictRequest) -> None:
        self._model = str(request.body.get("model", ""))
        super().check(request)
        if self._is("anthropic"):
            self._check_marks(request.body)

    def check_order(self, body: dict[str, Any]) -> None:
        if self._is("mistralai"):
            mistral.check_order(self, body["messages"])
        pattern = {"anthropic": r"^[a-zA-Z0-9_-]+$", "mistralai": r"^[a-zA-Z0-9]{9}$"}.get(
            self._model.partition("/")[0]
        )
        for index, message in enumerate(body["messages"]):
            for call in message.get("tool_calls") or ():
                if pattern and not re.match(pattern, call["id"]):
                    self.upstream(
                        f"messages.{index}.content.0.tool_use.id: String should match pattern '{pattern}'"
                    )

    def check_limit(self, body: dict[str, Any]) -> None:
        """Both names are taken."""

    def check_sampling(self, body: dict[str, Any]) -> None:
        """A temperature that the model does not take is left out by OpenRouter."""

    def check_effort(self, body: dict[str, Any]) -> None:
        reasoning = body.get("reasoning")
        if reasoning is None:
            return
        for name in reasoning:
            if name not in ("effort", "max_tokens", "exclude", "enabled", "summary"):
                self.refuse(f'Unrecognized key(s) in object: "{name}" at "reasoning"')
        effort, limit = reasoning.get("effort"), reasoning.get("max_tokens")
        if effort is not None and limit is not None:
            self.refuse('Only one of "reasoning.effort" and "reasoning.max_tokens" can be specified')
        if effort is not None and effort not in _EFFORTS:
            expected = "|".join(f'"{level}"' for level in _EFFORTS)
            self.refuse(f'Invalid option: expected one of {expected} at "reasoning.effort"')
        if limit is not None and body.get("max_tokens") is not None and limit >= body["max_tokens"]:
            self.upstream("`max_tokens` must be greater than `thinking.budget_tokens`.")

    def check_tool(self, body: dict[str, Any], function: dict[str, Any], path: str) -> None:
        if not re.match(self.tool_name, str(function.get("name"))):
            self.say("call_name", path=path)

    def _check_marks(self, body: dict[str, Any]) -> None:
        parts = [part for one in body["messages"] for part in _parts(one)]
        marked = [one for one in (*parts, *(body.get("tools") or ())) if one.get("cache_control")]
        if len(marked) > 4:
            self.upstream(f"A maximum of 4 blocks with cache_control may be provided. Found {len(marked)}.")
        if any("cache_control" in message for message in body["messages"]):
            self.lose("cache_control of a message is ignored: marks belong inside of its parts")

    def thinks(self, request: StrictRequest) -> bool:
        reasoning = request.body.get("reasoning")
        return bool(reasoning) and reasoning.get("effort") != "none" and reasoning.get("enabled", True)

    def count(self, request: StrictRequest) -> Counted:
        body = request.body
        if not self._is("anthropic"):
            return super().count(request)
        parts = [{"role": one["role"], **part} for one in body["messages"] for part in _parts(one)]
        blocks = [
            Block(
                canonical({key: value for key, value in part.items() if key != "cache_control"}), _ttl(part)
            )
            for part in (*(body.get("tools") or ()), *parts)
        ]
        return self.marks.count(blocks, body["model"], cache_minimum(body["model"].replace(".", "-")))

    def price(self, counted: Counted) -> None:
        if not counted.cost:
            plain = counted.input - counted.cached - counted.cache_write
            dollars = 3 * plain + 0.3 * counted.cached + 3.75 * counted.cache_write + 15 * counted.output
            counted.cost = round(dollars / 1e6, 9)

    def seal(self, answering: Answering, items: list[dict[str, Any]]) -> None:
        """Adds to each thought its details; Gemini's secret is beside its first call."""
        secret = not answering.misbehaves("no_signature")
        thoughts = 0
        for item in items:
            name = token("detail", answering.number, thoughts, item["type"], length=40)
            sealed = MEGABYTE * 100 if answering.misbehaves("huge_signature") else seal(answering.model, name)
            if item["type"] == "think":
                item["details"] = self._details(item["text"], sealed if secret else "", name, thoughts)
                thoughts += 1
            elif item["type"] == "call" and self._is("google") and secret and not item.get("details"):
                fixed = {"format": "google-gemini-v1", "index": 0}
                item["details"] = [{"type": "reasoning.encrypted", "data": sealed, "id": item["id"], **fixed}]
                secret = False

    def _details(self, text: str, sealed: str, name: str, index: int) -> list[dict[str, Any]]:
        if self._is("anthropic"):
            proof = {"signature": sealed} if sealed else {}
            return [
                {
                    "type": "reasoning.text",
                    "text": text,
                    **proof,
                    "format": "anthropic-claude-v1",
                    "index": index,
                }
            ]
        if self._is("openai"):
            fixed = {"format": "openai-responses-v1", "index": index}
            hidden = {"type": "reasoning.encrypted", "data": sealed, "id": f"rs_{name}", **fixed}
            return [{"type": "reasoning.summary", "summary": text, **fixed}, *([hidden] if sealed else [])]
        form = "google-gemini-v1" if self._is("google") else "unknown"
        return [{"type": "reasoning.text", "text": text, "format": form, "index": index}]

    def check_thinking(self, body: dict[str, Any]) -> None:
        for index, message in enumerate(body["messages"]):
            items = self.memory.reply_of(message, body["model"])
            sent = [detail for item in items for detail in item.get("details") or ()]
            if not sent:
                continue
            given = message.get("reasoning_details")
            if merged(given or []) == merged(sent):
                continue
            self._refuse_details(index, message, given)

    def _refuse_details(self, index: int, message: dict[str, Any], given: Any) -> None:
        hidden = [detail for detail in given or () if detail.get("type") == "reasoning.encrypted"]
        if self._is("google") and "gemini-2" not in self._model and not hidden:
            name = message["tool_calls"][0]["function"]["name"]
            words = (
                "Function call is missing a thought_signature in functionCall parts. This is required for tools to work"
                " correctly, and missing thought_signature may lead to degraded model performance. Additional data,"
                f" function call `default_api:{name}` , position {index + 1}. Please refer to"
                " https://ai.google.dev/gemini-api/docs/thought-signatures for more details."
            )
            error = {"error": {"code": 400, "message": words, "status": "INVALID_ARGUMENT"}}
            self.upstream(_PRESERVE.format(upstream=canonical(error)))
        if not given:
            self.lose(f"reasoning_details of messages[{index}] did not come back")
            return
        words = {
            "anthropic": f"messages.{index}.content.0: `thinking` or `redacted_thinking` blocks in the latest assistant"
            " message cannot be modified. These blocks must remain as they were in the original response.",
            "openai": "The encrypted content could not be verified. Reason: Encrypted content could not be decrypted or"
            " parsed.",
            "google": "Corrupted thought signature.",
        }.get(self._model.partition("/")[0])
        if words is None:
            self.lose(f"reasoning_details of messages[{index}] are changed")
            return
        self.upstream(words)

    def frames(self, answering: Answering, items: list[dict[str, Any]]) -> Iterator[Frame]:
        yield Frame(self.comment, ":")
        yield from super().frames(answering, items)

    def deltas(self, answering: Answering, item: dict[str, Any], number: int) -> Iterator[dict[str, Any]]:
        if item["type"] == "call":
            for detail in item.get("details") or ():
                yield {"role": "assistant", "content": "", "reasoning": None, "reasoning_details": [detail]}
        yield from super().deltas(answering, item, number)

    def thinking(self, answering: Answering, item: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """Details in fragments; a signature or encrypted content is a fragment of its own at the end."""
        first, *others = item["details"]
        field = "summary" if "summary" in first else "text"
        plain = {key: value for key, value in first.items() if key != "signature"}
        for piece in answering.thoughts(item["text"]):
            yield {
                "role": "assistant",
                "content": "",
                "reasoning": piece,
                "reasoning_details": [{**plain, field: piece}],
            }
        if "signature" in first:
            for piece in answering.secret(first["signature"]):
                proof = {**plain, field: "", "signature": piece}
                yield {"role": "assistant", "content": "", "reasoning_details": [proof]}
        for other in others:
            yield {"role": "assistant", "content": "", "reasoning_details": [other]}

    def ending(self, answering: Answering, finish: str) -> Iterator[Frame]:
        """Usage is in a chunk that has a choice without words."""
        yield self.chunk(answering, {"role": "assistant", "content": ""}, finish)
        usage = self.usage(answering)
        if usage is not None:
            last = self.chunk(answering, {"role": "assistant", "content": ""}).data
            yield Frame({**last, "usage": usage})

    def chunk(
        self, answering: Answering, delta: dict[str, Any], finish: str | None = None, item: int | None = None
    ) -> Frame:
        frame = super().chunk(answering, delta, finish, item)
        frame.data["choices"][0]["native_finish_reason"] = finish
        return frame

    def envelope(self, answering: Answering, kind: str) -> dict[str, Any]:
        named = super().envelope(answering, kind)
        return {
            **named,
            "id": f"gen-1700000000-{token('gen', answering.number, length=20)}",
            "provider": self._upstream(),
        }

    def usage(self, answering: Answering) -> dict[str, Any] | None:
        usage = super().usage(answering)
        if usage is not None and answering.usage is not None:
            usage["cost"] = answering.usage.cost
            usage["is_byok"] = False
            usage["prompt_tokens_details"]["cache_write_tokens"] = answering.usage.cache_write
            usage["cost_details"] = {"upstream_inference_cost": answering.usage.cost}
        return usage

    def whole(self, answering: Answering, items: list[dict[str, Any]]) -> dict[str, Any]:
        whole = super().whole(answering, items)
        details = [detail for item in items for detail in item.get("details") or ()]
        if details:
            message = whole["choices"][0]["message"]
            message["reasoning_details"] = details
            message["reasoning"] = "".join(item["text"] for item in items if item["type"] == "think")
        return whole

    def error_frame(self) -> Frame:
        choice = {"index": 0, "delta": {"content": ""}, "finish_reason": "error"}
        named = {
            "id": "gen-1",
            "object": "chat.completion.chunk",
            "created": 1700000000,
            "model": self._model,
        }
        error = {"code": 502, "message": "Provider disconnected unexpectedly"}
        return Frame({**named, "provider": self._upstream(), "error": error, "choices": [choice]})

    def listing(self, names: list[str]) -> dict[str, Any]:
        price = {"prompt": "0.000003", "completion": "0.000015", "input_cache_read": "0.0000003"}
        can = ["tools", "tool_choice", "reasoning", "include_reasoning", "max_tokens", "structured_outputs"]
        fixed = {
            "created": 1700000000,
            "context_length": 1000000,
            "architecture": {"input_modalities": ["text", "image"], "output_modalities": ["text"]},
            "pricing": price,
            "top_provider": {
                "context_length": 1000000,
                "max_completion_tokens": 128000,
                "is_moderated": False,
            },
            "supported_parameters": can,
        }
        return {"data": [{"id": name, "canonical_slug": name, "name": name, **fixed} for name in names]}


def merged(details: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Fragments of the same type and index as one; an absent field is as good as null."""
    whole: list[dict[str, Any]] = []
    for detail in details:
        last = whole[-1] if whole else {}
        same = [last.get(key) for key in ("type", "index")] == [detail.get(key) for key in ("type", "index")]
        if not whole or not same or detail.get("type") == "reasoning.encrypted":
            whole.append({key: value for key, value in detail.items() if value is not None})
            continue
        for key, value in detail.items():
            if key in ("text", "summary", "signature") and value is not None:
                last[key] = last.get(key, "") + value
            elif value is not None:
                last[key] = value
    return whole


def _parts(message: dict[str, Any]) -> list[dict[str, Any]]:
    content = message.get("content") or ""
    parts = content if isinstance(content, list) else [{"type": "text", "text": content}]
    calls = [{"type": "call", **call} for call in message.get("tool_calls") or ()]
    return [*parts, *calls]


def _ttl(part: dict[str, Any]) -> str:
    mark = part.get("cache_control")
    return mark.get("ttl", "5m") if mark else ""
