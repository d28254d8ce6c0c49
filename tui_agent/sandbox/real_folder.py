"""Commands in the real folder; their writes persist."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from tui_agent.files.numbers import whole_number
from tui_agent.sandbox.inside.commands import LOOK, waits_for_keyboard
from tui_agent.sandbox.run import RunnerResult, RunResult

INTERRUPTED = 0.3


class FolderRunner:
    """Each command has its own process session, so its children can be killed with it."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        #: By process id.
        self._processes: dict[int, asyncio.subprocess.Process] = {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass

    async def start(self, argv: Sequence[str], variables: Mapping[str, str], output: int) -> int:
        process = await asyncio.create_subprocess_exec(
            *argv,
            cwd=self._folder,
            env=variables,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
        self._processes[process.pid] = process
        return process.pid

    async def ended(self, number: int) -> RunnerResult:
        waiting, over = asyncio.ensure_future(self._processes[number].wait()), False
        while not (await asyncio.wait([waiting], timeout=LOOK))[0]:
            for pid in filter(waits_for_keyboard, _descendants(number)):
                over = True
                with suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
        return RunnerResult(await waiting, (), "keyboard" if over else "")

    def stop(self, number: int) -> None:
        _signal(number, signal.SIGINT)
        asyncio.get_running_loop().call_later(INTERRUPTED, _signal, number, signal.SIGKILL)

    async def with_changes(self, result: RunResult) -> RunResult:
        return result


def _signal(session: int, what: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.killpg(session, what)


def _descendants(pid: int) -> list[int]:
    found = [pid]
    for one in found:
        try:
            for task in os.listdir(f"/proc/{one}/task"):
                found += map(whole_number, Path(f"/proc/{one}/task/{task}/children").read_text().split())
        except OSError:
            continue  # The process has exited.
    return found
