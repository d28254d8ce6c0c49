"""Estimates, vocabularies, and counting without the network."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui_agent.model import worker
from tui_agent.model.client import TokenCount, estimate, vocabulary
from tui_agent.model.wires.conversation import is_strict, response_format


@given(st.text())
def test_an_estimate_is_about_four_bytes_a_token(text: str) -> None:
    size = len(text.encode(errors="replace"))
    assert size / 4 <= estimate(text) < size / 4 + 1


def test_half_a_character_does_not_break_it() -> None:
    assert estimate("\ud83d") == 1


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("openai/gpt-5", ("o200k_base", True)),
        ("gpt-4o-mini", ("o200k_base", True)),
        ("azure/gpt-4", ("cl100k_base", True)),
        ("anthropic/claude-sonnet-4-5", ("o200k_base", False)),
    ],
)
def test_which_vocabulary_a_model_takes(model: str, expected: tuple[str, bool]) -> None:
    assert vocabulary(model) == expected


def test_counting_needs_no_litellm() -> None:
    program = (
        "import sys; from tui_agent.model import worker;"
        "print(worker.count_tokens('gpt-4o', ['hello world', '']).counts, 'litellm' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "(2, 0) False"


def test_a_missing_vocabulary_is_an_estimate_and_is_not_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    worker.load_vocabulary.cache_clear()
    monkeypatch.setattr(worker, "vocabulary_folder", lambda: None)
    assert worker.count_tokens("gpt-4o", ["twelve bytes"]) == TokenCount((3,), exact=False)
    worker.load_vocabulary.cache_clear()


def test_a_schema_is_strict_where_every_property_is_required_and_no_other_allowed() -> None:
    inner = {"type": "object", "properties": {"b": {}}, "required": ["b"], "additionalProperties": False}
    outer = {**inner, "properties": {"b": {"type": "array", "items": inner}}}
    assert is_strict(outer)
    assert not is_strict({**outer, "required": []})
    assert not is_strict({name: value for name, value in outer.items() if name != "additionalProperties"})
    assert not is_strict({**outer, "properties": {"b": {"type": "array", "items": {"type": "object"}}}})
    assert response_format(outer, "json_schema", is_strict(outer))["json_schema"]["strict"] is True
