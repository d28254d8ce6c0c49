"""The program without a screen, as a person starts it: `python -m tui_agent …` in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from support.nursery import Popen

PATIENCE_SECONDS = 90


def run(
    *words: str,
    folder: Path,
    environment: Mapping[str, str] | None = None,
    stdin: str = "",
    patience: float = PATIENCE_SECONDS,
) -> subprocess.CompletedProcess[str]:
    """Run it to its end in `folder`; never raises for its exit status."""
    command = [sys.executable, "-m", "tui_agent", *words]
    with started(*words, folder=folder, environment=environment) as program:
        try:
            out, err = program.communicate(stdin, timeout=patience)
        except subprocess.TimeoutExpired:
            program.kill()
            raise
        return subprocess.CompletedProcess(command, program.wait(), out, err)


def started(*words: str, folder: Path, environment: Mapping[str, str] | None = None) -> subprocess.Popen[str]:
    """It, with all three streams in our hands."""
    pipe = subprocess.PIPE
    command = [sys.executable, "-m", "tui_agent", *words]
    variables = {**os.environ, **(environment or {})}
    return Popen(command, cwd=folder, env=variables, stdin=pipe, stdout=pipe, stderr=pipe, text=True)


def json_lines(done: subprocess.CompletedProcess[str]) -> list[dict[str, Any]]:
    """Standard output as JSON lines; every line must be one object with a type."""
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert all(isinstance(line, dict) and "type" in line for line in lines), done.stdout
    return lines


def of_type(lines: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [line for line in lines if line["type"] == kind]
