"""Agents of other makers in the user's terminal: our screen is suspended, and resumes with the review."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from tui_agent.errors import TuiAgentError
from tui_agent.ui.agent_terminal import AgentTerminal
from tui_agent.ui.host import Host

if TYPE_CHECKING:
    from tui_agent.session.outside_agents import AgentRun
    from tui_agent.session.session import Session


class Agents:
    """The agent of this screen: one at a time."""

    def __init__(self, app: Host, session: Session, show_review: Callable[[], None]) -> None:
        self._app, self._session, self._show_review = app, session, show_review
        self._run: AgentRun | None = None
        self._terminal: AgentTerminal | None = None
        self._ended: asyncio.Future[int] | None = None
        self._starting = self._is_shown = False
        #: Whether the program ends with an agent that changed nothing.
        self.ends_with_it = False

    def begin(self, words: Sequence[str] = (), *, by_name: bool = True) -> None:
        """Runs `/agent NAME [ARGUMENT…]`; without a name it shows the running agent, or lists the names.

        by_name: the first word is a profile, not a program.
        """
        self._app.run_worker(self._do(words, by_name=by_name), group="agent")

    async def _do(self, words: Sequence[str], *, by_name: bool) -> None:
        if self._starting:
            return
        if self._run is not None:
            if words and words[0] != self._run.profile.name:
                said = (
                    f"{self._run.profile.name} is running: /agent shows it; end it before you start another"
                )
                await self._session.notice(said, "warning")
                return
            await self._show()
        elif words:
            await self._start(words, by_name=by_name)
        else:
            names = await asyncio.to_thread(self._session.outside_agents.names)
            await self._session.notice(f"Write /agent and one of {', '.join(names)}")

    async def _start(self, words: Sequence[str], *, by_name: bool) -> None:
        self._starting = True
        try:
            await self._session.notice(f"Preparing a view for {words[0]} …")
            run = await self._session.outside_agents.open(words, by_name=by_name)
        except TuiAgentError as error:
            await self._session.notice(str(error), "error")
            return
        finally:
            self._starting = False
        self._terminal = terminal = AgentTerminal(*self._app.size)
        try:
            run.start(words[1:], terminal.program)
        finally:
            terminal.started()
        self._run = run
        self._ended = asyncio.ensure_future(run.ended())
        await self._show()

    async def _show(self) -> None:
        run, terminal, ended = self._run, self._terminal, self._ended
        assert run is not None and terminal is not None and ended is not None
        self._is_shown = True
        try:
            outcome = await self._app.lend_terminal(
                lambda source, target: terminal.show(source, target, ended)
            )
        finally:
            self._is_shown = False
        if outcome == "left" and not ended.done():
            self._show_review()
            name = run.profile.name
            said = f"{name} is still running: /agent shows it, Ctrl+] opens the review"
            if hosts := [host for _, host, _ in self._session.outside_agents.refused_hosts()]:
                key = self._app.keys.shown("review.allow_host")
                said = f"{said}. It also asked for {', '.join(hosts[:5])}: {key} in the review allows hosts"
            await self._session.notice(said)
            self._app.run_worker(self._wait(run), group="agent")
        else:
            await self._finish(run)

    async def _wait(self, run: AgentRun) -> None:
        assert self._ended is not None
        await asyncio.shield(self._ended)
        if self._run is run and not self._is_shown:
            await self._finish(run)

    async def _finish(self, run: AgentRun) -> None:
        assert self._ended is not None and self._terminal is not None
        status, self._run = await self._ended, None
        self._terminal.close()
        await self._session.outside_agents.end(run)
        count = sum(
            change.waits and change.id.startswith(f"{run.source}.")
            for change in self._session.state.review.changes
        )
        if self.ends_with_it and not count:
            await self._app.leave(status if status >= 0 else 128 - status)
            return
        how = "ended" if not status else f"ended with {status}"
        changes = (
            f"{count} change{'' if count == 1 else 's'} in the review" if count else "it changed nothing"
        )
        await self._session.notice(f"{run.profile.name} {how}: {changes}")
        self._show_review()
