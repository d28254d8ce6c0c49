"""Doing nothing: what the interface costs in thirty seconds in which nothing happens."""

from __future__ import annotations

import os
import time
from pathlib import Path

from figures import Figure, show
from programs import OUR_MARK, TUI_AGENT, home, small_workspace
from terminal import Terminal

SECONDS = 30.0


def main() -> None:
    with small_workspace() as workspace, home() as env:
        with Terminal([*TUI_AGENT, "."], workspace, env) as terminal:
            terminal.wait_for(OUR_MARK)
            terminal.settle(quiet=8, timeout=90)
            pid = terminal.process.pid
            memory = resident(pid)
            before, begin = cpu_seconds(pid), time.monotonic()
            drawn = 0
            while (left := begin + SECONDS - time.monotonic()) > 0:
                drawn += terminal.read(left)
            share = (cpu_seconds(pid) - before) / (time.monotonic() - begin)
        show(
            [
                Figure("share of a core while idle", share * 100, 0.5, " %", f"{SECONDS:g} s"),
                Figure("bytes drawn while idle", drawn, 0),
                Figure("memory of the interface after start", memory / 1e6, 100, " MB", "VmRSS"),
            ]
        )


def cpu_seconds(pid: int) -> float:
    """User and system time of a process, without its children; see proc(5), /proc/pid/stat."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident(pid: int) -> int:
    """The resident memory of a process in bytes."""
    status = Path(f"/proc/{pid}/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith("VmRSS:"))
    return int(line.split()[1]) * 1024


if __name__ == "__main__":
    main()
