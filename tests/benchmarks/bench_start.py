"""Starting: the first frame, the first key, with and without a host, and what needs no screen at all."""

from __future__ import annotations

import os
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from figures import Figure, paired, ratio, show
from programs import BARE, BARE_MARK, ECHO, INSTALLED, KEY, OUR_MARK, TUI_AGENT, home, small_workspace
from terminal import Terminal

PAIRS = 9
HEAVY = ("textual", "litellm", "rich", "git", "watchfiles", "tiktoken")


def main() -> None:
    with small_workspace() as workspace, home() as env:
        bare, ours = paired(
            lambda: start(BARE, BARE_MARK, workspace, env),
            lambda: start([*TUI_AGENT, "."], OUR_MARK, workspace, env),
            PAIRS,
        )

        def against(name: str, moment: Callable[[Start], float], limit: float | None = None) -> Figure:
            return ratio(name, [moment(run) for run in bare], [moment(run) for run in ours], limit)

        show(
            [
                against("first paint against a bare app", lambda run: run.painted, 1.35),
                against("ready for keys against a bare app", lambda run: run.ready, 1.6),
                against("  an early key kept and shown", lambda run: run.kept),
                against("  processor time until the first paint", lambda run: run.work_painted),
                against("  processor time until ready for keys", lambda run: run.work_ready),
                *with_a_host(workspace, env),
                *without_a_screen(workspace, env),
            ]
        )


@dataclass(frozen=True)
class Start:
    """Seconds from the start of the process to its first frame, to a key that is shown, and to one in the input.

    `work_…` is the processor time that it used until then, which other work on the machine does not change much.
    """

    painted: float
    kept: float
    ready: float
    work_painted: float
    work_ready: float
    #: Seconds to the control socket, which is opened when all panes are there; 0 if it was not waited for.
    complete: float = 0


def start(
    command: list[str], mark: str, workspace: Path, env: dict[str, str], sockets: Path | None = None
) -> Start:
    before = set(sockets.glob("*.*")) if sockets is not None else set()
    with Terminal(command, workspace, env) as terminal:
        painted = terminal.wait_for(mark)
        work_painted = work(terminal.process.pid)
        terminal.press(KEY)
        moments = painted, terminal.wait_for(KEY), terminal.wait_for(ECHO)
        work_ready = work(terminal.process.pid)
        complete = 0.0
        if sockets is not None:
            while not set(sockets.glob("*.*")) - before:
                time.sleep(0.001)
            complete = time.monotonic() - terminal.started
            terminal.press("\x03")
            terminal.press("\x03")
            terminal.press("\x03")
            while terminal.process.poll() is None:
                terminal.read(0.05)
            time.sleep(1.6)  # the host forks its next program
        return Start(*(moment - terminal.started for moment in moments), work_painted, work_ready, complete)


def with_a_host(workspace: Path, env: dict[str, str]) -> list[Figure]:
    """From the launcher's start, in turns with a cold start by the same command."""
    with hosting(env) as (warm, folder, host):
        memory = sum(map(megabytes, (host, *children(host))))
        cold, hosted = paired(
            lambda: start(INSTALLED, OUR_MARK, workspace, {**warm, "CI": "1"}, folder),
            lambda: start(INSTALLED, OUR_MARK, workspace, warm, folder),
            PAIRS,
        )
        with Terminal(INSTALLED, workspace, warm) as terminal:
            terminal.wait_for(OUR_MARK)
            while not (places := list(folder.glob("[!h]*.*"))):
                terminal.read(0.05)
            pid = int(places[0].suffix[1:])
            session = megabytes(pid)
            os.kill(pid, signal.SIGKILL)  # it would outlive its terminal
    figures = [
        Figure("host and spare: memory", memory, 50, " MB"),
        Figure("a session of the host: memory", session, 40, " MB"),
    ]
    for name, moment, limit in (
        ("first paint", lambda run: run.painted, 40),
        ("a key shown", lambda run: run.kept, 60),
        ("a key in the chat's own input", lambda run: run.ready, 130),
        ("all panes", lambda run: run.complete, 280),
    ):
        values = [moment(run) * 1000 for run in hosted]
        figures += [
            Figure(f"with a host: {name}", statistics.median(values), limit, " ms"),
            ratio("  against a cold start", [moment(run) for run in cold], [moment(run) for run in hosted]),
        ]
    return figures


def megabytes(pid: int) -> float:
    """Memory of a process, with its share of pages that others use, too."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("Pss:")).split()[1]) / 1024


def children(pid: int) -> list[int]:
    return list(map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split()))


@contextmanager
def hosting(env: dict[str, str]) -> Generator[tuple[dict[str, str], Path, int]]:
    """The variables of terminals for which a host is ready, its folder of sockets and its process id."""
    with TemporaryDirectory(prefix="tui-agent-") as folder:
        warm = {**os.environ, "TERM": "xterm-256color", "COLORTERM": "truecolor", **env, "TMPDIR": folder}
        warm.pop("CI", None)
        os.environ.pop("CI", None)
        words = [sys.executable, "-P", "-m", "tui_agent.start", "600", " " * 200]
        size = {"COLUMNS": "160", "LINES": "48"}  # that of the terminal whose session starts the host
        host = subprocess.Popen(
            words, env=warm | size, cwd="/", stdin=subprocess.DEVNULL, start_new_session=True
        )
        try:
            sockets = Path(folder) / f"tui-agent-{os.geteuid()}"
            while not any(path.suffix != ".lock" for path in sockets.glob("host-*")):
                time.sleep(0.1)
            time.sleep(1)
            yield warm, sockets, host.pid
        finally:
            host.terminate()
            host.wait()


def work(pid: int) -> float:
    """Seconds of processor time of all threads of a process; see sched-stats in the kernel's documentation."""
    tasks = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(task.read_text().split()[0]) for task in tasks) / 1e9


def without_a_screen(workspace: Path, env: dict[str, str]) -> list[Figure]:
    def seconds(*words: str) -> float:
        begin = time.perf_counter()
        subprocess.run([sys.executable, *words], cwd=workspace, env=env, check=True, capture_output=True)
        return time.perf_counter() - begin

    bare, ours = paired(lambda: seconds("-c", "pass"), lambda: seconds("-m", "tui_agent", "--version"), 15)
    return [
        ratio("--version against python -c pass", bare, ours, 4),
        *(
            Figure(f"heavy modules that {option} imports", len(heavy(option, env)), 0)
            for option in ("--version", "--help")
        ),
    ]


def heavy(option: str, env: dict[str, str]) -> set[str]:
    """Which of the heavy libraries are imported by a run with this option."""
    command = [sys.executable, "-X", "importtime", "-m", "tui_agent", option]
    result = subprocess.run(command, env=env, check=True, capture_output=True, text=True)
    imported = {line.rpartition("|")[2].strip().partition(".")[0] for line in result.stderr.splitlines()}
    return imported & set(HEAVY)


if __name__ == "__main__":
    main()
