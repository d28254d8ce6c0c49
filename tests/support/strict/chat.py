"""Chat completions as OpenAI has them, with places for what other providers do in another way."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

from support.strict import chat_rules, chat_settings
from support.strict.chat_memory import ThoughtMemory
from support.strict.counting import Counted, PrefixCache, canonical, tokens_of
from support.strict.dialect import Answering, Dialect, token
from support.strict.frames import MEGABYTE, Frame
from support.strict.given_back import family_of, thinking_field
from support.strict.names import names
from support.strict.openai_words import effort_of
from support.strict.reply import Call, Say, Think, View, words
from support.strict.serving import StrictRequest

#: The words of OpenAI for broken rules of messages; "" if a rule is not enforced.
WORDS = {
    "role": "Invalid value: '{role}'. Supported values are: 'system', 'assistant', 'user', 'function', 'tool', and"
    " 'developer'.",
    "field": "Unknown parameter: '{path}.{name}'.",
    "tool_first": "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with"
    " 'tool_calls'.",
    "unanswered": "An assistant message with 'tool_calls' must be followed by tool messages responding to each"
    " 'tool_call_id'. The following tool_call_ids did not have response messages: {ids}",
    "twice": "Duplicate value for 'tool_call_id' of {id} in message[{index}]",
    "no_content": "Invalid value for 'content': expected a string, got null.",
    "empty_content": "",
    "empty_part": "",
    "content_type": "Invalid type for '{path}.content': expected one of a string or array of objects, but got {got}"
    " instead.",
    "arguments_type": "Invalid type for '{path}.function.arguments': expected a string, but got an object instead.",
    "arguments": "",
    "call_id": "Invalid '{path}.id': string too long. Expected a string with maximum length 40, but got a string with"
    " length {length} instead.",
    "call_name": "Invalid '{path}.function.name': string does not match pattern. Expected a string that matches the"
    " pattern '^[a-zA-Z0-9_-]+$'.",
    "picture_role": "Image URLs are only allowed for messages with role 'user', but this message with role '{role}'"
    " contains an image URL.",
    "picture": "Invalid '{path}.image_url'. Expected a base64-encoded data URL with an image MIME type (e.g."
    " 'data:image/png;base64,aW1nIGJ5dGVzIGhlcmU='), but got an invalid value.",
    "blind": "Invalid content type. image_url is only supported by certain models.",
    "no_user": "",
}


class Chat(Dialect):
    """POST …/chat/completions."""

    path = "/chat/completions"
    #: Fields of a request, None if unknown fields are ignored.
    fields: frozenset[str] | None = names("""
        model messages stream stream_options max_completion_tokens max_tokens temperature top_p n stop
        presence_penalty frequency_penalty logit_bias logprobs top_logprobs user seed tools tool_choice
        parallel_tool_calls response_format reasoning_effort metadata store service_tier prompt_cache_key
        prompt_cache_options prompt_cache_retention safety_identifier verbosity modalities audio prediction
        web_search_options functions function_call
    """)
    #: Fields that are known where unknown fields are ignored.
    accepted: frozenset[str] = frozenset()
    #: Fields of a message by role; None if unknown fields are ignored.
    message_fields: ClassVar[dict[str, frozenset[str]] | None] = {
        "system": names("role content name"),
        "developer": names("role content name"),
        "user": names("role content name"),
        "assistant": names("role content name tool_calls refusal audio annotations function_call"),
        "tool": names("role content tool_call_id"),
    }
    words: ClassVar[dict[str, str]] = WORDS
    roles = names("system developer user assistant tool")
    models = r"gpt|^o\d|codex|chat|test"
    #: Models that see pictures.
    sees = r"gpt-(?:4o|4\.1|[5-9])|^o\d|test"
    call_id = r"^.{1,40}$"
    tool_name = r"^[a-zA-Z0-9_-]{1,64}$"
    #: The field of the stream that holds thinking; "" if it is not shown.
    thinking_out = ""
    #: Whether a message with calls must bring its thinking back.
    thinking_demanded = False
    cache_step, cache_least = 128, 1024

    def __init__(self, provider: str, key: str) -> None:
        super().__init__(provider, key)
        self.memory = ThoughtMemory(self)
        self.cache = PrefixCache(self.cache_step, self.cache_least)

    def say(self, key: str, *, param: str | None = None, code: Any = None, **values: Any) -> None:
        """Refuse in the provider's words for a rule, if it enforces the rule."""
        if self.words[key]:
            self.refuse(self.words[key].format(**values), param=param, code=code)

    def check(self, request: StrictRequest) -> None:
        chat_settings.check(self, request.body)
        chat_rules.check(self, request.body)
        self.check_thinking(request.body)

    def check_order(self, body: dict[str, Any]) -> None:
        """Raises the refusal of messages in a wrong order, for providers that want one."""

    def check_tool(self, body: dict[str, Any], function: dict[str, Any], path: str) -> None:
        """Raises the refusal of a function that the provider does not take."""
        chat_settings.check_function(self, function, path)

    def check_form(self, body: dict[str, Any], form: dict[str, Any]) -> None:
        """Raises the refusal of a response format."""
        chat_settings.check_form(self, form)

    def check_effort(self, body: dict[str, Any]) -> None:
        """Raises the refusal of a level of effort, in whatever field it is."""
        chat_settings.check_effort(self, body)

    def check_sampling(self, body: dict[str, Any]) -> None:
        """Raises the refusal of a temperature."""
        chat_settings.check_sampling(self, body)

    def check_limit(self, body: dict[str, Any]) -> None:
        """Raises the refusal of a limit on the reply's length."""
        chat_settings.check_limit(self, body)

    def check_thinking(self, body: dict[str, Any]) -> None:
        """Raises the refusal of thinking that did not come back."""
        self.memory.check(body)

    def thinks(self, request: StrictRequest) -> bool:
        rules = self.rules(request.body["model"])
        effort = effort_of(request.body.get("reasoning_effort"), request.body["model"])
        return bool(rules.effort or thinking_field(self.provider, request.body["model"])) and effort != "none"

    def view(self, body: dict[str, Any]) -> View:
        messages = body["messages"]
        asked = {
            call["id"]: call["function"]["name"] for one in messages for call in one.get("tool_calls") or ()
        }
        last = max((index for index, one in enumerate(messages) if one["role"] == "assistant"), default=-1)
        users = [message for message in messages if message["role"] == "user"]
        form = body.get("response_format") or {}
        return View(
            text=words(users[-1]["content"]) if users else "",
            results=[
                (asked.get(one["tool_call_id"], ""), words(one["content"]))
                for one in messages[last + 1 :]
                if one["role"] == "tool"
            ],
            turns=sum(message["role"] == "assistant" for message in messages),
            tools=[tool["function"]["name"] for tool in body.get("tools") or ()],
            schema=form.get("type") == "json_schema",
            images=canonical(messages).count('"type":"image_url"'),
            system="\n".join(
                words(one["content"]) for one in messages if one["role"] in ("system", "developer")
            ),
            body=body,
        )

    def count(self, request: StrictRequest) -> Counted:
        body = request.body
        prompt = canonical(body.get("tools")) + canonical(body["messages"])[:-1]
        key = f"{body['model']}\0{body.get('prompt_cache_key', '')}"
        return Counted(input=tokens_of(prompt), cached=self.cache.read(key, prompt))

    def call_name(self, answering: Answering, index: int, part: Call) -> str:
        """A fresh id of a call in the provider's form."""
        return f"call_{token('call', answering.number, index)}"

    def compose(self, answering: Answering) -> list[dict[str, Any]]:
        items: list[dict[str, Any]] = []
        for index, part in enumerate(answering.reply.parts):
            match part:
                case Think():
                    items.append({"type": "think", "text": part.text})
                case Say():
                    items.append({"type": "say", "text": part.text})
                case Call():
                    call_id = answering.id(part.id, self.call_name(answering, index, part), "call_1")
                    items.append({"type": "call", "id": call_id, "name": part.name, "arguments": part.text})
        self.seal(answering, items)
        self.memory.remember(items, family_of(self.provider, answering.model))
        return items

    def seal(self, answering: Answering, items: list[dict[str, Any]]) -> None:
        """Adds the provider's secrets to the items."""

    def forget(self, items: list[dict[str, Any]]) -> None:
        self.memory.forget(items)

    def frames(self, answering: Answering, items: list[dict[str, Any]]) -> Iterator[Frame]:
        yield self.chunk(answering, {"role": "assistant", "content": ""})
        calls = 0
        for item in items:
            for delta in self.deltas(answering, item, calls):
                yield self.chunk(answering, delta, item=calls if item["type"] == "call" else None)
            calls += item["type"] == "call"
        finish = self.finish(answering, calls)
        yield from self.ending(answering, finish)
        yield Frame("[DONE]", final=True)

    def ending(self, answering: Answering, finish: str) -> Iterator[Frame]:
        """The last chunks: the reason of the end, and usage if it was asked for."""
        yield self.chunk(answering, {}, finish)
        usage = self.usage(answering)
        if usage is not None and (answering.body.get("stream_options") or {}).get("include_usage"):
            yield Frame({**self.envelope(answering, "chat.completion.chunk"), "choices": [], "usage": usage})

    def deltas(self, answering: Answering, item: dict[str, Any], number: int) -> Iterator[dict[str, Any]]:
        """The deltas of one item; `number` counts the calls before it."""
        match item["type"]:
            case "think":
                yield from self.thinking(answering, item)
            case "say":
                for piece in answering.pieces(item["text"]):
                    yield {"content": piece}
            case "call":
                function = {"name": item["name"], "arguments": ""}
                yield {
                    "tool_calls": [
                        {"index": number, "id": item["id"], "type": "function", "function": function}
                    ]
                }
                for piece in answering.arguments(item["arguments"]):
                    yield {"tool_calls": [{"index": number, "function": {"arguments": piece}}]}

    def thinking(self, answering: Answering, item: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """The deltas of thinking, if the provider shows it."""
        if not self.thinking_out:
            return
        for piece in answering.thoughts(item["text"]):
            yield {self.thinking_out: piece}
        if answering.misbehaves("huge_signature"):
            for _ in range(100):
                yield {self.thinking_out: MEGABYTE}

    def chunk(
        self, answering: Answering, delta: dict[str, Any], finish: str | None = None, item: int | None = None
    ) -> Frame:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return Frame({**self.envelope(answering, "chat.completion.chunk"), "choices": [choice]}, item=item)

    def envelope(self, answering: Answering, kind: str) -> dict[str, Any]:
        return {
            "id": f"chatcmpl-{token('chat', answering.number)}",
            "object": kind,
            "created": 1700000000,
            "model": answering.model,
            "service_tier": "default",
            "system_fingerprint": "fp_strict",
        }

    def finish(self, answering: Answering, calls: int) -> str:
        finish = {"filtered": "content_filter"}.get(answering.reply.finish, answering.reply.finish)
        return finish or ("tool_calls" if calls else "stop")

    def usage(self, answering: Answering) -> dict[str, Any] | None:
        """Usage in the provider's form."""
        counted = answering.usage
        if counted is None:
            return None
        return {
            "prompt_tokens": counted.input,
            "completion_tokens": counted.output,
            "total_tokens": counted.input + counted.output,
            "prompt_tokens_details": {"cached_tokens": counted.cached},
            "completion_tokens_details": {"reasoning_tokens": counted.thinking},
        }

    def whole(self, answering: Answering, items: list[dict[str, Any]]) -> dict[str, Any]:
        message: dict[str, Any] = {"role": "assistant", "content": None}
        text = "".join(item["text"] for item in items if item["type"] == "say")
        message["content"] = text or None
        calls = [item for item in items if item["type"] == "call"]
        if calls:
            message["tool_calls"] = [whole_call(item) for item in calls]
        thoughts = "".join(item["text"] for item in items if item["type"] == "think")
        if self.thinking_out and thoughts:
            message[self.thinking_out] = thoughts
        choice = {"index": 0, "message": message, "finish_reason": self.finish(answering, len(calls))}
        usage = self.usage(answering)
        whole = {**self.envelope(answering, "chat.completion"), "choices": [choice]}
        return whole if usage is None else {**whole, "usage": usage}

    def unknown_frame(self) -> Frame:
        return Frame({"object": "chat.completion.mystery", "payload": {"a": [1]}}, "mystery")


def whole_call(item: dict[str, Any]) -> dict[str, Any]:
    """A call as a message holds it."""
    function = {"name": item["name"], "arguments": item["arguments"]}
    return {"id": item["id"], "type": "function", "function": function}
