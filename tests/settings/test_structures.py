"""TOML and JSON from outside: a text beyond the bounds is unreadable, whatever bound it is."""

from __future__ import annotations

import pytest

from tui_agent.settings.files import MOST_LETTERS, Unreadable, read_json, read_toml


@pytest.mark.parametrize(
    "text",
    [
        "a = ",
        "a = " + "9" * 5000,
        "a = 9999-99-99",
        "a = " + "[" * 200 + "]" * 200,
        "a = " + "[" * 100_000,
        "a" + ".a" * 100 + " = 1",
        "[a" + ".a" * 100 + "]",
        "b = {a" + ".a" * 100 + " = 1}",
        "a = 1 #" + "x" * MOST_LETTERS,
    ],
)
def test_toml_beyond_the_bounds(text: str) -> None:
    with pytest.raises(Unreadable):
        read_toml(text)


@pytest.mark.parametrize(
    "text", ["", "9" * 5000, "[" * 200 + "]" * 200, "[" * 100_000, " " * (MOST_LETTERS + 1)]
)
def test_json_beyond_the_bounds(text: str) -> None:
    with pytest.raises(Unreadable):
        read_json(text)


def test_ordinary_texts_are_read() -> None:
    dots = "." * 500
    assert read_toml(f'a.b = [1, {{c = "{dots} = x"}}] # {dots}\n') == {"a": {"b": [1, {"c": f"{dots} = x"}]}}
    assert read_json('{"a": [1, 2.5]}') == {"a": [1, 2.5]}
