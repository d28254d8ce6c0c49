"""Side questions: answered beside the conversation, also during a turn."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path

from support.sessions import ScriptedModel, calls, model_of, open_session

from tui_agent.errors import Unreachable
from tui_agent.model.client import Chunk, ModelRequest
from tui_agent.model.parts import text_of
from tui_agent.session.session import Session
from tui_agent.store import events as e


async def answered(session: Session, question: str) -> None:
    """Asks, and waits for the answer or the error."""
    done = asyncio.Event()
    unsubscribe = session.subscribe(
        lambda event, _: done.set() if isinstance(event, e.AsideAnswered | e.NoticeGiven) else None
    )
    await session.chat.ask_beside(question)
    async with asyncio.timeout(20):
        await done.wait()
    unsubscribe()


async def test_it_has_the_conversation_and_leaves_it_as_it_is(tmp_path: Path) -> None:
    replies = [calls(text="Seven."), calls(text="An odd number."), calls(text="Eight.")]
    async with open_session(tmp_path, replies, protocol="tools") as session:
        await session.chat.submit("A number?")
        await session.chat.finished()
        before = session.state.conversation
        await answered(session, "What kind of number is it?")
        assert session.state.conversation == before
        note = session.state.chat.messages[-1]
        assert (note.text, note.headline) == (
            "An odd number.",
            "Side question: What kind of number is it?",
        )
        await session.chat.submit("The next one?")
        await session.chat.finished()
        first, aside, last = model_of(session).requests
        assert aside.messages[: len(first.messages)] == first.messages and aside.tools == first.tools
        assert text_of(aside.messages[-2]) == "Seven." and "What kind" in text_of(aside.messages[-1])
        sent = "\n".join(map(text_of, last.messages))
        assert "What kind" not in sent and "odd" not in sent
        assert session.state.usage.session.input == 30


async def test_it_is_answered_while_a_turn_waits_for_the_model(tmp_path: Path) -> None:
    class Held(ScriptedModel):
        asked, release = asyncio.Event(), asyncio.Event()

        async def stream(self, request: ModelRequest) -> AsyncGenerator[Chunk, None]:
            if request.purpose == "main":
                self.asked.set()
                await self.release.wait()
            async for chunk in super().stream(request):
                yield chunk

    async with open_session(tmp_path, protocol="tools") as session:
        session.models.model = held = Held([calls(text="Beside."), calls(text="Done.")], "tools")
        await session.chat.submit("Work")
        async with asyncio.timeout(20):
            await held.asked.wait()
        await answered(session, "How far is it?")
        assert session.state.turn.running and session.state.chat.messages[-1].text == "Beside."
        held.release.set()
        await session.chat.finished()
        assert session.state.turn.ok and session.state.chat.messages[-1].text == "Done."


async def test_a_failure_is_one_sentence(tmp_path: Path) -> None:
    async with open_session(tmp_path, [Unreachable("The model cannot be reached", "try again")]) as session:
        await answered(session, "Hello?")
        assert "cannot be reached" in session.state.notices.items[-1].text
        assert not session.state.chat.messages
