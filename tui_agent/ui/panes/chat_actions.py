"""Key actions of the chat on sent and received messages."""

from __future__ import annotations

import itertools
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, Protocol, cast

from textual.app import App

from tui_agent.errors import TuiAgentError
from tui_agent.turn.model_choice import with_effort
from tui_agent.ui.widgets.messages import TextBlock
from tui_agent.ui.widgets.prompt import Prompt
from tui_agent.ui.widgets.transcript import Transcript

if TYPE_CHECKING:
    from tui_agent.session.session import Session
    from tui_agent.ui.host import Host


class ChatHost(Protocol):
    """The part of the chat pane used here."""

    session: Session

    @property
    def app(self) -> App[Any]: ...
    @property
    def prompt(self) -> Prompt: ...
    @property
    def transcript(self) -> Transcript: ...
    def ask(self, call: Coroutine[Any, Any, object]) -> None: ...
    def act(self, call: Coroutine[Any, Any, object], *, text_waits: bool = True) -> None: ...
    def send(self, text: str) -> Coroutine[Any, Any, None]: ...
    @property
    def has_focus_within(self) -> bool: ...
    def go_to(self, name: str, *, focus: bool = True) -> None: ...


async def find_message(pane: ChatHost) -> None:
    """Search the messages and scroll to the selected one."""
    from tui_agent.ui.dialogs.transcript import find_in_transcript

    if (number := await find_in_transcript(pane.app, pane.session)) is not None:
        pane.transcript.go_to(number)


async def find_sent(pane: ChatHost) -> None:
    from tui_agent.ui.dialogs.transcript import find_in_history

    if (text := await find_in_history(pane.app, pane.session)) is not None:
        pane.prompt.insert_before(text)


def retry(pane: ChatHost) -> None:
    turn = pane.session.state.turn
    if turn.running or turn.ok or not turn.request:
        pane.ask(pane.session.notice("No message has failed"))
        return
    text = with_effort(turn.effort, turn.request)
    if pane.prompt.value == text:
        pane.prompt.set_value("")
    pane.act(pane.send(text), text_waits=False)


async def write_outside(pane: ChatHost) -> None:
    """Edit the message in the user's external editor."""
    from tui_agent.ui.outside_editor import edited_text

    before = pane.prompt.value
    try:
        text = await edited_text(cast("Host", pane.app), before)
    except TuiAgentError as error:
        await pane.session.notice(str(error), "error")
        return
    if text is None:
        await pane.session.notice("The editor ended with an error; the message is unchanged", "warning")
    elif text != before:
        pane.prompt.set_value(text)


async def paste_picture(pane: ChatHost) -> None:
    """Insert a mention of the clipboard's picture."""
    from tui_agent.ui.clipboard_picture import keep_picture

    try:
        path = await keep_picture(pane.session.storage.folder / "pictures")
    except TuiAgentError as error:
        await pane.session.notice(str(error), "warning")
    else:
        pane.prompt.insert(f'@"{path}" ')
        pane.prompt.focus()


def copy_answer(pane: ChatHost) -> None:
    answers = [message for message in pane.session.state.chat.messages if message.kind == "agent"]
    if answers:
        pane.app.copy_to_clipboard(answers[-1].text or answers[-1].summary)


async def open_block(pane: ChatHost, block: TextBlock) -> None:
    files = pane.session.files
    taken = {*files.paths(), *(buffer.path for buffer in pane.session.state.buffers.open)}
    names = (f"block-{number}.{block.ending}" for number in itertools.count(1))
    name = next(name for name in names if name not in taken)
    await files.open(name)
    files.edit(name, block.text, (0, 0), (0, 0))
    pane.go_to("buffers", focus=pane.has_focus_within)


def insert_output(pane: ChatHost) -> None:
    try:
        text = pane.session.commands.last_output()
    except TuiAgentError as error:
        pane.ask(pane.session.notice(str(error), "error"))
    else:
        pane.prompt.insert_before(text)
        pane.prompt.focus()
