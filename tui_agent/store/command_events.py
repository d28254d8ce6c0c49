"""Events of commands and checks: started, output, ended."""

from __future__ import annotations

from msgspec.structs import replace

from tui_agent.settings.schema import CheckCommand
from tui_agent.store.commands import (
    KEPT,
    By,
    CheckResult,
    ChecksSlice,
    CommandResult,
    Isolated,
    RunningCommand,
    Where,
)
from tui_agent.store.event import Lasting, Passing
from tui_agent.store.state import ChatMessage, State
from tui_agent.store.tool_calls import ToolUse

#: Maximum characters of a command, and of its output, stored with calls.
MOST_TOLD, MOST_SHOWN = 500, 4_000


class CommandPreparing(Passing, frozen=True):
    """`at` is in seconds since 1970."""

    id: str
    command: str
    by: By
    at: float
    background: bool = False

    def apply(self, state: State) -> State:
        one = RunningCommand(
            self.id,
            self.command,
            self.by,
            "trial",
            "none",
            self.at,
            background=self.background,
            preparing=True,
        )
        commands = state.commands
        return replace(state, commands=replace(commands, running=(*commands.running, one)))


class CommandWithdrawn(Passing, frozen=True):
    """It cannot start, or waits for an answer of the person."""

    id: str

    def apply(self, state: State) -> State:
        running = tuple(one for one in state.commands.running if one.id != self.id or not one.preparing)
        if len(running) == len(state.commands.running):
            return state
        return replace(state, commands=replace(state.commands, running=running))


class CommandStarted(Lasting, frozen=True):
    """`at` is in seconds since 1970."""

    id: str
    command: str
    by: By
    where: Where
    isolated: Isolated
    at: float
    background: bool = False
    place: str = ""

    def apply(self, state: State) -> State:
        one = RunningCommand(
            self.id,
            self.command,
            self.by,
            self.where,
            self.isolated,
            self.at,
            background=self.background,
            place=self.place,
        )
        commands = state.commands
        running = (*(it for it in commands.running if it.id != self.id), one)
        return replace(state, commands=replace(commands, running=running, total=commands.total + 1))


class CommandPrinted(Passing, frozen=True):
    """Total output in bytes, and the last line."""

    id: str
    line: str
    printed: int

    def apply(self, state: State) -> State:
        running = tuple(
            replace(one, line=self.line, printed=self.printed) if one.id == self.id else one
            for one in state.commands.running
        )
        return replace(state, commands=replace(state.commands, running=running))


class CommandEnded(Lasting, frozen=True):
    """Or was found dead after a crash."""

    result: CommandResult

    def apply(self, state: State) -> State:
        result, commands = self.result, state.commands
        running = tuple(one for one in commands.running if one.id != result.id)
        results = (*commands.results, result)[-KEPT:]
        state = replace(state, commands=replace(commands, running=running, results=results))
        if result.by == "check":
            return state  # Shown with the check's result.
        level = "info" if result.ok else "warning"
        message = ChatMessage(0, "command", state.turn.number, result.command, command=result, level=level)
        at = state.chat.answering(state.turn.number)
        if result.by != "model" or at < 0 or at != len(state.chat.messages) - 2:
            return state.with_message(message)
        *earlier, agent, before = state.chat.messages
        ran = before.command or result  # A later command follows: show this one among the model's calls.
        call = ToolUse(
            ran.id,
            "run_command",
            ran.command[:MOST_TOLD],
            ran.ok,
            ran.seconds,
            ran.ending,
            ran.output[:MOST_SHOWN],
        )
        agent = replace(agent, calls=(*agent.calls, call))
        messages = (*earlier, agent, replace(message, number=before.number))
        return replace(state, chat=replace(state.chat, messages=messages))


class ChecksStarted(Lasting, frozen=True):
    """In running order. adds: other results for the same content remain valid."""

    names: tuple[str, ...]
    repair: int = 0
    where: Where = "trial"
    adds: bool = False

    def apply(self, state: State) -> State:
        before = [result for result in state.checks.results if result.name not in self.names]
        checks = ChecksSlice(
            self.names,
            tuple(before) if self.adds else (),
            self.repair,
            self.where,
            offered=state.checks.offered,
        )
        return replace(state, checks=checks)


class CheckEnded(Lasting, frozen=True):
    result: CheckResult

    def apply(self, state: State) -> State:
        result, checks = self.result, state.checks
        running = tuple(name for name in checks.running if name != result.name)
        state = replace(state, checks=replace(checks, running=running, results=(*checks.results, result)))
        run = next((one for one in reversed(state.commands.results) if one.id == result.run), None)
        if run is None:
            return state
        level = "info" if result.state == "passed" else "warning"
        message = ChatMessage(
            0, "command", state.turn.number, run.command, command=run, check=result, level=level
        )
        return state.with_message(message)


class ChecksRefused(Lasting, frozen=True):
    why: str

    def apply(self, state: State) -> State:
        return replace(state, checks=replace(state.checks, running=(), refused=self.why))


class ChecksOutdated(Passing, frozen=True):
    why: str

    def apply(self, state: State) -> State:
        return replace(state, checks=replace(state.checks, outdated=self.why))


class ChecksOffered(Passing, frozen=True):
    """For the user to accept; empty after the decision."""

    checks: tuple[CheckCommand, ...]

    def apply(self, state: State) -> State:
        return replace(state, checks=replace(state.checks, offered=self.checks))
