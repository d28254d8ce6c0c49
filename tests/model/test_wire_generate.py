"""Gemini's `streamGenerateContent`: bodies of requests with signatures in their places, and replies as they stream."""

from __future__ import annotations

from typing import Any

import pytest
from support.rendering import CALL, READ, STRICT, USER, body, fed, origin_of, reply, result, user, way

from tui_agent.model.client import CallChunk, EndReason, ModelRequest, ReasoningChunk, TextChunk, UsageChunk
from tui_agent.model.direct_client import render
from tui_agent.model.event_stream import BrokenStream
from tui_agent.model.parts import CallPart, Message, Part, TextPart, ThinkingPart
from tui_agent.model.wires import reader as reading
from tui_agent.model.wires.conversation import NO_RESULT
from tui_agent.model.wires.generate import NO_SIGNATURE, GenerateReader

GEMINI_3 = "gemini/gemini-3-pro-preview"
GEMINI_2_5 = "gemini/gemini-2.5-pro"
ASKED = {"role": "user", "parts": [{"text": "Hello"}]}
SIGNED_CALL = CallPart("call_1", "read", '{"path": "a"}', {"thoughtSignature": "sig"})
SENT_CALL = {"functionCall": {"name": "read", "args": {"path": "a"}}}


def contents(*messages: Message, model: str = GEMINI_3) -> list[dict[str, Any]]:
    return body(model, *messages)["contents"]


def said(*parts: Part, model: str = GEMINI_3, of: str = "") -> list[dict[str, Any]]:
    """The parts of a reply as they are sent, with results of its calls; `of` is the model that made it."""
    message = reply(*parts, of=origin_of(of or model))
    results = [result(part.id) for part in parts if isinstance(part, CallPart)]
    return contents(USER, message, *results, model=model)[1]["parts"]


# ── requests ─────────────────────────────────────────────────────────────────────────────────────────────


def test_a_body_without_anything_optional() -> None:
    assert body("gemini/gemini-2.0-flash") == {
        "contents": [ASKED],
        "systemInstruction": {"parts": [{"text": "Be brief."}]},
    }


def test_the_model_is_in_the_path() -> None:
    path, _, _ = render(ModelRequest(GEMINI_3, (USER,)), way(GEMINI_3), "generate", None)
    assert path == "/models/gemini-3-pro-preview:streamGenerateContent"


@pytest.mark.parametrize(
    ("model", "options", "config"),
    [
        (GEMINI_3, {}, {"thinkingConfig": {"thinkingLevel": "high", "includeThoughts": True}}),
        (GEMINI_3, {"effort": "none"}, {"thinkingConfig": {"thinkingLevel": "low", "includeThoughts": True}}),
        (GEMINI_3, {"without": frozenset({"effort"}), "most": 9}, {"maxOutputTokens": 9}),
        (
            GEMINI_2_5,
            {"effort": "low"},
            {"thinkingConfig": {"thinkingBudget": 1_024, "includeThoughts": True}},
        ),
        (
            "gemini/gemini-2.5-flash",
            {"effort": "none", "temperature": 0.5},
            {"thinkingConfig": {"thinkingBudget": 0, "includeThoughts": False}, "temperature": 0.5},
        ),
        (
            "gemini/gemini-2.0-flash",
            {"shape": STRICT, "effort": "max"},
            {"responseMimeType": "application/json", "responseJsonSchema": STRICT},
        ),
    ],
)
def test_configuration(model: str, options: dict[str, Any], config: dict[str, Any]) -> None:
    assert body(model, **options).get("generationConfig") == config


def test_functions_have_schemas_if_they_have_parameters() -> None:
    empty = {
        "type": "function",
        "function": {"name": "list", "parameters": {"type": "object", "properties": {}}},
    }
    parameters = READ["function"]["parameters"]
    (tools,) = body(GEMINI_3, tools=(READ, empty))["tools"]
    assert tools == {
        "functionDeclarations": [
            {"name": "read", "description": "Reads.", "parametersJsonSchema": parameters},
            {"name": "list"},
        ]
    }


def test_signatures_go_back_with_their_parts_in_order() -> None:
    parts = (
        ThinkingPart("why"),
        TextPart("One.", {"thoughtSignature": "text sig"}),
        SIGNED_CALL,
        TextPart("Two."),
        CallPart("call_2", "list", "{}", {"id": "native"}),
    )
    assert said(*parts) == [
        {"text": "One.", "thoughtSignature": "text sig"},
        SENT_CALL | {"thoughtSignature": "sig"},
        {"text": "Two."},
        {"functionCall": {"name": "list", "args": {}, "id": "native"}},
    ]


def test_calls_without_a_signature_get_one_that_is_accepted_for_them() -> None:
    second = CallPart("call_2", "list", "{}")
    placeholder = {"thoughtSignature": NO_SIGNATURE}
    assert said(CALL, second) == [SENT_CALL | placeholder, {"functionCall": {"name": "list", "args": {}}}]
    assert said(SIGNED_CALL, of="anthropic/claude-sonnet-4-5") == [SENT_CALL | placeholder], (
        "in place of another's"
    )
    assert said(SIGNED_CALL, of=GEMINI_2_5) == [SENT_CALL | placeholder]
    assert said(CALL, model=GEMINI_2_5) == [SENT_CALL], "which demands none"
    assert said(TextPart("x")) == [{"text": "x"}]


def test_results_of_one_reply_are_one_turn_with_names_and_native_ids() -> None:
    calls = (SIGNED_CALL, CallPart("call_2", "list", "{}", {"id": "native"}))
    sent = contents(USER, reply(*calls, of=origin_of(GEMINI_3)), result("call_2", "2"), user())
    assert sent[2:] == [
        {
            "role": "user",
            "parts": [
                {"functionResponse": {"name": "list", "response": {"result": "2"}, "id": "native"}},
                {"functionResponse": {"name": "read", "response": {"result": NO_RESULT}}},
            ],
        },
        {"role": "user", "parts": [{"text": "Go on"}]},
    ]


def test_results_of_two_replies_are_two_turns() -> None:
    sent = contents(USER, reply(CALL), result(), reply(CallPart("call_2", "list", "{}")), result("call_2"))
    assert [(turn["role"], len(turn["parts"])) for turn in sent] == [
        ("user", 1),
        ("model", 1),
        ("user", 1),
        ("model", 1),
        ("user", 1),
    ]


def test_a_reply_of_thinking_alone_is_left_out() -> None:
    sent = contents(USER, reply(ThinkingPart("why"), of=origin_of(GEMINI_3)), user())
    assert sent == [ASKED, {"role": "user", "parts": [{"text": "Go on"}]}]


def test_an_image_is_behind_the_words() -> None:
    picture = {**USER, "images": [{"media_type": "image/png", "data": "AAAA"}]}
    image = {"inlineData": {"mimeType": "image/png", "data": "AAAA"}}
    assert contents(picture)[0]["parts"] == [{"text": "Hello"}, image]
    assert contents({**picture, "content": ""})[0]["parts"] == [image]


# ── replies ──────────────────────────────────────────────────────────────────────────────────────────────


def chunk(*parts: Any, finish: Any = None, **more: Any) -> dict[str, Any]:
    return {
        "candidates": [{"content": {"role": "model", "parts": list(parts)}, "finishReason": finish}],
        **more,
    }


def test_a_reply_in_pieces() -> None:
    reader = GenerateReader()
    chunks = fed(
        reader,
        chunk({"text": "w", "thought": True}),
        chunk({"text": "hy", "thought": True}),
        chunk({"text": "Look"}, {"text": "ing."}),
        chunk({"functionCall": {"name": "read", "args": {"path": "ä"}}, "thoughtSignature": "sig"}),
        chunk({"functionCall": {"name": "list", "id": "native"}}),
        chunk(
            finish="STOP",
            usageMetadata={"promptTokenCount": 10, "candidatesTokenCount": 7, "thoughtsTokenCount": 5},
        ),
    )
    assert chunks == [
        ReasoningChunk("w"),
        ReasoningChunk("hy"),
        TextChunk("Look"),
        TextChunk("ing."),
        CallChunk(0, "", "read", '{"path": "ä"}'),
        CallChunk(1, "native", "list", "{}"),
    ]
    assert reader.parts() == (
        ThinkingPart("why"),
        TextPart("Looking."),
        CallPart("", "read", '{"path": "ä"}', {"thoughtSignature": "sig"}),
        CallPart("native", "list", "{}", {"id": "native"}),
    )
    assert (reader.reason, reader.usage) == ("tool_calls", UsageChunk(10, 12, thinking=5))


def test_thinking_text_and_calls_keep_their_order() -> None:
    reader = GenerateReader()
    fed(
        reader,
        chunk({"text": "1", "thought": True}, {"text": "2"}, {"text": "3", "thought": True}),
        chunk({"functionCall": {"name": "read"}}, {"text": "4"}),
    )
    assert [getattr(part, "text", "call") for part in reader.parts()] == ["1", "2", "3", "call", "4"]


def test_text_behind_a_signature_is_another_part() -> None:
    reader = GenerateReader()
    fed(
        reader,
        chunk({"text": "Look"}),
        chunk({"text": "ing.", "thoughtSignature": "one"}),
        chunk({"text": "Done"}),
        chunk({"text": "", "thought_signature": "two"}),
    )
    assert reader.parts() == (
        TextPart("Looking.", {"thoughtSignature": "one"}),
        TextPart("Done", {"thoughtSignature": "two"}),
    )


@pytest.mark.parametrize(
    ("word", "reason", "failure"),
    [
        ("STOP", "stop", ""),
        ("MAX_TOKENS", "length", ""),
        ("SAFETY", "refused", ""),
        ("RECITATION", "refused", ""),
        ("A_NEW_WORD", "refused", ""),
        ("MALFORMED_FUNCTION_CALL", None, "MALFORMED_FUNCTION_CALL"),
        ("OTHER", None, "OTHER"),
        ("", None, ""),
        (None, None, ""),
        (7, None, ""),
    ],
)
def test_reasons(word: Any, reason: EndReason | None, failure: str) -> None:
    reader = GenerateReader()
    reader.read(chunk({"text": "x"}, finish=word))
    assert (reader.reason, reader.failure) == (reason, failure)


def test_a_prompt_that_is_blocked_is_a_refusal() -> None:
    reader = GenerateReader()
    assert reader.read({"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}}) == []
    assert reader.refusal == "the prompt was blocked (PROHIBITED_CONTENT)" and not reader.has_content


@pytest.mark.parametrize(
    ("usage", "counted"),
    [
        (
            {"promptTokenCount": 100, "toolUsePromptTokenCount": 10, "cachedContentTokenCount": 90},
            UsageChunk(110, 0, 90),
        ),
        ({"promptTokenCount": 10, "cachedContentTokenCount": 90}, UsageChunk(10, 0, 10)),
        (
            {"promptTokenCount": -10, "candidatesTokenCount": "x", "thoughtsTokenCount": None},
            UsageChunk(0, 0),
        ),
    ],
)
def test_usage(usage: dict[str, Any], counted: UsageChunk) -> None:
    reader = GenerateReader()
    reader.read({"usageMetadata": usage})
    assert reader.usage == counted


@pytest.mark.parametrize(
    "event",
    [
        {},
        {"candidates": None},
        {"candidates": ["x"]},
        {"candidates": [{"content": "x"}]},
        {"usageMetadata": "x", "promptFeedback": []},
        chunk("x", 3, {"text": 3}, {"text": ""}, {"inlineData": {}}, {"functionCall": "x"}),
        chunk({"text": "", "thought": True, "thoughtSignature": 3}),
    ],
)
def test_events_that_are_unknown_or_malformed_say_nothing(event: dict[str, Any]) -> None:
    reader = GenerateReader()
    assert reader.read(event) == [] and reader.parts() == () and not reader.has_content
    assert reader.read(chunk({"text": "x"})) == [TextChunk("x")], "what follows is read"


def test_arguments_that_are_not_an_object_are_an_empty_one() -> None:
    reader = GenerateReader()
    reader.read(
        chunk({"functionCall": {"name": "read", "args": [1]}}, {"functionCall": {"id": 3, "name": 4}})
    )
    assert reader.parts() == (CallPart("", "read", "{}"), CallPart("", "", "{}"))


def test_endless_signatures_end_the_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "MOST_NATIVE", 1_000)
    part = {"functionCall": {"name": "read"}, "thoughtSignature": "s" * 300}
    with pytest.raises(BrokenStream, match="more than 1,000 letters"):
        fed(GenerateReader(), *[chunk(part)] * 4)


def test_only_the_first_candidate_is_read() -> None:
    event = chunk({"text": "x"})
    event["candidates"] += chunk({"text": "y"})["candidates"]
    assert GenerateReader().read(event) == [TextChunk("x")]
