"""A child for the tests of `processes`: every way in which a child can behave."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tui_agent.errors import PathRefused
from tui_agent.processes.serve import Announce, Handler, Send, run

cancelled: list[str] = []


async def echo(params: dict[str, Any], send: Send) -> Any:
    return params


async def numbers(params: dict[str, Any], send: Send) -> None:
    for number in range(params["up_to"]):
        await send(number)


async def forever(params: dict[str, Any], send: Send) -> None:
    try:
        await send("begun")
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        cancelled.append(params["name"])
        raise


async def was_cancelled(params: dict[str, Any], send: Send) -> list[str]:
    return cancelled


async def prints(params: dict[str, Any], send: Send) -> str:
    print("to standard output", flush=True)  # noqa: T201 (what litellm does)
    os.write(1, b"to descriptor 1\n")
    return "printed"


async def refuses(params: dict[str, Any], send: Send) -> None:
    raise PathRefused("a/../b leads outside", "name a path inside the workspace")


async def breaks(params: dict[str, Any], send: Send) -> None:
    raise ZeroDivisionError("nothing to divide by")


async def facts(params: dict[str, Any], send: Send) -> dict[str, Any]:
    return {"pid": os.getpid(), "nice": os.nice(0), "extra": os.environ.get("EXTRA"), "session": os.getsid(0)}


async def environment(params: dict[str, Any], send: Send) -> dict[str, str]:
    return dict(os.environ)


async def insides(params: dict[str, Any], send: Send) -> dict[str, Any]:
    """What a process has from its parent, or has not."""
    os.write(2, b"to descriptor 2\n")
    logging.getLogger("tui_agent.test").warning("to the log")
    return {
        "started with": Path("/proc/self/environ").read_text(),  # noqa: ASYNC240 (it is in memory)
        "variables": dict(os.environ),
        "path": sys.path,
        "files": _files(),
        "handlers": len(logging.getLogger().handlers),
        "session": os.getsid(0) == os.getpid(),
    }


def _files() -> list[str]:
    """The files of the disk that are open here."""
    folder = "/proc/self/fd"
    targets = [
        os.readlink(f"{folder}/{name}") for name in os.listdir(folder) if os.path.exists(f"{folder}/{name}")
    ]
    return [target for target in targets if os.path.isfile(target)]


def build(announce: Announce) -> Mapping[str, Handler]:
    if os.environ.get("BROKEN"):
        raise SystemExit("this child cannot start")

    async def announces(params: dict[str, Any], send: Send) -> None:
        await asyncio.to_thread(announce, params)

    handlers = (
        echo,
        numbers,
        forever,
        was_cancelled,
        prints,
        refuses,
        breaks,
        facts,
        environment,
        announces,
        insides,
    )
    return {handler.__name__: handler for handler in handlers}


if __name__ == "__main__":
    run(build)
