"""Making room before a request: a conversation begins, files give way (C4), older messages are summarised (C5)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterator, Sequence

from tui_agent.context import budget, editor
from tui_agent.context.budget import Shares
from tui_agent.context.emptied import emptied
from tui_agent.context.known import KnownFile
from tui_agent.context.loaded import BYTES_A_TOKEN, LoadedFile, cost
from tui_agent.errors import TuiAgentError
from tui_agent.model.client import Message
from tui_agent.store import events as e
from tui_agent.store.state import SentMessage, State
from tui_agent.turn.beginning import begin, in_words, keep, needs_begin
from tui_agent.turn.condensing import condense
from tui_agent.turn.desk import Desk, Gathered
from tui_agent.turn.editor_state import open_files
from tui_agent.turn.reading import known_file, load

#: What a request that was too long for the provider may be of its own size, the next time.
LESS = 0.9
#: What a message costs beside what is counted here: tables, facts, the words around files.
AROUND = 300


async def make_room(desk: Desk, gathered: Gathered, too_long: bool = False) -> AsyncGenerator[e.Event, None]:
    """What must happen to the conversation before the next request; nothing, most of the time.

    `too_long` says that the provider refused the last one: what we count is then not what it counts.
    """
    uploads = desk.state().conversation.uploads
    if uploads and (desk.state().conversation.uploads_ended or needs_begin(desk.state())):
        async for event in _give_way(desk, gathered, shares_of(desk)):
            yield event
    if needs_begin(desk.state()):
        why = "model" if desk.state().conversation.messages else "first"
        carried, _ = await keep(desk, in_words((await conversation(desk))[1:]))
        yield await begin(desk, gathered, why, carried)
    shares = shares_of(desk, too_long)
    step = _step(desk, gathered, shares)
    if step == "empty" or (too_long and files_in(desk.state()) >= shares.window * budget.WORTHWHILE):
        async for event in _give_way(desk, gathered, shares):
            yield event
        step = "condense" if size(desk, gathered) > shares.window * shares.condense_at else "send"
    elif too_long:
        step = "condense"
    if step == "condense":
        async for event in condense(desk, gathered, shares):
            yield event


def shares_of(desk: Desk, too_long: bool = False) -> Shares:
    """The settings as shares of the window in our own count of tokens."""
    state, settings = desk.state(), desk.settings.context
    window = round(state.model.window / state.usage.scale)
    if too_long:
        window = min(window, round(state.usage.counted * LESS))
    return Shares(
        window, settings.reset_at, settings.reset_to, settings.condense_at, settings.keep_on_failure
    )


def size(desk: Desk, gathered: Gathered) -> int:
    """What the next request will be, in tokens by our own count; what is new is estimated."""
    state = desk.state()
    sent = state.conversation.head_tokens + sum(message.tokens for message in state.conversation.messages)
    return sent + _new_size(state, gathered)


def files_in(state: State) -> int:
    """The tokens of contents that could give way; the system prompt stays until then."""
    return sum(message.files for message in state.conversation.messages)


async def conversation(desk: Desk) -> list[Message]:
    kept = await asyncio.to_thread(desk.sent.read, desk.blobs, desk.state().conversation.messages)
    return [one.message for one in kept]


def _step(desk: Desk, gathered: Gathered, shares: Shares) -> str:
    return budget.next_step(size(desk, gathered), files_in(desk.state()), shares)


def _new_size(state: State, gathered: Gathered) -> int:
    files = sum(cost(file.size, file.lines) for file in (*gathered.files, *gathered.bundled))
    blocks = editor.new_blocks(editor.blocks(open_files(state.buffers)), state.conversation.blocks)
    words = sum(map(len, (gathered.query, gathered.memory, *gathered.found, *blocks.values())))
    return files + words // BYTES_A_TOKEN + AROUND


async def _give_way(desk: Desk, gathered: Gathered, shares: Shares) -> AsyncGenerator[e.Event, None]:
    """Older contents are emptied, and the files that matter stand in the system prompt as they are now."""
    state = desk.state()
    pending = {change.path for change in state.review.open}
    messages = [emptied(message, pending) for message in (await conversation(desk))[1:]]
    carried, _ = await keep(desk, messages)
    carried = tuple(
        _as_before(new, old) for new, old in zip(carried, state.conversation.messages[1:], strict=True)
    )
    taken = sum(message.tokens for message in carried) + state.conversation.messages[0].tokens
    room = int(shares.window * shares.reset_to) - taken - _new_size(state, gathered)
    working = await _working(desk, gathered, room)
    for file in working:
        before = state.known.files.get(file.path)
        if before is not None and before.md5 != file.md5:
            yield e.FileLoaded(known_file(file, gathered.turn, before))
    yield await begin(desk, gathered, "files", carried, working)


def _as_before(new: SentMessage, old: SentMessage) -> SentMessage:
    """What kind of message it is does not change by being emptied."""
    return SentMessage(new.role, new.blob, new.tokens, 0, old.instructions, old.kind)


async def _working(desk: Desk, gathered: Gathered, room: int) -> list[LoadedFile]:
    """The files that matter, newest text, as many as fit: open, pending, named in open todos, used of late."""
    state = desk.state()
    gathered_now = {file.path for file in (*gathered.files, *gathered.bundled)}
    wanted = [
        entry
        for entry in _by_rank(state)
        if entry.path not in gathered_now and entry.freshness not in ("deleted", "renamed")
    ]
    fitting = budget.that_fit(((entry.path, cost(entry.size, entry.lines)) for entry in wanted), room)
    files = []
    for entry in wanted:
        if entry.path not in fitting:
            continue
        try:
            files.append(await load(desk, entry.path, entry.loaded_by))
        except TuiAgentError:
            continue  # what cannot be read now is marked in the table
    return files


def _by_rank(state: State) -> Iterator[KnownFile]:
    """Known files that are in the prompt or matter, those that matter most first."""
    pending = {change.path for change in state.review.open}
    opened = {buffer.path for buffer in state.buffers.open}
    todos = "\n".join(f"{todo.text}\n{todo.details}" for todo in state.todos if not todo.done)
    tied = {change for todo in state.todos if not todo.done for change in todo.changes}
    tied_paths = {change.path for change in state.review.changes if change.id in tied}

    def matters(entry: KnownFile) -> int:
        path = entry.path
        if path in opened or path in pending:
            return 0
        return 1 if path in tied_paths or path in todos else 2

    in_view: Sequence[KnownFile] = [
        entry
        for entry in state.known.files.values()
        if entry.path in state.conversation.files or (entry.whole and matters(entry) < 2)
    ]
    return iter(
        sorted(
            in_view,
            key=lambda entry: (matters(entry), -max(entry.seen_turn, entry.modified_turn), entry.path),
        )
    )
