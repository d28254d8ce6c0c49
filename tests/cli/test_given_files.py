"""Files that are named on the command line and are none, or no end of one: one sentence each, and nothing waits."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from support.command_line import Outcome, run_here

DEEP = "[" * 200_000 + "]" * 200_000


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TUI_AGENT_HOME", str(tmp_path / "home"))
    work = tmp_path / "work"
    (work / "task").mkdir(parents=True)
    (work / "folder").mkdir()
    os.mkfifo(work / "pipe")
    export = {"type": "tui-agent-session", "version": 1, "texts": {}}
    (work / "deep.json").write_text(json.dumps(export)[:-1] + f', "events": [{DEEP}]}}')
    block = f'{{"type": "text", "text": "x", "more": {DEEP}}}'
    (work / "task" / "api_conversation_history.json").write_text(
        f'[{{"role": "user", "content": [{block}]}}]'
    )
    (work / "deep.jsonl").write_text(f'{{"type": "recording", "version": {DEEP}}}\n')
    monkeypatch.chdir(work)
    return work


@pytest.mark.parametrize(
    ("words", "says", "status"),
    [
        (["sessions", "import", "pipe"], "not a regular file", 1),
        (["sessions", "import", "/dev/zero"], "not a regular file", 1),
        (["sessions", "import", "folder"], "not a task folder", 1),
        (["sessions", "import", "deep.json"], "nested too deeply", 1),
        (["sessions", "import", "task"], "nested too deeply", 1),
        (["run", "--replay", "pipe", "hello"], "no recording", 2),
        (["run", "--replay", "deep.jsonl", "hello"], "not a recording", 2),
        (["run", "--record", "pipe", "hello"], "cannot be written", 2),
        (["run", "--attach", "pipe", "hello"], "does not exist", 2),
        (["run", "--open", "pipe:3", "hello"], "does not exist", 2),
    ],
)
def test_it_is_one_sentence(folder: Path, capfd, words: list[str], says: str, status: int) -> None:
    outcome: Outcome = run_here(capfd, words)
    assert says in outcome.sentence
    assert (outcome.status, outcome.out) == (status, "")
    assert words[0] == "run" or not list((folder.parent / "home").glob("data/sessions/*/*"))
