"""Questions of servers to the person, and the roots that they may ask for."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, Literal

import mcp_types
from mcp.client.session import ElicitationFnT, ListRootsFnT, SamplingFnT

from tui_agent.files.text import clean
from tui_agent.processes.serve import Announce

Action = Literal["accept", "decline", "cancel"]
#: Maximum characters of a question, and questions of one server at a time.
MAX_WORDS, MAX_OPEN = 2_000, 3
#: Messages and characters of a request for the model, and the protocol's code of a refusal.
MAX_MESSAGES, MAX_SAMPLED, REFUSED = 100, 200_000, -1
#: An address that a person may be asked to open.
_URL = re.compile(r"https?://[\x21-\x7e]{1,2000}")


class Questions:
    """Sends the questions of servers to the parent, and waits for its answers."""

    def __init__(self, announce: Announce) -> None:
        self._announce = announce
        self._open: dict[int, asyncio.Future[tuple[Action, Any]]] = {}
        self._last = 0
        #: Seconds that were left when a question stopped the clock of a call, by server; None while it runs.
        self._clocks: dict[str, dict[asyncio.Timeout, float | None]] = {}
        self._asking: dict[str, int] = {}

    def callback(self, server: str) -> ElicitationFnT:
        async def asked(context: Any, params: Any) -> mcp_types.ElicitResult:
            schema, url = getattr(params, "requested_schema", None), str(getattr(params, "url", ""))
            if len(self._open) >= MAX_OPEN or (schema is None and not _URL.fullmatch(url)):
                return mcp_types.ElicitResult(action="decline")
            fields = schema.get("properties", {}) if isinstance(schema, dict) else {}
            words = {"message": clean(str(params.message))[:MAX_WORDS]}
            asking = (
                {**words, "schema": schema if fields else {}} if schema is not None else {**words, "url": url}
            )
            action, content = await self._ask(server, asking)
            kept = content if action == "accept" and schema is not None else None
            return mcp_types.ElicitResult(action=action, content=kept)

        return asked

    def sampling(self, server: str) -> SamplingFnT:
        """Answers a server that may use the model, which gets only the kind of content other than text."""

        async def sample(
            context: Any, params: mcp_types.CreateMessageRequestParams
        ) -> mcp_types.CreateMessageResult | mcp_types.ErrorData:
            if len(self._open) >= MAX_OPEN:
                return mcp_types.ErrorData(code=REFUSED, message="Too many requests wait already.")
            texts = [
                {"role": one.role, "text": _texts(one.content)} for one in params.messages[:MAX_MESSAGES]
            ]
            if sum(len(one["text"]) for one in texts) + len(params.system_prompt or "") > MAX_SAMPLED:
                return mcp_types.ErrorData(code=REFUSED, message=f"More than {MAX_SAMPLED:,} characters.")
            wanted = {"system": params.system_prompt or "", "messages": texts, "most": params.max_tokens}
            action, content = await self._ask(server, {"sampling": wanted})
            if action != "accept":
                return mcp_types.ErrorData(code=REFUSED, message=str(content.get("why", "It was refused.")))
            return mcp_types.CreateMessageResult(
                role="assistant",
                content=mcp_types.TextContent(type="text", text=content["text"]),
                model=content["model"],
                stop_reason="endTurn",
            )

        return sample

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
            clocks = self._clocks.setdefault(server, {})
            clocks[limit] = None
            try:
                yield
            finally:
                del clocks[limit]

    @contextmanager
    def _stopped_clocks(self, server: str) -> Generator[None]:
        """Stops the clocks of a server's calls until none of its questions is open."""
        loop, clocks = asyncio.get_running_loop(), self._clocks.setdefault(server, {})
        for limit, left in clocks.items():
            if left is None and (when := limit.when()) is not None and not limit.expired():
                clocks[limit] = when - loop.time()
                limit.reschedule(None)
        self._asking[server] = self._asking.get(server, 0) + 1
        try:
            yield
        finally:
            self._asking[server] -= 1
            if not self._asking[server]:
                for limit, left in clocks.items():
                    if left is not None:
                        limit.reschedule(loop.time() + left)
                        clocks[limit] = None

    def answer(self, id: int, action: Action, content: Any) -> None:
        found = self._open.get(id)
        if found is not None and not found.done():
            found.set_result((action, content))

    async def _ask(self, server: str, asking: dict[str, Any]) -> tuple[Action, Any]:
        self._last += 1
        id, answer = self._last, asyncio.get_running_loop().create_future()
        self._open[id] = answer
        try:
            with self._stopped_clocks(server):
                self._announce({"id": id, "server": server, **asking})
                return await answer
        finally:
            del self._open[id]


def _texts(content: Any) -> str:
    parts = content if isinstance(content, list) else [content]
    return clean("\n".join(getattr(part, "text", f"[{getattr(part, 'type', 'data')}]") for part in parts))
