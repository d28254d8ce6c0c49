"""Mode `auto`: writes changes that pass all checks, and continues turns until a goal is reached."""

from __future__ import annotations

import re

from tui_agent.errors import SessionError, TuiAgentError
from tui_agent.log.core import Core, call
from tui_agent.review.review import Review
from tui_agent.session.chat import Chat
from tui_agent.session.checks import Checks
from tui_agent.store.session_events import GoalSet, NoticeGiven
from tui_agent.store.state import State


async def auto_apply(core: Core, checks: Checks, review: Review) -> None:
    """A notice lists changes that need confirmation."""
    if core.mode != "auto" or not core.state.review.open:
        return
    doubt = await unchecked(core, checks)
    if core.mode != "auto":  # changed while the checks ran
        return
    if doubt:
        await core.journal.record(
            NoticeGiven("warning", f"Mode auto applied nothing: {doubt}. Decide in the review")
        )
        return
    try:
        await review.apply()
    except TuiAgentError as error:
        await core.journal.record(NoticeGiven("warning", str(error)))


async def unchecked(core: Core, checks: Checks) -> str:
    """Why the open changes are not known to pass all checks, or "". Runs stale, missing and slow checks
    first.
    """
    if not core.state.check_marks or any(mark.look == "stale" for mark in core.state.check_marks):
        await checks.run()
    if not core.state.check_doubt:
        await checks.run(slow=True)
    state = core.state
    if state.checks.refused:
        return f"no checks ran, {state.checks.refused}"
    if not state.check_marks and not await checks.all_unconcerned():
        return "there are no checks (add [[checks.commands]] to settings.toml)"
    return state.check_doubt


#: The goal that all checks pass.
CHECKS = "checks"
_SAID = re.compile(r"^\W*GOAL:\s*(reached|open)\b", re.IGNORECASE | re.MULTILINE)


class Goals:
    def __init__(self, core: Core, chat: Chat, checks: Checks) -> None:
        self._core, self._chat, self._checks = core, chat, checks

    @property
    def state(self) -> State:
        return self._core.state

    @call(changes=True)
    async def pursue(self, goal: str) -> None:
        """ "" ends the goal. Raises `SessionError` during a turn, in mode `ask`, and for `checks` without checks."""
        if goal and self.state.turn.running:
            raise SessionError("A turn is running", "wait, or stop it")
        if goal and self._core.mode == "ask":
            raise SessionError("A goal needs changes, but the mode is ask", "change the mode first")
        if goal == CHECKS:
            await self._checks.check_configured()
        await self._core.journal.record(GoalSet(goal))
        if goal == CHECKS:
            await self._chat.submit(
                "Work until all checks of this folder pass. They run on your changes at the end of each turn."
            )
        elif goal:
            await self._chat.submit(
                f"Work until this holds: {goal}\n\nEnd your last message with the line “GOAL: reached” if it holds, "
                "else with “GOAL: open” and the part that is missing."
            )

    @call(changes=False)
    async def judge(self) -> str:
        """The next message after a turn; "" if the goal has ended, which is reported."""
        state, goal = self.state, self.state.input.goal
        if not goal:
            return ""
        done = [message for message in state.chat.messages if message.turn == state.turn.number]
        last = next((message for message in reversed(done) if message.kind == "agent"), None)
        said = _SAID.findall(f"{last.summary}\n{last.text}") if last else []
        stops = f"{state.turn.limit} ended the turn" if state.turn.limit else ""
        if goal == CHECKS:
            try:
                why = ""
                if state.review.open:
                    why = await unchecked(self._core, self._checks)
                else:
                    await self._checks.again()
                    await self._checks.settled()
                # Includes checks that failed before the changes.
                results = self.state.checks.results
                failed = [result.name for result in results if result.state != "passed" or result.old != 0]
                why = why or (f"{', '.join(failed)}: failed" if failed else "")
            except TuiAgentError as error:
                why = stops = f"its checks did not run ({error.what})"
        elif said and said[-1].lower() == "reached":
            why = self.state.check_doubt
        else:
            why = "the last message has no line “GOAL: reached”"
        if self.state.input.goal != goal:  # given up while the checks ran
            return ""
        if not why:
            await self._core.journal.record(
                GoalSet(""), NoticeGiven("info", f"The goal is reached: {goal}", in_chat=True)
            )
            return ""
        if self._core.mode == "ask" or not any(message.calls or message.changes for message in done):
            stops = "the last turn made no progress"
        if not stops:
            return f"The goal is not reached: {why}. Go on."
        words = f"The goal is not reached, and {stops}: {goal}"
        await self._core.journal.record(GoalSet(""), NoticeGiven("warning", words, in_chat=True))
        return ""
