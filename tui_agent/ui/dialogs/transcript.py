"""Search in the transcript and the history, and editing of an earlier message."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

from textual.app import App

from tui_agent.errors import TuiAgentError
from tui_agent.log.transfer import fork
from tui_agent.store.state import ChatMessage
from tui_agent.ui.dialogs.chooser import Chooser, ChooserRow
from tui_agent.ui.host import Choice, Host
from tui_agent.ui.safe_text import label, one_line, parts

if TYPE_CHECKING:
    from tui_agent.session.session import Session

#: Number of newest messages searched, and characters of context around a match.
LOOKED_THROUGH, AROUND = 5_000, 60
_WHO = {"person": "you", "agent": "agent", "note": "note", "command": "command"}


async def find_in_transcript(app: App[object], session: Session) -> int | None:
    """The number of the selected message, or `None`."""
    messages: list[ChatMessage] = list(session.state.chat.messages)

    async def get() -> None:
        if messages and messages[0].number > 1:
            messages[:0] = await session.chat.earlier(messages[0].number, LOOKED_THROUGH)

    chosen = await app.push_screen_wait(
        Chooser("Search the chat", lambda words: found_rows(words, messages), "type text", get())
    )
    return int(chosen) if chosen else None


def found_rows(words: str, messages: Sequence[ChatMessage]) -> list[ChooserRow]:
    wanted = words.strip().lower()
    rows = []
    for message in reversed(messages):
        text = "\n".join(part for part in (message.headline, message.text) if part)
        at = text.lower().find(wanted)
        if wanted and at >= 0:
            start = max(0, text.rfind("\n", 0, at) + 1, at - AROUND // 2)
            line = text[start : start + AROUND].partition("\n")[0] or text[at : at + AROUND]
            who = _WHO.get(message.kind, message.kind)
            rows.append(ChooserRow(str(message.number), parts((f"{who:<8}", "$muted"), one_line(line))))
    return rows


async def find_in_history(app: App[object], session: Session) -> str | None:
    history = list(reversed(session.state.input.history))

    def rows(words: str) -> list[ChooserRow]:
        wanted = words.strip().lower()
        return [
            ChooserRow(str(at), label(one_line(text)))
            for at, text in enumerate(history)
            if wanted in text.lower()
        ]

    chosen = await app.push_screen_wait(Chooser("Messages you sent", rows))
    return history[int(chosen)] if chosen else None


async def rewind(app: Host, session: Session) -> None:
    await edit_earlier(app, session, files=True)


async def edit_earlier(app: Host, session: Session, *, files: bool = False) -> None:
    """Fork before an earlier message, with its text in the prompt; `files` also takes the files back."""
    if app.reopen is None:
        app.notify("A copy can be started only from `tui-agent` itself.", severity="warning")
        return
    sent: dict[int, str] = {}

    async def get() -> None:
        try:
            messages = await session.chat.earlier(session.state.chat.total + 1, LOOKED_THROUGH)
        except TuiAgentError as error:
            await session.notice(str(error), "error")
            return
        sent.update((message.turn, message.text) for message in messages if message.kind == "person")

    def rows(words: str) -> list[ChooserRow]:
        return [
            ChooserRow(str(turn), parts((f"turn {turn:<4}", "$muted"), one_line(text)))
            for turn, text in reversed(sent.items())
            if words.strip().lower() in text.lower()
        ]

    title = "Edit and send again in a copy"
    if files:
        title = "Rewind files and conversation to before …"
    chosen = await app.push_screen_wait(Chooser(title, rows, getting=get()))
    if not chosen:
        return
    turn = int(chosen)
    if files:
        copy = await session.rewind(turn)
    else:
        data, name = session.folders.data, session.state.session.id
        copy = (await asyncio.to_thread(fork, data, name, turn - 1)).id if turn > 1 else ""
    await app.switch(Choice(copy, draft=sent[turn]))
