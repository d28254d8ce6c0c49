"""Sub-tasks in places: their workers, and what these leave behind."""

from __future__ import annotations

import os
import shlex
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from support.places import places
from support.subtasks import GoalModel, working

from tui_agent.session.session import Session
from tui_agent.store.graph import SubTask

ROOT = Path(__file__).parents[2]


def install(folder: Path, words: str = "") -> Path:
    """A `tui-agent` for workers in `folder`; `words` replace what it runs."""
    folder.mkdir(exist_ok=True)
    program = folder / "tui-agent"
    program.write_text(f'#!/bin/sh\n{words or f"exec {shlex.quote(sys.executable)} -P -m tui_agent"} "$@"\n')
    program.chmod(0o755)
    return folder


@asynccontextmanager
async def in_place(
    root: Path,
    model: GoalModel,
    tasks: Sequence[SubTask],
    place: Mapping[str, object],
    *more: str,
    **options: Any,
) -> AsyncGenerator[Session]:
    """A session whose sub-tasks run in `place`, which is named `there`."""
    overrides = (*places({"name": "there", **place}), "subtasks.place=there", *more)
    async with working(root, model, tasks, overrides=overrides, **options) as session:
        yield session


def workers(words: str = "worker") -> list[int]:
    """The processes of workers of this test's process: their environment names it."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            line = (path / "cmdline").read_bytes().split(b"\0")
            variables = (path / "environ").read_bytes()
        except OSError:
            continue
        if words.encode() in line and f"TEST_OF={os.getpid()}\0".encode() in variables:
            found.append(int(path.name))
    return found


def nothing_left(temporary: Path | None = None) -> None:
    """Waits until no worker, no process that one started and no folder of one is left."""
    until = time.monotonic() + 10
    folder = temporary or Path(tempfile.gettempdir())
    while (left := [*_marked(), *folder.glob("tui-agent-worker-*")]) != []:
        assert time.monotonic() < until, left
        time.sleep(0.05)


def _marked() -> list[str]:
    """The command lines of processes that a worker's script or a worker started."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            variables = (path / "environ").read_bytes()
            if f"TEST_OF={os.getpid()}\0".encode() in variables and b"TUI_AGENT_RUN=" in variables:
                found.append(f"{path.name} {(path / 'cmdline').read_bytes()!r}")
        except OSError:
            continue
    return found
