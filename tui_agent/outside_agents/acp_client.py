"""An agent in a view that speaks the Agent Client Protocol (ACP) on its standard streams.

Neither `fs` nor `terminal` is offered, so that the layer of the view has all of the agent's writes.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from typing import Any, Literal, Protocol

import msgspec

from tui_agent.errors import SessionError, install_command
from tui_agent.files.text import one_line

_log = logging.getLogger(__name__)
#: Seconds that the last words of an agent that has ended are waited for.
WORDS_WITHIN = 1.0
READY_WITHIN = 60.0
#: Bytes of one line; bytes of the end of the output that explain a failed start.
MOST_LINE, MOST_WORDS = 50 << 20, 4096

Part = Literal["message", "reasoning"]
MOST_TITLE, MOST_OUTPUT = 200, 20_000


class AcpListener(Protocol):
    def say(self, part: Part, text: str) -> None:
        """Text of the agent as it arrives."""

    def call_started(self, name: str, kind: str, title: str) -> None: ...

    def call_ended(self, name: str, *, ok: bool, output: str) -> None: ...

    def plan(self, entries: Sequence[tuple[str, bool]]) -> None:
        """The whole plan: texts, and whether each is done."""

    async def permit(self, title: str, options: Sequence[tuple[str, str]]) -> str:
        """The id of the chosen option; "" for none. Options are ids and names."""


async def load_sdk() -> Any:
    """Raises `SessionError` if it is not installed."""
    try:
        return await asyncio.to_thread(import_module, "acp")
    except ImportError as error:
        raise SessionError(
            "The chat with an agent needs the package agent-client-protocol",
            f"install it with `{install_command('tui-agent[acp]')}`",
        ) from error


class _Output(asyncio.StreamReader):
    def __init__(self) -> None:
        super().__init__(limit=MOST_LINE)
        self._end = b""
        self.ended = asyncio.Event()

    def feed_data(self, data: Any) -> None:
        self._end = (self._end + data)[-MOST_WORDS:]
        super().feed_data(data)

    def feed_eof(self) -> None:
        self.ended.set()
        super().feed_eof()

    @property
    def last_words(self) -> str:
        lines = map(str.strip, reversed(self._end.decode("utf-8", "replace").splitlines()))
        return one_line(next((line for line in lines if line and not line.startswith("{")), ""))[:200]


class AcpAgent:
    def __init__(self, sdk: Any) -> None:
        self._sdk = sdk
        self._listener: AcpListener | None = None
        self._connection: Any = None
        self._output = _Output()
        self._session = ""
        self._transports: list[asyncio.BaseTransport] = []
        self._calls: dict[str, str] = {}
        self._known: set[str] = set()
        self._asked: set[asyncio.Task[str]] = set()
        #: Cost of the conversation in US dollars, if the agent reports it, and the part already taken.
        self._cost = self._taken = 0.0

    async def connect(self, source: int, target: int) -> None:
        """Connects to a started agent's output and input. `close` closes both."""
        loop = asyncio.get_running_loop()
        from_agent, _ = await loop.connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(self._output), os.fdopen(source, "rb", 0)
        )
        to_agent, protocol = await loop.connect_write_pipe(
            lambda: asyncio.streams.FlowControlMixin(loop), os.fdopen(target, "wb", 0)
        )
        self._transports = [from_agent, to_agent]
        writer = asyncio.StreamWriter(to_agent, protocol, None, loop)
        self._connection = self._sdk.connect_to_agent(_Client(self), writer, self._output)

    async def begin(self, folder: str, modes: str) -> None:
        """Sets the first of `modes` that the agent has. Raises `SessionError` with the agent's reason."""
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
                offered = [one.id for one in session.modes.available_modes] if session.modes else []
                if modes and offered:
                    mode = next((one for one in modes.split() if one in offered), "")
                    if not mode:
                        raise SessionError(
                            f"The agent has no mode {modes}, only {', '.join(offered)[:200]}",
                            "correct `acp_mode` in its profile",
                        )
                    await self._connection.set_session_mode(session_id=self._session, mode_id=mode)
        except SessionError:
            raise
        except TimeoutError as error:
            raise SessionError("The agent did not answer", "run it full screen with /agent") from error
        except Exception as error:
            why = str(error)
            if isinstance(error, ConnectionError):
                why = "it ended without a word"
                # A request to an agent that has ended can fail before its output was read.
                with suppress(TimeoutError):
                    async with asyncio.timeout(WORDS_WITHIN):
                        await self._output.ended.wait()
            raise SessionError(
                f"The agent did not start ({self._output.last_words or why})",
                "log in outside of tui-agent, or run it with /agent",
            ) from error

    async def prompt(self, text: str, listener: AcpListener) -> str:
        """Sends a message and waits for the end of the agent's turn. Returns the reason for its end. Raises
        `SessionError`.
        """
        self._listener = listener
        self._calls.clear()
        self._known.clear()
        try:
            answer = await self._connection.prompt(
                session_id=self._session, prompt=[self._sdk.text_block(text)]
            )
        except asyncio.CancelledError:
            for asked in self._asked:
                asked.cancel()
            await asyncio.shield(self._connection.cancel(session_id=self._session))
            raise
        except Exception as error:
            raise SessionError(
                f"The agent ended its turn with an error ({error})", "send it again"
            ) from error
        finally:
            for name in list(self._calls):
                self._end_call(name, ok=False, output="it did not end")
            self._listener = None
        return str(answer.stop_reason)

    def take_cost(self) -> float:
        cost, self._taken = self._cost - self._taken, self._cost
        return cost

    async def close(self) -> None:
        if self._connection is not None:
            try:
                await self._connection.close()
            except OSError:
                _log.debug("the connection to an agent was lost", exc_info=True)
        for transport in self._transports:
            transport.close()

    def updated(self, update: Any) -> None:
        """Passes an update on; ignores unknown kinds, and those after a turn."""
        kind, listener = getattr(update, "session_update", ""), self._listener
        if kind == "usage_update" and getattr(update.cost, "currency", "") == "USD":
            self._cost = max(self._cost, update.cost.amount)
        if listener is None:
            return
        if kind in ("agent_message_chunk", "agent_thought_chunk"):
            if text := getattr(update.content, "text", ""):
                listener.say("message" if kind == "agent_message_chunk" else "reasoning", text)
        elif kind in ("tool_call", "tool_call_update"):
            self._start_call(update, listener)
            if update.status in ("completed", "failed"):
                name, ok = str(update.tool_call_id), update.status == "completed"
                self._end_call(name, ok=ok, output=_output(update.content))
        elif kind == "plan":
            listener.plan([(one.content, one.status == "completed") for one in update.entries])

    def _start_call(self, call: Any, listener: AcpListener) -> None:
        name, title = str(call.tool_call_id), _first_line(call.title)
        if name not in self._known and title:
            self._known.add(name)
            self._calls[name] = title
            listener.call_started(name, str(call.kind or "tool"), title)

    def _end_call(self, name: str, *, ok: bool, output: str) -> None:
        if self._calls.pop(name, None) is not None and self._listener is not None:
            self._listener.call_ended(name, ok=ok, output=output)

    async def permitted(self, call: Any, options: Any) -> Any:
        """Cancels a request for permission if no option is chosen."""
        schema, listener = self._sdk.schema, self._listener
        chosen = ""
        if listener is not None and options:
            self._start_call(call, listener)
            title = _first_line(call.title) or self._calls.get(str(call.tool_call_id), "")
            # Options that allow are first: without a user, the first is chosen.
            ordered = sorted(options, key=lambda one: not str(one.kind).startswith("allow"))
            offered = [(str(one.option_id), str(one.name)) for one in ordered]
            asking = asyncio.ensure_future(listener.permit(title or "a tool", offered))
            self._asked.add(asking)
            try:
                chosen = await asking
            except asyncio.CancelledError:
                chosen = ""
            finally:
                self._asked.discard(asking)
        if not chosen:
            return schema.RequestPermissionResponse(outcome=schema.DeniedOutcome(outcome="cancelled"))
        outcome = schema.AllowedOutcome(outcome="selected", option_id=chosen)
        return schema.RequestPermissionResponse(outcome=outcome)


def _first_line(title: Any) -> str:
    lines = str(title or "").strip().splitlines()
    return lines[0][:MOST_TITLE] if lines else ""


def _output(content: Any) -> str:
    texts = (getattr(getattr(one, "content", None), "text", "") for one in content or ())
    return "\n".join(text for text in texts if text)[:MOST_OUTPUT]


class _Client:
    def __init__(self, agent: AcpAgent) -> None:
        self._agent = agent

    def on_connect(self, conn: Any) -> None:
        """The connection is known already."""

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        self._agent.updated(update)

    async def request_permission(self, session_id: str, tool_call: Any, options: Any, **_: Any) -> Any:
        return await self._agent.permitted(tool_call, options)

    async def ext_method(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        return {}

    async def ext_notification(self, method: str, params: dict[str, Any]) -> None:
        """Notifications of single agents have no effect."""


def answer_of(line: bytes) -> str | None:
    """Returns "" for other JSON, None for a line that is not JSON. Each agent has its own form: claude
    `result`,
    codex `item.completed`, opencode `text`, gemini and vibe a message with a role.
    """
    try:
        found: Any = msgspec.json.decode(line)
    except msgspec.DecodeError:
        return None
    if not isinstance(found, dict):
        return ""
    kind = found.get("type")
    if kind == "result":
        return _text(found.get("result"))
    if kind == "item.completed" and isinstance(item := found.get("item"), dict):
        return _text(item.get("text")) if item.get("type") == "agent_message" else ""
    if kind == "text" and isinstance(part := found.get("part"), dict):
        return _text(part.get("text"))
    if found.get("role") == "assistant":
        return _text(found.get("content"))
    if kind == "error":
        error = found.get("error", found.get("message"))
        return f"Error: {_text(error.get('message') if isinstance(error, dict) else error)}"
    return ""


def _text(value: Any) -> str:
    if isinstance(value, list):
        return "".join(_text(one.get("text")) for one in value if isinstance(one, dict))
    return value if isinstance(value, str) else ""
