"""Folding commands and checks: those that run, the newest results, and a message in the chat for each result."""

from __future__ import annotations

from msgspec.structs import replace

from tui_agent.store import events as e
from tui_agent.store.checks import ChecksSlice
from tui_agent.store.commands import KEPT, CommandResult, RunningCommand
from tui_agent.store.fold_turn import answering, say
from tui_agent.store.state import ChatMessage, State
from tui_agent.store.tool_calls import ToolUse

#: How many characters of a command and of its output are kept with the calls.
MOST_TOLD, MOST_SHOWN = 500, 4_000


def _started(state: State, event: e.CommandStarted) -> State:
    one = RunningCommand(
        event.id,
        event.command,
        event.by,
        event.where,
        event.isolated,
        event.at,
        background=event.background,
    )
    commands = state.commands
    running = (*commands.running, one)
    return replace(state, commands=replace(commands, running=running, total=commands.total + 1))


def _printed(state: State, event: e.CommandPrinted) -> State:
    running = tuple(
        replace(one, line=event.line, printed=event.printed) if one.id == event.id else one
        for one in state.commands.running
    )
    return replace(state, commands=replace(state.commands, running=running))


def _ended(state: State, event: e.CommandEnded) -> State:
    result, commands = event.result, state.commands
    running = tuple(one for one in commands.running if one.id != result.id)
    results = (*commands.results, result)[-KEPT:]
    state = replace(state, commands=replace(commands, running=running, results=results))
    if result.by == "check":
        return state  # it is told with what it found
    level = "info" if result.ok else "warning"
    message = ChatMessage(0, "command", state.turn.number, result.command, command=result, level=level)
    at = answering(state.chat.messages, state.turn.number)
    if result.by != "model" or at != len(state.chat.messages) - 2:
        return say(state, message)
    *earlier, agent, before = state.chat.messages
    agent = replace(agent, calls=(*agent.calls, _as_call(before.command or result)))
    messages = (*earlier, agent, replace(message, number=before.number))
    return replace(state, chat=replace(state.chat, messages=messages))


def _as_call(result: CommandResult) -> ToolUse:
    """A command of the model that others followed: a line among its calls."""
    shown, output = result.command[:MOST_TOLD], result.output[:MOST_SHOWN]
    return ToolUse(result.id, "run_command", shown, result.ok, result.seconds, result.ending, output)


def _round(state: State, event: e.ChecksStarted) -> State:
    before = [result for result in state.checks.results if result.name not in event.names]
    checks = ChecksSlice(
        event.names,
        tuple(before) if event.adds else (),
        event.repair,
        event.where,
        offered=state.checks.offered,
    )
    return replace(state, checks=checks)


def _checked(state: State, event: e.CheckEnded) -> State:
    result, checks = event.result, state.checks
    running = tuple(name for name in checks.running if name != result.name)
    state = replace(state, checks=replace(checks, running=running, results=(*checks.results, result)))
    run = next((one for one in reversed(state.commands.results) if one.id == result.run), None)
    if run is None:
        return state
    level = "info" if result.state == "passed" else "warning"
    message = ChatMessage(
        0, "command", state.turn.number, run.command, command=run, check=result, level=level
    )
    return say(state, message)


def _refused(state: State, event: e.ChecksRefused) -> State:
    return replace(state, checks=replace(state.checks, running=(), refused=event.why))


def _outdated(state: State, event: e.ChecksOutdated) -> State:
    return replace(state, checks=replace(state.checks, outdated=event.why))


def _offered(state: State, event: e.ChecksOffered) -> State:
    return replace(state, checks=replace(state.checks, offered=event.checks))


FOLDS = {
    e.ChecksStarted: _round,
    e.CheckEnded: _checked,
    e.ChecksRefused: _refused,
    e.ChecksOutdated: _outdated,
    e.ChecksOffered: _offered,
    e.CommandStarted: _started,
    e.CommandPrinted: _printed,
    e.CommandEnded: _ended,
}
