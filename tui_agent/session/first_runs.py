"""Checks on the folder as it is, before anything is proposed: tried by key, or in the background when nothing runs."""

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

#: Exit statuses of a shell that cannot start the program.
NOT_FOUND = (126, 127)


class FirstResult(Struct, frozen=True):
    """What a check found in the folder as it is.

    state: "missing" if its program is not there, "ended" if it did not end by itself. failures: None if its runner
    does not count them. why: what else there is to say.
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


#: Runs a check without what is proposed; at a low priority if told so.
RunAsItIs = Callable[[CheckCommand, bool], Awaitable[tuple[CommandResult, Finding]]]


class FirstRuns:
    """What is found is kept as the baseline of the check."""

    def __init__(self, store: Store, baselines: Baselines, run: RunAsItIs) -> None:
        self._store = store
        self._baselines = baselines
        self._run = run
        self._task: asyncio.Task[None] | None = None

    async def attempt(self, check: CheckCommand) -> FirstResult:
        """Run a check now. Raises `SessionError` where there is no view."""
        ran, found = await self._run(check, False)
        if ran.how != "exit":
            took = f"not done in {ran.seconds:.0f} s" if ran.how == "time-out" else ran.how
            return FirstResult("ended", ran.seconds, why=took)
        counted = ran.ok or found.passed is not None or found.failures
        missing = [] if counted else missing_programs(ran.output)
        if ran.status in NOT_FOUND or missing:
            return FirstResult("missing", ran.seconds, why=missing[0] if missing else "")
        await self._baselines.adopt([(check, found)])
        if ran.ok:
            return FirstResult("passed", ran.seconds)
        return FirstResult("failed", ran.seconds, found.failed or len(found.failures) or None, ran.cause)

    def later(self, checks: Sequence[CheckCommand]) -> None:
        """Find out in the background, at a low priority, what is not known of these."""
        self._task = asyncio.get_running_loop().create_task(self._all(list(checks)), name="first runs")

    async def _all(self, checks: Sequence[CheckCommand]) -> None:
        for check in checks:
            await self._until_nothing_runs()
            if await self._baselines.known(check):
                continue
            try:
                ran, found = await self._run(check, True)
            except SessionError:
                return  # it is said when a proposal is to be checked
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
        """End what runs in the background."""
        if self._task is not None and not self._task.done():
            self._task.cancel()
            await asyncio.wait([self._task])


def _busy(state: State) -> bool:
    return state.turn.running or bool(state.checks.running) or bool(state.commands.running)
