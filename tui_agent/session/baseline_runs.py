"""Checks on the unmodified folder, on request or in the background while idle."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Literal

from msgspec import Struct

from tui_agent.checks.causes import missing_programs
from tui_agent.checks.comparison import Finding
from tui_agent.errors import SessionError
from tui_agent.session.baselines import Baselines
from tui_agent.settings.schema import CheckCommand
from tui_agent.store.commands import CommandResult
from tui_agent.store.state import State
from tui_agent.store.store import Store

#: Exit statuses of a shell for a program that cannot be started.
NOT_FOUND = (126, 127)


class BaselineResult(Struct, frozen=True):
    """A check's result on the unmodified folder.

    state: "missing" without its program, "ended" after an abnormal end. failures: None if not counted.
    why: additional information.
    """

    state: Literal["passed", "failed", "missing", "ended"]
    seconds: float = 0.0
    failures: int | None = None
    why: str = ""

    @property
    def words(self) -> str:
        """`✓ 3 s`, `✗ 2 fail already`, `program missing`."""
        took = f"{self.seconds:.0f} s" if self.seconds >= 1 else f"{self.seconds:.1f} s"
        match self.state:
            case "passed":
                return f"✓ {took}"
            case "failed":
                count = f"{self.failures:,} " if self.failures else ""
                said = f"{count}fail{'s' * ((self.failures or 1) == 1)} already"
                return f"✗ {said} · {self.why or took}"
            case "missing":
                return f"program missing{f': {self.why}' if self.why else ''}"
        return self.why


#: Runs a check without the proposal, optionally at low priority.
RunAsItIs = Callable[[CheckCommand, bool], Awaitable[tuple[CommandResult, Finding]]]


def missing_program(ran: CommandResult, found: Finding) -> str | None:
    """The program that a check lacks, "" if unnamed, or None if it ran."""
    if ran.how != "exit" or ran.ok or found.passed is not None or found.failures:
        return None
    named = missing_programs(ran.output)
    return named[0] if named else "" if ran.status in NOT_FOUND else None


class BaselineRuns:
    """Stores results as baselines."""

    def __init__(self, store: Store, baselines: Baselines, run: RunAsItIs) -> None:
        self._store = store
        self._baselines = baselines
        self._run = run
        self._task: asyncio.Task[None] | None = None

    async def attempt(self, check: CheckCommand) -> BaselineResult:
        """Raises `SessionError` without a view."""
        ran, found = await self._run(check, False)
        if ran.how != "exit":
            took = f"not done in {ran.seconds:.0f} s" if ran.how == "time-out" else ran.how
            return BaselineResult("ended", ran.seconds, why=took)
        if (program := missing_program(ran, found)) is not None:
            return BaselineResult("missing", ran.seconds, why=program)
        await self._baselines.adopt([(check, found)])
        if ran.ok:
            return BaselineResult("passed", ran.seconds)
        return BaselineResult("failed", ran.seconds, found.failed or len(found.failures) or None, ran.cause)

    def later(self, checks: Sequence[CheckCommand]) -> None:
        """Determines missing baselines in the background, at low priority."""
        self._task = asyncio.get_running_loop().create_task(self._all(list(checks)), name="first runs")

    async def _all(self, checks: Sequence[CheckCommand]) -> None:
        for check in checks:
            await self._until_nothing_runs()
            if await self._baselines.known(check):
                continue
            try:
                ran, found = await self._run(check, True)
            except SessionError:
                return  # Reported when a proposal is checked.
            if ran.how == "stopped":
                return
            if ran.how == "exit" and ran.status not in NOT_FOUND:
                await self._baselines.adopt([(check, found)])

    async def _until_nothing_runs(self) -> None:
        happened = asyncio.Event()
        done = self._store.subscribe(lambda *_: happened.set())
        try:
            while _busy(self._store.state):
                happened.clear()
                await happened.wait()
        finally:
            done()

    async def stop(self) -> None:
        if self._task is not None and not self._task.done():
            self._task.cancel()
            await asyncio.wait([self._task])


def _busy(state: State) -> bool:
    return state.turn.running or bool(state.checks.running) or bool(state.commands.running)
