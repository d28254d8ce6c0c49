"""A model for sessions with sub-tasks: each request is answered by the goal that it is about, not by its turn.

model = GoalModel({"Give the client timeouts": [reply(fileChanges=[…])]})
async with working(folder, model, TASKS) as session:
    await session.subtasks.run("api")
    await session.subtasks.settled()
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from support.sessions import Reply, ScriptedModel, open_session

from tui_agent.model.client import Chunk, ModelRequest
from tui_agent.model.parts import text_of
from tui_agent.session.session import Session
from tui_agent.store import events as e
from tui_agent.store.graph import SubTask


class GoalModel(ScriptedModel):
    """`answers` are replies by a part of the goal, in order; what has none is answered by `replies`.

    A goal that is in `held` is answered only when its event is set, and one whose answers are used up never, which
    `unanswered` counts; `at_once` is the most requests that were open at one time.
    """

    def __init__(self, answers: Mapping[str, Sequence[Reply]], replies: Sequence[Reply] = ()) -> None:
        super().__init__(replies)
        self.answers = {goal: list(answers) for goal, answers in answers.items()}
        self.held: dict[str, asyncio.Event] = {}
        self.open = 0
        self.at_once = 0
        self.unanswered = 0

    def asked(self, goal: str) -> list[str]:
        """The newest message of each request about a goal."""
        return [_newest(request) for request in self.requests if goal in _all(request)]

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Chunk, None]:
        goal = next((goal for goal in self.answers if f"<user_query>\n{goal}" in _all(request)), "")
        self.open += 1
        self.at_once = max(self.at_once, self.open)
        try:
            if goal in self.held:
                await self.held[goal].wait()
            if goal and not self.answers[goal]:
                self.unanswered += 1
                await asyncio.Event().wait()
            if goal:
                self.replies.insert(0, self.answers[goal].pop(0))
            async for chunk in super().stream(request):
                yield chunk
        finally:
            self.open -= 1


@asynccontextmanager
async def working(
    workspace: Path, model: GoalModel, tasks: Sequence[SubTask] = (), **options: Any
) -> AsyncGenerator[Session]:
    """A session with these sub-tasks proposed."""

    def prepare(session: Session) -> None:
        session.models.model = model

    async with open_session(workspace, prepare=prepare, **options) as session:
        if tasks:
            await session.journal.record(e.SubTasksProposed(tuple(tasks)))
        yield session


def states(session: Session) -> dict[str, str]:
    """How each sub-task stands, by id."""
    return {task.id: task.state for task in session.state.subtasks.tasks}


def _newest(request: ModelRequest) -> str:
    return text_of(request.messages[-1])


def _all(request: ModelRequest) -> str:
    return "\n".join(text_of(message) for message in request.messages)
