"""The strict servers themselves: good requests pass, and each broken rule gets the provider's own refusal."""

from __future__ import annotations

import json
from typing import Any

import httpx
from support.strict import Call, Reply, Say, StrictServer, Think, View

SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
EVENT = "data: "


def brain(view: View) -> Reply:
    if view.results:
        return Reply((Think("All is read."), Say(f"It says {view.results[0][1]}.")))
    return Reply((Think("First I read."), Say("I read."), Think("Now both."), Call("read", {"path": "ä"})))


def events(text: str) -> list[dict[str, Any]]:
    """The JSON of each event of a stream."""
    lines = [line[len(EVENT) :] for line in text.splitlines() if line.startswith(EVENT)]
    return [json.loads(line) for line in lines if line != "[DONE]"]


def post(server: StrictServer, path: str, body: dict[str, Any], **headers: str) -> httpx.Response:
    base = next(iter(server.environment.values()))
    return httpx.post(base + path, json=body, headers=headers, timeout=30)


class Test_anthropic:
    def ask(self, server: StrictServer, **changes: Any) -> httpx.Response:
        body: dict[str, Any] = {
            "model": "claude-opus-5-5",
            "max_tokens": 4000,
            "stream": True,
            "messages": [{"role": "user", "content": "Read ä."}],
            "tools": [{"name": "read", "input_schema": SCHEMA}],
            "thinking": {"type": "adaptive", "display": "summarized"},
        }
        headers = {"x-api-key": server.key, "anthropic-version": "2023-06-01"}
        body = {key: value for key, value in (body | changes).items() if value is not None}
        return post(server, "/v1/messages", body, **headers)

    def blocks(self, answer: httpx.Response) -> list[dict[str, Any]]:
        blocks: list[dict[str, Any]] = []
        for event in events(answer.text):
            match event["type"]:
                case "content_block_start":
                    blocks.append(dict(event["content_block"]))
                case "content_block_delta":
                    delta = dict(event["delta"])
                    kind = delta.pop("type")
                    if kind == "input_json_delta":
                        blocks[-1]["json"] = blocks[-1].get("json", "") + delta["partial_json"]
                        continue
                    for key, value in delta.items():
                        blocks[-1][key] += value
        for block in blocks:
            if "json" in block:
                block["input"] = json.loads(block.pop("json") or "{}")
        return blocks

    def test_a_reply_comes_back(self) -> None:
        with StrictServer("anthropic", brain=brain, model="claude-opus-5-5") as server:
            first = self.ask(server)
            assert first.status_code == 200, first.text
            blocks = self.blocks(first)
            assert [block["type"] for block in blocks] == ["thinking", "text", "thinking", "tool_use"]
            result = {"type": "tool_result", "tool_use_id": blocks[3]["id"], "content": "hello"}
            messages = [
                {"role": "user", "content": "Read ä."},
                {"role": "assistant", "content": blocks},
                {"role": "user", "content": [result]},
            ]
            second = self.ask(server, messages=messages)
            assert second.status_code == 200, second.text
            assert "hello" in second.text
            assert server.violations == [] and server.losses == []
            dropped = self.ask(
                server, messages=[messages[0], {"role": "assistant", "content": blocks[1:]}, messages[2]]
            )
            assert dropped.status_code == 400
            assert "bound to a different conversation" in dropped.text
            other = self.ask(server, system="Another", messages=messages)
            assert "bound to a different conversation" in other.text


class Test_responses:
    def ask(self, server: StrictServer, **changes: Any) -> httpx.Response:
        body: dict[str, Any] = {
            "model": "gpt-5.4",
            "input": [{"role": "user", "content": "Read ä."}],
            "stream": True,
            "store": False,
            "include": ["reasoning.encrypted_content"],
            "reasoning": {"effort": "medium", "summary": "auto"},
            "tools": [{"type": "function", "name": "read", "parameters": SCHEMA, "strict": False}],
        }
        body = {key: value for key, value in (body | changes).items() if value is not None}
        return post(server, "/responses", body, authorization=f"Bearer {server.key}")

    def test_a_reply_comes_back(self) -> None:
        with StrictServer("openai", brain=brain, model="gpt-5.4") as server:
            first = self.ask(server)
            assert first.status_code == 200, first.text
            items = events(first.text)[-1]["response"]["output"]
            assert [item["type"] for item in items] == ["reasoning", "message", "reasoning", "function_call"]
            output = {"type": "function_call_output", "call_id": items[3]["call_id"], "output": "hello"}
            asked = {"role": "user", "content": "Read ä."}
            second = self.ask(server, input=[asked, *items, output])
            assert second.status_code == 200, second.text
            assert server.violations == [] and server.losses == []
            refused = self.ask(server, input=[asked, *items[:2], items[3], output])
            assert "was provided without its required 'reasoning' item" in refused.text
