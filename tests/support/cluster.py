"""A Dask cluster of worker processes on loopback, in a process of its own, as a cluster elsewhere."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

_PROGRAM = """\
import sys, dask
from distributed import LocalCluster
dask.config.set({"distributed.scheduler.allowed-failures": int(sys.argv[2]), "distributed.worker.daemon": False})
if __name__ == "__main__":
    with LocalCluster(n_workers=int(sys.argv[1]), threads_per_worker=1, processes=True, dashboard_address=None,
                      host="127.0.0.1") as cluster:
        print(cluster.scheduler_address, flush=True)
        sys.stdin.read()
"""


class ClusterProcess:
    """`address` is of its scheduler; its workers have `temporary` for their files."""

    def __init__(self, process: subprocess.Popen[str], address: str, temporary: Path) -> None:
        self.process, self.address, self.temporary = process, address, temporary

    def ours(self) -> list[tuple[int, int]]:
        """Our workers below the cluster, and the Dask worker of each."""
        starters = dict(_processes("TUI_AGENT_FOR="))
        found = [(one, starters.get(parent, 0)) for one, parent in _processes("TUI_AGENT_RUN=")]
        return [(one, parent) for one, parent in found if parent]

    def starters(self) -> list[int]:
        """The processes that fork our workers."""
        return [one for one, _ in _processes("TUI_AGENT_FOR=")]


def _processes(variable: str) -> list[tuple[int, int]]:
    """Processes of tui-agent with this variable, each with its parent."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            line = (path / "cmdline").read_bytes().split(b"\0")
            parent = int((path / "stat").read_text(errors="replace").rpartition(") ")[2].split()[1])
            variables = (path / "environ").read_bytes()
        except OSError:
            continue
        if (
            b"tui_agent" in line
            and b"worker" in line
            and f"\0{variable}".encode() in b"\0" + variables
            and (f"TEST_OF={os.getpid()}\0".encode() in variables)
        ):
            found.append((int(path.name), parent))
    return found


@contextmanager
def cluster(folder: Path, workers: int = 4, failures: int = 0) -> Generator[ClusterProcess]:
    program = folder / "cluster.py"
    program.write_text(_PROGRAM)
    temporary = folder / "tmp"
    temporary.mkdir()
    process = subprocess.Popen(
        [sys.executable, "-P", str(program), str(workers), str(failures)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=folder,
        env={**os.environ, "TEST_OF": str(os.getpid()), "TMPDIR": str(temporary)},
        start_new_session=True,
    )
    assert process.stdout is not None and process.stdin is not None
    try:
        yield ClusterProcess(process, process.stdout.readline().strip(), temporary)
    finally:
        process.stdin.close()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        until = time.monotonic() + 20
        while left := _processes("TUI_AGENT_"):
            assert time.monotonic() < until, left
            time.sleep(0.02)
