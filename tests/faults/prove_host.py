"""The processes around a session are killed at random moments of a turn: the launcher, its terminal, the connection of
sshd, the host, and the session. The real program runs on a terminal, with a model on loopback.

A draft is typed beside each turn. After the kill, the turn goes on to its end in the same process, and another terminal
shows its answer and the draft. A killed session leaves a clean terminal, and its log has all that was shown a second
before.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import tempfile
import termios
import time
from collections.abc import Callable, Generator
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from multiprocessing import get_context
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # `support`, as in the tests

from support import ssh_server
from support.hosts import TUI_AGENT, hosting, until
from support.provider import Answer, Provider
from support.ssh_server import FarHost, far_host
from support.terminal_program import Program, running

from tests.proofs.tally import WHOLE, Part, Tally
from tui_agent.control import sockets
from tui_agent.control.sockets import SessionSocket

#: Kills of each kind at full scale, and how many of them happen to one session.
KILLS, IN_ONE = 100, 20
KINDS = ("launcher", "terminal", "SSH line", "host", "session")
#: Seconds of an answer, between two of its words, and until a text that is shown must be kept.
ANSWERS, PAUSE, KEPT = 1.2, 0.08, 1.0


def prove(tally: Tally, scale: float, part: Part = WHOLE) -> None:
    """Runs every kind, two sessions at a time."""
    jobs = []
    for kind in KINDS:
        if kind == "SSH line" and ssh_server.PROGRAM is None:
            sys.stderr.write("SSH lines are left out: apt-get install openssh-server\n")
            continue
        left = max(1, round(KILLS * scale))
        while left > 0:
            jobs.append((kind, len(jobs), min(IN_ONE, left)))
            left -= IN_ONE
    jobs = part.of(jobs)
    with ProcessPoolExecutor(part.processes, get_context("fork")) as pool:
        for (kind, _, _), cases in zip(jobs, pool.map(_series, *zip(*jobs, strict=True)), strict=True):
            for held, what in cases:
                tally.case(f"killed: the {kind}", held, what=what)


def _series(kind: str, seed: int, kills: int) -> list[tuple[bool, str]]:
    """For each kill whether all held, and the difference."""
    chance, cases = random.Random(seed), []
    while len(cases) < kills:
        with ExitStack() as last:
            scene = None
            while len(cases) < kills:
                held, what = True, ""
                try:
                    scene = scene or last.enter_context(_scene(kind, chance))
                    scene.kill(len(cases) + 1)
                except Exception as error:
                    held, what = False, f"seed {seed}, kill {len(cases)}: {type(error).__name__}: {error}"
                cases.append((held, what))
                if not held or kind == "host":
                    break  # the next one begins anew
    return cases


@contextmanager
def _scene(kind: str, chance: random.Random) -> Generator[_Scene]:
    """A home folder, a model and a session."""
    with (
        tempfile.TemporaryDirectory(prefix="tui-agent-", ignore_cleanup_errors=True) as name,
        ExitStack() as last,
    ):
        folder = Path(name)
        for made in ("s", "work"):
            (folder / made).mkdir()
        provider = last.enter_context(Provider())
        os.environ.pop("CI", None)
        os.environ.update(
            provider.environment
            | {
                "TMPDIR": str(folder / "s"),
                "TUI_AGENT_HOME": str(folder / "home"),
                "TUI_AGENT_MODEL": "openai/test-model",
                "TUI_AGENT_PLANNER_MODEL": "none",
                "TUI_AGENT_REPLAY_SPEED": "0",
            }
        )
        scene = _Scene(kind, chance, folder, provider, last)
        try:
            yield scene
        finally:
            for place in sockets.places():
                with suppress(ProcessLookupError):
                    os.kill(place.pid, signal.SIGKILL)


class _Scene:
    """One session and its terminal."""

    def __init__(
        self, kind: str, chance: random.Random, folder: Path, provider: Provider, last: ExitStack
    ) -> None:
        self._kind, self._chance, self._folder, self._provider = kind, chance, folder, provider
        self._turns = 0
        self._far: FarHost | None = None
        if kind == "SSH line":
            self._far = last.enter_context(far_host(folder / "far", folder / "home"))
        self._host = last.enter_context(hosting())
        self._last = last
        self._program = self._start(".")
        if kind == "host" and chance.random() < 0.5:
            self._wait(0.6)
            self.kill_host()
        self._shows("Chat")
        self._place = until(self._found, "a session")
        if self._far is not None:
            self._attach()

    def kill(self, number: int) -> None:
        """Begins a turn, kills at a random moment, and compares. Raises `AssertionError`."""
        self._turns += 1
        answer, draft = f"complete-{number}", f"draft {number}"
        count = ANSWERS + (KEPT if self._kind == "session" else 0)
        self._provider.answer(Answer("word " * round(count / PAUSE) + answer, pause=PAUSE))
        self._program.type(f"request {number}\r".encode())
        self._program.until(lambda: len(self._provider.requests) >= self._turns, "the request")
        self._program.type(draft.encode())
        self._shows(draft)
        if self._kind == "session":
            self._wait(0, KEPT)
        self._wait(ANSWERS)
        _KILLS[self._kind](self)
        if self._kind == "session":
            self._check_end()
            self._program = self._start(".", "--resume", self._place.session)
            self._shows(f"request {number}")
            self._place = until(self._found, "the session again")
        else:
            self._check_turn(self._turns)
            if self._kind != "host":
                self._attach()
            self._shows(answer)
        self._shows(draft)  # the next request follows it

    def _start(self, *words: str, command: tuple[str, ...] = TUI_AGENT) -> Program:
        program = Program(*words, folder=self._folder / "work", home=self._folder / "home", command=command)
        self._last.enter_context(running(program, sign=""))
        return program

    def _attach(self) -> None:
        if self._far is None:
            self._program = self._start("attach", self._place.session)
        else:
            ssh = (str(self._far.folder / "near" / "ssh"), "-tt", "far")
            self._program = self._start(f"tui-agent attach {self._place.session}", command=ssh)
        self._shows("Chat")

    def _found(self) -> SessionSocket | None:
        """One that answers: those of killed sessions are left."""
        return next((place for place, _ in sockets.states()), None)

    def _shows(self, words: str) -> None:
        self._program.shows(words)

    def _wait(self, most: float, least: float = 0) -> None:
        """Reads the terminal until a random moment, which is what is tried."""
        end = time.monotonic() + least + self._chance.random() * most
        while time.monotonic() < end:
            self._program.look()
            time.sleep(0.005)

    def _check_turn(self, turn: int) -> None:
        """The same process ends the turn."""

        def ended() -> bool:
            self._program.look()
            state = dict(sockets.states()).get(self._place, {})
            return (state.get("pid"), state.get("turn"), state.get("state")) == (
                self._place.pid,
                turn,
                "done",
            )

        until(ended, f"the end of turn {turn} in process {self._place.pid}")

    def _check_end(self) -> None:
        """The launcher has ended and left the terminal as it was."""
        program = self._program
        program.until(lambda: program.process.poll() is not None, "the launcher's end")
        program.look()
        assert program.process.returncode == 1, program.process.returncode
        assert "ended unexpectedly" in program.text, program.text
        assert termios.tcgetattr(program.master)[3] & termios.ICANON, "no lines are read"
        assert program.written.rindex(b"\x1b[?1049l") > program.written.rindex(b"\x1b[?1049h"), (
            "its screen is left"
        )

    def kill_launcher(self) -> None:
        self._program.process.kill()

    def close_terminal(self) -> None:
        os.close(self._program.master)
        self._program.master = os.open(os.devnull, os.O_RDWR)

    def drop_line(self) -> None:
        assert self._far is not None
        self._far.drop()

    def kill_host(self) -> None:
        self._host.kill()

    def kill_session(self) -> None:
        os.kill(self._place.pid, signal.SIGKILL)


_KILLS: dict[str, Callable[[_Scene], None]] = {
    "launcher": _Scene.kill_launcher,
    "terminal": _Scene.close_terminal,
    "SSH line": _Scene.drop_line,
    "host": _Scene.kill_host,
    "session": _Scene.kill_session,
}
