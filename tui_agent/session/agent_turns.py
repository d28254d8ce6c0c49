"""Turns of another agent: its text is the reply, its changes are proposed while it works."""

from __future__ import annotations

import asyncio
import os
import shutil
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

from tui_agent.errors import SessionError
from tui_agent.outside_agents.acp_client import AcpAgent, Part, answer_of, load_sdk
from tui_agent.session.outside_agents import AgentRun, OutsideAgents
from tui_agent.store import events as e
from tui_agent.store.conversation import Usage
from tui_agent.store.state import Todo
from tui_agent.tools.server_tools import ask_permission

if TYPE_CHECKING:
    from tui_agent.store.event import Event
    from tui_agent.tools.tool import Emit
    from tui_agent.turn.context import TurnContext

#: Maximum characters of a reply, and of other printed lines.
MOST_TEXT, MOST_PRINTED = 200_000, 20_000
MOST_PLANNED = 50
_PARTS: tuple[Part, Part] = ("message", "reasoning")
_LINE = 1 << 20


class _Turn:
    def __init__(self, agent: str, context: TurnContext, emit: Emit) -> None:
        self._agent, self._context, self._emit = agent, context, emit
        self._events: asyncio.Queue[Event | None] = asyncio.Queue()
        self._parts: dict[Part, list[str]] = {"message": [], "reasoning": []}
        #: Kind, title and start of each open call.
        self._calls: dict[str, tuple[str, str, float]] = {}
        self._planned: dict[str, tuple[str, bool]] = {}
        self.said_something = False

    async def record(self) -> None:
        while (event := await self._events.get()) is not None:
            await self._emit(event)

    def end(self, changes: tuple[str, ...]) -> None:
        self._end_reply(changes)
        self._events.put_nowait(None)

    def say(self, part: Part, text: str) -> None:
        self._parts[part].append(text)
        self.said_something = self.said_something or (part == "message" and bool(text.strip()))
        self._events.put_nowait(e.ReplyStreamed(part, text))

    def call_started(self, name: str, kind: str, title: str) -> None:
        if any(self._parts.values()) or not self._calls:
            self._end_reply(())
        self._calls[name] = kind, title, time.monotonic()
        self._events.put_nowait(e.CallStarted(self._id(name), kind, title))

    def call_ended(self, name: str, *, ok: bool, output: str) -> None:
        kind, title, begun = self._calls.pop(name)
        seconds = round(time.monotonic() - begun, 3)
        ended = e.CallEnded(self._id(name), kind, shown=title, ok=ok, seconds=seconds, details=output)
        self._events.put_nowait(ended)

    def plan(self, entries: Sequence[tuple[str, bool]]) -> None:
        turn = self._context.turn
        for text, done in entries[:MOST_PLANNED]:
            line = " ".join(text.split())[:300]
            name, was = self._planned.get(line, (f"{turn}.p{len(self._planned)}", done))
            if line not in self._planned:
                self._events.put_nowait(e.TodosAdded((Todo(name, line, done=done, turn=turn),)))
            elif was != done:
                self._events.put_nowait(e.TodoChanged(name, line, done))
            self._planned[line] = name, done

    async def permit(self, title: str, options: Sequence[tuple[str, str]]) -> str:
        """Chooses the first option in mode `auto` or without a user, since the view holds all effects."""
        if self._context.ask is None or self._context.core.mode == "auto":
            return options[0][0]
        return await ask_permission(self._context, self._emit, self._agent, title, options)

    def _id(self, name: str) -> str:
        return f"{self._agent}_{self._context.turn}_{name}"

    def _end_reply(self, changes: tuple[str, ...]) -> None:
        message, reasoning = ("".join(self._parts[part])[:MOST_TEXT].strip() for part in _PARTS)
        for part in _PARTS:
            self._parts[part].clear()
        turn = self._context.turn
        self._events.put_nowait(e.ReplyRead(turn, "", message, reasoning, changes=changes))


class AgentTurns:
    def __init__(self, agents: OutsideAgents) -> None:
        self._agents = agents
        #: By name: its view, its connection, and what closes both.
        self._open: dict[str, tuple[AgentRun, AcpAgent, AsyncExitStack]] = {}

    def steps(self, name: str, prompt: str) -> Callable[[TurnContext, Emit], Awaitable[str]]:
        async def work(context: TurnContext, emit: Emit) -> str:
            turn = _Turn(name, context, emit)
            before = {change.id for change in self._agents.state.review.changes}
            recording = asyncio.create_task(turn.record(), name="events of an agent")
            try:
                await self._do(name, prompt, turn)
            finally:
                changes = self._agents.state.review.changes
                new = tuple(one.id for one in changes if one.id not in before)
                turn.end(new)
                await recording
                if name in self._open and (cost := self._open[name][1].take_cost()):
                    await emit(e.UsageCounted(Usage(cost=cost)))
            if not turn.said_something and not new:
                raise SessionError(f"{name} ended and changed nothing", "run it full screen with /agent")
            return ""

        return work

    async def close(self) -> None:
        for name in list(self._open):
            await self._open.pop(name)[2].aclose()

    async def _do(self, name: str, prompt: str, turn: _Turn) -> None:
        if name in self._open and not self._open[name][0].running:
            await self._open.pop(name)[2].aclose()
        if name not in self._open:
            run = await self._agents.open([name], by_name=True)
            async with AsyncExitStack() as closing:
                closing.push_async_callback(self._agents.end, run)
                if not run.profile.acp or shutil.which(run.profile.acp[0]) is None:
                    await self._headless(run, prompt, turn)
                    return
                agent = AcpAgent(await load_sdk())
                closing.push_async_callback(agent.close)
                from_agent, output = os.pipe()
                source, to_agent = os.pipe()
                try:
                    await agent.connect(from_agent, to_agent)
                    run.start_command(run.profile.acp, output, source)
                finally:
                    os.close(output)
                    os.close(source)
                await agent.begin(run.root, run.profile.acp_mode)
                self._open[name] = run, agent, closing.pop_all()
        run, agent, _ = self._open[name]
        reason = await agent.prompt(prompt, turn)
        await run.propose_all()
        if reason not in ("end_turn", "None"):
            turn.say("message", f"\n\n({name} ended its turn: {reason.replace('_', ' ')})")

    async def _headless(self, run: AgentRun, prompt: str, turn: _Turn) -> None:
        reading, writing = os.pipe()
        try:
            run.start_command(run.headless(prompt), writing)
        finally:
            os.close(writing)
        reader = asyncio.StreamReader(limit=_LINE)
        loop = asyncio.get_running_loop()
        transport, _ = await loop.connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(reading, "rb", 0)
        )
        printed = said = 0
        try:
            while line := await _line(reader):
                text = answer_of(line)
                if text is None and not said and printed < MOST_PRINTED:
                    text = line.decode("utf-8", "replace")
                    printed += len(text)
                elif text:
                    said += 1
                    text = f"{text}\n\n"
                if text:
                    turn.say("message", text)
            status = await run.ended()
        except asyncio.CancelledError:
            run.stop()
            raise
        finally:
            transport.close()
        if status:
            raise SessionError(f"{run.profile.name} ended with {status}", "run it full screen with /agent")


async def _line(reader: asyncio.StreamReader) -> bytes:
    try:
        return await reader.readuntil(b"\n")
    except asyncio.IncompleteReadError as end:
        return end.partial
    except asyncio.LimitOverrunError:
        return await reader.read(_LINE)
