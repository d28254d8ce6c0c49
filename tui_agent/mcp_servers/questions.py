"""Questions of servers to the person, and the roots that they may ask for."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal

import mcp_types
from mcp.client.session import ElicitationFnT, ListRootsFnT

from tui_agent.files.text import clean
from tui_agent.processes.serve import Announce

Action = Literal["accept", "decline", "cancel"]
#: Maximum characters of a question, and questions of one server at a time.
MAX_WORDS, MAX_OPEN = 2_000, 3


class Questions:
    """Sends the questions of servers to the parent, and waits for its answers."""

    def __init__(self, announce: Announce) -> None:
        self._announce = announce
        self._open: dict[int, asyncio.Future[tuple[Action, Any]]] = {}
        self._last = 0
        self._clocks: dict[str, list[asyncio.Timeout]] = {}

    def callback(self, server: str) -> ElicitationFnT:
        async def asked(context: Any, params: Any) -> mcp_types.ElicitResult:
            schema = getattr(params, "requested_schema", None)
            if schema is None or len(self._open) >= MAX_OPEN:  # A page to open, or a flood.
                return mcp_types.ElicitResult(action="decline")
            action, content = await self._ask(server, str(params.message), schema)
            return mcp_types.ElicitResult(action=action, content=content if action == "accept" else None)

        return asked

    def roots(self, folder: str) -> ListRootsFnT:
        async def roots(context: Any) -> mcp_types.ListRootsResult:
            return mcp_types.ListRootsResult(
                roots=[mcp_types.Root(uri=Path(folder).as_uri(), name=Path(folder).name)]
            )

        return roots

    @asynccontextmanager
    async def clock(self, server: str, seconds: float) -> AsyncGenerator[None]:
        """A time limit that does not run while the person is asked. Raises TimeoutError."""
        async with asyncio.timeout(seconds) as limit:
            self._clocks.setdefault(server, []).append(limit)
            try:
                yield
            finally:
                self._clocks[server].remove(limit)

    def answer(self, id: int, action: Action, content: Any) -> None:
        found = self._open.get(id)
        if found is not None and not found.done():
            found.set_result((action, content))

    async def _ask(self, server: str, message: str, schema: Any) -> tuple[Action, Any]:
        loop = asyncio.get_running_loop()
        self._last += 1
        id, answer = self._last, loop.create_future()
        self._open[id] = answer
        clocks = [(limit, limit.when()) for limit in self._clocks.get(server, [])]
        began = loop.time()
        for limit, _ in clocks:
            limit.reschedule(None)
        try:
            words = clean(message)[:MAX_WORDS]
            fields = schema.get("properties", {}) if isinstance(schema, dict) else {}
            self._announce({"id": id, "server": server, "message": words, "schema": schema if fields else {}})
            return await answer
        finally:
            self._open.pop(id, None)
            for limit, when in clocks:
                if when is not None and not limit.expired():
                    limit.reschedule(when + loop.time() - began)
