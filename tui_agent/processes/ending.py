"""The end of a process, whoever reads or holds its output.

In Python 3.11 `Process.wait` also waits until its output is closed: without end if the rest is not read, or if another
process holds it.
"""

from __future__ import annotations

import asyncio
from asyncio.subprocess import Process
from contextlib import suppress
from typing import Protocol

#: Seconds between two checks of a process, and for the rest of the output of a killed one.
CHECKED_EVERY, REST = 0.25, 1.0


class Started(Protocol):
    @property
    def returncode(self) -> int | None: ...

    async def wait(self) -> int: ...


async def ended(process: Started) -> None:
    while process.returncode is None:
        with suppress(TimeoutError):
            async with asyncio.timeout(CHECKED_EVERY):
                await process.wait()


async def end(process: Process) -> None:
    """Kills a process, discards its output and waits for its end."""
    with suppress(ProcessLookupError):
        process.kill()
    with suppress(TimeoutError):
        async with asyncio.timeout(REST):
            for output in (process.stdout, process.stderr):
                while output is not None and await output.read(1 << 16):
                    pass
    await ended(process)
