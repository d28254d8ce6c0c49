"""Commands in a view of the folder with all pending changes, or in the folder."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from tui_agent.checks.output import REPORT
from tui_agent.context.blocks import fenced
from tui_agent.errors import SessionError, TuiAgentError
from tui_agent.files.known_secrets import KnownSecrets
from tui_agent.files.names import display_path
from tui_agent.files.private import FolderAnswers
from tui_agent.log.core import Core, call
from tui_agent.processes.background import start_task
from tui_agent.review.review import Review
from tui_agent.session.places import SessionPlaces
from tui_agent.session.running_commands import SHOWN, CommandStart, RunningCommands, facts, shared_fields
from tui_agent.session.trial_views import PreparedView, TrialViews
from tui_agent.store import events as e
from tui_agent.store.commands import By, CommandResult, Isolated, Where
from tui_agent.store.event import Event
from tui_agent.store.state import State
from tui_agent.workspace.workspace import FileChange

if TYPE_CHECKING:
    from tui_agent.places.runner import PlaceRunner
    from tui_agent.sandbox.run import How, Run, RunResult
    from tui_agent.session.view_mirror import ViewMirror


class Server(NamedTuple):
    command: str
    by: By


class SharedView:
    """Files that the user saves are copied into it."""

    def __init__(self, prepared: PreparedView, core: Core) -> None:
        from tui_agent.sandbox.namespace_view import View

        self._core = core
        self._mirror: ViewMirror | None = None
        self._mirroring: asyncio.Task[None] | None = None
        #: Paths of changed files; None for any.
        self.moved: asyncio.Queue[set[str] | None] = asyncio.Queue()
        self.key = prepared.key
        self.prepared = prepared
        self._view = View(prepared.plan, shared=True)
        self._users = 0
        self._starting = asyncio.Lock()
        self._open = False

    @property
    def ended(self) -> bool:
        return self._open and not self._users

    async def run(self, run: Run, argv: Sequence[str], variables: Mapping[str, str]) -> RunResult:
        """Raises `NoView`."""
        self._users += 1
        try:
            async with self._starting:
                if not self._open:
                    await self._view.__aenter__()
                    self._open = True
                    self._follow()
            return await run.within(self._view, argv, variables)
        finally:
            self._users -= 1
            if not self._users:
                if self._mirror is not None and self._mirroring is not None:
                    self._mirroring.cancel()
                    await asyncio.wait([self._mirroring])
                    await asyncio.to_thread(self._mirror.close)
                await self._view.__aexit__(None, None, None)
                await self.prepared.remove()

    def _follow(self) -> None:
        from tui_agent.session.view_mirror import ViewMirror

        plan, view = self.prepared.plan, self._view
        pending = frozenset(seed.path for seed in plan.seeds)

        loop, journal = asyncio.get_running_loop(), self._core.journal

        def not_copied(path: str, why: str) -> None:
            said = f"{path} could not be copied into the view of a server: {why}"
            asyncio.run_coroutine_threadsafe(journal.record(e.NoticeGiven("warning", said)), loop)

        self._mirror = ViewMirror(plan.root, view.merged, view.layer, self._core.blobs, pending, not_copied)
        following = self._mirror.follow(self.moved, self._core.workspace.index)
        self._mirroring = asyncio.create_task(following, name="files for servers")


class Servers:
    def __init__(
        self, core: Core, views: TrialViews, stop: Callable[[Sequence[str], How], Awaitable[None]]
    ) -> None:
        self._views = views
        self._stop = stop
        #: By id.
        self.running: dict[str, Server] = {}
        self._shared: SharedView | None = None
        #: Servers stopped by a changed proposal.
        self._waiting: list[Server] = []
        self._looking: asyncio.Task[None] | None = None
        self._about: tuple[object, ...] = ()
        self._core = core
        self._unsubscribe = core.journal.store.subscribe(self._on_event)

    async def view_for(self, prepared: PreparedView, *, background: bool) -> SharedView | None:
        """Stops servers of another proposal."""
        shared = self._shared
        if shared is not None and (shared.ended or shared.key != prepared.key):
            await self._stop_all()
            shared = None
        if shared is None and (background or self._waiting):
            if prepared.plan.on_copy:
                raise SessionError(
                    "Servers need a separate network, which a copy of the folder does not have",
                    "test it in one command, without a server",
                )
            shared = SharedView(prepared, self._core)
        self._shared = shared
        return shared

    def on_batch(self, changes: Sequence[FileChange]) -> None:
        """An empty batch means any file."""
        if self._shared is not None and self.running:
            self._shared.moved.put_nowait({change.path for change in changes} or None)

    def add(self, number: str, server: Server, task: asyncio.Task[None]) -> None:
        self.running[number] = server
        task.add_done_callback(lambda _: self.running.pop(number, None))
        self._look_soon()

    def to_start_again(self) -> list[Server]:
        waiting, self._waiting = self._waiting, []
        return waiting

    async def close(self) -> None:
        self._unsubscribe()
        if self._looking is not None:
            await asyncio.wait([self._looking])

    async def _stop_all(self) -> None:
        self._waiting += self.running.values()
        await self._stop(list(self.running), "proposal")

    def _on_event(self, event: Event, state: State) -> None:
        about = (state.review, state.buffers)
        changed, self._about = about != self._about, about
        if changed:
            self._look_soon()

    def _look_soon(self) -> None:
        if self.running and (self._looking is None or self._looking.done()):
            self._looking = asyncio.get_running_loop().create_task(self._watch_changes(), name="servers")

    async def _watch_changes(self) -> None:
        about: object = None
        while self.running and about is not self._about:
            about = self._about
            if self._shared is not None and await self._views.key() != self._shared.key:
                await self._stop_all()


#: A view or an opened place; `None` without views.
Made = TypeVar("Made", bound="PreparedView | PlaceRunner | None")

#: Maximum characters of an output that is processed whole.
WHOLE = 250_000
#: Seconds to wait for a server's first output, and for its remaining startup output.
BEGINNING, SETTLED = 5.0, 0.3
STORE = "commands.json"
LOW = "/usr/bin/nice"


class Commands:
    def __init__(
        self,
        core: Core,
        review: Review,
        secrets: KnownSecrets,
        copied: Path | None = None,
    ) -> None:
        """`copied` is the original of a copied workspace, which has the virtual environment."""
        self._journal = core.journal
        self._workspace = core.workspace
        self._blobs = core.blobs
        self._review = review
        self._here_too = FolderAnswers(core.folders.data / STORE, core.workspace.root)
        self.views = TrialViews(core, review, secrets, copied)
        self.places = SessionPlaces(core, self.views, copied)
        self._running = RunningCommands(core, secrets)
        #: Set by the next stop, then replaced.
        self._stopping = asyncio.Event()
        #: Views of stopped commands, until they are removed.
        self._unwanted: set[asyncio.Task[None]] = set()
        self._servers = Servers(core, self.views, self._running.stop)

    @property
    def state(self) -> State:
        return self._journal.store.state

    @call(changes=True)
    async def run(
        self,
        command: str,
        *,
        by: By = "person",
        timeout: float | None = None,
        background: bool = False,
        network: bool = False,
        allowed: bool = False,
        seeded: Callable[[], object] | None = None,
        pending: bool = True,
        low: bool = False,
        place: str = "",
    ) -> str:
        """Returns the command's id. Raises `AnswerNeeded` if the user must confirm, and `SessionError`.

        `background`: a server that keeps its view. `network`: the machine's. `allowed`: confirmed by the
        user. `pending`: with proposed and unsaved content. `low`: at low priority. `place`: also `@name`
        before the user's command. `seeded` is called once the content is fixed.
        """
        if by == "person" and command.startswith("@"):
            from tui_agent.places.place import split_place

            place, command = split_place(command)
            self.places.get(place, by)
        _check(command)
        number, stopping = self._running.new_id(), self._stopping
        self._journal.publish(e.CommandPreparing(number, command, by, time.time(), background))
        try:
            if place:
                if background:
                    raise SessionError(
                        f"A server cannot run in the place {place}",
                        "run it here, or in one command with its test",
                    )
                opening = self.places.open(place, by, pending=pending, seeded=seeded)
                start = CommandStart(command, by, "trial", "place", place=place)
                return await self._run_in_place(number, start, timeout, opening, stopping)
            making = self._view(command, by, network=network, allowed=allowed, seeded=seeded, pending=pending)
            made = await self._before_a_stop(making, stopping)
            if made is None:
                return await self._running.stopped(
                    number, CommandStart(command, by, "trial", "overlay", background)
                )
            if (prepared := made.result()) is None:
                return await self._run_in_folder(number, command, by, timeout)
            kept = background and not network
            shared = await self._servers.view_for(prepared, background=kept) if pending else None
            argv = shell(command, low=low)
            view = facts(prepared, os.environ)
            start = CommandStart(command, by, "trial", prepared.plan.isolated, False, prepared.pending, view)
            if shared is None or network:
                keeps = not network and not background
                alone = partial(self._alone, prepared, start, argv, keeps)
                return await self._running.start(number, start, timeout, alone, stopping)
            if prepared is not shared.prepared:
                await prepared.remove()
            for server in self._servers.to_start_again():
                restarted = await self.run(server.command, by=server.by, background=True, allowed=True)
                if restarted in self._running.runs:
                    await self._begun(restarted, *self._running.runs[restarted])
                said = f"Restarted with the current changes: {server.command}"
                await self._journal.record(e.NoticeGiven("info", said))
            beside = partial(shared.run, argv=argv, variables=prepared.variables)
            start = start._replace(background=background)
            await self._running.start(number, start, timeout, beside, stopping)
            if background and number in self._running.runs:
                self._servers.add(number, Server(command, by), self._running.runs[number][1])
            return number
        finally:
            self._journal.publish(e.CommandWithdrawn(number))

    async def _view(
        self,
        command: str,
        by: By,
        *,
        network: bool,
        allowed: bool,
        seeded: Callable[[], object] | None,
        pending: bool,
    ) -> PreparedView | None:
        rung = await self.views.check_allowed(command, by, network=network, allowed=allowed)
        if rung.isolated == "none":
            return None
        return await self.views.prepare(rung.isolated, by, network=network, seeded=seeded, pending=pending)

    async def _run_in_place(
        self,
        number: str,
        start: CommandStart,
        timeout: float | None,
        opening: Coroutine[None, None, PlaceRunner],
        stopping: asyncio.Event,
    ) -> str:
        made = await self._before_a_stop(opening, stopping)
        if made is None:
            return await self._running.stopped(number, start)
        runner = made.result()
        start = start._replace(pending=runner.pending)
        argv = shell(start.command)
        return await self._running.start(
            number, start, timeout, lambda run: run.alone(runner, argv, {}), stopping
        )

    async def _before_a_stop(
        self, making: Coroutine[None, None, Made], stopping: asyncio.Event
    ) -> asyncio.Task[Made] | None:
        """`None` if stopped first: the view is removed later, since threads that create it cannot be
        interrupted.
        """
        made, stop = asyncio.create_task(making), asyncio.create_task(stopping.wait())
        try:
            await asyncio.wait([made, stop], return_when=asyncio.FIRST_COMPLETED)
        finally:
            stop.cancel()
            if not made.done():
                start_task(self._unwanted, _remove(made))
        return made if made.done() else None

    async def _alone(
        self, prepared: PreparedView, start: CommandStart, argv: Sequence[str], keeps: bool, run: Run
    ) -> RunResult:
        from tui_agent.sandbox.isolation import runner_for

        keeping = await self.views.keeping(prepared, start.command, start.by) if keeps else None
        try:
            return await run.alone(runner_for(prepared.plan, keeping), argv, prepared.variables)
        finally:
            if keeping is not None:
                keeping.close()
            await prepared.remove()

    @call(changes=True)
    async def for_model(
        self, command: str, timeout: float, background: bool = False, place: str = ""
    ) -> CommandResult:
        """A `background` call returns after the server's first output. Raises `SessionError`."""
        number = await self.run(
            command,
            by="model",
            timeout=None if background else timeout,
            background=background,
            allowed=True,
            place=place,
        )
        if background and number in self._running.runs:
            return await self._begun(number, *self._running.runs[number])
        return await self._running.result_of(number)

    @call(changes=True)
    async def for_check(
        self,
        command: str,
        where: Where,
        timeout: float,
        seeded: Callable[[], object] | None = None,
        *,
        pending: bool = True,
        low: bool = False,
        place: str = "",
    ) -> tuple[CommandResult, str]:
        """Returns the runner's report too. Raises `SessionError` without a view or a usable place."""
        if where == "workspace" and not place:
            number = await self._run_in_folder(self._running.new_id(), command, "check", timeout)
            return await self._running.result_of(number), ""
        number = await self.run(
            command, by="check", timeout=timeout, seeded=seeded, pending=pending, low=low, place=place
        )
        result = await self._running.result_of(number)
        if result.how == "place":
            raise SessionError(f"The place {place} could not be used", f"try `tui-agent places test {place}`")
        if not result.ok and not place:
            await self.views.offer_emptied()
        written = self._running.written.get(number, ())
        self._running.written[number] = tuple(one for one in written if one.path != REPORT)
        report = next((one.after for one in written if one.path == REPORT), None)
        return result, (report or b"").decode("utf-8", "replace")

    @call(changes=False)
    async def isolation(self) -> tuple[Isolated, str]:
        """Returns the isolation, and its limits as a sentence."""
        from tui_agent.sandbox.isolation import WORDS

        rung = await self.views.rung()
        return rung.isolated, WORDS[rung.isolated]

    async def _begun(self, number: str, run: Run, task: asyncio.Task[None]) -> CommandResult:
        from tui_agent.sandbox.run import printed

        loop = asyncio.get_running_loop()
        until = loop.time() + BEGINNING
        while not run.output.size and not task.done() and loop.time() < until:
            await asyncio.wait([task], timeout=0.05)
        await asyncio.wait([task], timeout=SETTLED)
        if (ended := self.state.commands.result(number)) is not None:
            return ended
        ran = next(one for one in self.state.commands.running if one.id == number)
        text, cut, _ = printed(run.output, SHOWN)
        return CommandResult(
            **shared_fields(ran), status=0, how="background", seconds=0.0, output=text, cut=cut
        )

    @call(changes=True)
    async def run_here(self, command: str) -> str:
        """Raises `SessionError`."""
        _check(command)
        return await self._run_in_folder(self._running.new_id(), command, "person", None)

    async def _run_in_folder(self, number: str, command: str, by: By, timeout: float | None) -> str:
        root = str(self._workspace.root)
        self.views.start_scan()

        async def here(run: Run) -> RunResult:
            from tui_agent.sandbox.environment import NO_KEYBOARD
            from tui_agent.sandbox.run import FolderRunner

            result = await run.alone(FolderRunner(root), shell(command), {**os.environ, **NO_KEYBOARD})
            await self.views.known()  # its output may contain a secret known only from git
            return result

        return await self._running.start(
            number, CommandStart(command, by, "workspace", "none"), timeout, here
        )

    @call(changes=True)
    async def again(self, *, network: bool = False, allowed: bool = False) -> str:
        """Repeats the last command in the same place. Raises `AnswerNeeded` or `SessionError`."""
        last = self._last()
        if last.where == "workspace":
            return await self.run_here(last.command)
        if last.place:
            return await self.run(last.command, place=last.place)
        return await self.run(last.command, network=network, allowed=allowed)

    @call(changes=True)
    async def take(self) -> None:
        """Adds the last command's files to the review. Raises `SessionError` without files."""
        last = self._last()
        written = self._running.written.get(last.id, ())
        if not written:
            why = "is no longer available" if last.changed else "wrote nothing"
            raise SessionError(f"The last command {why}", "run it again with !")
        count, left = await self._review.propose_written(written, last.id, last.command)
        files = f"{count} file{'' if count == 1 else 's'}"
        told = e.NoticeGiven("info", f"{files} from `{last.command}` in the review")
        await self._journal.record(*[told][: min(count, 1)], *(e.NoticeGiven("warning", why) for why in left))

    @call(changes=True)
    async def show_test_files(self) -> None:
        """Raises `SessionError` if there are none, and `OSError`."""
        paths = await self.views.show_test_files()
        told = f"Commands in this folder can now read {', '.join(map(display_path, paths))}"
        await self._journal.record(e.NoticeGiven("info", told))

    @call(changes=True)
    async def hide_test_files(self) -> None:
        """Raises `OSError`."""
        paths = await self.views.hide_test_files()
        told = "Test files that look like secrets stay hidden from commands in this folder"
        if paths:
            told = f"Commands in this folder can no longer read {', '.join(map(display_path, paths))}"
        await self._journal.record(e.NoticeGiven("info", told))

    @call(changes=True)
    async def forget_builds(self) -> None:
        """Raises `SessionError` during a command that uses them."""
        there = await self.views.forget_builds()
        told = "The kept build files were deleted" if there else "There are no kept build files"
        await self._journal.record(e.NoticeGiven("info", told))

    @call(changes=False)
    def last_output(self) -> str:
        """Formats the last output for the model. Raises `SessionError` without a last command."""
        last = self._last()
        state = "passed" if last.ok else f"ended with {last.status}" if last.how == "exit" else last.how
        return f"`{last.command}` {state}:\n\n{fenced(last.output.rstrip())}\n"

    @call(changes=False)
    def whole_output(self, number: str) -> str:
        """A long output lacks its middle. Blocking. Raises `FileError` or `SessionError`."""
        from tui_agent.sandbox.run import Output, printed

        result = self.state.commands.result(number)
        if result is None:
            raise SessionError("This command is no longer listed", "search for it in the chat")
        output = Output()
        output.add(self._blobs.get(result.blob) if result.blob else b"")
        return printed(output, WHOLE)[0]

    def _last(self) -> CommandResult:
        results = self.state.commands.results
        if not results:
            raise SessionError("No command has run yet", "type one in the chat, such as !pytest")
        return results[-1]

    @call(changes=False)
    def may_run_here(self) -> bool:
        return self._here_too.get() is True

    @call(changes=True)
    def allow_here(self) -> None:
        """Raises `OSError`."""
        self._here_too.keep(True)

    @call(changes=False)
    def on_batch(self, changes: Sequence[FileChange]) -> None:
        self._servers.on_batch(changes)

    @call(changes=True)
    async def stop(self) -> None:
        self._stopping.set()
        self._stopping = asyncio.Event()
        self._servers.to_start_again()  # discards servers waiting for a restart
        await self._running.stop(list(self._running.runs))

    @call(changes=False)
    async def ended(self) -> None:
        while tasks := [
            task for number, (_, task) in self._running.runs.items() if number not in self._servers.running
        ]:
            await asyncio.wait(tasks)

    @call(changes=False)
    async def close(self) -> None:
        await self.places.close()
        await self.views.close()
        await self._servers.close()
        await self._running.stop(list(self._running.runs))
        if self._unwanted:
            await asyncio.wait(self._unwanted)


async def _remove(made: asyncio.Task[Made]) -> None:
    with suppress(TuiAgentError, OSError):
        if (prepared := await made) is not None:
            await prepared.remove()


def _check(command: str) -> None:
    if not command.strip():
        raise SessionError("There is no command after the !", "type one, such as !pytest")


def shell(command: str, *, low: bool = False) -> list[str]:
    before = [LOW, "-n", "15"] if low and os.path.exists(LOW) else []
    return [*before, os.environ.get("SHELL") or "/bin/sh", "-c", command]
