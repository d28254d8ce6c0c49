"""Running sessions: a terminal that attaches to a session, and the list of twenty."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from figures import Figure, paired, ratio, show
from programs import BARE, BARE_MARK, INSTALLED, TUI_AGENT, home, small_workspace
from terminal import Terminal

PAIRS, SESSIONS = 9, 20
#: Drawn with the chat of a session that has a message.
MARK = "attach to this"


def main() -> None:
    with small_workspace() as workspace, home() as env, TemporaryDirectory() as sockets:
        env["TMPDIR"] = sockets
        begun = [_run(workspace, env, "--bg", MARK).strip()]
        try:
            bare, attached = paired(
                lambda: _painted(BARE, BARE_MARK, workspace, env),
                lambda: _painted([*INSTALLED, "attach", begun[0]], MARK, workspace, env),
                PAIRS,
            )
            begun += [_run(workspace, env, "--bg", MARK).strip() for _ in range(SESSIONS - 1)]
            nothing, listed = paired(
                lambda: _seconds([sys.executable, "-IS", "-c", ""], workspace, env),
                lambda: _seconds([*INSTALLED, "ps"], workspace, env),
                PAIRS,
            )
            lines = len(_run(workspace, env, "ps").splitlines())
            show(
                [
                    ratio("attach, whole screen, against a bare app's start", bare, attached),
                    Figure("ps of 20 sessions", statistics.median(listed) * 1000, 50, " ms"),
                    ratio("  against a start of Python without site", nothing, listed),
                    Figure("  sessions that it does not list", SESSIONS - lines, 0),
                ]
            )
        finally:
            for session in begun:
                _run(workspace, env, "stop", session)


def _run(workspace: Path, env: dict[str, str], *words: str) -> str:
    done = subprocess.run(
        [*TUI_AGENT, *words], cwd=workspace, env=env, check=True, stdout=subprocess.PIPE, text=True
    )
    return done.stdout


def _seconds(command: list[str], workspace: Path, env: dict[str, str]) -> float:
    begin = time.perf_counter()
    subprocess.run(command, cwd=workspace, env=env, check=True, stdout=subprocess.PIPE)
    return time.perf_counter() - begin


def _painted(command: list[str], mark: str, workspace: Path, env: dict[str, str]) -> float:
    with Terminal(command, workspace, env) as terminal:
        return terminal.wait_for(mark) - terminal.started


if __name__ == "__main__":
    main()
