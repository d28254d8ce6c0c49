"""Runs checks of proposed changes in a view, records their content, and offers detected checks."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec

from tui_agent.checks.comparison import Finding, difference, finding, has_run, limited_to, still_there
from tui_agent.checks.output import places, said_at
from tui_agent.checks.reports import outcome_of_report
from tui_agent.errors import SessionError, TuiAgentError
from tui_agent.files.operating_system import read_start
from tui_agent.files.private import FolderAnswers
from tui_agent.files.text import md5
from tui_agent.log.core import Core, call
from tui_agent.processes.background import start_task
from tui_agent.session.baselines import NOT_FOUND, BaselineResult, BaselineRuns, Baselines, missing_program
from tui_agent.session.commands import Commands
from tui_agent.settings.schema import CheckCommand
from tui_agent.store import events as e
from tui_agent.store.commands import CheckResult, CommandResult, Content, Place, Where, content_of
from tui_agent.store.state import State
from tui_agent.workspace.workspace import FileChange

STORE = "checks.json"
#: Maximum starts while the content changes.
MOST_BEGUN = 3
#: Boundaries of speed classes in seconds; checks keep their order within a class.
SPEEDS = (2.0, 10.0, 60.0)
#: Maximum failures listed in a result.
MOST_NAMES = 50
#: Maximum output paths matched by suffix, and third-party folders.
MOST_BY_SUFFIX = 200
_NOT_OURS = frozenset({"..", "node_modules", "site-packages", ".venv", "venv", ".tox", ".nox"})
#: Seconds between a proposal outside a turn and its checks, because more may follow.
AFTER_THE_LAST = 0.2
#: Automatic checks, slow checks, or both.
Which = Literal["fast", "slow", "all"]


class ListedCheck(NamedTuple):
    check: CheckCommand
    accepted: bool


class Checks:
    """Runs one round at a time."""

    def __init__(self, core: Core, commands: Commands, *, unasked: bool) -> None:
        """`unasked`: whether proposals outside a turn start rounds."""
        self._journal = journal = core.journal
        self._workspace = workspace = core.workspace
        self._commands = commands
        self._settings = core.settings
        data = core.folders.data
        #: Accepted checks of this folder; empty if declined.
        self._answers = FolderAnswers(data / STORE, workspace.root)
        self._baselines = Baselines(data, workspace.root, lambda: workspace.index.paths)
        self._first_runs = BaselineRuns(journal.store, self._baselines, self._as_it_is)
        self._findings: dict[str, Finding] = {}
        self._one_at_a_time = asyncio.Lock()
        self._round: asyncio.Task[object] | None = None
        self._due: asyncio.TimerHandle | None = None
        self._looking: set[asyncio.Task[None]] = set()
        self._adopting: set[asyncio.Task[None]] = set()
        self._since = 0.0
        self._checked: list[CheckCommand] = []
        if unasked:
            journal.store.subscribe(self._on_event)

    @property
    def state(self) -> State:
        return self._journal.store.state

    @call(changes=False)
    def chosen(self) -> list[CheckCommand]:
        """Blocking."""
        configured = self._settings.checks.commands
        return [*configured, *_without(configured, self._accepted() or [])]

    @call(changes=False)
    def names(self) -> list[str]:
        """Blocking."""
        return [check.name for check in self.chosen()]

    @call(changes=False)
    async def offer(self) -> None:
        if self._settings.checks.commands or self._settings.checks.run == "none":
            return
        if await asyncio.to_thread(self._accepted) is None:
            found = await asyncio.to_thread(_found_in, self._workspace.root)
            if found:
                self._journal.publish(e.ChecksOffered(tuple(found)))

    @call(changes=False)
    def listed(self) -> list[ListedCheck]:
        """Counts all as accepted until the user decides. Blocking."""
        accepted = self._accepted()
        chosen = accepted or []
        others = _without(chosen, _found_in(self._workspace.root))
        return [
            *(ListedCheck(check, True) for check in chosen),
            *(ListedCheck(check, accepted is None) for check in others),
        ]

    @call(changes=False)
    async def attempt(self, check: CheckCommand) -> BaselineResult:
        async with self._one_at_a_time:
            return await self._first_runs.attempt(check)

    @call(changes=True)
    async def accept(self, checks: Sequence[CheckCommand] | None = None) -> None:
        """`None` accepts the offered checks; an empty list declines all permanently."""
        offered = self.state.checks.offered
        if checks is None and not offered:
            raise SessionError("No checks were found", "add [[checks.commands]] to settings.toml")
        accepted = [*(offered if checks is None else checks)]
        try:
            await asyncio.to_thread(self._answers.keep, msgspec.to_builtins(accepted))
        except OSError as error:
            raise SessionError(
                f"The checks of this folder could not be saved ({error.strerror})",
                "add [[checks.commands]] to settings.toml",
            ) from error
        self._journal.publish(e.ChecksOffered(()))
        await self._first_runs.stop()
        if accepted and self.state.review.open:
            self._begin()
        elif accepted:
            self._first_runs.later(
                [check for check in accepted if check.when == "proposed" and not check.slow]
            )

    def _accepted(self) -> list[CheckCommand] | None:
        """`None` until the user decides."""
        try:
            return msgspec.convert(self._answers.get(), list[CheckCommand])
        except msgspec.ValidationError:
            return None

    @call(changes=True)
    async def run(self, repair: int = 0, *, slow: bool = False) -> tuple[CheckResult, ...]:
        """`repair`: number of earlier repair requests. `slow`: includes slow checks without a current
        result.
        """
        if self._settings.checks.run == "none":
            return ()
        await self._stop()
        return await self._run("trial", repair, "slow" if slow else "fast")

    @call(changes=False)
    async def all_unconcerned(self) -> bool:
        if self._settings.checks.run == "none":
            return False
        from tui_agent.checks.detection import concerns

        chosen = [check for check in await asyncio.to_thread(self.chosen) if check.when == "proposed"]
        return bool(chosen) and not any(concerns(check, self._proposed()) for check in chosen)

    @call(changes=False)
    async def check_configured(self) -> None:
        """Raises `SessionError` without checks."""
        if not await asyncio.to_thread(self.chosen):
            offered = ", ".join(check.name for check in self.state.checks.offered)
            remedy = (
                f"accept the checks that were found first ({offered})"
                if offered
                else "add [[checks.commands]] to settings.toml"
            )
            raise SessionError("This folder has no checks", remedy)

    @call(changes=True)
    async def again(self) -> None:
        """Checks the open changes, or the unmodified folder. Raises `SessionError`."""
        await self.check_configured()
        await self._stop()
        self._begin("trial" if self.state.review.open else "workspace", "all")

    @call(changes=False)
    async def settled(self) -> None:
        while self._due is not None or (self._round is not None and not self._round.done()):
            if self._round is not None and not self._round.done():
                await asyncio.wait([self._round])
            else:
                await asyncio.sleep(AFTER_THE_LAST / 4)

    @call(changes=True)
    async def stop(self) -> None:
        await self._stop()
        await self._first_runs.stop()

    @call(changes=False)
    async def close(self) -> None:
        await self.stop()
        for task in self._looking:
            task.cancel()
        await asyncio.gather(*self._adopting)

    async def _stop(self) -> None:
        if self._due is not None:
            self._due.cancel()
            self._due = None
        if self._round is not None and not self._round.done():
            self._round.cancel()
            await asyncio.wait([self._round])

    def _begin(self, where: Where = "trial", which: Which = "fast") -> None:
        self._round = asyncio.get_running_loop().create_task(self._run(where, 0, which), name="checks")

    async def _run(self, where: Where, repair: int, which: Which = "fast") -> tuple[CheckResult, ...]:
        await self._first_runs.stop()
        async with self._one_at_a_time:
            checks = await self._in_order(where, which)
            if not checks or (where == "trial" and not self.state.review.open):
                return ()
            names = tuple(check.name for check in checks)
            await self._journal.record(e.ChecksStarted(names, repair, where, adds=which == "slow"))
            self._since, self._checked = time.time(), checks
            results: list[CheckResult] = []
            try:
                for check in checks:
                    results.append(await self._one(check, where, repair))
                    await self._journal.record(e.CheckEnded(results[-1]))
                    if results[-1].state == "stopped":
                        break
            except SessionError as error:
                await self._journal.record(
                    e.ChecksRefused(error.what), e.NoticeGiven("warning", f"No checks: {error.what}")
                )
            finally:
                left = self.state.checks.running
                stopped = [CheckResult(name, "stopped", repair=repair, where=where) for name in left]
                await self._journal.record(*map(e.CheckEnded, stopped))
            return tuple(results)

    async def _in_order(self, where: Where, which: Which) -> list[CheckCommand]:
        """Fast checks first; in a monorepo only those of affected packages."""
        from tui_agent.checks.detection import concerns
        from tui_agent.checks.projects.files import Project
        from tui_agent.checks.projects.workspaces import narrowed

        chosen = await asyncio.to_thread(self.chosen)
        if where == "trial":
            paths, project = self._proposed(), Project(self._workspace.root)
            held = {result.name for result in self.state.checks.results if self.state.holds(result)}
            chosen = [
                msgspec.structs.replace(
                    check, command=await asyncio.to_thread(narrowed, check.command, project, paths)
                )
                for check in chosen
                if check.when == "proposed"
                and (which == "all" or check.slow == (which == "slow"))
                and not (which == "slow" and check.name in held)
                and concerns(check, paths)
            ]
        seconds = {check.command: await self._baselines.seconds(check.command) for check in chosen}
        return sorted(chosen, key=lambda check: sum(seconds[check.command] >= speed for speed in SPEEDS))

    def _proposed(self) -> list[str]:
        return [path for change in self.state.review.open for path in (change.path, change.rename_to) if path]

    async def _one(self, check: CheckCommand, where: Where, repair: int) -> CheckResult:
        for _ in range(MOST_BEGUN):
            before, seen = self._content(where), self.state.review
            sure = [where == "workspace"]

            def seeded(before: Content = before, seen: object = seen, sure: list[bool] = sure) -> None:
                sure[0] = self.state.review is seen and self._content(where) == before

            ran, found = await self._ran(check, where, seeded)
            if sure[0] or ran.how == "stopped":
                break
        self._findings[check.command] = found
        result = CheckResult(
            check.name,
            "passed" if ran.ok else "stopped" if ran.how == "stopped" else "failed",
            found.passed,
            found.failed,
            round(ran.seconds, 3),
            places=() if ran.ok else await asyncio.to_thread(self._places, ran),
            run=ran.id,
            repair=repair,
            where=where,
            content=before if sure[0] else {"": "moved while it was looked at"},
            new=0 if ran.ok else None,
            old=0 if ran.ok else None,
        )
        return await self._compared(check, result, ran, found) if result.state == "failed" else result

    async def _ran(
        self,
        check: CheckCommand,
        where: Where,
        seeded: Callable[[], object] | None = None,
        *,
        pending: bool = True,
        low: bool = False,
    ) -> tuple[CommandResult, Finding]:
        from tui_agent.checks.detection import going_on
        from tui_agent.checks.projects.files import Project

        timeout, command = check.timeout or self._settings.commands.timeout, check.command
        if where == "trial":
            command = await asyncio.to_thread(going_on, command, Project(self._workspace.root))
        ran, report = await self._commands.for_check(
            command, where, timeout, seeded, pending=pending, low=low, place=check.place
        )
        self._baselines.took(check.command, ran.seconds)
        output = ran.output
        if ran.cut:
            with suppress(TuiAgentError):
                output = await asyncio.to_thread(self._commands.whole_output, ran.id)
        return ran, await asyncio.to_thread(
            lambda: finding(ran.ok, ran.status, output, outcome_of_report(report))
        )

    async def _as_it_is(self, check: CheckCommand, low: bool) -> tuple[CommandResult, Finding]:
        return await self._ran(check, "trial", pending=False, low=low)

    async def _compared(
        self, check: CheckCommand, result: CheckResult, ran: CommandResult, found: Finding
    ) -> CheckResult:
        """Removes baseline failures, and repeats new failures."""
        if result.where == "workspace" or ran.how != "exit":
            return result
        from tui_agent.checks.detection import ended_early
        from tui_agent.checks.projects.files import Project
        from tui_agent.checks.projects.node import script_runner

        lacks = missing_program(ran, found)
        if lacks is not None and lacks == missing_program(*await self._as_it_is(check, False)):
            words = f"{lacks or 'A program'} is not installed: {check.name} is skipped"
            await self._commands.views.notify_once(words, "warning")
            return msgspec.structs.replace(result, state="missing", new=0)
        if ran.status in NOT_FOUND:
            return result

        async def baseline() -> Finding | None:
            ran, found = await self._as_it_is(check, False)
            return found if ran.how == "exit" and ran.status not in NOT_FOUND else None

        before = await self._baselines.of(check, baseline)
        if before is None:
            return result
        brought, flaky = difference(found, before), ()
        if not brought.is_worse and ended_early(ran.output):
            hidden = "it stopped at a failure from before the change; later tests did not run"
            await self._journal.record(e.NoticeGiven("warning", f"{check.name}: {hidden}"))
        if brought.is_worse:
            runner = await asyncio.to_thread(script_runner, check.command, Project(self._workspace.root))
            command = limited_to(check.command, brought.new_names, runner)
            again, second = await self._ran(msgspec.structs.replace(check, command=command), "trial")
            if command != check.command and not has_run(second, brought.new_names):  # named differently there
                command = check.command
                again, second = await self._ran(check, "trial")
            if again.how == "exit" and again.status not in NOT_FOUND:
                brought, flaky = still_there(brought, second, before)
                if command != check.command and brought.is_worse:  # its output covers the new failures
                    ran = again
                    result = msgspec.structs.replace(
                        result, places=await asyncio.to_thread(self._places, again)
                    )
        places = result.places if brought.is_worse else ()
        return msgspec.structs.replace(
            result,
            run=ran.id,
            state="failed" if brought.is_worse else "passed",
            places=places,
            said=await asyncio.to_thread(said_at, ran.output, places, brought.new_names),
            new=brought.new,
            old=brought.old,
            new_names=brought.new_names[:MOST_NAMES],
            old_names=brought.old_names[:MOST_NAMES],
            flaky=flaky[:MOST_NAMES],
        )

    def _content(self, where: Where) -> Content:
        state = self.state
        return state.applied if where == "workspace" else content_of(state.review.changes, state.buffers.open)

    def _places(self, ran: CommandResult) -> tuple[Place, ...]:
        root, index = str(self._workspace.root), self._workspace.index
        proposed = {change.rename_to or change.path for change in self.state.review.open}
        suffixes = 0

        def find(path: str) -> str:
            nonlocal suffixes
            if path.startswith("/"):
                # The second beginning is a copy's.
                for beginning in (f"{root}/", f"/{os.path.basename(root)}/"):
                    _, found, rest = path.partition(beginning)
                    if found and rest:
                        return find(rest)
                return ""
            if not _NOT_OURS.isdisjoint(path.split("/")):
                return ""
            if path in proposed or index.contains(path) or os.path.isfile(os.path.join(root, path)):
                return path
            suffixes += 1
            if suffixes > MOST_BY_SUFFIX:
                return ""
            name = path.rpartition("/")[2]  # runners print paths relative to their working directory
            fitting = [one for one in index.named([name]).get(name, ()) if one.endswith(f"/{path}")]
            return fitting[0] if len(fitting) == 1 else ""

        return tuple(places(ran.output, find))

    @call(changes=False)
    def on_batch(self, changes: Sequence[FileChange]) -> None:
        checks = self.state.checks
        if changes and (checks.results or checks.running) and not checks.outdated:
            start_task(self._looking, self._check_changes(list(changes)))

    async def _check_changes(self, changes: Sequence[FileChange]) -> None:
        own = {
            step.path: step.before if point.undone else step.after
            for point in self.state.review.checkpoints
            for step in point.files
        }
        root, since = self._workspace.root, self._since
        moved = await asyncio.to_thread(
            lambda: [
                change.path
                for change in changes
                if _later(root / change.path, since) and own.get(change.path) != _hash(root / change.path)
            ]
        )
        if moved:
            self._journal.publish(e.ChecksOutdated(f"{moved[0]} has changed on disk"))

    def _on_event(self, event: e.Event, state: State) -> None:
        applied = isinstance(event, e.CheckpointMade | e.ChangeMoved) and state.review.checkpoints
        # In this order, because an apply of many files asks for each.
        if applied and self._checked and state.checks.where == "trial" and not state.review.open:
            chosen = {check.name: check for check in self._checked}
            findings = [
                (chosen[result.name], self._findings[chosen[result.name].command])
                for result in state.checks.results
                if result.state not in ("stopped", "missing")
                and result.name in chosen
                and state.holds(result)
            ]
            if findings:
                start_task(self._adopting, self._baselines.adopt(findings))
                self._checked = []
        if isinstance(event, e.ChangeProposed) and event.change.is_open and not state.turn.running:
            if self._settings.checks.run == "none":
                return
            if self._due is not None:
                self._due.cancel()
            self._due = asyncio.get_running_loop().call_later(AFTER_THE_LAST, self._begin_again)

    def _begin_again(self) -> None:
        self._due = None
        running, self._round = self._round, None

        async def after() -> object:
            if running is not None and not running.done():
                running.cancel()
                await asyncio.wait([running])
            return await self._run("trial", 0)

        if not self.state.turn.running:
            self._round = asyncio.get_running_loop().create_task(after(), name="checks")


def _later(path: Path, since: float) -> bool:
    while True:
        try:
            return os.lstat(path).st_ctime >= since
        except OSError:
            if path == path.parent:
                return True
            path = path.parent


def _found_in(root: Path) -> list[CheckCommand]:
    from tui_agent.checks.detection import found_in  # it has readers for two dozen file types

    return found_in(root)


def _without(known: Sequence[CheckCommand], found: Sequence[CheckCommand]) -> list[CheckCommand]:
    taken = {word for check in known for word in (check.name, check.command)}
    return [check for check in found if taken.isdisjoint((check.name, check.command))]


def _hash(path: Path) -> str:
    try:
        return md5(read_start(path))
    except OSError:
        return ""
