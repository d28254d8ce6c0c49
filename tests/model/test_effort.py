"""Levels of effort: the person's as the provider's own, in words, and as the fields of a request."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from tui_agent.model.rules import (
    EffortForm,
    Rules,
    accepts_temperature,
    effort_note,
    effort_parameters,
    level_of,
    rules_of,
)
from tui_agent.settings.schema import Effort

FULL = Rules(effort="reasoning_effort", levels=("none", "low", "medium", "high", "max"), auto="medium")
GAPS = Rules(effort="reasoning_effort", levels=("low", "high"), auto="high")
HIGH = Rules(effort="reasoning_effort", levels=("medium", "high", "xhigh"), auto="")
OWN = Rules(effort="reasoning_effort", levels=("none", "default"))
WITHOUT = Rules()
UNASKED = Rules(levels=("low", "high"), auto="high")


@pytest.mark.parametrize(
    ("rules", "effort", "level"),
    [
        (FULL, "auto", "medium"),
        (FULL, "none", "none"),
        (FULL, "low", "low"),
        (FULL, "max", "max"),
        (GAPS, "auto", "high"),
        (GAPS, "none", "low"),
        (GAPS, "low", "low"),
        (GAPS, "medium", "low"),
        (GAPS, "high", "high"),
        (GAPS, "max", "high"),
        (HIGH, "auto", ""),
        (HIGH, "none", "medium"),
        (HIGH, "low", "medium"),
        (HIGH, "max", "xhigh"),
        (OWN, "none", "none"),
        (OWN, "low", "none"),
        (OWN, "high", "default"),
        (OWN, "max", "default"),
        (WITHOUT, "high", ""),
        (UNASKED, "high", ""),
        (UNASKED, "auto", ""),
    ],
)
def test_levels(rules: Rules, effort: Effort, level: str) -> None:
    assert level_of(rules, effort) == level


@pytest.mark.parametrize(
    ("rules", "effort", "words"),
    [
        (FULL, "auto", ""),
        (FULL, "high", ""),
        (FULL, "max", ""),
        (GAPS, "max", "m: max is high"),
        (GAPS, "medium", "m has no effort medium: low is used instead"),
        (GAPS, "none", "m has no effort none: low is used instead"),
        (HIGH, "low", "m has no effort low: medium is used instead"),
        (WITHOUT, "auto", ""),
        (WITHOUT, "low", "m has no effort levels"),
        (UNASKED, "low", "m has no effort levels"),
    ],
)
def test_a_level_that_the_model_takes_in_another_way_is_in_words(
    rules: Rules, effort: Effort, words: str
) -> None:
    assert effort_note("m", rules, effort) == words


def of(form: EffortForm, **options: Any) -> Rules:
    return Rules(effort=form, levels=("none", "low", "high", "max"), auto="high", **options)


BUDGETS = {"low": 4_000, "high": 30_000, "max": 60_000}
ADAPTIVE = {"type": "adaptive"}
SHOWN = {"thinking": {**ADAPTIVE, "display": "summarized"}}
FORMS: list[tuple[Rules, Effort, dict[str, Any]]] = [
    (of("reasoning_effort"), "low", {"reasoning_effort": "low"}),
    (of("reasoning_effort"), "none", {"reasoning_effort": "none"}),
    (of("adaptive"), "max", {"thinking": ADAPTIVE, "output_config": {"effort": "max"}}),
    (of("adaptive"), "none", {"thinking": {"type": "disabled"}}),
    (
        of("adaptive", display=True),
        "high",
        {**SHOWN, "output_config": {"effort": "high"}},
    ),
    (
        of("adaptive", off={"thinking": {"type": "between_tools"}}),
        "none",
        {"thinking": {"type": "between_tools"}},
    ),
    (of("budget", budgets=BUDGETS), "low", {"thinking": {"type": "enabled", "budget_tokens": 4_000}}),
    (of("budget", budgets=BUDGETS), "none", {}),
    (of("thinking_level"), "low", {"thinkingLevel": "low", "includeThoughts": True}),
    (of("thinking_budget", budgets=BUDGETS), "high", {"thinkingBudget": 30_000, "includeThoughts": True}),
    (
        of("thinking_budget", budgets={"none": 0}),
        "none",
        {"thinkingBudget": 0, "includeThoughts": False},
    ),
    (of("thinking_budget"), "low", {"thinkingBudget": -1, "includeThoughts": True}),
    (of("thinking_switch"), "high", {"thinking": {"type": "enabled"}, "reasoning_effort": "high"}),
    (of("thinking_switch"), "none", {"thinking": {"type": "disabled"}}),
    (
        Rules(effort="thinking_switch", levels=("none", "high"), auto="high"),
        "auto",
        {"thinking": {"type": "enabled"}},
    ),
    (of("enable_thinking", budgets=BUDGETS), "low", {"enable_thinking": True, "thinking_budget": 4_000}),
    (of("enable_thinking"), "none", {"enable_thinking": False}),
    (of("openrouter"), "max", {"reasoning": {"effort": "xhigh"}}),
    (of("openrouter"), "none", {"reasoning": {"effort": "none"}}),
    (of("openrouter"), "auto", {"reasoning": {"effort": "high"}}),
    (of(""), "high", {}),
    (WITHOUT, "max", {}),
]


@pytest.mark.parametrize(("rules", "effort", "fields"), FORMS)
def test_fields_that_ask_for_a_level(rules: Rules, effort: Effort, fields: dict[str, Any]) -> None:
    assert effort_parameters(rules, effort) == fields


@pytest.mark.parametrize(
    ("most", "budget"), [(0, 30_000), (64_000, 30_000), (8_192, 7_168), (2_048, 1_024), (2_047, 0), (500, 0)]
)
def test_a_budget_leaves_room_for_the_reply(most: int, budget: int) -> None:
    fields = effort_parameters(of("budget", budgets=BUDGETS), "high", most)
    assert fields == ({"thinking": {"type": "enabled", "budget_tokens": budget}} if budget else {})


def test_fields_for_no_thinking_may_be_changed_by_their_reader() -> None:
    rules = rules_of("anthropic", "claude-sonnet-5-5")
    effort_parameters(rules, "none").clear()
    assert effort_parameters(rules, "none") == rules.off != {}


@pytest.mark.parametrize(
    ("rules", "effort", "accepted"),
    [
        (FULL, "auto", True),
        (replace(FULL, temperature="without_thinking"), "auto", False),
        (replace(FULL, temperature="without_thinking"), "none", True),
        (replace(FULL, temperature="never"), "none", False),
        (replace(WITHOUT, temperature="without_thinking"), "auto", True),
    ],
)
def test_temperature(rules: Rules, effort: Effort, accepted: bool) -> None:
    assert accepts_temperature(rules, effort) is accepted


@pytest.mark.parametrize(
    ("provider", "model", "effort", "fields"),
    [
        ("openai", "gpt-5", "max", {"reasoning_effort": "high"}),
        ("openai", "gpt-5", "none", {"reasoning_effort": "minimal"}),
        ("openai", "gpt-5.6", "max", {"reasoning_effort": "max"}),
        ("anthropic", "claude-opus-5-5", "none", {**SHOWN, "output_config": {"effort": "low"}}),
        ("anthropic", "claude-sonnet-4-5", "auto", {"thinking": {"type": "enabled", "budget_tokens": 31_999}}),
        ("anthropic", "claude-opus-4-6", "auto", {"thinking": ADAPTIVE, "output_config": {"effort": "high"}}),
        ("gemini", "gemini-2.5-pro", "max", {"thinkingBudget": 32_768, "includeThoughts": True}),
        ("gemini", "gemini-3-pro-preview", "auto", {"thinkingLevel": "high", "includeThoughts": True}),
        ("deepseek", "deepseek-v4-pro", "max", {"thinking": {"type": "enabled"}, "reasoning_effort": "max"}),
        ("moonshot", "kimi-k2.5", "none", {"thinking": {"type": "disabled"}}),
        ("zai", "glm-4.6", "low", {"thinking": {"type": "disabled"}}),
        ("dashscope", "qwen3-max", "medium", {"enable_thinking": True, "thinking_budget": 8_192}),
        ("openrouter", "openai/gpt-5", "low", {"reasoning": {"effort": "low"}}),
        ("openrouter", "anthropic/claude-opus-4.6", "max", {"reasoning": {"effort": "xhigh"}}),
        ("groq", "qwen/qwen3-32b", "auto", {}),
        ("groq", "openai/gpt-oss-120b", "low", {"reasoning_effort": "low"}),
        ("hosted_vllm", "openai/gpt-oss-120b", "high", {}),
    ],
)  # fmt: skip
def test_fields_for_models(provider: str, model: str, effort: Effort, fields: dict[str, Any]) -> None:
    assert effort_parameters(rules_of(provider, model), effort) == fields


@pytest.mark.parametrize(
    ("provider", "model", "effort", "asked"),
    [
        ("mistral", "magistral-medium-latest", "auto", {}),
        ("mistral", "devstral-small-latest", "auto", {}),
        ("mistral", "mistral-medium-3-5", "auto", {"reasoning_effort": "high"}),
        ("mistral", "mistral-small-latest", "none", {"reasoning_effort": "none"}),
        ("openrouter", "anthropic/claude-sonnet-5.5", "none", {"reasoning": {"effort": "none"}}),
        ("openai", "gpt-5-chat-latest", "auto", {}),
        ("openai", "chat-latest", "high", {"reasoning_effort": "medium"}),
        ("gemini", "gemini-flash-lite-latest", "none", {"thinkingLevel": "minimal", "includeThoughts": True}),
    ],
)
def test_models_whose_names_hold_that_of_another(
    provider: str, model: str, effort: Effort, asked: dict[str, Any]
) -> None:
    assert effort_parameters(rules_of(provider, model), effort) == asked
