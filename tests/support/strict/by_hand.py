"""Requests by hand to the strict servers, and the messages that their streams make."""

from __future__ import annotations

import json
from typing import Any

import httpx
from support.strict import Call, Reply, Say, StrictServer, Think, View

SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
STRICT = {**SCHEMA, "additionalProperties": False}
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
ASKED = {"role": "user", "content": "Read ä."}
#: One for all: each would read the certificates that the system trusts, and none of the servers has one.
client = httpx.Client(verify=False)


def brain(view: View) -> Reply:
    """Reads once, then says what was read."""
    if view.results:
        return Reply((Think("All is read."), Say(f"{view.results[0][0]} says {view.results[0][1]}.")))
    return Reply(
        (
            Think("First I read."),
            Say("I read."),
            Think("Now both."),
            Call("read", {"path": "ä"}),
            Call("read", {}),
        )
    )


def events(text: str) -> list[dict[str, Any]]:
    """The JSON of each event of a stream."""
    lines = [line[6:] for line in text.splitlines() if line.startswith("data: ")]
    return [json.loads(line) for line in lines if line != "[DONE]"]


def post(server: StrictServer, path: str, body: dict[str, Any], **headers: str) -> httpx.Response:
    body = {key: value for key, value in body.items() if value is not None}
    return client.post(server.url + path, json=body, headers=headers, timeout=30)


def words_of(answer: httpx.Response) -> str:
    """The words of a refusal, whatever its form."""
    body = answer.json()
    error = body.get("error", body) if isinstance(body, dict) else body[0]["error"]
    return error if isinstance(error, str) else json.dumps(error.get("message", body), ensure_ascii=False)


def messages(server: StrictServer, **changes: Any) -> httpx.Response:
    """A good request to Anthropic, with changes; `beta` and `version` are headers."""
    body: dict[str, Any] = {
        "model": server.model,
        "max_tokens": 4000,
        "stream": True,
        "messages": [ASKED],
        "tools": [{"name": "read", "description": "Reads.", "input_schema": SCHEMA}],
        "thinking": {"type": "adaptive", "display": "summarized"},
    }
    headers = {
        "x-api-key": changes.pop("key", server.key),
        "anthropic-version": changes.pop("version", "2023-06-01"),
        "anthropic-beta": changes.pop("beta", ""),
    }
    return post(server, "/v1/messages", body | changes, **headers)


def blocks_in(answer: httpx.Response) -> list[dict[str, Any]]:
    """The blocks that a stream of Anthropic makes."""
    blocks: dict[int, dict[str, Any]] = {}
    for event in events(answer.text):
        if event["type"] == "content_block_start":
            blocks[event["index"]] = dict(event["content_block"])
        if event["type"] == "content_block_delta":
            block, delta = blocks[event["index"]], dict(event["delta"])
            if delta.pop("type") == "input_json_delta":
                block["json"] = block.get("json", "") + delta["partial_json"]
                continue
            for key, value in delta.items():
                block[key] += value
    for block in blocks.values():
        if "json" in block:
            block["input"] = json.loads(block.pop("json") or "{}")
    return [blocks[index] for index in sorted(blocks)]


def told(blocks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A conversation with blocks of Anthropic and a result for each of their calls."""
    uses = [block for block in blocks if block["type"] == "tool_use"]
    results = [{"type": "tool_result", "tool_use_id": use["id"], "content": "hello"} for use in uses]
    return [ASKED, {"role": "assistant", "content": blocks}, {"role": "user", "content": results}]


def respond(server: StrictServer, **changes: Any) -> httpx.Response:
    """A good request to Responses, with changes."""
    body: dict[str, Any] = {
        "model": server.model,
        "input": [ASKED],
        "stream": True,
        "store": False,
        "include": ["reasoning.encrypted_content"],
        "reasoning": {"effort": "medium", "summary": "auto"},
        "tools": [{"type": "function", "name": "read", "parameters": SCHEMA, "strict": False}],
    }
    return post(server, "/responses", body | changes, authorization=f"Bearer {server.key}")


def items_in(answer: httpx.Response) -> list[dict[str, Any]]:
    """The items of a stream of Responses."""
    return [event["item"] for event in events(answer.text) if event["type"] == "response.output_item.done"]


def put_out(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """An input with items and an output for each of their calls."""
    calls = [item["call_id"] for item in items if item["type"] == "function_call"]
    return [
        ASKED,
        *items,
        *({"type": "function_call_output", "call_id": one, "output": "hello"} for one in calls),
    ]


def generate(server: StrictServer, **changes: Any) -> httpx.Response:
    """A good request to Gemini, with changes; `key` is a header, `query` is that of the address."""
    body: dict[str, Any] = {
        "contents": [{"role": "user", "parts": [{"text": "Read ä."}]}],
        "tools": [
            {"functionDeclarations": [{"name": "read", "description": "Reads.", "parameters": SCHEMA}]}
        ],
        "generationConfig": {"thinkingConfig": {"includeThoughts": True}},
    }
    key, query = changes.pop("key", server.key), changes.pop("query", "?alt=sse")
    return post(
        server,
        f"/models/{server.model}:streamGenerateContent{query}",
        body | changes,
        **{"x-goog-api-key": key},
    )


def parts_in(answer: httpx.Response) -> list[dict[str, Any]]:
    """The parts of a stream of Gemini, pieces of one kind of text as one."""
    parts: list[dict[str, Any]] = []
    for event in events(answer.text):
        for part in event["candidates"][0]["content"]["parts"]:
            last = parts[-1] if parts else {}
            alike = "text" in part and "text" in last and part.get("thought") == last.get("thought")
            if part == {"text": ""}:
                continue
            if alike and "thoughtSignature" not in last:
                parts[-1] = {**last, **part, "text": last["text"] + part["text"]}
            else:
                parts.append(part)
    return parts


def responded(parts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Contents with parts of Gemini and a response for each of their calls."""
    names = [part["functionCall"]["name"] for part in parts if "functionCall" in part]
    responses = [{"functionResponse": {"name": name, "response": {"output": "hello"}}} for name in names]
    asked = {"role": "user", "parts": [{"text": "Read ä."}]}
    return [asked, {"role": "model", "parts": parts}, {"role": "user", "parts": responses}]


def chat(server: StrictServer, model: str, /, **changes: Any) -> httpx.Response:
    """A good request to chat completions, with changes; None leaves a field out."""
    function = {"name": "read", "description": "Reads.", "parameters": SCHEMA}
    key = changes.pop("key", server.key)
    body: dict[str, Any] = {
        "model": model,
        "messages": [ASKED],
        "stream": True,
        "tools": [{"type": "function", "function": function}],
    }
    return post(server, "/chat/completions", body | changes, authorization=f"Bearer {key}")


def chat_message(answer: httpx.Response) -> dict[str, Any]:
    """The message that the stream of a chat makes, as a client would send it back."""
    message: dict[str, Any] = {"role": "assistant", "content": ""}
    calls: dict[int, dict[str, Any]] = {}
    for event in events(answer.text):
        for choice in event.get("choices", ()):
            _add(message, calls, choice["delta"])
    if calls:
        message["tool_calls"] = [calls[index] for index in sorted(calls)]
    if isinstance(message["content"], list):
        message["content"] = _joined(message["content"])
    return message


def _add(message: dict[str, Any], calls: dict[int, dict[str, Any]], delta: dict[str, Any]) -> None:
    content = delta.get("content")
    if isinstance(content, list) or isinstance(message["content"], list):
        before = message["content"] or []
        added = (
            content if isinstance(content, list) else [{"type": "text", "text": content}] if content else []
        )
        message["content"] = [*before, *added]
    elif content:
        message["content"] += content
    for name in ("reasoning_content", "reasoning"):
        if delta.get(name):
            message[name] = message.get(name, "") + delta[name]
    if delta.get("reasoning_details"):
        message.setdefault("reasoning_details", []).extend(delta["reasoning_details"])
    for call in delta.get("tool_calls", ()):
        if "id" in call:
            calls[call["index"]] = {key: call[key] for key in ("id", "type", "function")}
        else:
            calls[call["index"]]["function"]["arguments"] += call["function"]["arguments"]


def _joined(parts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    joined: list[dict[str, Any]] = []
    for part in parts:
        if joined and joined[-1]["type"] == part["type"] == "thinking":
            joined[-1]["thinking"][0]["text"] += part["thinking"][0]["text"]
        elif joined and joined[-1]["type"] == part["type"]:
            joined[-1]["text"] += part["text"]
        else:
            joined.append(json.loads(json.dumps(part)))
    return joined


def answered(message: dict[str, Any]) -> list[dict[str, Any]]:
    """A conversation with a message of the model and a result for each of its calls."""
    results = [
        {"role": "tool", "tool_call_id": call["id"], "content": f"text {number}"}
        for number, call in enumerate(message["tool_calls"])
    ]
    return [ASKED, message, *results]
