"""Running `tui-agent` from a test: in this process, or as a program of its own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from tui_agent import cli


@dataclass(frozen=True)
class Outcome:
    """How a command ended, and what it said."""

    status: int
    out: str
    err: str

    @property
    def sentence(self) -> str:
        """The one line on standard error, without the program's name."""
        lines = self.err.splitlines()
        assert len(lines) == 1, self.err
        assert lines[0].startswith("tui-agent: ")
        return lines[0].removeprefix("tui-agent: ")


def run_here(capfd: pytest.CaptureFixture[str], words: Sequence[str]) -> Outcome:
    """Run the command line in this process."""
    capfd.readouterr()
    status = cli.main(words)
    captured = capfd.readouterr()
    return Outcome(status, captured.out, captured.err)


def run_program(*words: str, **how: Any) -> Outcome:
    """Run `python -m tui_agent WORDS…` as a process of its own."""
    command = [sys.executable, "-m", "tui_agent", *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, **how)
    return Outcome(done.returncode, done.stdout, done.stderr)
