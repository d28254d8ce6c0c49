"""A host for starts of the program, and the launcher that asks it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from support.terminal_program import PATIENCE

from tui_agent.cli import ROOM_FOR_TITLE
from tui_agent.control import launcher

#: The launcher with more patience, because other tests run on this machine.
PATIENT = """
import sys
sys.path.append(sys.argv[1])
from tui_agent.control import connections, launcher
connections.ANSWER_WITHIN = launcher.ANSWER_WITHIN = launcher.MADE_WITHIN = launcher.ACCEPT_WITHIN = 60
sys.exit(launcher.main(sys.argv[3:], sys.argv[2]))
"""
TUI_AGENT = (
    *(sys.executable, "-IS", "-c", PATIENT, str(Path(launcher.__file__).parents[2])),
    str(Path(sys.executable).parent / "tui-agent-cold"),
)


def until(holds: Callable[[], Any], what: str) -> Any:
    deadline = time.monotonic() + PATIENCE
    while not (found := holds()):
        assert time.monotonic() < deadline, f"never: {what}"
        time.sleep(0.02)
    return found


def host_sockets() -> list[Path]:
    return [path for path in Path(os.environ["TMPDIR"]).glob("*/host-*") if path.suffix != ".lock"]


def spare_of(host: int) -> int:
    """The newest program of the host."""
    done = subprocess.run(
        ["ps", "-o", "pid=", "--ppid", str(host)], capture_output=True, text=True, check=False
    )
    return max(map(int, done.stdout.split()), default=0)


@contextmanager
def hosting(idle: int = 600) -> Generator[subprocess.Popen[bytes]]:
    words = [sys.executable, "-P", "-m", "tui_agent.start", str(idle), " " * ROOM_FOR_TITLE]
    host = subprocess.Popen(words, cwd="/", stdin=subprocess.DEVNULL, start_new_session=True)
    try:
        until(lambda: host_sockets() and spare_of(host.pid), "a host")
        yield host
    finally:
        host.kill()
        host.wait()
