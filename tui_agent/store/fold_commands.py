"""Folding commands: those that run, the newest results, and a message in the chat for each result."""

from __future__ import annotations

from msgspec.structs import replace

from tui_agent.store import events as e
from tui_agent.store.commands import KEPT, RunningCommand
from tui_agent.store.fold_turn import say
from tui_agent.store.state import ChatMessage, State


def _started(state: State, event: e.CommandStarted) -> State:
    one = RunningCommand(event.id, event.command, event.by, event.where, event.isolated, event.at)
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
    level = "info" if result.ok else "warning"
    message = ChatMessage(0, "command", state.turn.number, result.command, command=result, level=level)
    return say(state, message)


FOLDS = {
    e.CommandStarted: _started,
    e.CommandPrinted: _printed,
    e.CommandEnded: _ended,
}
