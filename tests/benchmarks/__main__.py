"""Runs every benchmark here, or those that are named, one after the other: `python tests/benchmarks [start …]`."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from programs import SHARED

HERE = Path(__file__).parent
ROOT = HERE.parent.parent


def main(names: list[str]) -> int:
    """Exit status 1 when a benchmark broke or, with `--strict`, when a figure is over its target."""
    strict = "--strict" in names
    wanted = {name for name in names if not name.startswith("--")}
    files = [file for file in sorted(HERE.glob("bench_*.py")) if not wanted or file.stem[6:] in wanted]
    over, broken = [], []
    with TemporaryDirectory(prefix="tui-agent-bench-", ignore_cleanup_errors=True) as shared:
        for file in files:
            print(f"\n== {file.stem[6:]} ==", flush=True)
            begin = time.monotonic()
            status, lines = run(file, shared)
            print(f"   {time.monotonic() - begin:.0f} s", flush=True)
            over += [line for line in lines if line.endswith("OVER")]
            broken += [file.name] if status else []
    for line in over:
        print(f"over its target: {line}")
    for name in broken:
        print(f"broken: {name}")
    return 1 if broken or (strict and over) else 0


def run(file: Path, shared: str) -> tuple[int, list[str]]:
    """Run one, passing on each line as it comes; its status and its lines."""
    path = os.pathsep.join([str(ROOT), str(HERE.parent), str(HERE)])
    lines = []
    with subprocess.Popen(
        [sys.executable, str(file)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": path, SHARED: shared},
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            print(line, end="", flush=True)
            lines.append(line.rstrip())
    return process.returncode, lines


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
