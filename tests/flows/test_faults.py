"""What a person meets when something around the program is broken: one sentence, and it goes on."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.program import json_lines, of_type, run

EXCHANGE = {
    "type": "exchange",
    "pass": "main",
    "ask": "Hello",
    "chunks": [
        [0, {"type": "text", "text": json.dumps({"summary": "Good day."})}],
        [0, {"type": "end", "reason": "stop"}],
    ],
}


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "a file with\nnewline.py").write_text("x = 1\n")
    (folder / "[bold]markup.md").write_text("[red]x\x1b[31m\n")
    return folder


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    path = tmp_path / "recording.jsonl"
    header = {"type": "recording", "version": 1, "protocol": "structured", "window": 1000}
    path.write_text("\n".join(json.dumps(line) for line in (header, EXCHANGE)) + "\n")
    return path


def hello(work: Path, recording: Path, **environment: str):
    return run("run", "--json", "--replay", str(recording), "Hello", folder=work, environment=environment)


def test_a_home_that_cannot_be_written_is_said_and_the_turn_runs(
    work: Path, recording: Path, tmp_path: Path
) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    done = hello(work, recording, TUI_AGENT_HOME=str(blocked / "home"))
    lines = json_lines(done)
    assert done.returncode == 0, done.stderr
    assert of_type(lines, "response")[0]["summary"] == "Good day."
    assert any("cannot be written" in notice["text"] for notice in of_type(lines, "notice"))


@pytest.mark.parametrize("text", ["x = [", 'modle = "x"\n', "max_steps = 'many'\n"])
def test_a_broken_settings_file_is_said_and_the_shipped_values_are_used(
    work: Path, recording: Path, home: Path, text: str
) -> None:
    (home / "config").mkdir(parents=True)
    (home / "config/settings.toml").write_text(text)
    done = hello(work, recording)
    assert done.returncode == 0, done.stderr
    notices = of_type(json_lines(done), "notice")
    assert any("settings.toml" in notice["text"] and "line 1" in notice["text"] for notice in notices)


def test_a_recording_that_does_not_fit_says_so(work: Path, recording: Path) -> None:
    done = run("run", "--json", "--replay", str(recording), "Something else", folder=work)
    assert done.returncode == 1
    assert "continues with “Hello”" in json_lines(done)[-1]["error"]


@pytest.mark.parametrize(
    "words",
    [
        ("nowhere/at/all",),
        ("--modle", "x"),
        ("--set", "foo=1"),
        ("runn",),
        ("run",),
        ("apply",),
        ("sessions", "show", "../x"),
    ],
)
def test_wrong_arguments_are_one_sentence_and_no_traceback(work: Path, words: tuple[str, ...]) -> None:
    done = run(*words, folder=work)
    assert done.returncode in (1, 2)
    assert done.stderr.startswith("tui-agent: ") and done.stderr.count("\n") == 1, done.stderr
    assert done.stdout == ""


def test_a_session_is_recorded_and_played_back(work: Path, recording: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.jsonl"
    first = run("run", "--json", "--replay", str(recording), "--record", str(copy), "Hello", folder=work)
    assert first.returncode == 0, first.stderr
    again = run("run", "--json", "--replay", str(copy), "Hello", folder=work)
    assert of_type(json_lines(again), "response") == of_type(json_lines(first), "response")
