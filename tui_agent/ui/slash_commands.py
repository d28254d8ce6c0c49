"""Prompt commands with arguments, such as `/effort high`. Without arguments they are actions."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Coroutine, Mapping
from typing import TYPE_CHECKING, Any

from tui_agent.errors import SessionError
from tui_agent.files.numbers import whole_number
from tui_agent.settings.schema import Mode
from tui_agent.turn.model_choice import EFFORTS, split_effort
from tui_agent.ui.safe_text import counted

if TYPE_CHECKING:
    from tui_agent.session.session import Session
    from tui_agent.ui.host import Host

#: Returns a sentence for the user.
Call = Coroutine[Any, Any, str]
#: In the order of the key that changes them.
MODES: tuple[Mode, ...] = ("edit", "ask", "auto")
_WRITTEN = re.compile(r"/([\w-]+)\s+(.*)", re.DOTALL)


def text_command(text: str) -> tuple[str, str]:
    """Name and arguments; ("", text) for other text."""
    found = _WRITTEN.fullmatch(text)
    known = found and (found[1] in TEXT_COMMANDS or found[1] in HOST_COMMANDS)
    return (found[1], found[2].strip()) if found and known else ("", text)


def call_of(session: Session, text: str) -> Call | None:
    """`None` for a message."""
    name, words = text_command(text)
    if name == "effort" and split_effort(text)[0]:
        return None
    return TEXT_COMMANDS[name](session, words) if name in TEXT_COMMANDS else None


async def _set_effort(session: Session, words: str) -> str:
    word = words.split()[0].lower()
    effort = next((effort for effort in EFFORTS if effort == word), None)
    if effort is None:
        levels = f"{', '.join(EFFORTS[:-1])} or {EFFORTS[-1]}"
        raise SessionError(f"There is no effort “{word}”", f"write {levels}")
    return await session.models.set_effort(effort)


async def _set_mode(session: Session, word: str) -> str:
    mode = next((mode for mode in MODES if mode == word.lower()), None)
    if mode is None:
        raise SessionError(f"There is no mode “{word}”", "write ask, edit or auto")
    await session.set_mode(mode)
    return f"The mode is {mode}"


async def _choose_model(session: Session, name: str) -> str:
    about = await session.models.choose(name)
    return f"The model is {name}{f': {about}' if about else ''}"


async def _ask_beside(session: Session, question: str) -> str:
    session.models.check()
    await session.chat.ask_beside(question)
    return "Asked; the answer appears in the chat"


async def _pursue(session: Session, goal: str) -> str:
    if goal == "off":
        await session.goals.pursue("")
        return "There is no goal now"
    session.models.check()
    await session.goals.pursue(goal)
    return "Turns continue until the goal or a limit is reached; /goal off ends this"


async def _allow_host(session: Session, words: str) -> str:
    name = await session.outside_agents.allow_host(words)
    return f"{name} can now connect to {words}"


async def _delegate(session: Session, words: str) -> str:
    name, _, task = words.partition(" ")
    if not task.strip():
        raise SessionError(
            "A task is missing", "write /delegate, a name and the task, such as /delegate claude fix it"
        )
    await session.delegate(name, task.strip())
    return f"{name} works on it in a view; its changes appear in the review"


async def _best(session: Session, words: str) -> str:
    """`/best claude codex GOAL`, `/best MODEL MODEL GOAL`, or `/best 3 GOAL` for attempts of the model."""
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


async def _take(session: Session, words: str) -> str:
    tasks = [task for task in session.state.subtasks.tasks if task.attempt]
    found = [task.id for task in tasks if words in (task.id, task.agent or task.model)]
    count = await session.subtasks.take(found[0] if len(found) == 1 else words)
    return f"{counted(count, 'changed file')} in the review"


def _agent(host: Host, words: str) -> None:
    try:
        host.agents.begin(shlex.split(words))
    except ValueError as error:
        raise SessionError(f"The arguments cannot be read ({error})", "correct their quotes") from error


HOST_COMMANDS: Mapping[str, Callable[[Host, str], None]] = {"agent": _agent}
TEXT_COMMANDS: Mapping[str, Callable[[Session, str], Call]] = {
    "effort": _set_effort,
    "model": _choose_model,
    "btw": _ask_beside,
    "goal": _pursue,
    "delegate": _delegate,
    "best": _best,
    "take": _take,
    "mode": _set_mode,
    "allow-host": _allow_host,
}
