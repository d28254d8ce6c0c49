"""What a worker leaves: its folder, and processes that it started."""

from __future__ import annotations

import os
import shutil
import signal
from contextlib import suppress
from pathlib import Path

#: Variable with the name of the run, in the environment of a worker and of all that it starts.
RUN = "TUI_AGENT_RUN"


def home_of(run: str) -> Path:
    """The folder of a worker; the script of a place removes it too."""
    return Path(os.environ.get("TMPDIR") or "/tmp", f"tui-agent-worker-{run}")


def end_all(run: str) -> None:
    """Ends the other processes of the run, if the system lists them in /proc, and removes its folder. Blocking."""
    mark = f"{RUN}={run}\0".encode()
    for path in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):
            pid = int(path.parent.name)
            if pid != os.getpid() and mark in path.read_bytes() + b"\0":
                os.kill(pid, signal.SIGKILL)
    shutil.rmtree(home_of(run), ignore_errors=True)
