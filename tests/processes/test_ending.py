"""The end of processes whose output is not read, or held by another process."""

from __future__ import annotations

import asyncio
import os
import signal
from asyncio.subprocess import PIPE
from pathlib import Path

from support.trees import until

from tui_agent.processes.ending import end, ended


async def test_a_process_whose_output_nobody_reads_is_ended(tmp_path: Path) -> None:
    """All is written only if the pipe holds 64 KiB and the paused reader one byte over its limit of 128."""
    marker = tmp_path / "written"
    script = f"head -c 196609 /dev/zero; : > '{marker}'; exec sleep 1000"
    process = await asyncio.create_subprocess_exec("/bin/sh", "-c", script, stdout=PIPE)
    await until(marker.exists, "all is written")
    async with asyncio.timeout(60):
        await end(process)
    assert process.returncode == -9
    assert process.stdout is not None and process.stdout.at_eof()


async def test_a_process_whose_output_another_one_holds_has_ended() -> None:
    process = await asyncio.create_subprocess_exec("/bin/sh", "-c", "sleep 1000 & echo $!", stdout=PIPE)
    assert process.stdout is not None
    holder = int(await process.stdout.readline())
    try:
        async with asyncio.timeout(60):
            await ended(process)
            await end(process)
        assert process.returncode == 0 and not process.stdout.at_eof()
    finally:
        os.kill(holder, signal.SIGKILL)
        await process.stdout.read()
