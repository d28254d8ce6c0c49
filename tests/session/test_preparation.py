"""What a turn needs is made ready before it is needed."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest
from support.sessions import model_of, open_session, reply
from support.trees import until

from tui_agent.files import known_secrets
from tui_agent.files.blobs import Blobs
from tui_agent.processes.background import standstill
from tui_agent.sandbox import view_plan as planning
from tui_agent.session import turns
from tui_agent.store import events as e
from tui_agent.store.state import State
from tui_agent.turn import context


class Looked(planning.ToolFolders):
    """Notes that it was asked."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = threading.Event()

    def hidden(self, folders: Iterable[str], tools: Sequence[str] = ()) -> list[str]:
        self.asked.set()
        return []


@pytest.mark.parametrize("interactive", [True, False])
async def test_what_a_view_hides_is_looked_for_while_the_model_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, interactive: bool
) -> None:
    """Where nobody waits at a screen, the first command looks for it."""
    monkeypatch.setattr(planning, "_STORES", looked := Looked())
    async with open_session(tmp_path, [reply(message="Done.")], interactive=interactive) as session:
        assert not looked.asked.is_set()
        await session.chat.submit("Say that it is done")
        await session.chat.finished()
        if interactive:
            assert await asyncio.to_thread(looked.asked.wait, 20)
    assert looked.asked.is_set() == interactive


async def test_work_that_can_wait_stands_still_until_the_request_of_a_turn_leaves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turns, "REQUEST_FIRST", 30.0)
    still = dict[str, bool]()

    def happened(event: e.Event, _: State) -> None:
        still.setdefault(type(event).__name__, standstill.lasts)

    async with open_session(tmp_path, [reply(message="Done.")]) as session:
        session.subscribe(happened)
        await session.chat.submit("Say that it is done")
        await session.chat.finished()
    assert still["PlanMade"] and still["ConversationBegun"]
    assert not still["ReplyRead"]


async def test_what_a_request_reads_is_read_while_its_message_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "AGENTS.md").write_text("Answer briefly.\n")
    (tmp_path / ".env").write_text("TOKEN=k3yv4lue0123456789abcdef\n")
    read: list[str] = []

    def noted(module: Any, name: str) -> None:
        function = getattr(module, name)
        monkeypatch.setattr(module, name, lambda *args, **how: (read.append(name), function(*args, **how))[1])

    monkeypatch.setattr(planning, "_STORES", Looked())
    monkeypatch.setattr(context, "is_settled", lambda stamp: True)
    noted(context, "find_secrets_in_file")
    noted(known_secrets, "_read")
    async with open_session(tmp_path, [reply(message="Done.")], interactive=True) as session:
        assert not read, "whoever only looks around does not pay for it"
        session.chat.set_draft("Say that it is done")
        await next(task for task in asyncio.all_tasks() if task.get_name() == "preparation: index")
        assert {"find_secrets_in_file", "_read"} <= set(read)
        read.clear()
        await session.chat.submit("Say that it is done")
        await session.chat.finished()
        assert "Answer briefly." in str(model_of(session).requests[-1].messages)
    assert not read


async def test_the_conversation_is_read_while_the_message_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_session(tmp_path, [reply(message="One."), reply(message="Two.")]) as session:
        for words in ("first", "second"):
            await session.chat.submit(words)
            await session.chat.finished()
        sent = {message.blob for message in session.state.conversation.messages}
    seen: list[str] = []
    read = context._read

    def noted(blobs: Blobs, blob: str) -> context.CachedMessage:
        seen.append(blob)
        return read(blobs, blob)

    monkeypatch.setattr(context, "_read", noted)
    async with open_session(tmp_path, [reply(message="Three.")], session="last", interactive=True) as session:
        session.chat.set_draft("third")
        await until(lambda: sent <= set(seen), "the conversation")
        await session.chat.submit("third")
        await session.chat.finished()
        assert sorted(blob for blob in seen if blob in sent) == sorted(sent)
