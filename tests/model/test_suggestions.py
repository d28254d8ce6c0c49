"""What is suggested for a provider, and what follows a model that is switched off, at a date."""

from __future__ import annotations

from datetime import date, timedelta

import pytest

from tui_agent.model.model_table import (
    NOT_SUGGESTED_DAYS,
    KnownModel,
    ModelTable,
    about_the_end,
    all_providers,
    follower,
    is_ended,
    provider_of,
    suggestion,
    table,
    today,
    version_of,
)
from tui_agent.model.rules import providers

DAY = date(2026, 11, 23)


def known(provider: str, model: str) -> KnownModel:
    return table().models[provider][model]


def test_each_provider_that_takes_a_key_has_a_suggestion_that_lasts() -> None:
    checked = 0
    for provider in all_providers():
        name = provider.suggestion
        if not name:
            assert not provider.takes_key, f"{provider.name} has no suggestion today"
            continue
        assert provider_of(name) is provider
        _, _, model = name.partition("/")
        if provider.name in table().models:
            assert not is_ended(known(provider.name, model), today(), NOT_SUGGESTED_DAYS), name
            checked += 1
    assert checked >= 12


def test_a_model_that_ends_within_a_month_is_not_suggested() -> None:
    one = KnownModel(1, 1, "t", ends=(DAY + timedelta(days=NOT_SUGGESTED_DAYS)).isoformat())
    assert is_ended(one, DAY, NOT_SUGGESTED_DAYS) and not is_ended(one, DAY)
    assert not is_ended(one, DAY - timedelta(days=1), NOT_SUGGESTED_DAYS)
    assert not is_ended(KnownModel(1, 1, "t"), date(2100, 1, 1), NOT_SUGGESTED_DAYS)


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("claude-opus-4-8", "claude-opus-5"),
        ("claude-opus-5", "claude-opus-5-5"),
        ("claude-3-7-sonnet-20250219", "claude-sonnet-4-5-20250929"),
        ("gpt-6-sol", "gpt-6.1-sol"),
        ("gpt-4o-2024-11-20", "gpt-5"),
        ("grok-4.20-0309", "grok-4.3"),
        ("gemini-3.8-flash", "gemini-4-argon"),
        ("mistral-large-2512", "mistral-large-4"),
        ("gpt-oss-120b", "o1"),
    ],
)
def test_the_version_is_read_from_the_name(older: str, newer: str) -> None:
    assert version_of(older) < version_of(newer)


FOLLOWERS = [
    ("deepseek", "deepseek-chat", "deepseek/deepseek-v4-flash"),
    ("anthropic", "claude-sonnet-4-5", "anthropic/claude-sonnet-5-5"),
    ("gemini", "gemini-3.1-flash-lite-preview", "gemini/gemini-3.5-flash-lite"),
    ("openai", "gpt-5-codex", "openai/gpt-5.3-codex"),
    ("openai", "o1-pro", "openai/gpt-6.1-sol"),
]


@pytest.mark.parametrize(("provider", "model", "expected"), FOLLOWERS)
def test_the_newest_of_its_kind_follows_a_model(provider: str, model: str, expected: str) -> None:
    assert follower(provider, model, DAY) == expected
    said = about_the_end(provider, model, known(provider, model), DAY)
    assert said.startswith(f"{provider}/{model} w") and said.endswith(f"; {expected} follows it")


def test_the_end_of_a_model_is_said_before_and_after_it() -> None:
    one = known("deepseek", "deepseek-chat")
    assert about_the_end("deepseek", "deepseek-chat", one, date(2026, 5, 1)) == ""
    assert "will be switched off on 2026-07-24;" in about_the_end(
        "deepseek", "deepseek-chat", one, date(2026, 6, 1)
    )
    assert "was switched off on 2026-07-24;" in about_the_end("deepseek", "deepseek-chat", one, DAY)


def test_with_an_old_table_there_is_a_sentence_and_no_suggestion(monkeypatch: pytest.MonkeyPatch) -> None:
    ended = KnownModel(1, 1, "t", ends="2026-12-01")
    old = ModelTable("1", {name: dict.fromkeys(models, ended) for name, models in table().models.items()})
    monkeypatch.setattr("tui_agent.model.model_table.table", lambda: old)
    day = date(2031, 1, 1)
    assert [suggestion(provider, day) for provider in providers()] == [""] * len(providers())
    said = about_the_end("openai", "gpt-6-sol", ended, day)
    assert said == "openai/gpt-6-sol was switched off on 2026-12-01; choose another model"


def test_what_is_suggested_is_of_the_day(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also in a session that is open for weeks."""
    ends = KnownModel(1, 1, "t", ends="2026-12-01")
    models = {name: dict.fromkeys(known, ends) for name, known in table().models.items()}
    monkeypatch.setattr("tui_agent.model.model_table.table", lambda: ModelTable("1", models))
    openai = next(one for one in all_providers() if one.name == "openai")
    for day, suggested in ((date(2026, 1, 2), True), (date(2031, 1, 2), False)):
        monkeypatch.setattr("tui_agent.model.model_table.today", lambda day=day: day)
        assert bool(openai.suggestion) == suggested


def test_an_end_that_only_its_provider_has_announced_is_known() -> None:
    known = table().models["gemini"]["gemini-2.5-pro"]
    assert is_ended(known, date(2026, 12, 1)) and not is_ended(known, date(2026, 11, 30))
    assert "2026-12-01" in about_the_end("gemini", "gemini-2.5-pro", known, date(2026, 11, 23))
