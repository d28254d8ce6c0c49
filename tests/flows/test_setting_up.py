"""From an empty home to the first applied change, and the setup at a later time, in a pseudo-terminal."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.openai_wire import Answer
from support.provider import Provider
from support.sessions import reply
from support.terminal_program import Program, running

ENTER, ESC, F8 = b"\r", b"\x1b", b"\x1b[19~"
FIX = {"path": "calc.py", "edits": [{"search": "a - b", "replace": "a + b"}]}


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch) -> Iterator[Provider]:
    monkeypatch.delenv("TUI_AGENT_MODEL", raising=False)
    with Provider() as started:
        for name, value in started.environment.items():
            monkeypatch.setenv(name, value)
        yield started


def test_three_keys_lead_from_an_empty_home_to_the_first_change(
    tmp_path: Path, home: Path, provider: Provider
) -> None:
    file = tmp_path / "calc.py"
    file.write_text("def add(a, b):\n    return a - b\n")
    provider.otherwise = Answer('{"ok": true}')  # to the requests that try the server
    with running(Program(folder=tmp_path, home=home), sign="Chat") as program:
        program.shows("1  use openai/test-model")
        program.type(b"1")
        program.shows("Model  openai/test-model")
        provider.answer(Answer(json.dumps(reply("Corrected.", fileChanges=[FIX]))))
        program.type(b"fix add")
        program.shows("fix add")
        program.type(ENTER)
        program.shows("● 1 change")
        program.type(F8)
        program.until(lambda: "a + b" in file.read_text(), "the change on disk")
        assert not list(home.rglob("settings.toml"))


def test_setup_shows_each_step_and_saves_only_by_a_question(
    tmp_path: Path, home: Path, provider: Provider
) -> None:
    (tmp_path / "test_calc.py").write_text("def test_it():\n    assert True\n")
    (tmp_path / "pyproject.toml").write_text("[tool.pytest.ini_options]\n")
    with running(Program("setup", folder=tmp_path, home=home), sign="Set up") as program:
        for words in ("use openai/test-model", "log in to an account", "found here, not in use", "AGENTS.md"):
            program.shows(words)
        program.type(b"theme")
        program.until(lambda: "AGENTS.md" not in program.text, "fewer rows")
        program.type(ENTER)
        program.shows("high-contrast")
        program.type(b"light")
        program.until(lambda: "high-contrast" not in program.text, "fewer rows")
        program.type(ENTER)
        program.shows("The theme is light")
        assert not list(home.rglob("settings.toml"))
        program.type(ENTER)
        program.shows("light  in use")
        assert [it.read_text() for it in home.rglob("settings.toml")] == ['theme = "light"\n']
        program.type(ESC)
        program.shows("Checks found: pytest")  # which setup left as it was
