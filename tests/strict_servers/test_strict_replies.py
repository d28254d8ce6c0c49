"""Replies of the strict servers: sent back as they came they are taken, changed or in part they are refused."""

from __future__ import annotations

import json
from typing import Any

import pytest
from support.strict import Reply, Say, StrictServer, Think, View
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


def test_an_interrupted_reply_may_come_back_in_part() -> None:
    def cut(view: View) -> Reply:
        return Reply(brain(view).parts, misbehave=frozenset({"no_done"}))

    with StrictServer("anthropic", brain=cut, model="claude-opus-5-5") as server:
        blocks = blocks_in(messages(server))
        back = [ASKED, {"role": "assistant", "content": blocks[:2]}, {"role": "user", "content": "Go on."}]
        assert messages(server, messages=back).status_code == 200
    with StrictServer("openai", brain=cut, model="gpt-5.4") as server:
        items = items_in(respond(server))
        assert respond(server, input=put_out([*items[1:2], *items[3:]])).status_code == 200
        assert server.violations == [] and server.losses == []


def test_the_same_words_twice() -> None:
    def repeat(view: View) -> Reply:
        return Reply((Think(f"Turn {view.turns}."), Say("Done.")))

    more = {"role": "user", "content": "More."}
    with StrictServer("anthropic", brain=repeat, model="claude-opus-5-5") as server:
        said: list[dict[str, Any]] = [ASKED]
        for _ in range(3):
            said += [{"role": "assistant", "content": blocks_in(messages(server, messages=said))}, more]
        assert server.violations == [] and server.losses == []
    with StrictServer("openai", brain=repeat, model="gpt-5.4") as server:
        given: list[dict[str, Any]] = [ASKED]
        for _ in range(3):
            given += [*items_in(respond(server, input=given)), more]
        assert server.violations == [] and server.losses == []
    with StrictServer("gemini", brain=repeat, model="gemini-3-pro") as server:
        told_so_far: list[dict[str, Any]] = [{"role": "user", "parts": [{"text": "Read."}]}]
        for _ in range(3):
            parts = [
                part for part in parts_in(generate(server, contents=told_so_far)) if not part.get("thought")
            ]
            told_so_far += [{"role": "model", "parts": parts}, {"role": "user", "parts": [{"text": "More."}]}]
        assert server.violations == [] and server.losses == []


def test_items_out_of_order_keep_their_numbers() -> None:
    def shuffle(view: View) -> Reply:
        return Reply(brain(view).parts, misbehave=frozenset({"out_of_order"}))

    with StrictServer("anthropic", brain=shuffle, model="claude-opus-5-5") as server:
        answer = messages(server)
        starts = [event["index"] for event in events(answer.text) if event["type"] == "content_block_start"]
        assert starts == [4, 3, 2, 1, 0]
        assert messages(server, messages=told(blocks_in(answer))).status_code == 200
        assert server.violations == []
    with StrictServer("deepseek", brain=shuffle, model="deepseek-v4") as server:
        answer = chat(server, "deepseek-v4")
        assert answer.text.index('"index": 1, "id"') < answer.text.index('"index": 0, "id"')
        assert chat(server, "deepseek-v4", messages=answered(chat_message(answer))).status_code == 200
