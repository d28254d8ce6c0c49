"""The rules of Gemini: one request breaks each, and gets the provider's own refusal."""

from __future__ import annotations

from typing import Any

import pytest
from support.strict import StrictServer
from support.strict.by_hand import PIXEL, SCHEMA, brain, generate, words_of

Case = tuple[str, dict[str, Any], str]
PRO, FLASH, OLDER = "gemini-3-pro", "gemini-2.5-flash", "gemini-2.5-pro"


def thinking(**config: Any) -> dict[str, Any]:
    return {"generationConfig": {"thinkingConfig": config}}


def contents(*pairs: tuple[str, list[dict[str, Any]]]) -> dict[str, Any]:
    return {"contents": [{"role": role, "parts": parts} for role, parts in pairs]}


def declared(parameters: Any, name: str = "read", **more: Any) -> dict[str, Any]:
    return {"tools": [{"functionDeclarations": [{"name": name, "parameters": parameters, **more}]}]}


def prop(schema: dict[str, Any]) -> dict[str, Any]:
    return declared({"type": "object", "properties": {"a": schema}})


HELLO = ("user", [{"text": "Hello."}])
ONCE = (
    "model",
    [{"functionCall": {"name": "read", "args": {}}, "thoughtSignature": "skip_thought_signature_validator"}],
)
BACK = {"functionResponse": {"name": "read", "response": {"output": "x"}}}
LEVELS = {"thinkingLevel": "low", "thinkingBudget": 100}
UNKNOWN = "Invalid JSON payload received. Unknown name"
GEMINI: list[Case] = [
    (PRO, {"key": "wrong"}, "API key not valid"),
    (PRO, {"key": ""}, "unregistered callers"),
    (PRO, {"query": ""}, "?alt=sse is missing"),
    ("gpt-5", {}, "models/gpt-5 is not found for API version v1beta"),
    (PRO, {"foo": 1}, UNKNOWN),
    (PRO, {"generationConfig": {"max_tokens": 1}}, UNKNOWN),
    (
        PRO,
        {"generationConfig": {"maxOutputTokens": 100_000}},
        "supported range is from 1 (inclusive) to 65537",
    ),
    ("gemini-3.8-flash", {"generationConfig": {"temperature": 0.5}}, "Temperature is not supported"),
    (PRO, thinking(**LEVELS), "only set only one of thinking budget and thinking level"),
    (PRO, thinking(thinkingLevel="minimal"), "Thinking level MINIMAL is not supported"),
    (PRO, thinking(thinkingLevel="most"), "ThinkingLevel"),
    (FLASH, thinking(thinkingLevel="low"), "Thinking level is not supported for this model."),
    (OLDER, thinking(thinkingBudget=0), "Budget 0 is invalid"),
    (OLDER, thinking(thinkingBudget=50_000), "choose a value between 128 and 32768"),
    (PRO, {"contents": []}, "contents is not specified"),
    (PRO, contents(("assistant", [{"text": "x"}])), "valid role: user, model"),
    (PRO, contents(("user", [])), "contents.parts must not be empty"),
    (PRO, contents(("user", [{"text": ""}])), "required oneof field 'data' must have one initialized field"),
    (PRO, contents(("user", [{"words": "x"}])), UNKNOWN),
    (PRO, contents(HELLO, ONCE), "function call turn is followed by a function response turn"),
    (
        PRO,
        contents(HELLO, ONCE, HELLO),
        "number of function response parts is equal to the number of function call",
    ),
    (PRO, contents(HELLO, ONCE, ("user", [BACK, BACK])), "number of function response parts is equal"),
    (
        PRO,
        contents(HELLO, ("user", [BACK])),
        "function response turn comes immediately after a function call turn",
    ),
    (PRO, contents(ONCE, ("user", [BACK])), "function call turn comes immediately after a user turn"),
    (
        PRO,
        contents(HELLO, ONCE, ("user", [{"functionResponse": {"name": "write", "response": {}}}])),
        "names of the function responses",
    ),
    (
        PRO,
        contents(HELLO, ONCE, ("user", [{"functionResponse": {"name": "read", "response": "x"}}])),
        "Struct",
    ),
    (
        PRO,
        contents(HELLO, ("model", [{"functionCall": {"name": "read", "args": {}}}]), ("user", [BACK])),
        "missing a thought_signature",
    ),
    (PRO, contents(HELLO, ("model", [{"text": "I."}])), "single turn requests end with a user role"),
    (PRO, declared(SCHEMA, name="1 a"), "Invalid function name"),
    (
        PRO,
        {"tools": [{"functionDeclarations": [{"name": "a"}, {"name": "a"}]}]},
        "Duplicate function declaration",
    ),
    (PRO, declared({**SCHEMA, "additionalProperties": False}), 'Unknown name \\"additionalProperties\\"'),
    (PRO, prop({"const": "x"}), 'Unknown name \\"const\\"'),
    (PRO, declared({**SCHEMA, "$schema": "x"}), 'Unknown name \\"$schema\\"'),
    (PRO, prop({"type": ["string", "null"]}), "Proto field is not repeating, cannot start list."),
    (PRO, prop({"type": "array"}), "items: missing field."),
    (PRO, declared({"type": "object", "properties": {}}), "should be non-empty for OBJECT type"),
    (PRO, declared({**SCHEMA, "required": ["b"]}), "required[0]: property is not defined"),
    (PRO, declared(SCHEMA, parametersJsonSchema=SCHEMA), "only one of parameters"),
    (PRO, {"generationConfig": {"responseJsonSchema": SCHEMA}}, "only allowed when mime type is"),
    (
        FLASH,
        {"generationConfig": {"responseMimeType": "application/json"}},
        "Function calling with a response mime",
    ),
    (
        PRO,
        contents(("user", [{"inlineData": {"mimeType": "image/bmp", "data": PIXEL}}])),
        "Unsupported MIME type",
    ),
    (
        PRO,
        contents(("user", [{"inlineData": {"mimeType": "image/png", "data": "!"}}])),
        "Base64 decoding failed",
    ),
    (
        PRO,
        contents(("user", [{"inlineData": {"mimeType": "image/png", "data": "aGk="}}])),
        "process input image",
    ),
]
PLAIN = [
    {
        "functionDeclarations": [
            {"name": "read", "parametersJsonSchema": {**SCHEMA, "additionalProperties": False}}
        ]
    }
]
GOOD_GEMINI: list[tuple[str, dict[str, Any]]] = [
    (PRO, {"tools": PLAIN}),
    (PRO, thinking(thinkingLevel="HIGH", includeThoughts=True)),
    (OLDER, thinking(thinkingBudget=-1)),
    (PRO, contents(HELLO, ONCE, ("user", [BACK, {"text": "And?"}]))),
    (
        PRO,
        {
            "system_instruction": {"parts": [{"text": "Be brief."}]},
            "generation_config": {"max_output_tokens": 9},
        },
    ),
    (PRO, {"generationConfig": {"responseMimeType": "application/json", "responseJsonSchema": SCHEMA}}),
    (PRO, contents(("user", [{"inlineData": {"mimeType": "image/png", "data": PIXEL}}]))),
]


@pytest.mark.parametrize(("model", "changes", "words"), GEMINI)
def test_gemini_refuses(model: str, changes: dict[str, Any], words: str) -> None:
    with StrictServer("gemini", brain=brain, model=model) as server:
        answer = generate(server, **changes)
        assert answer.status_code in (400, 403, 404), answer.text
        assert words in words_of(answer)
        assert answer.json()["error"]["code"] == answer.status_code


@pytest.mark.parametrize(("model", "changes"), GOOD_GEMINI)
def test_gemini_takes(model: str, changes: dict[str, Any]) -> None:
    with StrictServer("gemini", brain=brain, model=model) as server:
        answer = generate(server, **changes)
        assert answer.status_code == 200, answer.text
