"""Mistral, Groq, xAI and MiniMax: chat completions that differ more from those of OpenAI."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, ClassVar

from support.strict import schemas
from support.strict.chat import WORDS, Chat
from support.strict.dialect import Answering, token
from support.strict.frames import Frame
from support.strict.names import names
from support.strict.reply import Call
from support.strict.serving import StrictRequest


class Groq(Chat):
    """Unknown fields are refused; a schema goes neither with a stream nor with functions."""

    fields = names("""
        model messages stream stream_options max_completion_tokens max_tokens temperature top_p n stop
        presence_penalty frequency_penalty logit_bias logprobs top_logprobs user seed tools tool_choice
        parallel_tool_calls response_format reasoning_effort reasoning_format include_reasoning metadata store
        service_tier search_settings compound_custom documents citation_options disable_tool_validation
    """)
    message_fields: ClassVar[dict[str, frozenset[str]] | None] = {
        "system": names("role content name"),
        "user": names("role content name"),
        "assistant": names("role content name tool_calls reasoning"),
        "tool": names("role content tool_call_id name"),
    }
    models = r"gpt-oss|qwen|llama|compound|kimi|groq"
    sees = r"llama-4|scout|maverick|qwen3\.[5-9]"
    thinking_out = "reasoning"
    words: ClassVar[dict[str, str]] = {
        **WORDS,
        "role": "'messages.0' : discriminator property 'role' has invalid value",
        "field": "'messages.{index}' : for 'role:{role}' the following must be satisfied[('messages.{index}' : property"
        " '{name}' is unsupported)]",
        "no_content": "'messages.{index}' : for 'role:{role}' the following must be satisfied["
        "('messages.{index}.content' : one of the following must be satisfied[('messages.{index}.content' : value must"
        " be a string)])]",
        "blind": "messages[0].content must be a string",
        "picture": "invalid image data",
    }

    def error_body(self, status: int, message: str, kind: str, code: Any, param: str | None) -> Any:
        if message.startswith("Unknown parameter"):
            message = f"property '{param}' is unsupported"
        error = {"message": message, "type": kind}
        known = ("invalid_api_key", "rate_limit_exceeded", "context_length_exceeded", "model_not_found")
        return {"error": {**error, "code": code} if code in known else error}

    def check_limit(self, body: dict[str, Any]) -> None:
        """Both names are taken."""

    def check_sampling(self, body: dict[str, Any]) -> None:
        """Any temperature is taken."""

    def check_effort(self, body: dict[str, Any]) -> None:
        model, effort, form = body["model"], body.get("reasoning_effort"), body.get("reasoning_format")
        qwen = "qwen" in model
        if form is not None and "include_reasoning" in body:
            self.refuse("cannot specify both `reasoning_format` and `include_reasoning`")
        if form is not None and (not qwen or form not in ("parsed", "raw", "hidden")):
            self.refuse("`reasoning_format` is not supported with this model")
        if form == "raw" and (body.get("tools") or body.get("response_format")):
            self.refuse("`reasoning_format` must be one of `parsed` or `hidden` with tools or JSON mode")
        if effort is not None:
            levels = ("none", "default") if qwen else ("low", "medium", "high") if "gpt-oss" in model else ()
            if not levels:
                self.refuse("`reasoning_effort` is not supported with this model")
            if effort not in levels:
                quoted = " or ".join(f"`{level}`" for level in levels)
                self.refuse(f"`reasoning_effort` must be one of {quoted}")

    def check_form(self, body: dict[str, Any], form: dict[str, Any]) -> None:
        kind = form.get("type")
        if kind not in ("text", "json_object", "json_schema"):
            self.refuse(
                "'response_format.type' : value is not one of the allowed values ['text','json_object','json_schema']"
            )
        if kind == "text":
            return
        if body.get("tools"):
            self.refuse(f"`response_format` {kind} cannot be combined with tool/function calling")
        if body.get("stream"):
            self.refuse("response_format` does not support streaming")
        inner = form.get("json_schema") or {}
        if kind == "json_schema" and not re.search(r"gpt-oss|kimi|llama-4", body["model"]):
            self.refuse("This model does not support response format `json_schema`.")
        wrong = next(schemas.groq(inner.get("schema")), "") if inner.get("strict") else ""
        if wrong:
            self.refuse(f"invalid JSON schema for response_format: '{inner.get('name')}': {wrong}")

    def ending(self, answering: Answering, finish: str) -> Iterator[Frame]:
        """Usage is in `x_groq`; every other stream that asked for it has a chunk of its own as well."""
        frames = list(super().ending(answering, finish))
        usage = self.usage(answering)
        request_id = f"req_{token('groq', answering.number)}"
        frames[0].data["x_groq"] = {"id": request_id} if usage is None else {"id": request_id, "usage": usage}
        yield from frames if answering.number % 2 == 0 else frames[:1]


class Xai(Chat):
    """Errors with a sentence as code; reasoning is counted outside of the completion."""

    fields = None
    accepted = names("""
        model messages stream stream_options max_completion_tokens max_tokens temperature top_p n seed user tools
        tool_choice parallel_tool_calls response_format reasoning_effort logprobs top_logprobs search_parameters
        deferred prompt_cache_key
    """)
    message_fields = None
    models = r"grok"
    sees = r"grok-(?:4|build)|vision"
    words: ClassVar[dict[str, str]] = {
        **WORDS,
        "role": "Failed to deserialize the JSON body into the target type: messages[0].role: unknown variant `{role}`",
        "no_content": "Each message must have at least one content element.",
        "empty_content": "Each message must have at least one content element.",
        "empty_part": "Text content is empty.",
        "tool_first": "Tool result {id} has no matching tool call.",
        "unanswered": "Tool calls without results: {ids}.",
        "blind": "Model {model} does not support image input.",
    }

    def error_body(self, status: int, message: str, kind: str, code: Any, param: str | None) -> Any:
        known = (isinstance(code, str) and " " in code) or code == "permission-denied"
        return {"code": code if known else "Client specified an invalid argument", "error": message}

    def say(self, key: str, *, param: str | None = None, code: Any = None, **values: Any) -> None:
        if key == "empty_content" and (values.get("calls") or values["role"] == "tool"):
            return
        super().say(key, param=param, code=code, **values)

    @property
    def _shows(self) -> str:
        return r"grok-3-mini"

    def check_limit(self, body: dict[str, Any]) -> None:
        """Both names are taken."""

    def check_sampling(self, body: dict[str, Any]) -> None:
        for name in ("presence_penalty", "frequency_penalty", "stop"):
            if name in body:
                words = name.split("_")
                camel = words[0] + "".join(word.capitalize() for word in words[1:])
                self.refuse(f"Model {body['model']} does not support parameter {camel}.")

    def check_effort(self, body: dict[str, Any]) -> None:
        effort, rules = body.get("reasoning_effort"), self.rules(body["model"])
        if effort is None:
            return
        if rules.effort != "reasoning_effort":
            self.refuse(f"Model {body['model']} does not support parameter reasoningEffort.")
        levels = {*rules.levels, *(("xhigh",) if re.search(r"grok-4\.[67]", body["model"]) else ())}
        if effort not in levels:
            self.refuse(f"Invalid reasoning effort: {effort}.")

    def thinks(self, request: StrictRequest) -> bool:
        return "non-reasoning" not in request.body["model"]

    def thinking(self, answering: Answering, item: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """Only the small model of the third generation shows its thinking."""
        endless = answering.misbehaves("endless_thinking")
        for piece in answering.thoughts(
            item["text"] if re.search(self._shows, answering.model) or endless else ""
        ):
            yield {"reasoning_content": piece}

    def usage(self, answering: Answering) -> dict[str, Any] | None:
        usage = super().usage(answering)
        counted = answering.usage
        if usage is None or counted is None:
            return None
        usage["completion_tokens"] = counted.output - counted.thinking
        usage["num_sources_used"] = 0
        usage["cost_in_usd_ticks"] = int(counted.cost * 1e10)
        return usage


class MiniMax(Chat):
    """Thinking as details if it is split off, else inside of the text; numbers in the words of errors."""

    fields = None
    accepted = names("""
        model messages stream stream_options max_completion_tokens max_tokens temperature top_p tools thinking
        reasoning_split mask_sensitive_info
    """)
    message_fields = None
    roles = names("system user assistant tool")
    models = r"(?i)minimax|abab"
    sees = r"(?i)minimax-m[3-9]"
    words: ClassVar[dict[str, str]] = {
        **WORDS,
        "role": "invalid params, chat content has invalid message role: {role} (2013)",
        "tool_first": "invalid params, tool result's tool id({id}) not found (2013)",
        "unanswered": "invalid params, tool call and result not match (2013)",
        "twice": "invalid params, tool call and result not match (2013)",
        "no_content": "invalid params, chat content is empty (2013)",
        "empty_content": "invalid params, chat content is empty (2013)",
        "arguments": "invalid params, invalid function arguments json string, tool_call_id: {id} (2013)",
        "call_id": "invalid params, tool call id is invalid (2013)",
        "call_name": "invalid params, function name is invalid (2013)",
        "picture_role": "invalid params, invalid image (2013)",
        "picture": "invalid params, invalid image (2013)",
        "blind": "invalid params, invalid chat setting (2013)",
    }

    def error_body(self, status: int, message: str, kind: str, code: Any, param: str | None) -> Any:
        kind = "bad_request_error" if kind == "invalid_request_error" else kind
        error = {"type": kind, "message": message, "http_code": str(status)}
        return {"type": "error", "error": error, "request_id": token(message, length=32)}

    def say(self, key: str, *, param: str | None = None, code: Any = None, **values: Any) -> None:
        if key == "empty_content" and (values.get("calls") or values["role"] == "tool"):
            return
        super().say(key, param=param, code=code, **values)

    def check_limit(self, body: dict[str, Any]) -> None:
        if "max_tokens" in body:
            self.lose("max_tokens is deprecated")

    def check_sampling(self, body: dict[str, Any]) -> None:
        value = body.get("temperature")
        if value is not None and not 0 < value <= 1:
            self.refuse("invalid params, temperature must be in (0, 1] (2013)")

    def check_effort(self, body: dict[str, Any]) -> None:
        thinking = body.get("thinking")
        if thinking is not None and thinking.get("type") not in ("disabled", "adaptive"):
            self.refuse("invalid params, invalid chat setting (2013)")
        if "tool_choice" in body:
            self.refuse("invalid params, invalid chat setting (2013)")

    def check_order(self, body: dict[str, Any]) -> None:
        for message in body["messages"][1:]:
            if message["role"] in ("system", "developer"):
                self.say("role", role=message["role"])

    def check_tool(self, body: dict[str, Any], function: dict[str, Any], path: str) -> None:
        if not re.match(self.tool_name, str(function.get("name"))):
            self.say("call_name")
        if not function.get("parameters"):
            self.refuse("invalid params, function parameters is empty (2013)")

    def check_form(self, body: dict[str, Any], form: dict[str, Any]) -> None:
        if form.get("type") != "text":
            self.refuse("invalid params, invalid chat setting (2013)")

    def check_thinking(self, body: dict[str, Any]) -> None:
        for index, message in enumerate(body["messages"]):
            items = self.memory.reply_of(message, body["model"])
            sent = "".join(item["text"] for item in items if item["type"] == "think")
            details = message.get("reasoning_details") or []
            given = "".join(str(detail.get("text", "")) for detail in details) or str(message.get("content"))
            if sent and sent not in given:
                self.lose(f"the thinking of messages[{index}] did not come back")

    def thinks(self, request: StrictRequest) -> bool:
        return (request.body.get("thinking") or {}).get("type") != "disabled"

    def call_name(self, answering: Answering, index: int, part: Call) -> str:
        return f"call_function_{token('call', answering.number, index, length=12).lower()}_{index + 1}"

    def thinking(self, answering: Answering, item: dict[str, Any]) -> Iterator[dict[str, Any]]:
        split = answering.body.get("reasoning_split")
        if not split:
            yield {"content": "<think>\n"}
        for piece in answering.thoughts(item["text"]):
            if not split:
                yield {"content": piece}
                continue
            fixed = {
                "type": "reasoning.text",
                "id": "reasoning-text-1",
                "format": "MiniMax-response-v1",
                "index": 0,
            }
            yield {"reasoning_content": piece, "reasoning_details": [{**fixed, "text": piece}]}
        if not split:
            yield {"content": "\n</think>\n\n"}

    def whole(self, answering: Answering, items: list[dict[str, Any]]) -> dict[str, Any]:
        whole = super().whole(answering, items)
        thoughts = "".join(item["text"] for item in items if item["type"] == "think")
        message = whole["choices"][0]["message"]
        if thoughts and answering.body.get("reasoning_split"):
            message["reasoning_details"] = [
                {"type": "reasoning.text", "id": "reasoning-text-1", "index": 0, "text": thoughts}
            ]
        elif thoughts:
            message["content"] = f"<think>\n{thoughts}\n</think>\n\n{message['content'] or ''}"
        return {**whole, "base_resp": {"status_code": 0, "status_msg": ""}}
