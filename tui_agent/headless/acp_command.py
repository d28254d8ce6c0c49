"""`tui-agent acp`: sessions in an editor."""

from __future__ import annotations

import asyncio
import json
import os
import stat
import sys
from typing import Any, cast

import click

from tui_agent.errors import UsageError, install_command
from tui_agent.settings.folders import user_folders

#: Bytes of a frame, which may hold pictures.
LONGEST_FRAME = 64_000_000


@click.command("acp")
@click.option("--set-up", is_flag=True, help="Choose a model on the full screen instead.")
def acp(set_up: bool) -> int:
    """Serve sessions to an editor over the Agent Client Protocol (ACP).

    Reads and writes JSON-RPC on standard input and output. Sessions continue when the editor exits; `tui-agent attach`
    opens them in a terminal.
    """
    if set_up:
        os.execv(sys.executable, [sys.executable, "-m", "tui_agent"])
    kind = os.fstat(0).st_mode
    if not (stat.S_ISFIFO(kind) or stat.S_ISSOCK(kind) or os.isatty(0)):
        raise UsageError(
            "standard input is a file, and tui-agent acp waits for an editor there", "start it from an editor"
        )
    try:
        import acp as sdk
    except ImportError as error:
        raise UsageError(
            "tui-agent acp needs the SDK of the protocol, which is not installed",
            install_command("tui-agent[acp]"),
        ) from error
    from tui_agent.editors.agent import EditorAgent

    async def serve() -> None:
        agent = EditorAgent(user_folders().data)
        source, target = await sdk.stdio_streams(limit=LONGEST_FRAME)
        checked = asyncio.StreamReader(limit=LONGEST_FRAME)
        checking = asyncio.create_task(_check(source, checked, target), name="acp frames")
        try:
            await sdk.run_agent(cast(Any, agent), target, checked, use_unstable_protocol=True)
        finally:
            checking.cancel()
            await agent.close()

    asyncio.run(serve())
    return 0


async def _check(
    source: asyncio.StreamReader, checked: asyncio.StreamReader, target: asyncio.StreamWriter
) -> None:
    """Answers lines that are too long or not JSON objects with an error, because the SDK ends at some of
    them.
    """
    is_too_long = False
    try:
        while True:
            try:
                line = await source.readuntil(b"\n")
            except asyncio.LimitOverrunError as error:
                await source.readexactly(error.consumed)
                is_too_long = True
                continue
            except asyncio.IncompleteReadError:
                return  # without a line break, a frame is cut
            if not is_too_long and not line.strip():
                continue
            try:
                is_object = not is_too_long and isinstance(json.loads(line), dict)
            except (ValueError, RecursionError):
                is_object = False
            is_too_long = False
            if is_object:
                checked.feed_data(line)
            else:
                refusal = {
                    "code": -32700,
                    "message": f"Parse error: a line holds one JSON object of at most {LONGEST_FRAME:,} bytes",
                }
                target.write(json.dumps({"jsonrpc": "2.0", "id": None, "error": refusal}).encode() + b"\n")
                await target.drain()
    except OSError:
        pass
    finally:
        checked.feed_eof()
