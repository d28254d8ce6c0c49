"""Running commands, reported from start to end, and causes of failures inside a view."""

from __future__ import annotations

import asyncio
import dataclasses
import logging
import os
import shutil
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec.structs import replace

from tui_agent.checks.comparison import cause_of, missing_programs
from tui_agent.checks.output import REPORT
from tui_agent.errors import SessionError
from tui_agent.files.known_secrets import KnownSecrets
from tui_agent.files.lazy_regex import late
from tui_agent.files.names import display_path
from tui_agent.files.numbers import whole_number
from tui_agent.log.core import Core
from tui_agent.store import events as e
from tui_agent.store.commands import By, CommandResult, Isolated, RunningCommand, Where

if TYPE_CHECKING:
    from tui_agent.sandbox.layer_changes import ChangedPath
    from tui_agent.sandbox.run import How, Output, Run, RunResult
    from tui_agent.session.trial_views import PreparedView

#: Maximum names in a sentence, and output paths examined.
MOST_NAMED, MOST_PATHS = 8, 100
_PATH = late(r"(?<![\w/.:-])(/[\w.@+,=-]{1,100}(?:/[\w.@+,=-]{1,100}){0,30})")
_NOT_THERE = late(r"[Nn]o such file|ENOENT|not found|Not found|[Cc]annot find|[Dd]oes not exist")
#: The view's own folders, initially empty.
_OF_ITS_OWN = ("/tmp", "/var/tmp", "/dev", "/proc")
_WIDEST = 2_000
_READ_ONLY = late(
    r"Read-only file system:? ?['\"]?([^\s'\"]{0,200})|([^\s'\"]{1,200})['\"]?: Read-only file system"
)
_REFUSED = late(
    r"\b(unshare|mount|ptrace|io_uring|keyctl|bpf|perf_event)\w*\b.{0,80}(?:not permitted|Permission denied)"
)


class ViewFacts(NamedTuple):
    """`emptied`: files with removed content or keys. `left_out`: omitted variables."""

    emptied: tuple[str, ...]
    left_out: tuple[str, ...]
    offline: bool
    visible: tuple[str, ...]
    path: str


def facts(prepared: PreparedView, environ: Mapping[str, str]) -> ViewFacts:
    from tui_agent.sandbox.environment import omitted_variables

    plan = prepared.plan
    emptied = [
        seed.path
        for seed in plan.seeds
        if seed.kind == "hidden"
        and seed.overlay in ("", plan.workspace)
        and not f"/{seed.path}".count("/.git/")
    ]
    visible = (*plan.binds, *plan.overlays, *plan.links, *plan.texts, "/dev", "/proc")
    return ViewFacts(
        tuple(emptied),
        tuple(omitted_variables(environ, prepared.variables)),
        not plan.network,
        visible,
        environ.get("PATH", os.defpath),
    )


def explained(result: CommandResult, view: ViewFacts | None, *, full: bool = False) -> CommandResult:
    """Adds the cause of a failure, if not the change, and contents missing from the view. Blocking."""
    if result.ok or result.how in ("stopped", "proposal", "interrupted", "background"):
        return result
    cause = cause_of(
        result.how, result.status, result.output, emptied=view.emptied if view else (), full=full
    )
    if (
        cause is not None
        and cause.kind in ("network", "docker", "service")
        and (view is None or not view.offline)
    ):
        cause = None  # the view equals the machine
    if cause is not None:
        named = missing_programs(result.output)[:MOST_NAMED] if cause.kind == "program" else []
        words = f"{cause.words}: {_listed(named)}" if named else cause.words
        result = replace(result, cause=words, excused=cause.excused)
    return replace(result, report=tuple(_report(result, view))) if view else result


def _report(result: CommandResult, view: ViewFacts) -> list[str]:
    from tui_agent.sandbox.environment import is_below

    told, output = [], result.output
    if view.emptied:
        told.append(f"emptied: {_listed(_mentioned_first(view.emptied, output))} (trial.reveal shows them)")
    for name in missing_programs(output)[:MOST_NAMED]:
        place = shutil.which(name, path=view.path) if "/" not in name else None
        there = place is not None and not is_below(os.path.realpath(place), view.visible)
        told.append(
            f"missing: {name}" + (f", which is at {place} (add its folder to trial.tools)" if there else "")
        )
    # A command must not reveal whether hidden paths exist.
    lines = (line for line in output.splitlines() if _NOT_THERE.search(line))
    absent = dict.fromkeys(one[1] for line in lines for one in _PATH.finditer(line[:_WIDEST]))
    shown = (*_OF_ITS_OWN, *view.visible)
    if hidden := [path for path in list(absent)[-MOST_PATHS:] if not is_below(path, shown)]:
        told.append(f"not shown, whether they exist or not: {_listed(hidden)}")
    read_only = [one[1] or one[2] for one in _READ_ONLY.finditer(output) if one[1] or one[2]]
    if read_only:
        told.append(f"read-only: {_listed(read_only)}")
    refused = [one[1] for one in _REFUSED.finditer(output)]
    if refused:
        told.append(f"refused: {_listed(refused)}")
    if view.offline:
        told.append("offline: only a loopback network is available")
    if view.left_out:
        told.append(f"variables left out: {_listed(_mentioned_first(view.left_out, output))} (trial.env)")
    return told


def _mentioned_first(names: Sequence[str], output: str) -> list[str]:
    return sorted(names, key=lambda name: name.rpartition("/")[2] not in output)


def _listed(names: Sequence[str]) -> str:
    names = list(dict.fromkeys(names))
    more = len(names) - MOST_NAMED
    return ", ".join(map(display_path, names[:MOST_NAMED])) + (f" and {more:,} more" if more > 0 else "")


_log = logging.getLogger(__name__)

#: Maximum characters of head and tail in a result; the blob holds more.
SHOWN = 16_000
_NO_VIEW = "There is no trial view on this machine", "run it with !!"
_NO_START = "The command could not be started", "check the variable SHELL"
#: Number of commands with written files in memory.
KEPT_WRITTEN = 3


class CommandStart(NamedTuple):
    command: str
    by: By
    where: Where
    isolated: Isolated
    background: bool = False
    pending: tuple[str, ...] = ()
    view: ViewFacts | None = None
    place: str = ""


class RunningCommands:
    def __init__(self, core: Core, secrets: KnownSecrets) -> None:
        self._secrets = secrets
        self._journal = core.journal
        self._ignored = core.workspace.ignored
        self._blobs = core.blobs
        self._number = 0
        #: By command id; only of the newest.
        self.written: dict[str, tuple[ChangedPath, ...]] = {}
        self.runs: dict[str, tuple[Run, asyncio.Task[None]]] = {}

    def new_id(self) -> str:
        commands = self._journal.store.state.commands
        known = (whole_number(one.id, 0) for one in (*commands.running, *commands.results))
        self._number = max(self._number, commands.total, *known) + 1
        return str(self._number)

    async def start(
        self,
        number: str,
        what: CommandStart,
        timeout: float | None,
        start: Callable[[Run], Awaitable[RunResult]],
        stopping: asyncio.Event | None = None,
    ) -> str:
        """Returns the id once it runs; after `stopping`, only to stop. Raises `SessionError`."""
        from tui_agent.sandbox.run import Run

        loop = asyncio.get_running_loop()
        begun: asyncio.Future[None] = loop.create_future()

        def told(output: Output) -> None:
            self._journal.publish(e.CommandPrinted(number, output.last_line(), output.size))

        run = Run(timeout, told, lambda: begun.done() or begun.set_result(None))
        known, unwanted = asyncio.Event(), False

        async def follow() -> None:
            ran = _running(number, what)
            unread: list[e.NoticeGiven] = []
            try:
                if stopping is not None and stopping.is_set():
                    run.stop()
                result = await start(run)
                paths = [change.path for change in result.changes if change.path != REPORT]
                ignored = await self._ignored(paths) if paths else set()
                left = tuple(change for change in result.changes if change.path not in ignored)
                result = dataclasses.replace(result, changes=left)
                if result.unread:
                    unread.append(e.NoticeGiven("warning", f"`{what.command}`: {result.unread}"))
                ended = await asyncio.to_thread(self._result, ran, result, what)
                newest = list(self.written.items())[: KEPT_WRITTEN - 1]
                self.written = {number: result.changes, **dict(newest)}
            except Exception as error:
                _log.info("command %s failed", number, exc_info=True)
                if not begun.done():
                    begun.set_exception(error)
                    return
                (ended,) = (told.result for told in interrupted([ran], f"its result was lost: {error}"))
            await known.wait()  # a short command may end before its start is recorded
            if unwanted:
                return
            await self._journal.record(e.CommandEnded(ended), *unread)

        task = loop.create_task(follow(), name=f"command {number}")
        self.runs[number] = run, task
        task.add_done_callback(lambda _: self.runs.pop(number, None))
        try:
            await begun
        except asyncio.CancelledError:  # result unknown
            unwanted = True
            known.set()
            run.stop()
            raise
        except Exception as error:
            said, remedy = _NO_VIEW if what.where == "trial" else _NO_START
            raise SessionError(f"{said} ({error})", remedy) from error
        try:
            await self._journal.record(_started(_running(number, what)))
        finally:
            known.set()
        told(run.output)  # output before the start was recorded
        return number

    async def stopped(self, number: str, what: CommandStart) -> str:
        ran = _running(number, what)
        await self._journal.record(_started(ran), *interrupted([ran], "stopped"))
        return number

    async def result_of(self, number: str) -> CommandResult:
        if number in self.runs:
            run, task = self.runs[number]
            try:
                await asyncio.shield(task)
            except asyncio.CancelledError:
                run.stop()
                await task
                raise
        result = self._journal.store.state.commands.result(number)
        assert result is not None
        return result

    async def stop(self, numbers: Sequence[str], how: How = "stopped") -> None:
        runs = [self.runs[number] for number in numbers if number in self.runs]
        for run, _ in runs:
            run.stop(how)
        if runs:
            await asyncio.wait([task for _, task in runs])

    def _result(self, ran: RunningCommand, result: RunResult, what: CommandStart) -> CommandResult:
        from tui_agent.sandbox.run import Output, printed

        output, content = result.output, result.output.content()
        if ran.by != "person":
            self._secrets.look(self._journal.store.state.secrets)
            text = content.decode("utf-8", "surrogateescape")
            if (clean := self._secrets.masked(text)) != text:
                content = clean.encode("utf-8", "surrogateescape")
                output = Output()
                output.add(content)
        text, cut, coloured = printed(output, SHOWN)
        ended = CommandResult(
            **shared_fields(ran),
            status=result.status,
            how=result.how,
            seconds=result.seconds,
            output=text,
            cut=cut,
            blob=self._blobs.hold(content) if content else "",
            changed=tuple(change.path for change in result.changes if change.path != REPORT),
            pending=what.pending,
            left=result.left,
            coloured=coloured,
        )
        return explained(ended, what.view, full=result.full)


def _running(number: str, what: CommandStart) -> RunningCommand:
    return RunningCommand(number, *what[:4], time.time(), background=what.background, place=what.place)


def _started(ran: RunningCommand) -> e.CommandStarted:
    return e.CommandStarted(**shared_fields(ran), at=ran.since)


def shared_fields(ran: RunningCommand) -> dict[str, Any]:
    names = ("id", "command", "by", "where", "isolated", "background", "place")
    return {name: getattr(ran, name) for name in names}


def interrupted(running: Sequence[RunningCommand], how: str = "interrupted") -> list[e.CommandEnded]:
    return [
        e.CommandEnded(
            CommandResult(**shared_fields(one), status=-9, how=how, seconds=max(0.0, time.time() - one.since))
        )
        for one in running
    ]
