"""Hundreds of turns in one life of the real program on a real terminal: nothing of it may grow without an end.

The program runs in a process of its own on a pseudo-terminal, so that what is measured is what a person's machine
has to bear, and no test stands in the same memory. It is asked by keys, answered over HTTP by the provider of the
suite, and made to work: each turn changes a file that is then applied, others change on disk behind its back, some
are opened and edited by hand. Then the session is resumed a few times.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from support.provider import Answer, Provider, Request

from tests.benchmarks.programs import OUR_MARK, TUI_AGENT, home
from tests.benchmarks.terminal import Terminal
from tests.proofs.tally import Tally

TURNS, FIRST, RESUMES = 500, 50, 5
#: Turns after which everything is measured, at full scale; what is compared with is the first of them.
MEASURED = (FIRST, 100, 250, 500)
#: What may have been added since turn 50: to memory in all, and to each of the others.
MOST_GROWTH, MOST_MORE = 1.10, 3
PATIENCE = 180.0
F4, F7, F8, CTRL_C = "\x1bOS", "\x1b[18~", "\x1b[19~", "\x03"
FILES = 40
PROSE = (
    "Round {turn} changes `{path}`.\n\n- the value grows by one\n- nothing else changes\n\n"
    "```python\ndef value() -> int:\n    return {turn}\n```\n\n" + "It is read where the sum is made. " * 12
)


def prove(tally: Tally, scale: float) -> None:
    turns = max(FIRST + 5, round(TURNS * scale))
    marks = sorted({mark for mark in MEASURED if mark < turns} | {turns})
    with TemporaryDirectory(prefix="tui-agent-soak-") as folder, Provider() as provider:
        workspace = _workspace(Path(folder) / "work")
        with home(provider.url) as environment:
            soak = _Soak(workspace, provider, environment)
            soak.live(turns, marks)
            soak.resume(RESUMES)
        for kind, held, what in soak.verdicts(marks):
            tally.case(kind, held, what=what)
        tally.figures(soak.table())


def _workspace(root: Path) -> Path:
    (root / "src").mkdir(parents=True)
    for number in range(FILES):
        (root / f"src/part_{number}.py").write_text(_source(number, 0))
    return root


def _source(number: int, value: int) -> str:
    lines = "\n".join(f"WIDTH_{number}_{line} = {line}" for line in range(60))
    return f"VALUE = {value}\n{lines}\n"


class _Soak:
    """One session over all its lives, and what was measured of it."""

    def __init__(self, workspace: Path, provider: Provider, environment: dict[str, str]) -> None:
        self._workspace = workspace
        self._provider = provider
        self._environment = environment
        self._home = Path(environment["TUI_AGENT_HOME"])
        self._done = 0
        self._terminal: Terminal
        self.rows: list[tuple[str, dict[str, float]]] = []
        self.storage = 0
        provider.otherwise = self._answer

    def live(self, turns: int, marks: list[int]) -> None:
        """So many turns in one process."""
        with self._started() as self._terminal:
            while self._done < turns:
                self._turn()
                if self._done in marks:
                    self.rows.append((f"turn {self._done}", self._measured()))
            self._quit()

    def resume(self, times: int) -> None:
        """Open the session again, do a few turns, and leave it."""
        for number in range(1, times + 1):
            with self._started("--continue") as self._terminal:
                for _ in range(3):
                    self._turn()
                if number in (1, times):
                    self.rows.append((f"resume {number}", self._measured()))
                self._quit()

    def _started(self, *options: str) -> Terminal:
        terminal = Terminal([*TUI_AGENT, *options, "."], self._workspace, self._environment)
        terminal.wait_for(OUR_MARK, PATIENCE)
        terminal.settle(1.0)
        return terminal

    def _turn(self) -> None:
        turn = self._done + 1
        path = self._path(turn)
        if turn % 5 == 0:  # behind its back: the model has seen an older version
            target = self._workspace / self._path(turn + 1)
            target.write_text(target.read_text() + f"# outside {turn}\n")
        if turn % 10 == 0:
            self._terminal.press(F4 + f"# by hand {turn}\r" + F7)
        self._terminal.press(F7 + f"round {turn}: raise the value in {path}\r")
        wanted = f"VALUE = {turn}\n"
        self._until(lambda: len(self._provider.requests) >= 1, f"turn {turn}: no request")
        self._wait(rf"did\s+round\s+{turn}\b", f"turn {turn}: no answer")
        self._apply(self._workspace / path, wanted, turn)
        self._provider.requests.clear()
        self._terminal.forget()
        self._done = turn

    def _apply(self, file: Path, wanted: str, turn: int) -> None:
        """Press the key for all until it is written: while the reply is still being read, it says so and waits."""
        deadline = time.monotonic() + PATIENCE
        while not file.read_text().startswith(wanted):
            if time.monotonic() > deadline:
                raise AssertionError(f"turn {turn} was not applied:\n{self._terminal.text[-2000:]}")
            self._terminal.press(F8)
            self._terminal.read(0.3)
        self.storage += 1

    def _path(self, turn: int) -> str:
        return f"src/part_{turn % FILES}.py"

    def _answer(self, request: Request) -> Answer:
        turn = self._done + 1
        path = self._path(turn)
        before = (self._workspace / path).read_text().partition("\n")[0]
        change = {"path": path, "edits": [{"search": before, "replace": f"VALUE = {turn}"}]}
        reply: dict[str, Any] = {
            "summary": f"did round {turn}",
            "message": PROSE.format(turn=turn, path=path),
            "fileChanges": [change],
        }
        text = json.dumps(reply)
        chunks = tuple(text[at : at + 60] for at in range(0, len(text), 60))
        return Answer(text, chunks=chunks, usage=(1000 + turn, 100, 900))

    def _wait(self, pattern: str, what: str) -> None:
        try:
            self._terminal.wait_for(pattern, PATIENCE)
        except TimeoutError as error:
            raise AssertionError(f"{what}: {error}") from error

    def _until(self, holds: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + PATIENCE
        while not holds():
            if time.monotonic() > deadline:
                raise AssertionError(f"{what}\n{self._terminal.text[-2000:]}")
            self._terminal.read(0.05)

    def _quit(self) -> None:
        self._terminal.press(CTRL_C)
        self._terminal.read(0.2)
        self._terminal.press(CTRL_C)
        deadline = time.monotonic() + PATIENCE
        while self._terminal.process.poll() is None and time.monotonic() < deadline:
            self._terminal.read(0.1)

    def _measured(self) -> dict[str, float]:
        self._terminal.settle(1.5)
        pid = self._terminal.process.pid
        children = _children(pid)
        log = sum(path.stat().st_size for path in self._home.rglob("*") if path.is_file())
        return {
            "memory, MB": _resident(pid) / 1e6,
            "of children, MB": sum(map(_resident, children)) / 1e6,
            "descriptors": len(os.listdir(f"/proc/{pid}/fd")),
            "children": len(children),
            "threads": len(os.listdir(f"/proc/{pid}/task")),
            "home, MB": log / 1e6,
        }

    def verdicts(self, marks: list[int]) -> list[tuple[str, bool, str]]:
        """Each promise, whether it held, and the figures of it."""
        first, rest = self.rows[0][1], self.rows[1:]
        said: list[tuple[str, bool, str]] = []
        for row, figures in rest:
            memory = figures["memory, MB"] / first["memory, MB"]
            said.append(
                (f"memory flat, {row}", memory <= MOST_GROWTH, f"{memory:.2f} times that of turn {FIRST}")
            )
            for name in ("descriptors", "children", "threads"):
                more = figures[name] - first[name]
                said.append(
                    (f"{name} steady, {row}", more <= MOST_MORE, f"{more:g} more than at turn {FIRST}")
                )
        return said

    def table(self) -> list[tuple[str, ...]]:
        names = list(self.rows[0][1])
        return [
            ("", *names),
            *((row, *(f"{figures[name]:.0f}" for name in names)) for row, figures in self.rows),
        ]


def _resident(pid: int) -> int:
    """The resident memory of a process in bytes; 0 where it is gone."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmRSS:")), 0)


def _children(pid: int) -> list[int]:
    return [
        int(child)
        for task in Path(f"/proc/{pid}/task").iterdir()
        for child in (task / "children").read_text().split()
    ]
