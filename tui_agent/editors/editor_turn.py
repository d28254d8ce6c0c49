"""A session in an editor: its control socket as lines and requests, and turns, whose lines become updates."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any

from acp import schema as s
from acp.interfaces import Client

from tui_agent.control import sockets
from tui_agent.control.server import LONGEST_LINE as LONGEST_MESSAGE
from tui_agent.control.sockets import SessionSocket
from tui_agent.edits.change import OPEN_STATES
from tui_agent.errors import SessionError
from tui_agent.processes.background import start_task
from tui_agent.store.state import ChatMessage

#: Bytes of a line from a session; seconds for it to accept a connection.
LONGEST_LINE, WITHIN = 64_000_000, 30.0
Line = dict[str, Any]

#: Kinds of tool calls by the names of our tools.
_KINDS: dict[str, Any] = {
    "read_files": "read",
    "list_directory": "search",
    "search_text": "search",
    "find_files": "search",
    "propose_changes": "edit",
    "run_command": "execute",
    "fetch_page": "fetch",
    "set_todos": "think",
}
_CHOICES: tuple[tuple[str, str, Any], ...] = (
    ("apply", "Apply", "allow_once"),
    ("apply all", "Apply all changes of this turn", "allow_always"),
    ("skip", "Skip", "reject_once"),
    ("skip all", "Skip all changes of this turn", "reject_always"),
)
#: Numbers of tool calls and prompts, each used once in this process.
_NUMBERS = count(1)


class SessionLink:
    def __init__(
        self, place: SessionSocket, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self.id = place.session
        self.state: Line = {}
        self._writer = writer
        writer.write(b'{"type": "thoughts"}\n')
        self._results: asyncio.Queue[Line] = asyncio.Queue()
        #: Whether events are kept for `lines`.
        self.is_heard = False
        self._lines: asyncio.Queue[Line | None] = asyncio.Queue()
        self._asking = asyncio.Lock()
        self._reading = asyncio.create_task(self._read(reader), name="session link")

    @classmethod
    async def open(cls, place: SessionSocket) -> SessionLink:
        """Raises `SessionError`."""
        connection = await asyncio.to_thread(sockets.reach, place, WITHIN)
        connection.setblocking(False)
        return cls(place, *await asyncio.open_connection(sock=connection, limit=LONGEST_LINE))

    @classmethod
    async def begin(cls, workspace: Path) -> SessionLink:
        return await cls.open(await asyncio.to_thread(sockets.begin, workspace))

    @classmethod
    async def resume(cls, session: str, workspace: Path) -> SessionLink:
        """Opens the session with this id, which may already run. Raises `SessionError`."""
        place = await asyncio.to_thread(sockets.of_session, session)
        return await cls.open(place or await asyncio.to_thread(sockets.begin, workspace, session))

    async def request(self, kind: str, **fields: Any) -> Line:
        """Sends a message and returns its result. Raises `SessionError` if it fails."""
        message = json.dumps({"type": kind, **fields}).encode() + b"\n"
        if len(message) > LONGEST_MESSAGE:
            raise SessionError("The message is too long", "send links to its files, and not their contents")
        async with self._asking:
            self._writer.write(message)
            result = await self._results.get()
            if result.get("ok"):
                return result
            if "of" in result:
                raise failure(str(result.get("error")))
            self._results.put_nowait(result)
            raise SessionError("the session has ended", "begin another")

    def settle(self, of: int) -> None:
        """Asks for a line `settled` at the end of all that follows from a message."""
        self._writer.write(json.dumps({"type": "settle", "of": of}).encode() + b"\n")

    async def lines(self) -> AsyncGenerator[Line, None]:
        """The events since `is_heard` was set, as they come, until the session ends."""
        while (line := await self._lines.get()) is not None:
            yield line
        self._lines.put_nowait(None)

    def discard(self) -> None:
        """Drops the events that have come, and those that will."""
        self.is_heard = False
        while not self._lines.empty():
            if self._lines.get_nowait() is None:
                self._lines.put_nowait(None)
                return

    async def close(self) -> None:
        self._reading.cancel()
        self._writer.close()
        await asyncio.gather(self._reading, return_exceptions=True)

    async def _read(self, reader: asyncio.StreamReader) -> None:
        try:
            while data := await reader.readline():
                line = json.loads(data)
                if line.get("type") == "result":
                    self._results.put_nowait(line)
                    continue
                if line.get("type") == "state":
                    self.state = line
                if self.is_heard:
                    self._lines.put_nowait(line)
        except (OSError, ValueError):
            pass
        finally:
            self._lines.put_nowait(None)
            self._results.put_nowait({"ok": False})


def failure(sentence: str) -> SessionError:
    """An error from its words on a line."""
    what, _, remedy = sentence.rpartition(": ")
    return SessionError(what, remedy) if what else SessionError(remedy, "send it again")


class EditorTurn:
    """One prompt: lines of the session become updates until the turn ends and its changes are decided."""

    def __init__(self, client: Client, link: SessionLink) -> None:
        self._client, self._link = client, link
        self.is_cancelled = False
        self._asked: str | None = None
        self._questions: set[asyncio.Task[None]] = set()
        #: Requests for permission that the editor has not answered.
        self._open: set[asyncio.Future[Any]] = set()
        self._commands: dict[str, str] = {}
        #: States of the changes of this turn, by id.
        self._changes: dict[str, str] = {}

    def cancel(self) -> None:
        """Ends also its requests for permission, which an editor may leave open."""
        self.is_cancelled = True
        for request in self._open:
            request.cancel()

    async def answered(self) -> s.PromptResponse:
        """Raises `SessionError` if the session ends, or the turn fails."""
        finished, used, number = None, Counter[str](), next(_NUMBERS)
        cost: float | None = None
        try:
            async for line in self._link.lines():
                await self._show(line)
                if line["type"] == "finished":
                    if finished is None:
                        self._link.settle(number)
                    finished = line
                    used.update(
                        {name: amount or 0 for name, amount in line["usage"].items() if name != "cost"}
                    )
                    if line["usage"]["cost"] is not None:
                        cost = (cost or 0.0) + line["usage"]["cost"]
                elif line["type"] == "settled" and line["of"] == number:
                    break
            else:
                finished = None
        finally:
            for task in self._questions:
                task.cancel()
        if finished is None:
            if self.is_cancelled:
                return s.PromptResponse(stop_reason="cancelled")
            raise SessionError("the session has ended", "begin another")
        usage = s.Usage(
            input_tokens=used["input"],
            output_tokens=used["output"],
            total_tokens=used["input"] + used["output"],
            cached_read_tokens=used["cached"],
            thought_tokens=used["thinking"],
        )
        about = await self._link.request("describe")
        await self._update(
            s.UsageUpdate(
                used=about["context"],
                size=about["window"],
                cost=None if cost is None else s.Cost(amount=cost, currency="USD"),
                session_update="usage_update",
            )
        )
        if self.is_cancelled:
            return s.PromptResponse(stop_reason="cancelled", usage=usage)
        if not finished["ok"]:
            if finished.get("limit"):
                return s.PromptResponse(stop_reason="max_turn_requests", usage=usage)
            raise failure(str(finished["error"] or "the turn failed"))
        await self._decide()
        return s.PromptResponse(stop_reason="cancelled" if self.is_cancelled else "end_turn", usage=usage)

    async def _show(self, line: Line) -> None:
        match line:
            case {"type": "delta", "text": str(text)}:
                await self._say(text)
            case {"type": "thought", "text": str(text)}:
                await self._update(_thought(text))
            case {"type": "notice", "level": "warning" | "error", "text": str(text)}:
                await self._say(f"\n\n_{text}_\n\n")
            case {"type": "plan", "actions": [*actions]} if actions:
                names = [str(one.get("name") or one.get("path")) for one in actions]
                await self._call(f"Plan: {', '.join(names)}", "think")
            case {"type": "file_loaded", "path": str(path), "lines": lines}:
                await self._call(f"Read {path} ({lines} lines)", "read", path)
            case {"type": "tool", "name": str(tool), "ok": ok, "arguments": arguments}:
                await self._call(f"{tool} {arguments}", _KINDS.get(tool, "other"), ok=bool(ok))
            case {"type": "command", "id": str(name), "command": str(command)}:
                self._commands[name] = command
            case {"type": "command_result", "id": str(name), "exit": status, "output": str(output)}:
                title = f"{self._commands.get(name, 'Command')} (exit {status})"
                await self._call(title, "execute", text=output, ok=status == 0)
            case {"type": "check", "name": str(name), "state": state}:
                await self._call(f"Check {name}: {state}", "execute", ok=state == "passed")
            case {"type": "change", "id": str(name), "state": str(state)}:
                self._changes[name] = state
            case {"type": "response", "todos": [*todos]} if todos:
                await self.plan(todos)
            case {"type": "state"}:
                question = line.get("asks")
                if question and question != self._asked:
                    choices = list(line.get("choices") or [])
                    start_task(self._questions, self._answer(str(question), choices))
                self._asked = question

    async def _answer(self, question: str, choices: list[str]) -> None:
        kinds: dict[str, Any] = {"once": "allow_once", "session": "allow_always", "always": "allow_always"}
        names = {"once": "Yes", "session": "Yes, in this session", "always": "Always", "no": "No"}
        options = [
            s.PermissionOption(
                option_id=str(number),
                name=names.get(choice, choice),
                kind="reject_once" if choice == "no" else kinds.get(choice, "allow_once"),
            )
            for number, choice in enumerate(choices, 1)
        ]
        if "no" not in choices:
            options.append(s.PermissionOption(option_id="skip", name="Skip", kind="reject_once"))
        name = self._new_call()
        call = s.ToolCallUpdate(tool_call_id=name, title=question, kind="other", status="pending")
        outcome = await self._permission(call, options)
        no = str(choices.index("no") + 1) if "no" in choices else ""
        await self._end_call(name, ok=outcome not in ("", "skip", no))
        if not self.is_cancelled:
            with suppress(SessionError):  # answered elsewhere, or stopped
                await self._link.request("answer", text=no if outcome in ("", "skip") else outcome)

    async def _change(self, name: str) -> tuple[dict[str, Any], str]:
        """The fields of the call of a change, and the state of the change. Raises `SessionError`."""
        found = await self._link.request("change", change=name)
        path = Path(str(self._link.state["workspace"]), found["rename_to"] or found["path"])
        diff = s.FileEditToolCallContent(
            path=str(path), old_text=found["old"], new_text=found["new"] or "", type="diff"
        )
        fields = {
            "tool_call_id": f"change {name}",
            "title": f"{'Delete' if found['new'] is None else 'Change'} {found['path']}",
            "kind": "delete" if found["new"] is None else "edit",
            "content": [diff],
            "locations": [s.ToolCallLocation(path=str(path))],
        }
        return fields, found["state"]

    async def _decide(self) -> None:
        for name in [name for name, state in self._changes.items() if state in ("pending", "merged")]:
            known, _ = await self._change(name)
            await self._update(s.ToolCallStart(**known, status="pending", session_update="tool_call"))
            options = [
                s.PermissionOption(option_id=key, name=words, kind=kind) for key, words, kind in _CHOICES
            ]
            choice = await self._permission(s.ToolCallUpdate(**known, status="pending"), options)
            if not choice:
                return  # they stay pending
            verb, _, every = choice.partition(" ")
            ok = True
            try:
                await self._link.request(verb, changes=[] if every else [name])
            except SessionError as error:
                ok = False
                await self._say(f"\n\n_{error}_\n\n")
            await self._end_call(f"change {name}", ok=ok and verb == "apply")
            if every or self.is_cancelled:
                return

    async def _permission(self, call: s.ToolCallUpdate, options: list[s.PermissionOption]) -> str:
        asking = asyncio.ensure_future(
            self._client.request_permission(session_id=self._link.id, tool_call=call, options=options)
        )
        self._open.add(asking)
        try:
            await asyncio.wait([asking])
        finally:
            self._open.discard(asking)
            asking.cancel()
        if asking.cancelled():
            return ""
        answer = asking.result()
        known = {option.option_id for option in options}
        chosen = answer.outcome.option_id if isinstance(answer.outcome, s.AllowedOutcome) else ""
        return chosen if chosen in known else ""

    async def repeat(self, message: ChatMessage) -> None:
        if (ran := message.command) is not None:
            title = f"Check {message.check.name}" if message.check else ran.command
            await self._call(title, "execute", text=ran.output, ok=ran.ok)
        if message.kind not in ("person", "agent"):
            return
        if message.reasoning:
            await self._update(_thought(message.reasoning))
        for call in message.calls:
            await self._call(f"{call.name} {call.shown}", _KINDS.get(call.name, "other"), ok=call.ok)
        text = message.text or message.summary
        if text and message.kind == "agent":
            await self._say(text)
        elif text:
            block = s.TextContentBlock(text=text, type="text")
            await self._update(s.UserMessageChunk(content=block, session_update="user_message_chunk"))
        for name in message.changes:
            with suppress(SessionError):  # its texts were deleted
                known, state = await self._change(name)
                undecided = "pending" if state in OPEN_STATES else "failed"
                status = "completed" if state == "applied" else undecided
                await self._update(s.ToolCallStart(**known, status=status, session_update="tool_call"))

    async def plan(self, todos: list[Any]) -> None:
        if not todos:
            return
        entries = [
            s.PlanEntry(
                content=str(todo.get("text")),
                priority="medium",
                status="completed" if todo.get("done") else "pending",
            )
            for todo in todos
        ]
        await self._update(s.AgentPlanUpdate(entries=entries, session_update="plan"))

    async def _call(self, title: str, kind: Any, path: str = "", text: str = "", ok: bool = True) -> None:
        block = s.TextContentBlock(text=text[-20_000:], type="text")
        workspace = str(self._link.state.get("workspace"))
        await self._update(
            s.ToolCallStart(
                tool_call_id=self._new_call(),
                title=title[:200],
                kind=kind,
                status="completed" if ok else "failed",
                content=[s.ContentToolCallContent(content=block, type="content")] if text else None,
                locations=[s.ToolCallLocation(path=str(Path(workspace, path)))] if path else None,
                session_update="tool_call",
            )
        )

    def _new_call(self) -> str:
        return f"call {next(_NUMBERS)}"

    async def _end_call(self, name: str, *, ok: bool) -> None:
        status = "completed" if ok else "failed"
        await self._update(
            s.ToolCallProgress(tool_call_id=name, status=status, session_update="tool_call_update")
        )

    async def _say(self, text: str) -> None:
        block = s.TextContentBlock(text=text, type="text")
        await self._update(s.AgentMessageChunk(content=block, session_update="agent_message_chunk"))

    async def _update(self, update: Any) -> None:
        await self._client.session_update(session_id=self._link.id, update=update)


def _thought(text: str) -> s.AgentThoughtChunk:
    block = s.TextContentBlock(text=text, type="text")
    return s.AgentThoughtChunk(content=block, session_update="agent_thought_chunk")
