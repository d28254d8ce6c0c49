"""DeepSeek, Kimi, GLM and Qwen: chat completions with `reasoning_content`, each with rules of its own."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, ClassVar

from support.strict import schemas
from support.strict.chat import WORDS, Chat
from support.strict.dialect import Answering, token
from support.strict.frames import Frame
from support.strict.given_back import thinking_field
from support.strict.names import names
from support.strict.reply import Call
from support.strict.serving import StrictRequest

_COMMON = names("""
    model messages stream stream_options max_tokens temperature top_p n stop presence_penalty frequency_penalty tools
    tool_choice parallel_tool_calls response_format logprobs top_logprobs seed user
""")


class _Lenient(Chat):
    """A provider that ignores fields that it does not know."""

    fields = None
    message_fields = None
    thinking_out = "reasoning_content"
    roles = names("system user assistant tool")
    sees = r"^$"

    def check_effort(self, body: dict[str, Any]) -> None:
        thinking = body.get("thinking")
        if thinking is not None and thinking.get("type") not in ("enabled", "disabled", "adaptive"):
            self.refuse(f"Invalid thinking type: {thinking.get('type')}")

    def check_sampling(self, body: dict[str, Any]) -> None:
        """Any temperature is taken."""

    def check_limit(self, body: dict[str, Any]) -> None:
        """Any limit is taken."""

    def check_tool(self, body: dict[str, Any], function: dict[str, Any], path: str) -> None:
        if not re.match(self.tool_name, str(function.get("name"))):
            self.say("call_name", path=path, name=function.get("name"))

    def thinks(self, request: StrictRequest) -> bool:
        switch = (request.body.get("thinking") or {}).get("type", "enabled")
        return super().thinks(request) and switch != "disabled"


class DeepSeek(_Lenient):
    """Thinking is on unless it is switched off; the thinking of each message with calls must come back."""

    accepted = _COMMON | names("thinking reasoning_effort prompt_cache_key")
    models = r"deepseek"
    thinking_demanded = True
    cache_step, cache_least = 64, 64
    words: ClassVar[dict[str, str]] = {
        **WORDS,
        "role": "Failed to deserialize the JSON body into the target type: messages[{index}]: unknown variant `{role}`,"
        " expected one of `system`, `user`, `assistant`, `tool`, `latest_reminder`",
        "tool_first": "Messages with role 'tool' must be a response to a preceding message with 'tool_calls'",
        "unanswered": "An assistant message with 'tool_calls' must be followed by tool messages responding to each"
        " 'tool_call_id'. (insufficient tool messages following tool_calls message)",
        "no_content": "Invalid assistant message: content or tool_calls must be set",
        "content_type": "Failed to deserialize the JSON body into the target type: {path}: invalid type: map, expected"
        " a string",
        "thinking": "The `reasoning_content` in the thinking mode must be passed back to the API.",
        "call_name": "Invalid '{path}.name': string does not match pattern. Expected a string that matches the pattern"
        " '^[a-zA-Z0-9_-]+$'.",
        "picture_role": "Failed to deserialize the JSON body into the target type: messages: unknown variant"
        " `image_url`, expected `text`",
        "blind": "Failed to deserialize the JSON body into the target type: messages: unknown variant `image_url`,"
        " expected `text`",
    }

    def takes(self, path: str) -> bool:
        return path in ("/beta/chat/completions", "/v1/chat/completions", "/chat/completions")

    def error_body(self, status: int, message: str, kind: str, code: Any, param: str | None) -> Any:
        code = code if code in ("rate_limit_reached",) else "invalid_request_error"
        return {"error": {"message": message, "type": kind, "param": None, "code": code}}

    def check_thinking(self, body: dict[str, Any]) -> None:
        if (body.get("thinking") or {}).get("type") != "disabled":
            super().check_thinking(body)

    def check_limit(self, body: dict[str, Any]) -> None:
        limit = body.get("max_tokens")
        if limit is not None and not 1 <= limit <= 393_216:
            self.refuse("Invalid max_tokens value, the valid range of max_tokens is [1, 393216]")

    def check_effort(self, body: dict[str, Any]) -> None:
        super().check_effort(body)
        effort = body.get("reasoning_effort")
        if effort is not None and effort not in ("minimal", "low", "medium", "high", "xhigh", "max", "ultra"):
            self.refuse(
                "Failed to deserialize the JSON body into the target type: reasoning_effort: unknown variant"
                f" `{effort}`, expected one of `low`, `high`, `max`"
            )

    def check_form(self, body: dict[str, Any], form: dict[str, Any]) -> None:
        if form.get("type") not in ("text", "json_object"):
            self.refuse("This response_format type is unavailable now")
        if form["type"] == "json_object" and "json" not in str(body["messages"]).lower():
            self.refuse(
                "Prompt must contain the word 'json' in some form to use 'response_format' of type 'json_object'."
            )

    def envelope(self, answering: Answering, kind: str) -> dict[str, Any]:
        named = super().envelope(answering, kind)
        del named["service_tier"]
        return {**named, "id": token("deepseek", answering.number, length=36)}

    def ending(self, answering: Answering, finish: str) -> Iterator[Frame]:
        """Usage is in the last chunk, asked for or not."""
        last = self.chunk(answering, {"content": ""}, finish).data
        usage = self.usage(answering)
        yield Frame(last if usage is None else {**last, "usage": usage})

    def usage(self, answering: Answering) -> dict[str, Any] | None:
        usage = super().usage(answering)
        if usage is not None and answering.usage is not None:
            cached = answering.usage.cached
            usage["prompt_cache_hit_tokens"] = cached
            usage["prompt_cache_miss_tokens"] = answering.usage.input - cached
        return usage


class Moonshot(_Lenient):
    """Kimi: schemas in a subset, sampling fixed, thinking that must come back, ids with the name of the function."""

    accepted = _COMMON | names(
        "thinking reasoning_effort prompt_cache_key max_completion_tokens safety_identifier"
    )
    models = r"kimi|moonshot"
    sees = r"kimi-k2\.[5-9]|kimi-k[3-9]|vision"
    tool_name = r"^[a-zA-Z][a-zA-Z0-9_-]{0,63}$"
    call_id = r"^[^\s]{1,128}$"
    thinking_demanded = True
    words: ClassVar[dict[str, str]] = {
        **WORDS,
        "role": "Invalid request: invalid role: {role}",
        "tool_first": "Invalid request: tool_call_id {id} is not found",
        "unanswered": "Invalid request: an assistant message with 'tool_calls' must be followed by tool messages"
        " responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: {ids}",
        "no_content": "Invalid request: the message at position {index} with role '{role}' must not be empty",
        "empty_content": "Invalid request: the message at position {index} with role '{role}' must not be empty",
        "empty_part": "Invalid request: text content is empty",
        "call_name": "Invalid request: function name is invalid, must start with a letter and can contain letters,"
        " numbers, underscores, and dashes",
        "thinking": "thinking is enabled but reasoning_content is missing in assistant tool call message at index"
        " {index}",
        "blind": "Invalid request: Image input not supported for model {model}",
        "picture": "Invalid request: unsupported image url",
    }

    def error_body(self, status: int, message: str, kind: str, code: Any, param: str | None) -> Any:
        return {"error": {"message": message, "type": kind}}

    def say(self, key: str, *, param: str | None = None, code: Any = None, **values: Any) -> None:
        if key == "empty_content" and (values.get("calls") or values["role"] == "tool"):
            return
        super().say(key, param=param, code=code, **values)

    def check_thinking(self, body: dict[str, Any]) -> None:
        if (body.get("thinking") or {}).get("type") != "disabled" and thinking_field(
            self.provider, body["model"]
        ):
            super().check_thinking(body)

    def check_effort(self, body: dict[str, Any]) -> None:
        super().check_effort(body)
        effort, rules = body.get("reasoning_effort"), self.rules(body["model"])
        if effort is None:
            return
        if not isinstance(effort, str):
            self.refuse("Invalid request: reasoning_effort must be a string")
        if rules.effort != "reasoning_effort":
            self.lose("reasoning_effort is ignored")
        elif effort not in rules.levels:
            self.refuse(f"Invalid request: invalid reasoning_effort: {effort}")

    def check_sampling(self, body: dict[str, Any]) -> None:
        if self.rules(body["model"]).temperature != "never":
            return
        for name, fixed in (("temperature", 1), ("top_p", 0.95), ("n", 1), ("presence_penalty", 0)):
            value = body.get(name)
            if value is not None and value != fixed:
                self.refuse(f"invalid {name}: only {fixed} is allowed for this model")

    def check_tool(self, body: dict[str, Any], function: dict[str, Any], path: str) -> None:
        super().check_tool(body, function, path)
        wrong = next(schemas.moonshot(function.get("parameters") or {"type": "object"}), "")
        if wrong:
            self.refuse(f"Invalid request: {wrong}")
        thinks = (body.get("thinking") or {}).get("type") != "disabled"
        if body.get("tool_choice") == "required" and thinks:
            self.refuse("tool_choice 'required' is incompatible with thinking enabled")

    def check_form(self, body: dict[str, Any], form: dict[str, Any]) -> None:
        if form.get("type") not in ("text", "json_object", "json_schema"):
            self.refuse(f"Invalid request: invalid response_format type: {form.get('type')}")

    def call_name(self, answering: Answering, index: int, part: Call) -> str:
        before = sum(isinstance(one, Call) for one in answering.reply.parts[:index])
        return f"{part.name}:{answering.number * 10 + before}"

    def ending(self, answering: Answering, finish: str) -> Iterator[Frame]:
        """Usage is inside of the last choice, and in a chunk of its own if it was asked for."""
        frames = list(super().ending(answering, finish))
        usage = self.usage(answering)
        if usage is not None:
            frames[0].data["choices"][0]["usage"] = usage
        yield from frames

    def usage(self, answering: Answering) -> dict[str, Any] | None:
        usage = super().usage(answering)
        if usage is not None and answering.usage is not None:
            del usage["prompt_tokens_details"]
            usage["cached_tokens"] = answering.usage.cached
        return usage


class Zai(_Lenient):
    """GLM: errors with numbers, no schema, `tool_choice` only auto."""

    accepted = _COMMON | names("thinking reasoning_effort do_sample tool_stream request_id user_id")
    models = r"glm|zai"
    sees = r"glm-[\d.]+v|glm-5v"
    words: ClassVar[dict[str, str]] = {
        **dict.fromkeys(WORDS, "The messages parameter is illegal. Please check the documentation."),
        "empty_content": "",
        "empty_part": "",
        "call_name": "Invalid API parameter, please check the documentation.",
        "arguments": "",
    }

    def error_body(self, status: int, message: str, kind: str, code: Any, param: str | None) -> Any:
        illegal = message.startswith("The messages")
        number = (
            code
            if code and code != "invalid_type" and code != "invalid_value"
            else "1214"
            if illegal
            else "1210"
        )
        return {"error": {"code": str(number), "message": message}}

    def _illegal(self) -> None:
        self.refuse("Invalid API parameter, please check the documentation.", code="1210")

    def check_limit(self, body: dict[str, Any]) -> None:
        limit = body.get("max_tokens")
        if limit is not None and not 1 <= limit <= 131_072:
            self._illegal()

    def check_effort(self, body: dict[str, Any]) -> None:
        thinking = body.get("thinking") or {}
        if thinking.get("type", "enabled") not in ("enabled", "disabled"):
            self._illegal()
        if set(thinking) - {"type", "clear_thinking"}:
            self._illegal()
        effort = body.get("reasoning_effort")
        levels = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
        if effort is not None and effort not in levels:
            self._illegal()

    def check_tool(self, body: dict[str, Any], function: dict[str, Any], path: str) -> None:
        super().check_tool(body, function, path)
        if body.get("tool_choice") not in (None, "auto"):
            self._illegal()

    def check_form(self, body: dict[str, Any], form: dict[str, Any]) -> None:
        if form.get("type") not in ("text", "json_object"):
            self._illegal()

    def finish(self, answering: Answering, calls: int) -> str:
        return {"content_filter": "sensitive"}.get(found := super().finish(answering, calls), found)

    def ending(self, answering: Answering, finish: str) -> Iterator[Frame]:
        """Usage is in the last chunk, asked for or not."""
        last = self.chunk(answering, {"role": "assistant", "content": ""}, finish).data
        usage = self.usage(answering)
        yield Frame(last if usage is None else {**last, "usage": usage})


class DashScope(_Lenient):
    """Qwen: `enable_thinking` and `thinking_budget`, JSON objects only without thinking."""

    accepted = _COMMON | names(
        "enable_thinking thinking_budget preserve_thinking top_k max_completion_tokens enable_search"
    )
    models = r"qw|glm|deepseek|kimi"
    sees = r"-vl|qvq|omni|qwen3\.[5-9]|qwen[4-9]"
    words: ClassVar[dict[str, str]] = {
        **{key: text and f"<400> InternalError.Algo.InvalidParameter: {text}" for key, text in WORDS.items()},
        "role": "<400> InternalError.Algo.InvalidParameter: {role} is not one of ['system', 'assistant', 'user',"
        " 'tool', 'function'] - 'messages.{index}.role'",
        "tool_first": '<400> InternalError.Algo.InvalidParameter: messages with role "tool" must be a response to a'
        ' preceeding message with "tool_calls".',
        "unanswered": '<400> InternalError.Algo.InvalidParameter: An assistant message with "tool_calls" must be'
        ' followed by tool messages responding to each "tool_call_id". The following tool_call_ids did not have'
        " response messages: {ids}",
        "arguments": '<400> InternalError.Algo.InvalidParameter: The "function.arguments" parameter of the code model'
        " must be in JSON format.",
    }

    def error_body(self, status: int, message: str, kind: str, code: Any, param: str | None) -> Any:
        request_id = token(message, length=36)
        code = code if code and status != 400 else "invalid_parameter_error"
        error = {"code": code, "param": None, "message": message, "type": kind}
        return {"error": error, "id": f"chatcmpl-{request_id}", "request_id": request_id}

    def thinks(self, request: StrictRequest) -> bool:
        return bool(request.body.get("enable_thinking"))

    def check_limit(self, body: dict[str, Any]) -> None:
        limit = body.get("max_tokens")
        if limit is not None and not 1 <= limit <= 65_536:
            self.refuse("<400> InternalError.Algo.InvalidParameter: Range of max_tokens should be [1, 65536]")

    def check_effort(self, body: dict[str, Any]) -> None:
        budget = body.get("thinking_budget")
        if body.get("enable_thinking") and not body.get("stream"):
            self.refuse("parameter.enable_thinking must be set to false for non-streaming calls")
        if budget is not None and (not isinstance(budget, int) or budget < 1):
            self.refuse(
                "<400> InternalError.Algo.InvalidParameter: thinking_budget must be a positive integer"
            )

    def check_tool(self, body: dict[str, Any], function: dict[str, Any], path: str) -> None:
        super().check_tool(body, function, path)
        choice = body.get("tool_choice")
        if body.get("enable_thinking") and (choice == "required" or isinstance(choice, dict)):
            self.refuse(
                "<400> InternalError.Algo.InvalidParameter: The tool_choice parameter does not support being set to"
                " required or object in thinking mode"
            )

    def check_form(self, body: dict[str, Any], form: dict[str, Any]) -> None:
        if form.get("type") not in ("text", "json_object", "json_schema"):
            self.refuse("<400> InternalError.Algo.InvalidParameter: 'response_format.type' is invalid")
        if form["type"] != "text" and body.get("enable_thinking"):
            self.refuse(
                "<400> InternalError.Algo.InvalidParameter: Json mode response is not supported when enable_thinking is"
                " true"
            )
        if form["type"] == "json_object" and "json" not in str(body["messages"]).lower():
            self.refuse(
                "<400> InternalError.Algo.InvalidParameter: 'messages' must contain the word 'json' in some form, to"
                " use 'response_format' of type 'json_object'."
            )
