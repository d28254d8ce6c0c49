"""A request that fits: a conversation begins, files give way, older messages are summarised, the rest is left out."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterator, Sequence

from msgspec.structs import replace

from tui_agent.context.budget import Shares
from tui_agent.context.emptied import emptied
from tui_agent.context.known import KnownFile
from tui_agent.context.loaded import LoadedFile
from tui_agent.errors import ContextTooLong, TuiAgentError
from tui_agent.model.client import Message
from tui_agent.store import events as e
from tui_agent.store.fold import fold
from tui_agent.store.state import SentMessage, State
from tui_agent.turn.beginning import begin, in_words, keep, needs_begin
from tui_agent.turn.composing import Composed, compose
from tui_agent.turn.condensing import condense
from tui_agent.turn.desk import Desk, Gathered
from tui_agent.turn.reading import costs_of, known_file, left_out, load, window_of

Events = AsyncGenerator[e.Event, None]
#: Emptying files must free at least this share of the window, or the cache is broken for too little.
WORTHWHILE = 0.1
#: A reset may end so far from its target, as a share of the window.
NEAR = 0.03


async def fit(desk: Desk, gathered: Gathered, ceiling: int, composed: list[Composed]) -> Events:
    """Make the next request one of at most `ceiling` tokens, by our own count, and put it into `composed`.

    Most of the time nothing must give way. What does is named: first the contents of older files, then older
    messages, then the open files, last the files that this turn asked for. Raises `ContextTooLong` where the
    person's own words are too long; then nothing is sent.
    """
    if desk.state().conversation.uploads and (
        desk.state().conversation.uploads_ended or needs_begin(desk.state())
    ):
        async for event in _give_way(desk, gathered, _shares(desk, ceiling)):
            yield event
    if needs_begin(desk.state()):
        why = "model" if desk.state().conversation.messages else "first"
        carried, _ = await keep(desk, in_words((await conversation(desk))[1:]))
        yield await begin(desk, gathered, why, carried)
    shares = _shares(desk, ceiling)
    request = await _counted(desk, gathered, shares)
    if (
        request.size > shares.window * shares.reset_at
        and _files_in(desk.state()) >= shares.window * WORTHWHILE
    ):
        async for event in _give_way(desk, gathered, shares):
            yield event
        request = await compose(desk, gathered)
    if request.size > shares.window * shares.condense_at:
        async for event in condense(desk, gathered, shares):
            yield event
        request = await compose(desk, gathered)
    for step in (_empty_all, _drop_messages, _shorten_editor, _leave_out_files):
        if request.size > ceiling:
            async for event in step(desk, gathered, ceiling):
                yield event
            request = await compose(desk, gathered)
    if request.size > ceiling:
        raise ContextTooLong(
            f"The request is too long for {desk.state().model.name}, and nothing more can be left out of it: "
            f"it has {request.size:,} tokens, and {ceiling:,} are the most",
            "shorten the message, or choose a model with a larger window",
        )
    composed.append(request)


async def conversation(desk: Desk) -> list[Message]:
    kept = await asyncio.to_thread(desk.sent.read, desk.blobs, desk.state().conversation.messages)
    return [one.message for one in kept]


def _shares(desk: Desk, ceiling: int) -> Shares:
    """The settings as shares of the window, or of less where the provider refused more."""
    settings = desk.settings.context
    window = min(window_of(desk.state()), ceiling)
    return Shares(
        window, settings.reset_at, settings.reset_to, settings.condense_at, settings.keep_on_failure
    )


async def _counted(desk: Desk, gathered: Gathered, shares: Shares) -> Composed:
    """The request, with tokens that are counted where an estimate could be wrong by too much."""
    request = await compose(desk, gathered)
    if request.event.estimated and request.bytes > shares.window * shares.reset_at:
        await desk.model.count(desk.state().model.name, [""], wait=True)
        request = await compose(desk, gathered)
    return request


def _files_in(state: State) -> int:
    """The tokens of contents that could give way; the system prompt stays until then."""
    return sum(message.files for message in state.conversation.messages)


async def _give_way(desk: Desk, gathered: Gathered, shares: Shares) -> Events:
    """Older contents are emptied, and the files that matter are in the system prompt as they are now.

    With them the request comes as near to `reset_to` as whole files allow.
    """
    state = desk.state()
    pending = {change.path for change in state.review.open}
    messages = [emptied(message, pending) for message in (await conversation(desk))[1:]]
    carried, _ = await keep(desk, messages)
    carried = tuple(
        _as_before(new, old) for new, old in zip(carried, state.conversation.messages[1:], strict=True)
    )

    async def with_files(files: Sequence[LoadedFile]) -> tuple[e.ConversationBegun, int]:
        begun = await begin(desk, gathered, "files", carried, files)
        return begun, (await compose(desk, gathered, fold(state, begun))).size

    begun, bare = await with_files(())
    target = int(shares.window * shares.reset_to)
    working = await _working(desk, gathered, target - bare)
    size = bare
    while working:
        begun, size = await with_files(working)
        if size <= target + shares.window * NEAR:
            break
        working.pop()
    if not working:
        begun, _ = await with_files(())
    for file in working:
        before = state.known.files.get(file.path)
        if before is not None and before.md5 != file.md5:
            yield e.FileLoaded(known_file(file, gathered.turn, before))
    yield begun


def _as_before(new: SentMessage, old: SentMessage) -> SentMessage:
    """What kind of message it is does not change by being emptied."""
    return SentMessage(new.role, new.blob, new.tokens, 0, old.instructions, old.kind)


async def _working(desk: Desk, gathered: Gathered, room: int) -> list[LoadedFile]:
    """The files that matter, newest text, as many as fit, those that matter most first."""
    there = {file.path for file in (*gathered.files, *gathered.bundled)}
    files: list[LoadedFile] = []
    for entry in _by_rank(desk.state()):
        if entry.path in there or entry.freshness in ("deleted", "renamed") or room <= 0:
            continue
        try:
            file = await load(desk, entry.path, entry.loaded_by)
        except TuiAgentError:
            continue  # what cannot be read now is marked in the table
        (cost,) = await costs_of(desk, gathered, [file])
        if cost <= room:
            room -= cost
            files.append(file)
    return files


def _by_rank(state: State) -> Iterator[KnownFile]:
    """Known files by how much they matter: open or pending, named in open todos, then the most recently used."""
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

    seen = [
        entry
        for entry in state.known.files.values()
        if entry.whole or entry.path in state.conversation.files or matters(entry) < 2
    ]
    return iter(
        sorted(
            seen,
            key=lambda entry: (matters(entry), -max(entry.seen_turn, entry.modified_turn), entry.path),
        )
    )


async def _empty_all(desk: Desk, gathered: Gathered, ceiling: int) -> Events:
    """Contents that were too few to be worth a reset, and the files in the system prompt."""
    if _files_in(desk.state()):
        yield _removed("the contents of the files that earlier turns read")
        async for event in _give_way(desk, gathered, replace(_shares(desk, ceiling), reset_to=0.0)):
            yield event


async def _drop_messages(desk: Desk, gathered: Gathered, ceiling: int) -> Events:
    """All older messages give way to a summary, or to nothing where none comes."""
    shares = _shares(desk, ceiling)
    while True:
        before = len(desk.state().conversation.messages)
        async for event in condense(desk, gathered, shares, all_of_them=True):
            yield event
        if len(desk.state().conversation.messages) >= before or not gathered.no_summary:
            return
        if (await compose(desk, gathered)).size <= ceiling:
            return


async def _shorten_editor(desk: Desk, gathered: Gathered, ceiling: int) -> Events:
    """Open files are sent as excerpts."""
    if desk.state().buffers.open and not gathered.excerpts:
        gathered.excerpts = True
        yield _removed("all but an excerpt of the open file")


async def _leave_out_files(desk: Desk, gathered: Gathered, ceiling: int) -> Events:
    """Bundled files first, then those that were read again unasked, then those asked for; the largest first."""

    def rank(pair: tuple[int, LoadedFile]) -> tuple[int, int]:
        cost, file = pair
        return (0 if file.loaded_by == "bundle" else 1 if not file.action else 2), -cost

    files = [*gathered.bundled, *gathered.files]
    costs = await costs_of(desk, gathered, files)
    ranked = sorted(zip(costs, files, strict=True), key=rank)
    # naming a file that is left out takes room too, so one round may not be enough
    while ranked and (excess := (await compose(desk, gathered)).size - ceiling) > 0:
        gone = [ranked.pop(0)]
        while ranked and sum(cost for cost, _ in gone) < excess:
            gone.append(ranked.pop(0))
        paths = [file.path for _, file in gone]
        gathered.bundled = [file for file in gathered.bundled if file.path not in paths]
        gathered.files = [file for file in gathered.files if file.path not in paths]
        for event in left_out(gathered, "", paths, of=len(files), loaded=True):
            yield event


def _removed(what: str) -> e.NoticeGiven:
    return e.NoticeGiven("info", f"The request is too long for the model, so it goes without {what}")
