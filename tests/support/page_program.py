"""The child that reads pages, with names under `.test` on this machine's loopback."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tui_agent.processes.serve import Announce, Handler, Send, run
from tui_agent.web.page_reader import public_addresses, read_page


async def on_loopback(host: str, port: int) -> list[str]:
    return ["127.0.0.1"] if host.endswith(".test") else await public_addresses(host, port)


async def read(params: dict[str, Any], send: Send) -> dict[str, Any]:
    return await read_page(str(params["url"]), on_loopback)


def build(announce: Announce) -> Mapping[str, Handler]:
    return {"read": read}


if __name__ == "__main__":
    run(build)
