"""Turns that an agent of another maker does: its text is the reply, its changes are proposed while it works."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from tui_agent.errors import SessionError
from tui_agent.outside_agents.acp_client import AcpAgent, Part, load_sdk
from tui_agent.outside_agents.printed_text import answer_of
from tui_agent.session.outside_agents import AgentRun, OutsideAgents
from tui_agent.store import events as e
from tui_agent.store.conversation import Usage

if TYPE_CHECKING:
    from tui_agent.tools.context import Emit
    from tui_agent.turn.context import TurnContext

#: Characters of a reply, and of other printed lines.
MOST_TEXT, MOST_PRINTED = 200_000, 20_000
_LINE = 1 << 20


class AgentTurns:
    """Conversations with agents by name; each lasts until the session ends."""

    def __init__(self, agents: OutsideAgents) -> None:
        self._agents = agents
        self._open: dict[str, tuple[AgentRun, AcpAgent]] = {}
        self._say: Callable[[Part, str], None] = lambda part, text: None

    def steps(self, name: str, prompt: str) -> Callable[[TurnContext, Emit], Awaitable[str]]:
        """The work of one turn."""

        async def work(_: TurnContext, emit: Emit) -> str:
            parts: dict[Part, list[str]] = {"message": [], "reasoning": []}
            streamed: asyncio.Queue[tuple[Part, str]] = asyncio.Queue()

            def say(part: Part, text: str) -> None:
                parts[part].append(text)
                streamed.put_nowait((part, text))

            async def show() -> None:
                while True:
                    part, text = await streamed.get()
                    await emit(e.ReplyStreamed(part, text))

            self._say = say
            before = {change.id for change in self._agents.state.review.changes}
            showing = asyncio.create_task(show(), name="text of an agent")
            try:
                await self._do(name, prompt)
            finally:
                showing.cancel()
                state = self._agents.state
                new = tuple(one.id for one in state.review.changes if one.id not in before)
                texts = ("".join(parts[part])[:MOST_TEXT].strip() for part in ("message", "reasoning"))
                message, reasoning = texts
                await emit(e.ReplyRead(state.turn.number, "", message, reasoning, changes=new))
                if name in self._open and (cost := self._open[name][1].take_cost()):
                    await emit(e.UsageCounted(Usage(cost=cost)))
            if not message and not new:
                raise SessionError(f"{name} ended and changed nothing", "run it full screen with /agent")
            return ""

        return work

    async def close(self) -> None:
        for run, agent in self._open.values():
            await agent.close()
            await self._agents.end(run)
        self._open.clear()

    async def _do(self, name: str, prompt: str) -> None:
        """One task, by ACP if the profile has it, otherwise without a terminal."""
        if name in self._open and self._open[name][0].running:
            run, agent = self._open[name]
        else:
            run = await self._agents.open([name], by_name=True)
            if not run.profile.acp or shutil.which(run.profile.acp[0]) is None:
                try:
                    await self._headless(run, prompt)
                finally:
                    await self._agents.end(run)
                return
            agent = await self._connected(run)
            self._open[name] = run, agent
        reason = await agent.prompt(prompt)
        await run.propose_all()
        if reason not in ("end_turn", "None"):
            self._say("message", f"\n\n({name} ended its turn: {reason.replace('_', ' ')})")

    async def _connected(self, run: AgentRun) -> AcpAgent:
        agent = AcpAgent(await load_sdk(), lambda part, text: self._say(part, text))
        from_agent, output = os.pipe()
        source, to_agent = os.pipe()
        try:
            run.start_command(run.profile.acp, output, source)
        finally:
            os.close(output)
            os.close(source)
        try:
            await agent.connect(from_agent, to_agent)
            await agent.begin(run.root, run.profile.acp_mode)
        except BaseException:
            await agent.close()
            await self._agents.end(run)
            raise
        return agent

    async def _headless(self, run: AgentRun, prompt: str) -> None:
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
                    self._say("message", text)
            status = await run.ended()
        except asyncio.CancelledError:
            run.stop()
            raise
        finally:
            transport.close()
        if status:
            raise SessionError(f"{run.profile.name} ended with {status}", "run it full screen with /agent")


async def _line(reader: asyncio.StreamReader) -> bytes:
    """The next line, or a part of a very long one."""
    try:
        return await reader.readuntil(b"\n")
    except asyncio.IncompleteReadError as end:
        return end.partial
    except asyncio.LimitOverrunError:
        return await reader.read(_LINE)
