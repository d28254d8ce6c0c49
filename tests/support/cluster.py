"""A Dask cluster of worker processes on loopback, in a process of its own, as a cluster elsewhere."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
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
        """Our workers below the cluster, and the process that started each."""
        found = []
        for path in Path("/proc").glob("[0-9]*"):
            try:
                line = (path / "cmdline").read_bytes().split(b"\0")
                parent = int((path / "stat").read_text().rpartition(") ")[2].split()[1])
                variables = (path / "environ").read_bytes()
            except OSError:
                continue
            is_worker = b"tui_agent" in line and b"worker" in line and b"TUI_AGENT_RUN=" in variables
            if is_worker and f"TEST_OF={os.getpid()}\0".encode() in variables:
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
