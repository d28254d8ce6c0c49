"""An agent in a view that speaks the Agent Client Protocol (ACP) on its standard streams.

Neither `fs` nor `terminal` is offered, so that the layer of the view has all of the agent's writes.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from importlib import import_module
from typing import Any, Literal

from tui_agent.errors import SessionError

#: Seconds for the first answers of an agent.
READY_WITHIN = 60.0
#: Bytes of one line.
MOST_LINE = 50 << 20

Part = Literal["message", "reasoning"]
#: Receives text of the agent as it arrives.
OnText = Callable[[Part, str], None]


async def load_sdk() -> Any:
    """The module `acp`. Raises `SessionError` if it is not installed."""
    try:
        return await asyncio.to_thread(import_module, "acp")
    except ImportError as error:
        raise SessionError(
            "The chat with an agent needs the package agent-client-protocol",
            "install it with `pip install 'tui-agent[acp]'`",
        ) from error


class AcpAgent:
    """One conversation with an agent."""

    def __init__(self, sdk: Any, on_text: OnText) -> None:
        self._sdk, self._on_text = sdk, on_text
        self._connection: Any = None
        self._session = ""
        self._transports: list[asyncio.BaseTransport] = []
        #: Titles of tool calls that were shown.
        self._shown: set[str] = set()
        self._last: Part | Literal["tool", ""] = ""
        #: Cost of the conversation in US dollars, as far as the agent reports it, and the part already taken.
        self._cost = self._taken = 0.0

    async def connect(self, source: int, target: int) -> None:
        """Connects to the pipes of a started agent: its output and its input. Both are closed by `close`."""
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader(limit=MOST_LINE)
        from_agent, _ = await loop.connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(source, "rb", 0)
        )
        to_agent, protocol = await loop.connect_write_pipe(
            lambda: asyncio.streams.FlowControlMixin(loop), os.fdopen(target, "wb", 0)
        )
        self._transports = [from_agent, to_agent]
        writer = asyncio.StreamWriter(to_agent, protocol, None, loop)
        self._connection = self._sdk.connect_to_agent(_Client(self), writer, reader)

    async def begin(self, folder: str, mode: str) -> None:
        """Begins a conversation. Raises `SessionError` with the agent's reason."""
        schema = self._sdk.schema
        try:
            async with asyncio.timeout(READY_WITHIN):
                await self._connection.initialize(
                    self._sdk.PROTOCOL_VERSION,
                    schema.ClientCapabilities(
                        fs=schema.FileSystemCapabilities(read_text_file=False, write_text_file=False),
                        terminal=False,
                    ),
                )
                session = await self._connection.new_session(cwd=folder, mcp_servers=[])
                self._session = session.session_id
                modes = session.modes.available_modes if session.modes else []
                if mode and any(one.id == mode for one in modes):
                    await self._connection.set_session_mode(session_id=self._session, mode_id=mode)
        except TimeoutError as error:
            raise SessionError("The agent did not answer", "run it full screen with /agent") from error
        except Exception as error:
            raise SessionError(
                f"The agent did not start ({error})", "log in outside of tui-agent, or run it with /agent"
            ) from error

    async def prompt(self, text: str) -> str:
        """Sends a message and waits for the end of the agent's turn. Returns the reason for its end. Raises
        `SessionError`."""
        self._last = ""
        self._shown.clear()
        try:
            answer = await self._connection.prompt(
                session_id=self._session, prompt=[self._sdk.text_block(text)]
            )
        except asyncio.CancelledError:
            await asyncio.shield(self._connection.cancel(session_id=self._session))
            raise
        except Exception as error:
            raise SessionError(
                f"The agent ended its turn with an error ({error})", "send it again"
            ) from error
        return str(answer.stop_reason)

    def take_cost(self) -> float:
        """Cost in US dollars since the last call."""
        cost, self._taken = self._cost - self._taken, self._cost
        return cost

    async def close(self) -> None:
        if self._connection is not None:
            await self._connection.close()
        for transport in self._transports:
            transport.close()

    def updated(self, update: Any) -> None:
        """Shows an update of the conversation; unknown kinds are ignored."""
        kind = getattr(update, "session_update", "")
        if kind in ("agent_message_chunk", "agent_thought_chunk"):
            text = getattr(update.content, "text", "")
            part: Part = "message" if kind == "agent_message_chunk" else "reasoning"
            if text:
                if self._last == "tool" and part == "message":
                    text = f"\n\n{text}"
                self._last = part
                self._on_text(part, text)
        elif kind in ("tool_call", "tool_call_update"):
            title = (getattr(update, "title", None) or "").strip()
            if title and update.tool_call_id not in self._shown:
                self._shown.add(update.tool_call_id)
                lead = "\n" if self._last == "tool" else "\n\n"
                self._last = "tool"
                self._on_text("message", f"{lead}- {title.splitlines()[0][:200]}")
        elif kind == "plan":
            marks = {"completed": "x", "in_progress": "·"}
            rows = (f"- [{marks.get(one.status, ' ')}] {one.content}" for one in update.entries)
            self._last = "tool"
            self._on_text("message", "\n\n" + "\n".join(rows))
        elif kind == "usage_update" and getattr(update.cost, "currency", "") == "USD":
            self._cost = max(self._cost, update.cost.amount)

    def permitted(self, options: Any) -> Any:
        """The answer to a question for permission: allowed once, since the view holds all of its effects."""
        schema = self._sdk.schema
        wanted = ("allow_once", "allow_always")
        chosen = next((one for kind in wanted for one in options if one.kind == kind), None)
        if chosen is None:
            return schema.RequestPermissionResponse(outcome=schema.DeniedOutcome(outcome="cancelled"))
        outcome = schema.AllowedOutcome(outcome="selected", option_id=chosen.option_id)
        return schema.RequestPermissionResponse(outcome=outcome)


class _Client:
    """The methods that an agent calls."""

    def __init__(self, agent: AcpAgent) -> None:
        self._agent = agent

    def on_connect(self, conn: Any) -> None:
        """The connection is known already."""

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        self._agent.updated(update)

    async def request_permission(self, session_id: str, tool_call: Any, options: Any, **_: Any) -> Any:
        return self._agent.permitted(options)

    async def ext_method(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        return {}

    async def ext_notification(self, method: str, params: dict[str, Any]) -> None:
        """Notifications of single agents have no effect."""
