"""Prompt commands with arguments, such as `/effort high`. Without arguments they are actions."""

from __future__ import annotations

import re
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any

from tui_agent.errors import SessionError
from tui_agent.files.numbers import whole_number
from tui_agent.turn.model_choice import EFFORTS, split_effort
from tui_agent.ui.commands import MODES
from tui_agent.ui.safe_text import counted

if TYPE_CHECKING:
    from tui_agent.session.session import Session

#: Returns a sentence for the user.
Call = Coroutine[Any, Any, str]
#: The chat starts `agent`, which needs the terminal.
COMMANDS = frozenset(
    {
        "agent",
        "allow-host",
        "best",
        "btw",
        "delegate",
        "effort",
        "goal",
        "mode",
        "model",
        "take",
    }
)
_WRITTEN = re.compile(r"/([\w-]+)\s+(.*)", re.DOTALL)


def text_command(text: str) -> tuple[str, str]:
    """Name and arguments; ("", text) for other text."""
    found = _WRITTEN.fullmatch(text)
    return (found[1], found[2].strip()) if found and found[1] in COMMANDS else ("", text)


def call_of(session: Session, text: str) -> Call | None:
    """`None` for a message."""
    name, words = text_command(text)
    is_message = not name or (name == "effort" and split_effort(text)[0])
    return None if is_message else _carry_out(session, name, words)


async def _carry_out(session: Session, name: str, words: str) -> str:
    match name:
        case "effort":
            word = words.split()[0].lower()
            effort = next((effort for effort in EFFORTS if effort == word), None)
            if effort is None:
                levels = f"{', '.join(EFFORTS[:-1])} or {EFFORTS[-1]}"
                raise SessionError(f"There is no effort “{word}”", f"write {levels}")
            return await session.models.set_effort(effort)
        case "mode":
            mode = next((mode for mode in MODES if mode == words.lower()), None)
            if mode is None:
                raise SessionError(f"There is no mode “{words}”", "write ask, edit or auto")
            await session.set_mode(mode)
            return f"The mode is {mode}"
        case "model":
            about = await session.models.choose(words)
            return f"The model is {words}{f': {about}' if about else ''}"
        case "btw":
            session.models.check()
            await session.chat.ask_beside(words)
            return "Asked; the answer appears in the chat"
        case "goal" if words == "off":
            await session.goals.pursue("")
            return "There is no goal now"
        case "goal":
            session.models.check()
            await session.goals.pursue(words)
            return "Turns continue until the goal or a limit is reached; /goal off ends this"
        case "allow-host":
            agent = await session.outside_agents.allow_host(words)
            return f"{agent} can now connect to {words}"
        case "delegate":
            agent, _, task = words.partition(" ")
            if not task.strip():
                example = "/delegate claude fix it"
                raise SessionError(
                    "A task is missing", f"write /delegate, a name and the task, such as {example}"
                )
            await session.delegate(agent, task.strip())
            return f"{agent} works on it in a view; its changes appear in the review"
        case "take":
            tasks = [task for task in session.state.subtasks.tasks if task.attempt]
            found = [task.id for task in tasks if words in (task.id, task.agent or task.model)]
            count = await session.subtasks.take(found[0] if len(found) == 1 else words)
            return f"{counted(count, 'changed file')} in the review"
        case _:  # best: agents, models, or a number of attempts of the model, then the goal
            await session.extensions.read()
            known = {*session.extensions.agents, *session.outside_agents.names()}
            found, models, rest = [], set(), words.split(" ")
            if rest[0].isdigit():
                found = [""] * whole_number(rest.pop(0), most=99)
            while rest and (rest[0] in known or session.models.is_model(rest[0])):
                if rest[0] not in known:
                    models.add(rest[0])
                found.append(rest.pop(0))
            names = await session.subtasks.best(found, " ".join(rest), models)
            return f"{len(names)} attempts begin as sub-tasks; their comparison comes into the chat"
