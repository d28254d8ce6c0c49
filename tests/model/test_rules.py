"""The table of rules: every entry has a source and a model that it is for, and every model gets rules."""

from __future__ import annotations

import re
import tomllib
from typing import Any

import msgspec
import pytest

from tui_agent.model import model_table, rules
from tui_agent.model.rules import LEVELS, Rules, effort_parameters, family_of, level_of, providers, rules_of
from tui_agent.settings.schema import Effort

RAW: dict[str, Any] = tomllib.loads(rules.PATH.read_text("utf-8"))
#: (provider, entry); "" for entries of models at any provider.
ENTRIES: list[tuple[str, dict[str, Any]]] = [
    *(("", entry) for entry in RAW["models"]),
    *((name, entry) for name, own in RAW["providers"].items() for entry in own.get("models", ())),
]
IDS = [f"{provider}:{entry['match']}" for provider, entry in ENTRIES]
EFFORTS: tuple[Effort, ...] = ("auto", "none", "low", "medium", "high", "max")
#: Words of providers beside the levels.
WORDS = {*LEVELS, "default"}


def names(provider: str) -> list[str]:
    """The models of the table, of all providers for ""."""
    models = model_table.table().models
    return [name for of in ([provider] if provider else models) for name in models.get(of, ())]


@pytest.mark.parametrize(("provider", "entry"), ENTRIES, ids=IDS)
def test_each_entry_has_a_source_and_valid_fields(provider: str, entry: dict[str, Any]) -> None:
    assert entry["source"].strip()
    re.compile(entry["match"], re.IGNORECASE)
    fields = {name: value for name, value in entry.items() if name != "match"}
    assert len(fields) > 1, "an entry sets something"
    msgspec.convert(fields, Rules)


@pytest.mark.parametrize(("provider", "entry"), ENTRIES, ids=IDS)
def test_each_entry_has_a_model(provider: str, entry: dict[str, Any]) -> None:
    known = names(provider)
    found = [name for name in known if re.search(entry["match"], name, re.IGNORECASE)]
    assert found or not known


@pytest.mark.parametrize("provider", providers())
def test_each_provider_has_a_source_and_valid_fields(provider: str) -> None:
    own = {name: value for name, value in RAW["providers"][provider].items() if name != "models"}
    made = msgspec.convert(own, Rules)
    assert made.source and made.addresses and made.keys
    assert not made.address or made.address.startswith(("https://", "http://127.0.0.1:"))
    assert not made.address.endswith("/")


@pytest.mark.parametrize("provider", model_table.table().models)
def test_every_model_gets_rules_that_agree_with_each_other(provider: str) -> None:
    for name in names(provider):
        made = rules_of(provider, name)
        assert set(made.levels) <= WORDS, name
        ranked = [level for level in made.levels if level in LEVELS]
        assert ranked == sorted(ranked, key=LEVELS.index), name
        assert made.auto == "" or made.auto in made.levels, name
        assert set(made.budgets) <= set(made.levels) | {"none"}, name
        own = RAW["providers"][provider]
        assert made.wire in {own.get("wire", "chat"), *(one.get("wire") for one in own.get("models", ()))}, (
            name
        )
        assert re.search(made.call_id, "a" * made.call_id_length), name
        assert family_of(provider, name), name


@pytest.mark.parametrize("provider", model_table.table().models)
def test_parameters_of_every_model_hold_one_of_its_levels(provider: str) -> None:
    for name in names(provider):
        made = rules_of(provider, name)
        for effort in EFFORTS:
            level = level_of(made, effort)
            assert level in ("", *made.levels), (name, effort)
            # without levels nothing is asked for; only a fixed budget of 0 is left out
            none = made.effort == "budget" and level == "none"
            assert bool(effort_parameters(made, effort)) is (bool(level) and not none), (name, effort)


def test_an_unknown_provider_is_litellms() -> None:
    assert rules_of("bedrock").wire == "litellm"
    assert rules_of("bedrock", "anthropic.claude-sonnet-4-5").family == "claude-4"


def test_rules_of_a_model_are_below_those_of_its_provider() -> None:
    model = rules_of("somewhere", "deepseek-v4-pro")
    assert (model.thinking_field, model.thinking_required, model.schema) == ("reasoning_content", True, True)
    assert not rules_of("deepseek", "deepseek-v4-pro").schema
    routed = rules_of("openrouter", "deepseek/deepseek-v4-pro")
    assert (routed.thinking_field, routed.thinking_required) == ("reasoning_details", False)


@pytest.mark.parametrize(
    ("provider", "one", "other", "same"),
    [
        ("openai", "gpt-5", "gpt-5-mini-2025-08-07", True),
        ("openai", "gpt-5", "gpt-5.1", False),
        ("openai", "gpt-5.2", "gpt-5.4", True),
        ("openai", "gpt-4o", "gpt-4o-2024-08-06", True),
        ("openai", "gpt-4o", "gpt-4o-mini", False),
        ("anthropic", "claude-sonnet-4-5", "claude-opus-4-1-20250805", True),
        ("anthropic", "claude-sonnet-5-5", "claude-haiku-5-5", False),
        ("anthropic", "claude-mythos-5", "claude-fable-5", True),
        ("anthropic", "claude-fable-5-1", "claude-fable-5", False),
        ("gemini", "gemini-2.5-pro", "gemini-2.5-flash", True),
        ("gemini", "gemini-2.5-pro", "gemini-3-pro-preview", False),
        ("deepseek", "deepseek-v4-pro", "deepseek-v4-flash", True),
    ],
)
def test_families(provider: str, one: str, other: str, same: bool) -> None:
    assert (family_of(provider, one) == family_of(provider, other)) is same


@pytest.mark.parametrize(
    ("name", "bound"),
    [
        ("claude-sonnet-4-5", False),
        ("claude-opus-5", False),
        ("claude-mythos-5-1", False),
        ("claude-mythos-5-2", True),
        ("claude-fable-5-1", True),
        ("claude-opus-5-5", True),
        ("claude-sonnet-5-5", True),
        ("claude-haiku-5-5-20261101", True),
    ],
)
def test_models_that_bind_their_thinking(name: str, bound: bool) -> None:
    assert rules_of("anthropic", name).thinking_bound is bound


@pytest.mark.parametrize(
    ("name", "only"),
    [
        ("gpt-4o", False),
        ("gpt-5", False),
        ("gpt-5.2", False),
        ("gpt-5.4", True),
        ("gpt-5.6-sol", True),
        ("gpt-6-luna", True),
        ("gpt-5-codex", True),
        ("gpt-5-pro", True),
        ("o3", False),
        ("o3-pro", True),
        ("o4-mini-deep-research", True),
    ],
)
def test_models_that_take_functions_through_responses_only(name: str, only: bool) -> None:
    assert rules_of("openai", name).responses_only is only


def test_a_field_that_does_not_exist_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    changed = rules.PATH.read_text("utf-8").replace('wire = "messages"', 'wire = "messages"\nwires = "x"')
    path = tmp_path / "rules.toml"
    path.write_text(changed, "utf-8")
    monkeypatch.setattr(rules, "PATH", path)
    read = rules_of.__wrapped__
    rules._table.cache_clear()
    try:
        with pytest.raises(msgspec.ValidationError, match="wires"):
            read("anthropic")
    finally:
        rules._table.cache_clear()
