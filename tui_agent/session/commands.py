"""Commands of the person: in a view of the folder with all that is pending, or in the folder itself."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tui_agent.checks.output import REPORT, REPORTING
from tui_agent.context.excerpts import head_and_tail
from tui_agent.errors import SessionError
from tui_agent.files.blobs import Blobs
from tui_agent.files.git_folder import find_git_folder
from tui_agent.files.private import write_private
from tui_agent.files.text import TextFile, encode
from tui_agent.log.calls import call
from tui_agent.log.journal import Journal
from tui_agent.review.review import Review
from tui_agent.settings.schema import Settings
from tui_agent.store import events as e
from tui_agent.store.commands import By, CommandResult, Isolated, RunningCommand, Where
from tui_agent.store.state import State
from tui_agent.workspace.workspace import Workspace

if TYPE_CHECKING:
    from tui_agent.trial.changed import Written
    from tui_agent.trial.hidden import HiddenFiles
    from tui_agent.trial.output import Output
    from tui_agent.trial.plan import Seed
    from tui_agent.trial.run import Run, RunResult

_log = logging.getLogger(__name__)

#: Letters of head and tail together that a result keeps; the blob holds more.
SHOWN = 16_000
STORE = "commands.json"
#: Of how many commands what they wrote stays in memory.
KEPT_WRITTEN = 3


class CommandRuns:
    """Starts commands, tells of them, and stops them. What they printed is in the blobs."""

    def __init__(
        self,
        journal: Journal,
        workspace: Workspace,
        blobs: Blobs,
        review: Review,
        settings: Settings,
        store: Path,
        own: Sequence[Path] = (),
    ) -> None:
        """`own` are the folders of sessions and settings, which no command sees."""
        self._journal = journal
        self._workspace = workspace
        self._blobs = blobs
        self._review = review
        self._settings = settings
        #: Folders in which the person lets commands run for real.
        self._store = store
        self._own = tuple(map(str, own))
        self._hidden: HiddenFiles | None = None
        self._number = 0
        #: What the newest commands wrote, by their ids.
        self._written: dict[str, tuple[Written, ...]] = {}
        self._runs: dict[str, tuple[Run, asyncio.Task[None]]] = {}

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
        seeded: Callable[[], object] | None = None,
    ) -> str:
        """Start a command in the person's shell, in a view of its own; its id. Returns when it runs.

        `seeded` is called when it is known what is in place there. Raises `SessionError` where the command is empty,
        or this machine has no such view.
        """
        from tui_agent.trial.plan import NoView, plan

        _check(command)
        root = self._workspace.root
        seeds, pending = await self._seeds()
        if seeded is not None:
            seeded()
        trial = self._settings.trial
        folders = await asyncio.to_thread(_git_folders, str(root))
        try:
            made = await asyncio.to_thread(
                plan, root, seeds=seeds, git_folders=folders, tools=trial.tools, hidden=self._own
            )
        except NoView as error:
            raise SessionError(
                f"There is no trial view of this folder: {error.why}", _remedy("trial")
            ) from error
        variables, environment = _variables(str(root), made.home, trial.env)
        if by == "check":
            variables |= REPORTING
        number = await self._start(
            command, by, "trial", pending, timeout, lambda run: run.in_view(made, _shell(command), variables)
        )
        if environment:
            await self._say_once(f"Commands use the virtual environment {environment} of this folder")
        return number

    @call(changes=True)
    async def for_model(self, command: str, timeout: float) -> CommandResult:
        """Run a command that the model asked for, and wait for it; it ends with the turn. Raises `SessionError`."""
        return await self._result_of(await self.run(command, by="model", timeout=timeout))

    @call(changes=True)
    async def for_check(
        self, command: str, where: Where, timeout: float, seeded: Callable[[], object] | None = None
    ) -> tuple[CommandResult, str]:
        """Run a check as `for_model` does, in a view or in the folder itself; and the report that its runner wrote in
        the view, if any."""
        if where == "workspace":
            return await self._result_of(await self._here(command, "check", timeout)), ""
        number = await self.run(command, by="check", timeout=timeout, seeded=seeded)
        result = await self._result_of(number)
        written = self._written.get(number, ())
        self._written[number] = tuple(one for one in written if one.path != REPORT)
        report = next((one.after for one in written if one.path == REPORT), None)
        return result, (report or b"").decode("utf-8", "replace")

    async def _result_of(self, number: str) -> CommandResult:
        """What comes of a command; one that nobody waits for any more is stopped."""
        if number in self._runs:
            run, task = self._runs[number]
            try:
                await asyncio.shield(task)
            except asyncio.CancelledError:
                run.stop()
                await task
                raise
        return next(result for result in reversed(self.state.commands.results) if result.id == number)

    @call(changes=True)
    async def run_here(self, command: str) -> str:
        """Start a command of the person in the real folder, where what it writes stays; its id.

        Raises `SessionError` where the command is empty or cannot be started.
        """
        _check(command)
        return await self._here(command, "person", None)

    async def _here(self, command: str, by: By, timeout: float | None) -> str:
        root = str(self._workspace.root)
        return await self._start(
            command, by, "workspace", (), timeout, lambda run: run.in_folder(root, _shell(command))
        )

    @call(changes=True)
    async def again(self) -> str:
        """Run the last command again, where it ran. Raises `SessionError` where there was none."""
        last = self._last()
        return await (self.run(last.command) if last.where == "trial" else self.run_here(last.command))

    @call(changes=True)
    async def take(self) -> None:
        """Put what the last command wrote in its view into the review. Raises `SessionError` where that is nothing."""
        last = self._last()
        written = self._written.get(last.id, ())
        if not written:
            why = "is not kept any more" if last.changed else "wrote nothing"
            raise SessionError(f"The last command {why}", "run it again with !")
        count, left = await self._review.propose_written(written, last.id, last.command)
        files = f"{count} file{'' if count == 1 else 's'}"
        told = e.NoticeGiven("info", f"{files} from `{last.command}` in the review")
        await self._journal.record(*[told][: min(count, 1)], *(e.NoticeGiven("warning", why) for why in left))

    @call(changes=False)
    def last_output(self) -> str:
        """The last command and what it printed, in words for the model. Raises `SessionError` where there is none."""
        last = self._last()
        state = "passed" if last.ok else f"ended with {last.status}" if last.how == "exit" else last.how
        return f"`{last.command}` {state}:\n\n```\n{last.output.rstrip()}\n```\n"

    def _last(self) -> CommandResult:
        results = self.state.commands.results
        if not results:
            raise SessionError("No command has run yet", "type one in the chat, such as !pytest")
        return results[-1]

    @call(changes=False)
    def may_run_here(self) -> bool:
        """Whether the person has said that commands may run in this folder itself."""
        return str(self._workspace.root) in self._allowed()

    @call(changes=True)
    def allow_here(self) -> None:
        """Let commands run in this folder itself from now on, in later sessions too. Raises OSError."""
        paths = sorted({*self._allowed(), str(self._workspace.root)})
        write_private(self._store, json.dumps(paths).encode())

    def _allowed(self) -> list[str]:
        try:
            found = json.loads(self._store.read_bytes())
        except (OSError, ValueError):
            return []
        return [path for path in found if isinstance(path, str)] if isinstance(found, list) else []

    async def _start(
        self,
        command: str,
        by: By,
        where: Where,
        pending: Sequence[str],
        timeout: float | None,
        start: Callable[[Run], Awaitable[RunResult]],
    ) -> str:
        from tui_agent.trial.run import Run

        loop = asyncio.get_running_loop()
        self._number = max(self._number, self.state.commands.total) + 1
        number = str(self._number)
        isolated: Isolated = "overlay" if where == "trial" else "none"
        begun: asyncio.Future[None] = loop.create_future()

        def told(output: Output) -> None:
            self._journal.tell(e.CommandPrinted(number, output.last_line(), output.size))

        run = Run(timeout, told, lambda: begun.done() or begun.set_result(None))
        known, unwanted = asyncio.Event(), False

        async def follow() -> None:
            ran = RunningCommand(number, command, by, where, isolated, time.time())
            try:
                result = await start(run)
                ended = await asyncio.to_thread(self._result, ran, result, pending)
                newest = list(self._written.items())[: KEPT_WRITTEN - 1]
                self._written = {number: result.changes, **dict(newest)}
            except Exception as error:
                _log.info("command %s failed", number, exc_info=True)
                if not begun.done():
                    begun.set_exception(error)
                    return
                (ended,) = (told.result for told in interrupted([ran], f"its result was lost: {error}"))
            await known.wait()  # a short command may end before its start is on disk
            if unwanted:
                return
            await self._journal.record(e.CommandEnded(ended))

        task = loop.create_task(follow(), name=f"command {number}")
        self._runs[number] = run, task
        task.add_done_callback(lambda _: self._runs.pop(number, None))
        try:
            await begun
        except asyncio.CancelledError:  # nobody waits for it any more, and nothing is known of it
            unwanted = True
            known.set()
            run.stop()
            raise
        except Exception as error:
            what = (
                "There is no trial view on this machine"
                if where == "trial"
                else "The command could not be started"
            )
            raise SessionError(f"{what} ({error})", _remedy(where)) from error
        try:
            await self._journal.record(e.CommandStarted(number, command, by, where, isolated, time.time()))
        finally:
            known.set()
        told(run.output)  # what came before it was known to run
        return number

    @call(changes=True)
    async def stop(self) -> None:
        """Stop every command that runs; what they printed is kept."""
        await self._stop()

    async def _stop(self) -> None:
        for run, _ in self._runs.values():
            run.stop()
        await self.ended()

    @call(changes=False)
    async def ended(self) -> None:
        """Wait until no command runs."""
        while self._runs:
            await asyncio.wait([task for _, task in self._runs.values()])

    @call(changes=False)
    async def close(self) -> None:
        """Stop what runs."""
        await self._stop()

    async def _seeds(self) -> tuple[list[Seed], tuple[str, ...]]:
        """What is in the view instead of what is in the folder, and the paths of what is pending."""
        from tui_agent.trial.hidden import HiddenFiles
        from tui_agent.trial.plan import Seed

        targets, missing = await self._review.would_write()
        for sentence in missing:
            await self._journal.record(e.NoticeGiven("warning", f"Not part of the trial: {sentence}"))
        contents: dict[str, bytes | None] = {
            buffer.path: encode(TextFile("", buffer.encoding, buffer.mark), buffer.text)
            for buffer in self._journal.store.state.buffers.open
            if buffer.unsaved
        }
        for target in targets:
            contents[target.now.path] = (
                None if target.text is None else encode(target.now.stored, target.text)
            )
        if self._hidden is None:
            self._hidden = HiddenFiles(str(self._workspace.root))
        hidden = await asyncio.to_thread(self._hidden.paths, self._settings.trial.reveal)
        seeds = [Seed(path, "hidden") for path in hidden]
        for path, content in contents.items():
            if path not in hidden:
                seeds.append(Seed(path, "gone") if content is None else Seed(path, "file", content))
        return seeds, tuple(contents)

    def _result(self, ran: RunningCommand, result: RunResult, pending: Sequence[str]) -> CommandResult:
        from tui_agent.trial.output import plain

        content = result.output.content()
        shown, cut = head_and_tail(plain(content.decode("utf-8", "replace")), SHOWN)
        return CommandResult(
            id=ran.id,
            command=ran.command,
            by=ran.by,
            where=ran.where,
            isolated=ran.isolated,
            status=result.status,
            how=result.how,
            seconds=result.seconds,
            output=shown,
            cut=cut,
            blob=self._blobs.hold(content) if content else "",
            changed=tuple(change.path for change in result.changes if change.path != REPORT),
            pending=tuple(pending),
            left=result.left,
        )

    async def _say_once(self, sentence: str) -> None:
        if all(notice.text != sentence for notice in self._journal.store.state.notices.items):
            await self._journal.record(e.NoticeGiven("info", sentence))


def interrupted(running: Sequence[RunningCommand], how: str = "interrupted") -> list[e.CommandEnded]:
    """What ran when a session ended without saying so does not run any more."""
    return [
        e.CommandEnded(
            CommandResult(
                one.id,
                one.command,
                one.by,
                one.where,
                one.isolated,
                -9,
                how,
                max(0.0, time.time() - one.since),
            )
        )
        for one in running
    ]


def _check(command: str) -> None:
    if not command.strip():
        raise SessionError("There is no command behind the !", "type one, such as !pytest")


def _shell(command: str) -> list[str]:
    return [os.environ.get("SHELL") or "/bin/sh", "-c", command]


def _remedy(where: Where) -> str:
    if where == "trial":
        return "run it with !! in the real folder"
    return "look at what SHELL names"


def _git_folders(root: str) -> list[str]:
    """Folders of git that are elsewhere: those of a linked work tree or of a submodule."""
    found = find_git_folder(root)
    if found is None or found.work_tree != root:
        return []
    return sorted({found.common_dir, found.git_dir}, key=len)[:1] if found.common_dir else [found.git_dir]


def _variables(root: str, home: str, more: Sequence[str]) -> tuple[dict[str, str], str]:
    from tui_agent.trial.environment import variables

    return variables(root, home, os.environ, more)
