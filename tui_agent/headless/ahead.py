"""The processes of a run, which get ready on other cores while the run itself is imported."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from contextlib import contextmanager, suppress

from msgspec import Struct

from tui_agent.errors import ChildFailed
from tui_agent.headless.arguments import RunOptions
from tui_agent.model import table
from tui_agent.model.process import model_process
from tui_agent.model.rules import providers
from tui_agent.processes.child import ChildProcess
from tui_agent.settings import trust
from tui_agent.settings.folders import user_folders
from tui_agent.workspace.ahead import ChildAhead, workspace_child


class RunAhead(Struct, frozen=True):
    """The loop that the processes belong to, and each of them that the run will need."""

    loop: asyncio.Runner
    workspace: ChildAhead | None = None
    model: ChildProcess | None = None


@contextmanager
def started(options: RunOptions) -> Generator[RunAhead]:
    """They end with the block at the latest."""
    workspace = model = None
    if not options.session and not options.trust:  # else the folder or its filters may turn out to be others
        filters = trust.trusted_filters(options.workspace, user_folders())
        workspace = ChildAhead(options.workspace, filters, workspace_child(filters))
        workspace.process.fork()
    if options.replay is None:
        table.table()  # the tables of models and rules, which both sides need
        providers()
        model = model_process()
        model.fork()
    with asyncio.Runner() as loop:
        ahead = RunAhead(loop, workspace, model)
        try:
            loop.run(_start(ahead))
            yield ahead
        finally:
            loop.run(_end(ahead))


async def _start(ahead: RunAhead) -> None:
    for process in (ahead.workspace.process if ahead.workspace else None, ahead.model):
        with suppress(ChildFailed):  # the first use says so
            if process is not None:
                await process.start()


async def _end(ahead: RunAhead) -> None:
    """A second end of a process is none."""
    if ahead.workspace is not None:
        await ahead.workspace.process.close()
    if ahead.model is not None:
        await ahead.model.close()
