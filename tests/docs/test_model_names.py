"""The models that the documents name as examples are in the table and not switched off."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tui_agent.model.model_table import NOT_SUGGESTED_DAYS, is_ended, table, today

ROOT = Path(__file__).parents[2]
_NAMED = re.compile(r"--model ((?:openai|anthropic|gemini|deepseek|mistral|xai)/[\w.-]+\w)")


@pytest.mark.parametrize("document", ["README.md", *sorted(p.name for p in (ROOT / "docs").glob("*.md"))])
def test_named_models_last(document: str) -> None:
    path = ROOT / document if document == "README.md" else ROOT / "docs" / document
    named = _NAMED.findall(path.read_text("utf-8"))
    assert named or document != "README.md"
    for name in named:
        provider, _, model = name.partition("/")
        assert model in table().models[provider], name
        assert not is_ended(table().models[provider][model], today(), NOT_SUGGESTED_DAYS), name
