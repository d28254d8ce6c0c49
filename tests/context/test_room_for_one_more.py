"""Whatever a model made permanent in a session, one more short message goes out."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from support.sessions import calls, model_of, open_session, reply

from tui_agent.session.session import Session

WINDOW = 100_000  # as the scripted model has it; a token has four characters
LONG = "words and words " * 40
DEEP = 950  # read by the standard library, and too deep for what walks it further down the stack


async def says(session: Session, words: str) -> None:
    await session.chat.submit(words)
    await session.chat.finished()


async def takes_one_more(session: Session) -> None:
    model_of(session).replies = [reply("Hello."), reply("Hello again.")]
    await says(session, "hello")
    assert session.state.turn.error == "", session.state.turn.error
    assert session.state.chat.messages[-1].summary == "Hello."
    request = model_of(session).requests[-1]
    assert sum(len(str(message)) for message in request.messages) < WINDOW * 4


def todos(count: int) -> list[dict[str, Any]]:
    return [
        {"text": f"{number} {LONG}", "aiText": LONG * 3, "done": number % 3 == 0} for number in range(count)
    ]


def deep(levels: int) -> str:
    return '{"fileChanges": [{"path": "a.txt", "x": ' + "[" * levels + "]" * levels + "}]}"


async def test_three_hundred_long_todos_beside_a_summary(tmp_path: Path) -> None:
    async with open_session(tmp_path, [reply("Planned.", todos=todos(300)), "A summary."]) as session:
        await says(session, "plan it")
        await session.chat.compact()
        await session.chat.finished()
        await takes_one_more(session)
        model_of(session).replies = [reply("Went on.")]
        await says(session, "continue")
        assert session.state.turn.error == ""


async def test_a_summary_longer_than_the_window(tmp_path: Path) -> None:
    async with open_session(tmp_path, [reply("One."), "long " * WINDOW * 2]) as session:
        await says(session, "one")
        await session.chat.compact()
        await session.chat.finished()
        await takes_one_more(session)


async def test_a_summary_that_the_person_made_too_long(tmp_path: Path) -> None:
    async with open_session(tmp_path, [reply("One."), "A summary."]) as session:
        await says(session, "one")
        await session.chat.compact()
        await session.chat.finished()
        assert await session.chat.edit_summary("mine " * WINDOW * 2)
        await takes_one_more(session)


@pytest.mark.parametrize("levels", [DEEP, 20_000])
async def test_deeply_nested_json_in_the_history(tmp_path: Path, levels: int) -> None:
    async with open_session(tmp_path, [deep(levels)] * 9) as session:
        await says(session, "nest")
        model_of(session).replies = ["A summary."]
        await session.chat.compact()
        await session.chat.finished()
        await takes_one_more(session)


@pytest.mark.parametrize("seed", range(3))
async def test_any_history(tmp_path: Path, seed: int) -> None:
    """A random history of all that grows: prose, todos, calls, nested text, summaries, facts."""
    chance = random.Random(seed)
    tools = chance.random() < 0.5

    def answer() -> Any:
        size = chance.choice((1, 300, 3_000, 9_000))
        match chance.randrange(4):
            case 0:
                return (
                    calls(("set_todos", {"todos": todos(size // 30)}), text="x ")
                    if tools
                    else reply("T.", todos=todos(size // 30))
                )
            case 1:
                return LONG * (size // 20) if tools else reply(LONG * (size // 20))
            case 2:
                return deep(chance.choice((10, DEEP, 5_000)))
            case _:
                return json.dumps({"summary": "é世" * size * 5})

    async with open_session(tmp_path, [], protocol="tools" if tools else "structured") as session:
        for number in range(6):
            model_of(session).replies = [answer(), *[reply("Done.")] * 9]
            await says(session, f"request {number}")
            if chance.random() < 0.4:
                model_of(session).replies = [chance.choice((LONG * 30, "short", "世" * WINDOW))]
                await session.chat.compact()
                await session.chat.finished()
        model_of(session).replies = [reply("Hello.")] * 3
        await says(session, "hello")
        assert session.state.turn.error == "", session.state.turn.error
