"""Secrets in what would be sent: each is sent, masked or left out as the person says, for exactly those bytes."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable

from tui_agent.answers.plans import FileAction
from tui_agent.context.loaded import LoadedFile
from tui_agent.files.judging import SecretChoice, Undecided
from tui_agent.store import events as e
from tui_agent.turn.desk import Desk, Gathered

OFFERED = ("mask", "send")
#: How often a file that changes while the person is asked about it is asked about again.
MOST_QUESTIONS = 3


async def decided(
    desk: Desk, gathered: Gathered, attempt: Callable[[], Awaitable[LoadedFile]], result: list[LoadedFile]
) -> AsyncGenerator[e.Event, None]:
    """The file that `attempt` loads goes into `result`; where it meets a secret the person is asked, and it is tried
    again.

    Raises what `attempt` does: `LooksSecret` for a file that is left out, by the person or because nobody can be asked.
    """
    for _ in range(MOST_QUESTIONS):
        try:
            result.append(await attempt())
            return
        except Undecided as found:
            if desk.ask is None:
                raise
            async for event in ask(desk, gathered, found):
                yield event
    result.append(await attempt())


async def ask(desk: Desk, gathered: Gathered, found: Undecided) -> AsyncGenerator[e.Event, None]:
    """Put the question into the plan and wait for the answer, which covers exactly those bytes."""
    assert desk.ask is not None
    name = _name(desk, found.path)
    reason = "is not sent without asking"
    yield e.ActionsAdded((FileAction(name, (found.path,), reason),))
    yield e.QuestionAsked(name, OFFERED, f"{found.what}. What is the model to see of it?")
    while (answer := await desk.ask(name, OFFERED)).action != name:
        gathered.decisions.append(answer)
    choices: dict[str, SecretChoice] = {"mask": "mask", "send": "send"}
    choice = choices.get(answer.path, "leave")
    yield e.SecretDecided(found.path, found.digest, choice, name)


def _name(desk: Desk, path: str) -> str:
    """A name for the question that no action of the plan has."""
    taken = {slot.action.name for slot in desk.state().plan.actions}
    name, number = f"Secret in {path}", 1
    while name in taken:
        number += 1
        name = f"Secret in {path} ({number})"
    return name
