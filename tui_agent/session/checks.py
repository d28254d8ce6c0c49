"""Checks of what is proposed: run in a view of it, told with the content that they ran on, offered where found."""

from __future__ import annotations

import asyncio
import os
import stat
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from tui_agent.checks.comparison import Finding, alone, difference, finding, still_there
from tui_agent.checks.found import concerns, found_in
from tui_agent.checks.places import places
from tui_agent.errors import SessionError
from tui_agent.files.text import md5
from tui_agent.log.calls import call
from tui_agent.log.journal import Journal
from tui_agent.session.answers import FolderAnswers
from tui_agent.session.baselines import Baselines
from tui_agent.session.commands import CommandRuns
from tui_agent.settings.schema import CheckCommand, Settings
from tui_agent.store import events as e
from tui_agent.store.checks import CheckResult, Content, Place, content_of
from tui_agent.store.commands import CommandResult, Where
from tui_agent.store.state import State
from tui_agent.workspace.workspace import FileChange, Workspace

STORE = "checks.json"
#: How often a check is begun for content that moves while its view is made.
MOST_BEGUN = 3
#: Exit statuses of a shell that cannot start the program.
NOT_FOUND = (126, 127)
#: How many failures a result names.
MOST_NAMES = 50
#: How many paths of an output are looked for by their ends, and folders whose files are not the project's own.
MOST_BY_SUFFIX = 200
_NOT_OURS = frozenset({"..", "node_modules", "site-packages", ".venv", "venv", ".tox", ".nox"})
#: Seconds from a proposal that no turn makes to its checks: more of them may come.
AFTER_THE_LAST = 0.2


class Checks:
    """Runs the checks that are configured or accepted, one round at a time.

    In a turn they are run by the turn (`run`); for what is proposed otherwise a round begins by itself.
    """

    def __init__(
        self,
        journal: Journal,
        workspace: Workspace,
        commands: CommandRuns,
        settings: Callable[[], Settings],
        data: Path,
        *,
        unasked: bool,
    ) -> None:
        """`data` is the folder of sessions; `unasked`: whether rounds begin by themselves for what no turn proposes."""
        self._journal = journal
        self._workspace = workspace
        self._commands = commands
        self._settings = settings
        #: The found checks that the person has accepted; none of them where they were declined.
        self._answers = FolderAnswers(data / STORE, workspace.root)
        self._baselines = Baselines(data, workspace.root, lambda: workspace.index.paths)
        #: What each command of the newest round found, before it is compared.
        self._findings: dict[str, Finding] = {}
        self._one_at_a_time = asyncio.Lock()
        self._round: asyncio.Task[object] | None = None
        self._due: asyncio.TimerHandle | None = None
        self._looking: set[asyncio.Task[None]] = set()
        self._adopting: set[asyncio.Task[None]] = set()
        self._since = 0.0
        #: The checks of the newest round.
        self._checked: list[CheckCommand] = []
        if unasked:
            journal.store.subscribe(self._on_event)

    @property
    def state(self) -> State:
        return self._journal.store.state

    @call(changes=False)
    def chosen(self) -> list[CheckCommand]:
        """Those that are configured, else those that were found and accepted. Blocking."""
        return [*self._settings().checks.commands] or self._accepted() or []

    @call(changes=False)
    def names(self) -> list[str]:
        """What they are called. Blocking."""
        return [check.name for check in self.chosen()]

    # ── found checks ─────────────────────────────────────────────────────────────────────────────────────

    @call(changes=False)
    async def offer(self) -> None:
        """Offer what the project's own files name, where nothing is configured and the person was not asked before."""
        if self._settings().checks.commands or self._settings().checks.run == "none":
            return
        if await asyncio.to_thread(self._accepted) is None:
            found = await asyncio.to_thread(found_in, self._workspace.root)
            if found:
                self._journal.tell(e.ChecksOffered(tuple(found)))

    @call(changes=True)
    async def accept(self, accepted: bool = True) -> None:
        """Run the checks that are offered from now on, in this folder; or never offer them again."""
        offered = self.state.checks.offered
        if not offered:
            raise SessionError("No checks are offered", "name them in settings.toml, as [[checks.commands]]")
        await asyncio.to_thread(self._answers.keep, msgspec.to_builtins(offered if accepted else ()))
        self._journal.tell(e.ChecksOffered(()))
        if accepted and self.state.review.open:
            self._begin()

    def _accepted(self) -> list[CheckCommand] | None:
        """What was accepted for this folder; None where nothing was said yet."""
        try:
            return msgspec.convert(self._answers.get(), list[CheckCommand])
        except msgspec.ValidationError:
            return None

    # ── rounds ───────────────────────────────────────────────────────────────────────────────────────────

    @call(changes=True)
    async def run(self, repair: int = 0) -> tuple[CheckResult, ...]:
        """Run the checks on what is proposed and wait for them; nothing where there are none, or nothing is proposed.

        `repair` counts how often the model was asked again before.
        """
        if self._settings().checks.run == "none":
            return ()
        await self._stop()
        return await self._run("trial", repair)

    @call(changes=True)
    async def again(self) -> None:
        """Begin the checks by key: on what is proposed, else on the folder as it is. Raises `SessionError`."""
        if not await asyncio.to_thread(self.chosen):
            offered = ", ".join(check.name for check in self.state.checks.offered)
            remedy = (
                f"accept those that were found first ({offered})" if offered else "name them in settings.toml"
            )
            raise SessionError("This folder has no checks", remedy)
        await self._stop()
        self._begin("trial" if self.state.review.open else "workspace")

    @call(changes=False)
    async def settled(self) -> None:
        """Wait until no round runs or is about to."""
        while self._due is not None or (self._round is not None and not self._round.done()):
            if self._round is not None and not self._round.done():
                await asyncio.wait([self._round])
            else:
                await asyncio.sleep(AFTER_THE_LAST / 4)

    @call(changes=True)
    async def stop(self) -> None:
        """End the round that runs."""
        await self._stop()

    @call(changes=False)
    async def close(self) -> None:
        await self._stop()
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

    def _begin(self, where: Where = "trial") -> None:
        self._round = asyncio.get_running_loop().create_task(self._run(where, 0), name="checks")

    async def _run(self, where: Where, repair: int) -> tuple[CheckResult, ...]:
        async with self._one_at_a_time:
            checks = await asyncio.to_thread(self._in_order, where)
            if not checks or (where == "trial" and not self.state.review.open):
                return ()
            await self._journal.record(e.ChecksStarted(tuple(check.name for check in checks), repair, where))
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

    def _in_order(self, where: Where) -> list[CheckCommand]:
        """Those that have to do with what is proposed come first."""
        chosen = [check for check in self.chosen() if where == "workspace" or check.when == "proposed"]
        paths = [
            path for change in self.state.review.open for path in (change.path, change.rename_to) if path
        ]
        return sorted(chosen, key=lambda check: not concerns(check, paths)) if paths else chosen

    async def _one(self, check: CheckCommand, where: Where, repair: int) -> CheckResult:
        """Run one check. What it found is kept with the content that was in place in its view."""
        for _ in range(MOST_BEGUN):
            before, seen = self._content(where), self.state.review
            sure = [where == "workspace"]

            def seeded(before: Content = before, seen: object = seen, sure: list[bool] = sure) -> None:
                sure[0] = self.state.review is seen and self._content(where) == before

            ran, found = await self._ran(check.command, where, seeded)
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
        self, command: str, where: Where, seeded: Callable[[], object] | None = None, *, pending: bool = True
    ) -> tuple[CommandResult, Finding]:
        """Run a check's command, and what it found."""
        timeout = self._settings().commands.timeout
        ran, report = await self._commands.for_check(command, where, timeout, seeded, pending=pending)
        return ran, await asyncio.to_thread(_found, ran, report)

    async def _compared(
        self, check: CheckCommand, result: CheckResult, ran: CommandResult, found: Finding
    ) -> CheckResult:
        """The result less what the folder has without the change; what is new is run a second time."""
        if result.where == "workspace" or ran.how != "exit" or ran.status in NOT_FOUND:
            return result
        before = await self._baselines.of(check, lambda: self._baseline(check))
        if before is None:
            return result
        brought, flaky = difference(found, before), ()
        if brought.is_worse:
            command = alone(check.command, brought.new_names)
            again, second = await self._ran(command, "trial")
            if again.how == "exit" and again.status not in NOT_FOUND:
                brought, flaky = still_there(brought, second, before)
                if command != check.command and brought.is_worse:  # its output is that of the new failures
                    ran = again
        return msgspec.structs.replace(
            result,
            run=ran.id,
            state="failed" if brought.is_worse else "passed",
            places=result.places if brought.is_worse else (),
            new=brought.new,
            old=brought.old,
            new_names=brought.new_names[:MOST_NAMES],
            old_names=brought.old_names[:MOST_NAMES],
            flaky=flaky[:MOST_NAMES],
        )

    async def _baseline(self, check: CheckCommand) -> Finding | None:
        """What the check finds without what is proposed; None if it did not end by itself."""
        ran, found = await self._ran(check.command, "trial", pending=False)
        return found if ran.how == "exit" and ran.status not in NOT_FOUND else None

    def _content(self, where: Where) -> Content:
        state = self.state
        return state.applied if where == "workspace" else content_of(state.review.changes, state.buffers.open)

    def _places(self, ran: CommandResult) -> tuple[Place, ...]:
        """Where its output points to. Blocking."""
        return tuple(places(ran.output, self._finder()))

    def _finder(self) -> Callable[[str], str]:
        """Returns for a path in an output the path of the file that it means, "" if it means none of the project's."""
        root, index = str(self._workspace.root), self._workspace.index
        proposed = {change.rename_to or change.path for change in self.state.review.open}
        suffixes = 0

        def find(path: str) -> str:
            nonlocal suffixes
            if path.startswith("/"):
                for beginning in (f"{root}/", f"/{os.path.basename(root)}/"):  # the second is that of a copy
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
            name = path.rpartition("/")[2]  # a runner names files from the folder that it works in
            fitting = [one for one in index.named([name]).get(name, ()) if one.endswith(f"/{path}")]
            return fitting[0] if len(fitting) == 1 else ""

        return find

    # ── what moves ───────────────────────────────────────────────────────────────────────────────────────

    @call(changes=False)
    def on_batch(self, changes: Sequence[FileChange]) -> None:
        """Files changed on disk: what was found is of other content, unless it is what was applied from it."""
        checks = self.state.checks
        if changes and (checks.results or checks.running) and not checks.outdated:
            task = asyncio.get_running_loop().create_task(self._look(list(changes)))
            self._looking.add(task)
            task.add_done_callback(self._looking.discard)

    async def _look(self, changes: Sequence[FileChange]) -> None:
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
            self._journal.tell(e.ChecksOutdated(f"{moved[0]} has changed on disk"))

    def _on_event(self, event: e.Event, state: State) -> None:
        """What is proposed by a command or a sub-task is checked when no more of it comes; what was found of all that
        is applied now is what the folder has."""
        if isinstance(event, e.CheckpointMade | e.ChangeMoved) and state.review.checkpoints:
            self._adopt(state)
        if isinstance(event, e.ChangeProposed) and event.change.is_open and not state.turn.running:
            if self._settings().checks.run == "none":
                return
            if self._due is not None:
                self._due.cancel()
            self._due = asyncio.get_running_loop().call_later(AFTER_THE_LAST, self._begin_again)

    def _adopt(self, state: State) -> None:
        if state.review.open or state.checks.where != "trial":
            return
        chosen = {check.name: check for check in self._checked}
        findings = [
            (chosen[result.name], self._findings[chosen[result.name].command])
            for result in state.checks.results
            if result.state != "stopped" and result.name in chosen and state.holds(result)
        ]
        if findings:
            task = asyncio.get_running_loop().create_task(self._baselines.adopt(findings))
            self._adopting.add(task)
            task.add_done_callback(self._adopting.discard)
            self._checked = []

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


def _found(ran: CommandResult, report: str) -> Finding:
    """What a run found. Blocking."""
    from tui_agent.checks.reports import outcome_of_report

    return finding(ran.ok, ran.status, ran.output, outcome_of_report(report))


def _later(path: Path, since: float) -> bool:
    """Whether it has changed since then; what is gone tells it by its folder."""
    while True:
        try:
            return os.lstat(path).st_ctime >= since
        except OSError:
            if path == path.parent:
                return True
            path = path.parent


def _hash(path: Path) -> str:
    """Of the content, "" where there is no file."""
    try:
        return md5(path.read_bytes()) if stat.S_ISREG(path.stat().st_mode) else ""  # a pipe is not waited for
    except OSError:
        return ""
