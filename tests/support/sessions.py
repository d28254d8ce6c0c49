"""Real sessions for tests: a real workspace, log and children; only the model answers from a recording.

    async with open_session(folder, replies=[reply(summary="…", fileChanges=[…])]) as session:
        await session.chat.submit("…")
        await session.chat.finished()

Each reply answers the next request, whatever its words; a string is the raw text of the answer.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tui_agent.model.client import (
    Abilities,
    CallChunk,
    Chunk,
    EndChunk,
    ModelRequest,
    TextChunk,
    TokenCount,
    UsageChunk,
)
from tui_agent.session import opening
from tui_agent.session.opening import Opening
from tui_agent.session.session import Session
from tui_agent.workspace.early_start import EarlyChild

Reply = str | dict[str, Any] | Sequence[Chunk] | Exception


def reply(summary: str = "Done.", **fields: Any) -> dict[str, Any]:
    """A structured reply; the fields have the names that they have on the wire."""
    return {"summary": summary, **fields}


def calls(*made: tuple[str, dict[str, Any]], text: str = "") -> list[Chunk]:
    """A reply of function calls, as a provider would stream it."""
    chunks: list[Chunk] = [TextChunk(text)] if text else []
    for index, (name, arguments) in enumerate(made):
        chunks.append(CallChunk(index, f"call_{index}", name, json.dumps(arguments)))
    return [*chunks, UsageChunk(10, 5), EndChunk("tool_calls")]


class ScriptedModel:
    """Answers requests in order from a list, streamed in pieces, and keeps every request."""

    def __init__(
        self, replies: Sequence[Reply], protocol: str = "structured", plans: Sequence[Reply] = ()
    ) -> None:
        self.replies = list(replies)
        self.plans = list(plans)
        self.requests: list[ModelRequest] = []
        self.tools = protocol == "tools"
        #: Whether its window and its price stand in a table.
        self.known = True
        #: How many requests its server works on at once, 0 where nobody knows.
        self.slots = 0

    async def start(self) -> None: ...

    async def close(self) -> None: ...

    async def abilities(self, model: str) -> Abilities:
        return Abilities(model, 100_000, tools=self.tools, known=self.known, slots=self.slots)

    async def count(self, model: str, texts: Sequence[str], *, wait: bool = False) -> TokenCount:
        return TokenCount(tuple(len(text) // 4 for text in texts), exact=False)

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Chunk, None]:
        self.requests.append(request)
        answer = (self.plans if request.purpose == "plan" else self.replies).pop(0)
        if isinstance(answer, Exception):
            raise answer
        for chunk in _chunks(answer):
            yield chunk


def _chunks(answer: str | dict[str, Any] | Sequence[Chunk]) -> Sequence[Chunk]:
    if isinstance(answer, dict):
        answer = json.dumps(answer)
    if not isinstance(answer, str):
        return answer
    return in_pieces(answer)


def in_pieces(answer: str) -> list[Chunk]:
    """A text as it would be streamed."""
    pieces = [answer[at : at + 40] for at in range(0, len(answer), 40)]
    return [*(TextChunk(piece) for piece in pieces), UsageChunk(100, 20, 50, 0.001), EndChunk("stop")]


@asynccontextmanager
async def open_session(
    workspace: Path,
    replies: Sequence[Reply] = (),
    *,
    plans: Sequence[Reply] = (),
    protocol: str = "structured",
    services: bool = True,
    prepare: Callable[[Session], None] | None = None,
    ahead: EarlyChild | None = None,
    **options: Any,
) -> AsyncGenerator[Session]:
    """A session over `workspace` whose model gives these replies; `options` go to `Opening`.

    `plans` answer the planner's requests; without any the built-in planner plans.
    """
    planner = () if plans else ("planner_model=none",)
    overrides = ("model=scripted", f"protocol={protocol}", *planner, *options.pop("overrides", ()))
    session = await opening.open_session(Opening(workspace, overrides=overrides, **options), ahead=ahead)
    session.models.model = ScriptedModel(replies, protocol, plans)
    if prepare:
        prepare(session)
    try:
        if services:
            await session.start_services()
            await session.files.ready()
        yield session
    finally:
        await session.close()


def model_of(session: Session) -> ScriptedModel:
    """The scripted model behind a session, for what it was asked."""
    assert isinstance(session.models.model, ScriptedModel)
    return session.models.model
