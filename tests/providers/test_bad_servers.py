"""A server that breaks its own rules in one reply: the next two messages of the person are answered all the same."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack
from pathlib import Path

import pytest
from support.journeys import FILES, environment, opened
from support.repositories import repository
from support.strict import Call, Reply, Say, StrictServer, Think, View
from support.strict.reply import MISBEHAVIOURS

#: A model for each request format.
MODELS = (
    ("openai", "gpt-5.4"),
    ("anthropic", "claude-opus-5-5"),
    ("gemini", "gemini-3-pro-preview"),
    ("openrouter", "google/gemini-3-pro"),
    ("deepseek", "deepseek-v4-pro"),
)
#: Faults after which the first message may stay without an answer: then one sentence says why.
MAY_END = ("endless_thinking", "huge_signature", "error_in_stream", "no_done")
#: Each fault with one of the formats, in turn; `make providers` tries all pairs.
PAIRS = [(MODELS[number % len(MODELS)], fault) for number, fault in enumerate(sorted(MISBEHAVIOURS))]
READ = {"type": "file", "name": "A", "patterns": ["api.py"], "required": False, "fallbackAction": "skip"}


class Author:
    """Misbehaves in the first reply, which holds thinking, text and two calls."""

    def __init__(self, fault: str) -> None:
        self._fault = fault
        self._replies = 0

    def __call__(self, view: View) -> Reply:
        self._replies += 1
        if self._replies == 1:
            calls = (Call("read_files", {"actions": [READ]}), Call("search_text", {"pattern": "def"}))
            parts = (Think("Look."), Say("Looking."), Think("More."), *calls)
            return Reply(parts, misbehave=frozenset({self._fault}))
        if view.results and self._replies < 4:
            return Reply((Think("Again."), Call("search_text", {"pattern": "get"})))
        return Reply((Think("End."), Say(f"Done {self._replies}.")))


@pytest.mark.parametrize(("model", "fault"), PAIRS, ids=str)
async def test_the_session_goes_on(model: tuple[str, str], fault: str, tmp_path: Path) -> None:
    await goes_on(*model, fault, tmp_path)


async def goes_on(provider: str, model: str, fault: str, tmp_path: Path) -> None:
    """Raises `AssertionError` if a message after the faulty reply is not answered."""
    work = repository(tmp_path / "work", FILES)
    with ExitStack() as stack:
        server = stack.enter_context(StrictServer(provider, brain=Author(fault), model=model))
        stack.enter_context(environment({**server.environment, "TUI_AGENT_HOME": str(tmp_path / "home")}))
        session = await opened(work, [f"model={provider}/{model}", "planner_model=none"])
        ends = []
        for words in ("First", "Second", "Third"):
            await session.chat.submit(words)
            async with asyncio.timeout(60):
                await session.chat.finished()
            ends.append(session.state.turn)
        usage = session.state.usage.session
        await session.close()
    assert [end.error for end in ends[1:]] == ["", ""]
    assert ends[0].ok or (fault in MAY_END and ends[0].error)
    assert usage.input >= 0 and usage.output >= 0 and (usage.cost or 0) >= 0
    assert len(server.violations) <= 2, "the next requests leave out what was refused"
