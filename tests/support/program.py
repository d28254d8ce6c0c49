"""The program as a person starts it: `python -m tui_agent …` in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

PATIENCE_SECONDS = 90


def run(
    *words: str,
    folder: Path,
    environment: Mapping[str, str] | None = None,
    stdin: str = "",
    patience: float = PATIENCE_SECONDS,
) -> subprocess.CompletedProcess[str]:
    """Run it to its end in `folder`; never raises for its exit status."""
    return subprocess.run(
        [sys.executable, "-m", "tui_agent", *words],
        cwd=folder,
        env={**os.environ, **(environment or {})},
        input=stdin,
        capture_output=True,
        text=True,
        timeout=patience,
        check=False,
    )


def json_lines(done: subprocess.CompletedProcess[str]) -> list[dict[str, Any]]:
    """Standard output as JSON lines; every line must be one object with a type."""
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert all(isinstance(line, dict) and "type" in line for line in lines), done.stdout
    return lines


def of_type(lines: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [line for line in lines if line["type"] == kind]
