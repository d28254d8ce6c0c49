"""Whole turns with replies as local models write them: the change is in the review, or its fault is told."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from support.local_replies import READ, REFUSED, REPLY, J
from support.sessions import model_of, open_session, reply

from tui_agent.model.client import Chunk, EndChunk, TextChunk, UsageChunk
from tui_agent.session.session import Session

FILE = "def fetch(url):\n    return get(url)\n"


def streamed(text: str) -> Sequence[Chunk]:
    pieces = [TextChunk(text[at : at + 9]) for at in range(0, len(text), 9)]
    return [*pieces, UsageChunk(100, 20), EndChunk("stop")]


async def turn(session: Session, text: str) -> str:
    """One turn that is answered so; what the person read of the reply while it came."""
    model, seen = model_of(session), ""

    def look(event: object, state: object) -> None:
        nonlocal seen
        seen = max(seen, session.state.reply.message + session.state.reply.summary, key=len)

    stop = session.subscribe(look)
    model.replies[:] = [streamed(text), reply("No more."), reply("No more.")]
    await session.chat.submit("Add a timeout to api.py")
    await session.chat.finished()
    stop()
    return seen


@pytest.mark.parametrize("protocol", ["tools", "structured"])
async def test_every_format_is_read_or_refused_aloud(protocol: str, tmp_path: Path) -> None:
    (tmp_path / "api.py").write_text(FILE)
    async with open_session(tmp_path, protocol=protocol) as session:
        for form, text in READ.items():
            seen = await turn(session, text)
            assert session.state.turn.ok, (form, session.state.turn.error)
            (change,) = session.state.review.open
            assert (change.path, change.state, change.rung) == ("api.py", "pending", "exact"), form
            assert "get(url" not in seen and "<" not in seen.replace("</think>", ""), (form, seen)
            said = next(one for one in reversed(session.state.chat.messages) if one.kind == "agent")
            assert "get(url" not in said.text + said.summary, form
            await session.review.skip()
        for form, text in REFUSED.items():
            await turn(session, text)
            assert not session.state.review.open, form
            told = [*session.state.conversation.untold, str(model_of(session).requests[-1].messages)]
            assert any("cannot be read" in one or "not valid JSON" in one for one in told), form


@pytest.mark.parametrize("protocol", ["tools", "structured"])
async def test_thoughts_are_shown_apart_and_are_not_the_answer(protocol: str, tmp_path: Path) -> None:
    (tmp_path / "api.py").write_text(FILE)
    tags = (("<think>", "</think>"), ("<|channel|>analysis<|message|>", "<|end|>"), ("", "</think>\n"))
    async with open_session(tmp_path, protocol=protocol) as session:
        for opening, closing in tags:
            seen = await turn(session, f"{opening}Maybe {J({'summary': 'No'})}?{closing}{J(REPLY)}")
            said = next(one for one in reversed(session.state.chat.messages) if one.kind == "agent")
            assert "Maybe" in said.reasoning and "Maybe" not in said.text + said.summary
            assert not opening or "Maybe" not in seen
            assert len(session.state.review.open) == 1
            await session.review.skip()
