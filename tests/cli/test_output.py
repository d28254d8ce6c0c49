"""Standard streams that are no terminal, full, closed, or read by somebody who goes away."""

from __future__ import annotations

import json
import os
import pty
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from support.program import PATIENCE_SECONDS
from support.program import run as run_program
from support.recordings import recorded

PROGRAM = (sys.executable, "-m", "tui_agent")


def shell(line: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """A line for the shell in which `$P` is the program; `pipefail` gives the program's status through a pipe."""
    program = shlex.join(PROGRAM)  # its path may hold a space
    return subprocess.run(
        ["bash", "-o", "pipefail", "-c", f'program() {{ {program} "$@"; }}; {line.replace("$P", "program")}'],
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )


def one_sentence(text: str) -> str:
    """The one line on standard error, which is a sentence of ours."""
    assert len(text.splitlines()) == 1 and text.startswith("tui-agent: "), text
    return text


@pytest.mark.parametrize("line", ["$P </dev/null", "$P | cat", "$P demo </dev/null", "$P --continue . | cat"])
def test_the_full_screen_needs_a_terminal(tmp_path: Path, line: str) -> None:
    done = shell(line, tmp_path)
    assert done.returncode == 2
    assert "tui-agent run" in one_sentence(done.stderr)
    assert done.stdout == ""


@pytest.mark.parametrize("term", ["unknown", ""])
def test_a_terminal_that_cannot_show_a_screen_is_told(tmp_path: Path, term: str) -> None:
    master, terminal = pty.openpty()
    environment = {**os.environ, "TERM": term}
    done = subprocess.run(
        PROGRAM,
        cwd=tmp_path,
        env=environment,
        stdin=terminal,
        stdout=terminal,
        stderr=subprocess.PIPE,
        check=False,
    )
    os.close(terminal)
    os.close(master)
    assert done.returncode == 2
    sentence = one_sentence(done.stderr.decode())
    assert "TERM" in sentence and "tui-agent run" in sentence


@pytest.mark.parametrize("to", [">/dev/full", ">&-"])
@pytest.mark.parametrize("words", ["--help", "config show", "stats --json"])
def test_output_that_cannot_be_written_is_told_in_one_sentence(tmp_path: Path, words: str, to: str) -> None:
    done = shell(f"$P {words} {to}", tmp_path)
    assert done.returncode == 1
    assert "cannot be written" in one_sentence(done.stderr)


def test_a_reader_that_goes_away_ends_it_quietly(tmp_path: Path) -> None:
    done = shell("$P config show | head -1", tmp_path)
    assert (done.stderr, len(done.stdout.splitlines())) == ("", 1)


@pytest.mark.parametrize(
    ("to", "json_lines"),
    [(">/dev/full", ""), (">/dev/full", "--json"), ("| head -c 1", "--json"), (">&-", "")],
)
def test_a_turn_whose_output_is_lost_is_kept(tmp_path: Path, to: str, json_lines: str) -> None:
    (tmp_path / "a.py").write_text("a = 1\n")
    edit = {"path": "a.py", "content": "a = 2\n"}
    ask = "set a in a.py to two"
    reply = json.dumps({"summary": "Sets it to two.", "fileChanges": [edit]})
    replay = recorded(tmp_path / "replay.jsonl", (ask, reply))
    done = shell(f"$P run {json_lines} --replay {replay} --planner-model none '{ask}' {to}", tmp_path)
    assert done.returncode == 1, done
    assert "Traceback" not in done.stderr
    if "head" not in to:
        assert (
            "cannot be written" in done.stderr.splitlines()[-1] and "is saved" in done.stderr.splitlines()[-1]
        )
    applied = run_program("apply", "--session", "last", folder=tmp_path)
    assert applied.returncode == 0, applied.stderr
    assert (tmp_path / "a.py").read_text() == "a = 2\n"
