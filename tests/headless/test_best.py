"""`run --best`: several attempts without a screen, of which one is applied."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.program import json_lines, of_type, run
from support.repositories import repository

#: Three programs that take the goal as their argument, and the check that one of them fails.
PROGRAMS = {
    "early": "echo three >> a.txt",
    "late": 'echo "two $(echo "$1" | tail -n 1)" >> a.txt; rm b.txt',
    "idle": "true",
    "broken": "exit 3",
}
CHECK = ("--set", 'checks.commands=[{"name": "no three", "command": "! grep -q three a.txt"}]')


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TUI_AGENT_HOME", str(tmp_path / "tui"))
    profiles = tmp_path / "tui/config/agent-programs"
    profiles.mkdir(parents=True)
    for name, script in PROGRAMS.items():
        words = ["-c", f"{script} && echo Done by {name}.", "x", "{prompt}"]
        (profiles / f"{name}.toml").write_text(f'program = "/bin/sh"\nheadless = {json.dumps(words)}\n')
    return repository(tmp_path / "work", {"a.txt": "one\n", "b.txt": "b\n"})


def test_attempts_are_compared_and_nothing_is_written(work: Path) -> None:
    done = run("run", "--json", *CHECK, "--best", "early,late", "Go on", folder=work)
    assert done.returncode == 0, done.stderr
    lines = json_lines(done)
    ended = {line["id"]: line for line in of_type(lines, "subtask") if line["state"] == "completed"}
    assert sorted(ended) == ["best 1.1 early", "best 1.2 late"]
    assert "no three failed" in ended["best 1.1 early"]["summary"]
    assert ended["best 1.2 late"]["summary"].startswith("checks passed, 2 files, +1 -1: Done by late.")
    assert lines[0]["type"] == "session" and lines[-1]["ok"] and not of_type(lines, "change")
    assert (work / "a.txt").read_text() == "one\n" and (work / "b.txt").exists()


def test_the_first_attempt_without_a_failed_check_is_applied(work: Path) -> None:
    done = run("run", *CHECK, "--best", "idle,early,late", "--apply", "checked", "Go on", folder=work)
    assert done.returncode == 0, done.stderr
    assert (work / "a.txt").read_text() == "one\ntwo Go on\n" and not (work / "b.txt").exists()
    assert "sub-task best 1.2 early completed: no three failed" in done.stdout


def test_without_such_an_attempt_nothing_is_written(work: Path) -> None:
    done = run("run", *CHECK, "--best", "broken,early", "--apply", "all", "Go on", folder=work)
    assert done.returncode == 1 and "no attempt has changes without a failed check" in done.stderr
    assert (work / "a.txt").read_text() == "one\n"
    done = run("run", "--best", "broken,broken", "Go on", folder=work)
    assert done.returncode == 1 and "No attempt completed" in done.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--best", "early"), "2 to 8 attempts"),
        (("--best", "9"), "2 to 8 attempts"),
        (("--best", "early,,late"), "empty"),
        (("--best", "early,nowhere"), "there is no agent or model nowhere"),
        (("--best", "early,late", "--agent", "late"), "cannot be combined"),
    ],
)
def test_wrong_arguments_end_with_status_2(work: Path, words: tuple[str, ...], said: str) -> None:
    done = run("run", *words, "Go on", folder=work)
    assert done.returncode == 2 and said in done.stderr, done.stderr
