"""OpenAI's Responses: the stream of items, and what each item must be when it is sent back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from support.strict import responses_rules
from support.strict.counting import Counted, PrefixCache, canonical, tokens_of
from support.strict.dialect import Answering, Dialect, seal, token
from support.strict.frames import MEGABYTE, Frame
from support.strict.given_back import family_of
from support.strict.openai_words import effort_of
from support.strict.reply import Call, Say, Think, View, words
from support.strict.responses_memory import ItemMemory
from support.strict.serving import StrictRequest

_FINISH = {"length": "max_output_tokens", "filtered": "content_filter"}


class Responses(Dialect):
    """POST /v1/responses."""

    path = "/responses"

    def __init__(self, provider: str, key: str) -> None:
        super().__init__(provider, key)
        self.memory = ItemMemory(self)
        self.cache = PrefixCache()

    def authorize(self, request: StrictRequest) -> None:
        if not request.headers.get("authorization"):
            self.refuse(
                "You didn't provide an API key. You need to provide your API key in an Authorization header using"
                " Bearer auth (i.e. Authorization: Bearer YOUR_KEY).",
                status=401,
            )
        super().authorize(request)

    def check(self, request: StrictRequest) -> None:
        responses_rules.check(self, request.body)
        self.memory.check(request.body)

    def view(self, body: dict[str, Any]) -> View:
        items = responses_rules.items_of(body)
        names = {
            item.get("call_id"): item.get("name", "") for item in items if item.get("type") == "function_call"
        }
        last = max((index for index, item in enumerate(items) if _is_ours(item)), default=-1)
        asked = [item for item in items if item.get("role") == "user"]
        systems = [item for item in items if item.get("role") in ("system", "developer")]
        return View(
            text=words(asked[-1]["content"]) if asked else "",
            results=[
                (names.get(item["call_id"], ""), words(item["output"]))
                for item in items[last + 1 :]
                if item.get("type") == "function_call_output"
            ],
            turns=_turns(items),
            tools=[tool.get("name", "") for tool in body.get("tools") or ()],
            schema=(body.get("text") or {}).get("format", {}).get("type") == "json_schema",
            images=canonical(items).count('"type":"input_image"'),
            system="\n".join(
                [body.get("instructions") or "", *(words(item["content"]) for item in systems)]
            ).strip(),
            body=body,
        )

    def count(self, request: StrictRequest) -> Counted:
        body = request.body
        prompt = canonical([body.get("tools"), body.get("instructions")]) + canonical(body["input"])[:-1]
        key = f"{body['model']}\0{body.get('prompt_cache_key', '')}"
        return Counted(input=tokens_of(prompt), cached=self.cache.read(key, prompt))

    def thinks(self, request: StrictRequest) -> bool:
        rules = self.rules(request.body["model"])
        given = (request.body.get("reasoning") or {}).get("effort")
        return bool(rules.effort) and effort_of(given, request.body["model"]) != "none"

    def compose(self, answering: Answering) -> list[dict[str, Any]]:
        items: list[dict[str, Any]] = []
        for index, part in enumerate(answering.reply.parts):
            name = token("item", answering.number, index, length=40)
            match part:
                case Think():
                    items.append(self._reasoning(answering, part, answering.id("", f"rs_{name}")))
                case Say():
                    content = [{"type": "output_text", "text": part.text, "annotations": [], "logprobs": []}]
                    fixed = {
                        "type": "message",
                        "status": "completed",
                        "role": "assistant",
                        "content": content,
                    }
                    items.append({"id": answering.id("", f"msg_{name}"), **fixed})
                case Call():
                    fixed = {"type": "function_call", "status": "completed", "name": part.name}
                    call_id = answering.id(part.id, f"call_{name[:24]}", "call_1")
                    own = answering.id("", f"fc_{name}")
                    items.append({"id": own, **fixed, "call_id": call_id, "arguments": part.text})
        if not answering.misbehaves("no_signature") and not answering.misbehaves("huge_signature"):
            stored = answering.body.get("store", True) is not False
            self.memory.remember(items, family_of(self.provider, answering.model), stored)
        return items

    def _reasoning(self, answering: Answering, part: Think, item_id: str) -> dict[str, Any]:
        body = answering.body
        shown = (body.get("reasoning") or {}).get("summary")
        summary = [{"type": "summary_text", "text": part.text}] if shown and part.text else []
        item: dict[str, Any] = {"id": item_id, "type": "reasoning", "summary": summary}
        if "reasoning.encrypted_content" in (body.get("include") or ()) and not answering.misbehaves(
            "no_signature"
        ):
            sealed = seal("reasoning", answering.model, item_id, part.text)
            huge = answering.misbehaves("huge_signature")
            item["encrypted_content"] = MEGABYTE * 100 if huge else f"gAAAAAB{sealed}"
        return item

    def forget(self, items: list[dict[str, Any]]) -> None:
        self.memory.forget(items)

    def frames(self, answering: Answering, items: list[dict[str, Any]]) -> Iterator[Frame]:
        for number, frame in enumerate(self._frames(answering, items)):
            data = {**frame.data, "sequence_number": number}
            yield Frame(data, frame.event, frame.final, frame.item)

    def _frames(self, answering: Answering, items: list[dict[str, Any]]) -> Iterator[Frame]:
        begun = self._response(answering, [], "in_progress")
        yield _frame("response.created", response=begun)
        yield _frame("response.in_progress", response=begun)
        for index, item in enumerate(items):
            for kind, fields in self._of_item(answering, item):
                yield _frame(kind, index, output_index=index, **fields)
        reason = _FINISH.get(answering.reply.finish, answering.reply.finish)
        ended = self._response(answering, items, "incomplete" if reason else "completed")
        yield _frame(f"response.{ended['status']}", response=ended, final=True)

    def _of_item(self, answering: Answering, item: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
        own = {"item_id": item["id"]}
        empty = {"reasoning": {"summary": []}, "message": {"content": []}, "function_call": {"arguments": ""}}
        begun = {**item, **empty[item["type"]]}
        if "status" in item:
            begun["status"] = "in_progress"
        yield "response.output_item.added", {"item": begun}
        match item["type"]:
            case "reasoning":
                yield from self._summary(answering, item, own)
            case "message":
                text = item["content"][0]["text"]
                at = {**own, "content_index": 0}
                part = {"type": "output_text", "text": "", "annotations": [], "logprobs": []}
                yield "response.content_part.added", {**at, "part": part}
                for piece in answering.pieces(text):
                    padding = {"logprobs": [], "obfuscation": "x" * (16 - len(piece) % 16)}
                    yield "response.output_text.delta", {**at, "delta": piece, **padding}
                yield "response.output_text.done", {**at, "text": text, "logprobs": []}
                yield "response.content_part.done", {**at, "part": {**part, "text": text}}
            case "function_call":
                for piece in answering.arguments(item["arguments"]):
                    yield "response.function_call_arguments.delta", {**own, "delta": piece}
                done = {"arguments": item["arguments"], "name": item["name"]}
                yield "response.function_call_arguments.done", {**own, **done}
        yield "response.output_item.done", {"item": item}

    def _summary(
        self, answering: Answering, item: dict[str, Any], own: dict[str, Any]
    ) -> Iterator[tuple[str, dict[str, Any]]]:
        parts = item["summary"] or ([{"text": ""}] if answering.misbehaves("endless_thinking") else [])
        for index, part in enumerate(parts):
            at = {**own, "summary_index": index}
            empty = {"type": "summary_text", "text": ""}
            yield "response.reasoning_summary_part.added", {**at, "part": empty}
            for piece in answering.thoughts(part["text"]):
                yield "response.reasoning_summary_text.delta", {**at, "delta": piece}
            yield "response.reasoning_summary_text.done", {**at, "text": part["text"]}
            yield "response.reasoning_summary_part.done", {**at, "part": part}

    def _response(self, answering: Answering, items: list[dict[str, Any]], status: str) -> dict[str, Any]:
        body = answering.body
        reason = _FINISH.get(answering.reply.finish, answering.reply.finish)
        return {
            "id": f"resp_{token('response', answering.number, length=40)}",
            "object": "response",
            "created_at": 1700000000,
            "status": status,
            "background": False,
            "error": None,
            "incomplete_details": {"reason": reason} if status == "incomplete" else None,
            "instructions": body.get("instructions"),
            "max_output_tokens": body.get("max_output_tokens"),
            "model": answering.model,
            "output": items,
            "parallel_tool_calls": body.get("parallel_tool_calls", True),
            "previous_response_id": None,
            "prompt_cache_key": body.get("prompt_cache_key"),
            "reasoning": body.get("reasoning") or {"effort": None, "summary": None},
            "store": body.get("store", True),
            "text": body.get("text") or {"format": {"type": "text"}},
            "tool_choice": body.get("tool_choice", "auto"),
            "tools": body.get("tools") or [],
            "truncation": "disabled",
            "usage": None if status == "in_progress" else _usage(answering.usage),
            "metadata": {},
        }

    def whole(self, answering: Answering, items: list[dict[str, Any]]) -> dict[str, Any]:
        return self._response(answering, items, "incomplete" if answering.reply.finish else "completed")

    def error_frame(self) -> Frame:
        message = "The server had an error processing your request. Sorry about that!"
        fields = {
            "type": "error",
            "code": "server_error",
            "message": message,
            "param": None,
            "sequence_number": 4,
        }
        return Frame(fields, "error")


def _frame(kind: str, index: int | None = None, /, final: bool = False, **fields: Any) -> Frame:
    return Frame({"type": kind, **fields}, kind, final, index)


def _is_ours(item: dict[str, Any]) -> bool:
    """Whether an item is one that the model said."""
    return item.get("type") in ("reasoning", "function_call") or item.get("role") == "assistant"


def _turns(items: list[dict[str, Any]]) -> int:
    marks = [_is_ours(item) for item in items]
    return sum(mark and not before for before, mark in zip([False, *marks], marks, strict=False))


def _usage(counted: Counted | None) -> dict[str, Any] | None:
    if counted is None:
        return None
    return {
        "input_tokens": counted.input,
        "input_tokens_details": {"cached_tokens": counted.cached, "cache_write_tokens": counted.cache_write},
        "output_tokens": counted.output,
        "output_tokens_details": {"reasoning_tokens": counted.thinking},
        "total_tokens": counted.input + counted.output,
    }
