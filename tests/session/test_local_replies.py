"""Answers of local models that take long to begin, or would not end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from support.sessions import model_of, open_session, reply

from tui_agent.model.client import Abilities, Chunk, EndChunk, ModelRequest, ProgressChunk, TextChunk
from tui_agent.session.session import Session
from tui_agent.store import events as e
from tui_agent.store.state import State
from tui_agent.turn.exchange import Repetition

CODE = "".join(f"    assert value_{number} == {number}\n" for number in range(2_000))
LOOPS = {
    "a line": "I will now look at the file.\n" * 1_000,
    "a block": ("Let me think about it.\nFirst I read the file.\n\n" * 5 + "Then I change it.\n") * 100,
    "one letter": "0" * 30_000,
    "two words behind much else": CODE + "ha ho " * 5_000,
}
CODES = {
    "numbered lines": CODE,
    "a row of zeros": ", ".join("0" * 5_000) + "\n" + CODE,
    "a table of dashes": ("|---" * 40 + "|\n" + "| a | b |\n") * 5,
    "many equal lines": "    0, 0, 0, 0,\n" * 800 + CODE,
}


@pytest.mark.parametrize("what", [*LOOPS, *CODES])
def test_what_repeats_itself_beyond_what_code_does_is_seen(what: str) -> None:
    text, seen = {**LOOPS, **CODES}[what], Repetition(100)
    assert any(seen.feed(text[at : at + 7]) for at in range(0, len(text), 7)) == (what in LOOPS)
    never = Repetition(0)
    assert not any(never.feed(text[at : at + 700]) for at in range(0, len(text), 700))


async def test_a_reply_that_repeats_itself_is_stopped_and_kept(tmp_path: Path) -> None:
    loop = [TextChunk("I look at it.\n") for _ in range(5_000)]
    async with open_session(
        tmp_path, [[*loop, EndChunk("stop")], reply("Done.")], protocol="tools"
    ) as session:
        await session.chat.submit("What is here?")
        await session.chat.finished()
        said = next(one for one in session.state.chat.messages if one.kind == "agent")
        assert said.cut and "limits.repeat" in said.why and said.text.count("I look at it.") < 2_000
        await session.chat.submit("Go on")
        await session.chat.finished()
        assert session.state.turn.ok


async def test_a_slow_prompt_counts_until_the_first_word(tmp_path: Path) -> None:
    def prepare(session: Session) -> None:
        scripted = model_of(session)
        answering = asyncio.Event()

        async def abilities(model: str) -> Abilities:
            return Abilities(model, 8192, server="llama.cpp", slots=1)

        async def stream(request: ModelRequest) -> AsyncGenerator[Chunk]:
            yield ProgressChunk(1_000, 3_000)
            await answering.wait()
            yield TextChunk('{"summary": "Done."}')
            yield EndChunk("stop")

        def look(event: object, state: State) -> None:
            if isinstance(event, e.PromptRead):
                told.append((state.turn.reading, state.turn.read, state.turn.read_of))
                if len(told) > 1:
                    answering.set()

        scripted.abilities, scripted.stream = abilities, stream
        session.subscribe(look)

    told: list[tuple[int, int, int]] = []
    async with open_session(tmp_path, prepare=prepare) as session:
        await session.chat.submit("What is here?")
        await session.chat.finished()
        assert session.state.turn.ok
        assert told[0] == (1, 1_000, 3_000) and told[-1][0] >= 1, (
            "each second, and with each word of progress"
        )
