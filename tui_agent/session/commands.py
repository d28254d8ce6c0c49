"""Commands that the person runs: in a view of the folder with all that is pending, whose writes are thrown away."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tui_agent.errors import SessionError, TuiAgentError
from tui_agent.files.blobs import Blobs
from tui_agent.files.git_folder import find_git_folder
from tui_agent.files.text import TextFile, encode
from tui_agent.log.calls import call
from tui_agent.log.journal import Journal
from tui_agent.review.review import Review
from tui_agent.settings.schema import Settings
from tui_agent.store import events as e
from tui_agent.store.commands import By, CommandResult, RunningCommand
from tui_agent.store.state import State
from tui_agent.workspace.workspace import Workspace

if TYPE_CHECKING:
    from tui_agent.trial.hidden import HiddenFiles
    from tui_agent.trial.output import Output
    from tui_agent.trial.plan import Seed
    from tui_agent.trial.run import Result, Run

#: Letters of head and tail together that a result keeps; the blob holds more.
SHOWN = 16_000


class Commands:
    """Starts commands, tells of them, and stops them. What they printed is in the blobs."""

    def __init__(
        self, journal: Journal, workspace: Workspace, blobs: Blobs, review: Review, settings: Settings
    ) -> None:
        self._journal = journal
        self._workspace = workspace
        self._blobs = blobs
        self._review = review
        self._settings = settings
        self._hidden: HiddenFiles | None = None
        self._runs: dict[str, tuple[Run, asyncio.Task[None]]] = {}

    @property
    def state(self) -> State:
        return self._journal.store.state

    @call(changes=True)
    async def run(self, command: str, *, by: By = "person", timeout: float | None = None) -> str:
        """Start a command in the person's shell, in a view of its own; its id. Returns when it runs.

        Raises `SessionError` where the command is empty, or this machine has no such view.
        """
        from tui_agent.trial.plan import plan
        from tui_agent.trial.run import Run

        if not command.strip():
            raise SessionError("There is no command behind the !", "type one, such as !pytest")
        root = str(self._workspace.root)
        seeds, pending = await self._seeds()
        made = await asyncio.to_thread(
            plan,
            self._workspace.root,
            seeds=seeds,
            git_folders=await asyncio.to_thread(_git_folders, root),
            tools=self._settings.trial.tools,
        )
        variables, environment = _variables(root, made.home, self._settings.trial.env)
        number = str(self._journal.store.state.commands.total + 1)
        begun = asyncio.get_running_loop().create_future()

        def told(output: Output) -> None:
            self._journal.tell(e.CommandPrinted(number, output.last_line(), output.size))

        run = Run(timeout, told, lambda: begun.done() or begun.set_result(None))
        shell = os.environ.get("SHELL") or "/bin/sh"

        async def follow() -> None:
            try:
                result = await run.in_view(made, [shell, "-c", command], variables)
            except BaseException as error:
                if not begun.done():
                    begun.set_exception(error)
                    return
                raise
            ended = await asyncio.to_thread(self._result, number, command, by, result, pending)
            await self._journal.record(e.CommandEnded(ended))

        task = asyncio.get_running_loop().create_task(follow(), name=f"command {number}")
        self._runs[number] = run, task
        task.add_done_callback(lambda _: self._runs.pop(number, None))
        started = e.CommandStarted(number, command, by, "trial", "overlay", time.time())
        try:
            await begun
        except TuiAgentError:
            raise
        except Exception as error:
            raise SessionError(
                f"There is no trial view on this machine ({error})", "run it with !! in the real folder"
            ) from error
        await self._journal.record(started)
        told(run.output)  # what came before it was known to run
        if environment:
            await self._say_once(f"Commands use the virtual environment {environment} of this folder")
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

    def _result(
        self, number: str, command: str, by: By, result: Result, pending: Sequence[str]
    ) -> CommandResult:
        from tui_agent.trial.output import head_and_tail, plain

        content = result.output.content()
        shown, cut = head_and_tail(plain(content.decode("utf-8", "replace")), SHOWN)
        return CommandResult(
            number,
            command,
            by,
            "trial",
            "overlay",
            result.status,
            result.how,
            result.seconds,
            shown,
            cut,
            self._blobs.put(content) if content else "",
            tuple(change.path for change in result.changes),
            tuple(pending),
            result.left,
        )

    async def _say_once(self, sentence: str) -> None:
        if all(notice.text != sentence for notice in self._journal.store.state.notices.items):
            await self._journal.record(e.NoticeGiven("info", sentence))


def interrupted(running: Sequence[RunningCommand]) -> list[e.CommandEnded]:
    """What ran when a session ended without saying so does not run any more."""
    return [
        e.CommandEnded(
            CommandResult(one.id, one.command, one.by, one.where, one.isolated, -9, "interrupted", 0.0)
        )
        for one in running
    ]


def _git_folders(root: str) -> list[str]:
    """Folders of git that are elsewhere: those of a linked work tree or of a submodule."""
    found = find_git_folder(root)
    if found is None or found.work_tree != root:
        return []
    return sorted({found.common_dir, found.git_dir}, key=len)[:1] if found.common_dir else [found.git_dir]


def _variables(root: str, home: str, more: Sequence[str]) -> tuple[dict[str, str], str]:
    from tui_agent.trial.environment import variables

    return variables(root, home, os.environ, more)
