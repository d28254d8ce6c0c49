"""The strict servers: replies that come back are taken, the same changed are refused; faults and errors on demand."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest
from support.strict import Call, Reply, Say, StrictError, StrictServer, Think, View
from support.strict.by_hand import (
    ASKED,
    answered,
    blocks_in,
    brain,
    chat,
    chat_message,
    events,
    generate,
    items_in,
    messages,
    parts_in,
    put_out,
    respond,
    responded,
    told,
    words_of,
)
from support.strict.faults import FAULTS
from support.strict.frames import Frame
from support.strict.reply import MISBEHAVIOURS

#: Providers of chat completions: a model, and fields with which it thinks.
CHATS: list[tuple[str, str, dict[str, Any]]] = [
    ("openai", "gpt-5.1", {"reasoning_effort": "low"}),
    ("deepseek", "deepseek-v4", {}),
    ("mistral", "mistral-medium-latest", {"reasoning_effort": "high"}),
    ("openrouter", "anthropic/claude-opus-5.5", {"reasoning": {"effort": "high"}}),
    ("openrouter", "google/gemini-3-pro", {"reasoning": {"effort": "high"}}),
    ("openrouter", "openai/gpt-5.4", {"reasoning": {"effort": "high"}}),
    ("openrouter", "z-ai/glm-5", {"reasoning": {"enabled": True}}),
    ("groq", "openai/gpt-oss-120b", {}),
    ("xai", "grok-3-mini", {}),
    ("moonshot", "kimi-k3", {}),
    ("zai", "glm-5", {}),
    ("minimax", "MiniMax-M3", {"reasoning_split": True}),
    ("dashscope", "qwen3.8-max", {"enable_thinking": True}),
]
DETAILS = [entry for entry in CHATS if entry[0] == "openrouter"]


def ask(server: StrictServer) -> httpx.Response:
    """A good request to any provider."""
    match server.provider:
        case "anthropic":
            return messages(server)
        case "gemini":
            return generate(server)
        case "openai":
            return respond(server)
    extra = next(extra for name, _, extra in CHATS if name == server.provider)
    usage = {} if server.provider == "mistral" else {"stream_options": {"include_usage": True}}
    return chat(server, server.model, **extra, **usage)


MODELS = {name: model for name, model, _ in reversed(CHATS)} | {
    "openai": "gpt-5.4",
    "anthropic": "claude-opus-5-5",
    "gemini": "gemini-3-pro",
}


def serve(provider: str, reply: Reply) -> StrictServer:
    return StrictServer(provider, brain=lambda view: reply, model=MODELS[provider])


@pytest.mark.parametrize(("provider", "model", "extra"), CHATS)
def test_a_chat_comes_back(provider: str, model: str, extra: dict[str, Any]) -> None:
    with StrictServer(provider, brain=brain, model=model) as server:
        message = chat_message(chat(server, model, **extra))
        assert [call["function"]["name"] for call in message["tool_calls"]] == ["read", "read"]
        last = chat_message(chat(server, model, messages=answered(message), **extra))
        assert "read says text 0." in json.dumps(last)
        assert server.violations == [] and server.losses == []


@pytest.mark.parametrize(("provider", "model"), [("deepseek", "deepseek-v4"), ("moonshot", "kimi-k3")])
def test_thinking_that_is_demanded(provider: str, model: str) -> None:
    with StrictServer(provider, brain=brain, model=model) as server:
        message = chat_message(chat(server, model))
        thoughts = message.pop("reasoning_content")
        refused = chat(server, model, messages=answered(message))
        assert refused.status_code == 400 and "reasoning_content" in words_of(refused)
        assert len(server.violations) == 1
        changed = chat(server, model, messages=answered({**message, "reasoning_content": thoughts + "!"}))
        assert changed.status_code == 200 and "changed" in server.losses[0]


@pytest.mark.parametrize(
    ("provider", "model", "extra"),
    [one for one in CHATS if one[0] in ("groq", "zai", "minimax", "dashscope", "mistral")],
)
def test_thinking_that_is_missed(provider: str, model: str, extra: dict[str, Any]) -> None:
    with StrictServer(provider, brain=brain, model=model) as server:
        message = chat_message(chat(server, model, **extra))
        plain = {"role": "assistant", "content": None, "tool_calls": message["tool_calls"]}
        again = chat(server, model, messages=answered(plain), **extra)
        assert again.status_code == 200, again.text
        assert server.violations == [] and len(server.losses) == 1


@pytest.mark.parametrize(("provider", "model", "extra"), DETAILS)
def test_details_that_are_changed(provider: str, model: str, extra: dict[str, Any]) -> None:
    with StrictServer(provider, brain=brain, model=model) as server:
        message = chat_message(chat(server, model, **extra))
        details = message["reasoning_details"]
        for changed in (
            details[1:],
            [*details[:-1], {**details[-1], "index": 7}],
            [*details[3:], *details[:3]],
        ):
            again = chat(server, model, messages=answered({**message, "reasoning_details": changed}), **extra)
            if model.startswith("z-ai"):
                assert again.status_code == 200 and server.losses
                continue
            assert again.status_code == 400
            assert again.json()["error"]["metadata"]["raw"]
        gone = chat(server, model, messages=answered({**message, "reasoning_details": None}), **extra)
        assert gone.status_code == (400 if "gemini" in model else 200)
        assert any("did not come back" in loss for loss in server.losses) or "gemini" in model


def test_blocks_come_back() -> None:
    with StrictServer("anthropic", brain=brain, model="claude-opus-5-5") as server:
        blocks = blocks_in(messages(server))
        assert [block["type"] for block in blocks] == ["thinking", "text", "thinking", "tool_use", "tool_use"]
        again = messages(server, messages=told(blocks))
        assert "".join(block.get("text", "") for block in blocks_in(again)) == "read says hello."
        last = [
            *told(blocks),
            {"role": "assistant", "content": blocks_in(again)},
            {"role": "user", "content": "More."},
        ]
        assert messages(server, messages=last).status_code == 200
        assert server.violations == [] and server.losses == []
        bound = "bound to a different conversation"
        assert bound in words_of(messages(server, messages=told(blocks[1:])))
        assert bound in words_of(messages(server, messages=told(blocks), system="Other."))
        assert "cannot be modified" in words_of(messages(server, messages=told([*blocks[:2], *blocks[3:]])))
        changed = [{**blocks[0], "thinking": "I never thought that."}, *blocks[1:]]
        assert "cannot be modified" in words_of(messages(server, messages=told(changed)))
        forged = [{**blocks[0], "signature": "x"}, *blocks[1:]]
        assert "Invalid `signature`" in words_of(messages(server, messages=told(forged)))


def test_blocks_that_may_be_dropped() -> None:
    with StrictServer("anthropic", brain=brain, model="claude-sonnet-5-5") as server:
        blocks = blocks_in(messages(server))
        binding = {"prefix_mismatch_behavior": "drop_block"}
        thinking = {"type": "adaptive", "display": "summarized", "block_binding": binding}
        beta = "thinking-binding-controls-2026-08-01"
        dropped = messages(server, messages=told(blocks), system="Other.", thinking=thinking, beta=beta)
        assert events(dropped.text)[0]["message"]["input_transformations"][0]["count"] == 2
        bare = [block for block in blocks if block["type"] != "thinking"]
        assert messages(server, messages=told(bare)).status_code == 200
        assert "without the thinking" in server.losses[0]


def test_a_budget_demands_its_thinking() -> None:
    budget = {"type": "enabled", "budget_tokens": 2000}
    with StrictServer("anthropic", brain=brain, model="claude-haiku-4-5") as server:
        blocks = blocks_in(messages(server, thinking=budget))
        bare = [block for block in blocks if block["type"] != "thinking"]
        assert "Expected `thinking`" in words_of(messages(server, messages=told(bare), thinking=budget))
        assert messages(server, messages=told(bare), thinking=None).status_code == 200


def test_items_come_back() -> None:
    with StrictServer("openai", brain=brain, model="gpt-5.4") as server:
        items = items_in(respond(server))
        assert [item["type"] for item in items] == [
            "reasoning",
            "message",
            "reasoning",
            *["function_call"] * 2,
        ]
        bare = [{key: value for key, value in item.items() if key != "id"} for item in items]
        for back in (items, bare):
            assert "read says hello." in respond(server, input=put_out(back)).text
        assert server.violations == [] and server.losses == []
        missing = respond(server, input=put_out([*items[:2], *items[3:]]))
        assert "without its required 'reasoning' item" in words_of(missing)
        moved = respond(server, input=put_out([*items[:2], *items[3:], items[2]]))
        assert "without its required" in words_of(moved)
        forged = {**items[0], "encrypted_content": "gAAAforged"}
        changed = respond(server, input=put_out([forged, *items[1:]]))
        assert changed.json()["error"]["code"] == "invalid_encrypted_content"
        empty = {key: value for key, value in items[0].items() if key != "encrypted_content"}
        assert "not persisted" in words_of(respond(server, input=put_out([empty, *items[1:]])))
        assert "Duplicate item" in words_of(
            respond(server, input=put_out([*items[:2], *items[:2], *items[2:]]))
        )


def test_signatures_come_back() -> None:
    with StrictServer("gemini", brain=brain, model="gemini-3-pro") as server:
        parts = parts_in(generate(server))
        signed = [part for part in parts if "thoughtSignature" in part]
        assert len(signed) == 1 and "functionCall" in signed[0]
        back = [part for part in parts if not part.get("thought")]
        assert "read says hello." in "".join(
            part.get("text", "") for part in parts_in(generate(server, contents=responded(back)))
        )
        assert server.violations == [] and server.losses == []
        bare = [{key: value for key, value in part.items() if key != "thoughtSignature"} for part in back]
        assert "missing a thought_signature" in words_of(generate(server, contents=responded(bare)))
        moved = [back[0], back[2], back[1]]
        assert "missing a thought_signature" in words_of(generate(server, contents=responded(moved)))
        forged = [{**part, "thoughtSignature": "x"} if "thoughtSignature" in part else part for part in back]
        assert words_of(generate(server, contents=responded(forged))) == '"Corrupted thought signature."'


@pytest.mark.parametrize("kind", FAULTS["openai"])
@pytest.mark.parametrize("provider", FAULTS)
def test_errors_on_demand(provider: str, kind: Any) -> None:
    with serve(provider, Reply(error=StrictError(kind, retry_after=3))) as server:
        answer = ask(server)
        assert answer.status_code == FAULTS[provider][kind].status
        assert answer.json()
        assert "{model" not in answer.text and "{after" not in answer.text
        assert server.violations == []
        if kind == "rate_limit" and provider in ("openai", "anthropic", "groq", "openrouter"):
            assert answer.headers["retry-after"] == "3"


@pytest.mark.parametrize("provider", FAULTS)
def test_keys_models_and_paths(provider: str) -> None:
    with serve(provider, Reply((Say("Hello."),))) as server:
        headers = {
            "authorization": f"Bearer {server.key}",
            "x-api-key": server.key,
            "x-goog-api-key": server.key,
        }
        headers["anthropic-version"] = "2023-06-01"
        place = "/v1/models" if provider == "anthropic" else "/models"
        assert MODELS[provider] in httpx.get(server.url + place, headers=headers).text
        assert httpx.get(server.url + place).status_code in (400, 401, 403)
        assert httpx.post(f"{server.url}/nothing", json={}, headers=headers).status_code == 404
        assert len(server.violations) == 2
        environment = server.environment
        assert server.key in environment.values() and server.url in environment.values()


@pytest.mark.parametrize("word", sorted(MISBEHAVIOURS - {"endless_thinking", "huge_signature"}))
@pytest.mark.parametrize("provider", FAULTS)
def test_misbehaviour_is_a_stream(provider: str, word: str) -> None:
    parts = (Think("I think ä."), Say("I say ö."), Call("read", {"path": "ü"}), Call("read", {"path": "ß"}))
    with serve(provider, Reply(parts, misbehave=frozenset({word}))) as server:
        answer = ask(server)
        assert answer.status_code == 200, answer.text
        assert events(answer.text)
        assert len(server.counted) == 1
        match word:
            case "comments":
                assert "\n: " in answer.text
            case "crlf":
                assert "\r\n\r\n" in answer.text
            case "unknown_event":
                assert "mystery" in answer.text
            case "other_model":
                assert "another-model-1" in answer.text
            case "no_done":
                assert "[DONE]" not in answer.text and '"finishReason"' not in answer.text
                assert "message_stop" not in answer.text and "response.completed" not in answer.text
            case "negative_usage":
                assert ": -" in answer.text
            case "repeated_ids" if provider not in ("anthropic", "gemini"):
                assert answer.text.count("call_1") >= 2


@pytest.mark.parametrize("provider", FAULTS)
def test_thinking_without_end(provider: str) -> None:
    with serve(provider, Reply((Think("I think."),), misbehave=frozenset({"endless_thinking"}))) as server:
        url, body = _recorded(server)
        with httpx.stream("POST", url, content=body, headers=_headers(server), timeout=30) as answer:
            lines = answer.iter_lines()
            for _ in range(300):
                next(lines)
        assert server.requests[-1].gone.wait(30)


@pytest.mark.parametrize("provider", ["anthropic", "openai", "gemini", "openrouter", "deepseek"])
def test_a_huge_signature(provider: str) -> None:
    parts = (Think("I think."), Call("read", {"path": "ü"}))
    with serve(provider, Reply(parts, misbehave=frozenset({"huge_signature"}))) as server:
        url, body = _recorded(server)
        size = 0
        with httpx.stream("POST", url, content=body, headers=_headers(server), timeout=60) as answer:
            for piece in answer.iter_raw():
                size += len(piece)
        assert size > 90_000_000


def _recorded(server: StrictServer) -> tuple[str, bytes]:
    """The address and the body of a good request, found by one that is answered with an error."""
    whole, server.brain = server.brain, lambda view: Reply(error=StrictError("overloaded"))
    ask(server)
    server.brain = whole
    request = server.requests[-1]
    query = "?alt=sse" if server.provider == "gemini" else ""
    return f"http://127.0.0.1:{httpx.URL(server.url).port}{request.path}{query}", request.raw


def _headers(server: StrictServer) -> dict[str, str]:
    return {
        name: value
        for name, value in server.requests[-1].headers.items()
        if name not in ("host", "content-length")
    }


def test_one_connection_serves_many_requests() -> None:
    with serve("anthropic", Reply((Say("Hello."),))) as server, httpx.Client() as client:
        headers = {"x-api-key": server.key, "anthropic-version": "2023-06-01"}
        body = {"model": server.model, "max_tokens": 10, "messages": [ASKED]}
        for stream in (True, False, True):
            answer = client.post(
                f"{server.url}/v1/messages", json={**body, "stream": stream}, headers=headers
            )
            assert "Hello." in answer.text
        assert server.connections == 1
        assert [request.connection for request in server.requests] == [1, 1, 1]


def test_what_the_brain_sees() -> None:
    views: list[View] = []

    def look(view: View) -> Reply:
        views.append(view)
        return brain(view)

    for provider, model in (
        ("openai", "gpt-5.4"),
        ("anthropic", "claude-opus-5-5"),
        ("gemini", "gemini-3-pro"),
    ):
        views.clear()
        with StrictServer(provider, brain=look, model=model) as server:
            match provider:
                case "openai":
                    respond(server, input=put_out(items_in(respond(server))), instructions="Be brief.")
                case "anthropic":
                    found = told(blocks_in(messages(server, system="Be brief.")))
                    messages(server, messages=found, system="Be brief.")
                case "gemini":
                    back = responded([part for part in parts_in(generate(server)) if not part.get("thought")])
                    generate(server, contents=back, systemInstruction={"parts": [{"text": "Be brief."}]})
        assert [view.turns for view in views] == [0, 1], provider
        assert views[1].text == "Read ä." and views[1].tools == ["read"]
        assert views[1].results == [("read", "hello"), ("read", "hello")]
        assert views[1].system == "Be brief."


def test_a_final_frame_has_no_name() -> None:
    assert Frame("[DONE]", final=True).encode("\n") == b"data: [DONE]\n\n"
