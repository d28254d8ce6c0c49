"""Baselines of checks: results on the unmodified folder, on request or while idle."""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import Awaitable, Callable, Iterable, Sequence
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct

from tui_agent.checks.comparison import Finding, missing_programs
from tui_agent.errors import SessionError
from tui_agent.files.private import FolderAnswers
from tui_agent.settings.schema import CheckCommand
from tui_agent.store.commands import CommandResult
from tui_agent.store.events import Store

STORE = "baselines.json"
#: Maximum commands with a baseline per folder.
MOST_KEPT = 20


class _StoredBaseline(msgspec.Struct, frozen=True):
    tree: str
    finding: Finding
    seconds: float = 0.0


class Baselines:
    """Findings by command, stored for later sessions."""

    def __init__(self, data: Path, root: Path, paths: Callable[[], list[str]]) -> None:
        self._root = root
        self._paths = paths
        self._store = FolderAnswers(data / STORE, root)
        self._kept: dict[str, _StoredBaseline] | None = None
        self._seconds: dict[str, float] = {}

    def took(self, command: str, seconds: float) -> None:
        self._seconds[command] = seconds

    async def seconds(self, command: str) -> float:
        """Last duration, or 0 if unknown."""
        kept = (await self._load()).get(command)
        return self._seconds.get(command, kept.seconds if kept is not None else 0.0)

    async def known(self, check: CheckCommand) -> bool:
        kept = (await self._load()).get(check.command)
        return kept is not None and kept.tree == await asyncio.to_thread(self._tree)

    async def of(self, check: CheckCommand, run: Callable[[], Awaitable[Finding | None]]) -> Finding | None:
        """Calls `run` only if the baseline is outdated."""
        kept = await self._load()
        tree = await asyncio.to_thread(self._tree)
        known = kept.get(check.command)
        if known is not None and known.tree == tree:
            return known.finding
        found = await run()
        if found is not None:
            await self._keep(check.command, tree, found)
        return found

    async def adopt(self, findings: Iterable[tuple[CheckCommand, Finding]]) -> None:
        tree = await asyncio.to_thread(self._tree)
        for check, found in findings:
            await self._keep(check.command, tree, found)

    async def _keep(self, command: str, tree: str, found: Finding) -> None:
        kept = await self._load()
        kept.pop(command, None)
        kept[command] = _StoredBaseline(tree, found, self._seconds.get(command, 0.0))
        while len(kept) > MOST_KEPT:
            del kept[next(iter(kept))]
        try:
            await asyncio.to_thread(self._store.keep, msgspec.to_builtins(kept))
        except OSError:
            return  # kept in memory only

    async def _load(self) -> dict[str, _StoredBaseline]:
        if self._kept is None:
            told = await asyncio.to_thread(self._store.get)
            try:
                self._kept = msgspec.convert(told or {}, dict[str, _StoredBaseline])
            except msgspec.ValidationError:
                self._kept = {}
        return self._kept

    def _tree(self) -> str:
        """A digest of size, time and mode of every file not ignored by git. Blocking."""
        digest = hashlib.blake2b(digest_size=20)
        root = str(self._root)
        for path in self._paths():
            try:
                status = os.lstat(f"{root}/{path}")
            except OSError:
                continue
            digest.update(
                f"{path}\0{status.st_size}\0{status.st_mtime_ns}\0{status.st_mode}\0".encode(
                    errors="surrogatepass"
                )
            )
        return digest.hexdigest()


#: Shell exit statuses for a program that cannot start.
NOT_FOUND = (126, 127)


class BaselineResult(Struct, frozen=True):
    """`state` is "missing" without its program, "ended" after an abnormal end; `failures` is `None` if not
    counted.
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
    """Returns "" if it is unnamed, `None` if it ran."""
    if ran.how != "exit" or ran.ok or found.passed is not None or found.failures:
        return None
    named = missing_programs(ran.output)
    return named[0] if named else "" if ran.status in NOT_FOUND else None


class BaselineRuns:
    def __init__(self, store: Store, baselines: Baselines, run: RunAsItIs) -> None:
        self._store = store
        self._baselines = baselines
        self._run = run
        self._task: asyncio.Task[None] | None = None

    async def attempt(self, check: CheckCommand) -> BaselineResult:
        """Raises `SessionError` without a view."""
        ran, found = await self._run(check, False)
        if ran.how != "exit":
            took = f"not finished in {ran.seconds:.0f} s" if ran.how == "time-out" else ran.how
            return BaselineResult("ended", ran.seconds, why=took)
        if (program := missing_program(ran, found)) is not None:
            return BaselineResult("missing", ran.seconds, why=program)
        await self._baselines.adopt([(check, found)])
        if ran.ok:
            return BaselineResult("passed", ran.seconds)
        return BaselineResult("failed", ran.seconds, found.failed or len(found.failures) or None, ran.cause)

    def later(self, checks: Sequence[CheckCommand]) -> None:
        self._task = asyncio.get_running_loop().create_task(self._all(list(checks)), name="first runs")

    async def _all(self, checks: Sequence[CheckCommand]) -> None:
        for check in checks:
            await self._store.until(
                lambda state: not (state.turn.running or state.checks.running or state.commands.running)
            )
            if await self._baselines.known(check):
                continue
            try:
                ran, found = await self._run(check, True)
            except SessionError:
                return  # reported when a proposal is checked
            if ran.how == "stopped":
                return
            if ran.how == "exit" and ran.status not in NOT_FOUND:
                await self._baselines.adopt([(check, found)])

    async def stop(self) -> None:
        if self._task is not None and not self._task.done():
            self._task.cancel()
            await asyncio.wait([self._task])
