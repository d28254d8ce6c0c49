"""The strict servers: replies that come back are taken, the same changed are refused; faults and errors on demand."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from support.strict import Call, Reply, Say, StrictError, StrictServer, Think, View
from support.strict.by_hand import (
    ASKED,
    blocks_in,
    brain,
    chat,
    client,
    events,
    generate,
    items_in,
    messages,
    parts_in,
    put_out,
    respond,
    responded,
    told,
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
        assert MODELS[provider] in client.get(server.url + place, headers=headers).text
        assert client.get(server.url + place).status_code in (400, 401, 403)
        assert client.post(f"{server.url}/nothing", json={}, headers=headers).status_code == 404
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
        with client.stream("POST", url, content=body, headers=_headers(server), timeout=30) as answer:
            lines = answer.iter_lines()
            for _ in range(300):
                next(lines)
        assert server.requests[-1].gone.wait(30)


@pytest.mark.parametrize("provider", ["anthropic", "openai"])
def test_a_huge_signature(provider: str) -> None:
    parts = (Think("I think."), Call("read", {"path": "ü"}))
    with serve(provider, Reply(parts, misbehave=frozenset({"huge_signature"}))) as server:
        url, body = _recorded(server)
        size = 0
        with client.stream("POST", url, content=body, headers=_headers(server), timeout=60) as answer:
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
