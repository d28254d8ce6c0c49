"""A request that fits: a conversation begins, files give way, older messages are summarised, the rest is left out."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncGenerator, Collection, Sequence

from tui_agent.context.budget import Shares, emptied, filling
from tui_agent.context.known import KnownFile
from tui_agent.context.loaded import InView, LoadedFile, read_files_result
from tui_agent.errors import ContextTooLong, TuiAgentError
from tui_agent.model.client import Message
from tui_agent.store import events as e
from tui_agent.store.fold import fold
from tui_agent.store.state import SentMessage, State
from tui_agent.turn.beginning import Why, begin, in_words, keep, needs_begin
from tui_agent.turn.composing import Composed, compose
from tui_agent.turn.condensing import condense
from tui_agent.turn.desk import Desk, Gathered
from tui_agent.turn.reading import costs_of, known_file, left_out, load, window_of

Events = AsyncGenerator[e.Event, None]
#: Emptying files must free at least this share of the window, or the cache is broken for too little.
WORTHWHILE = 0.1
#: A reset aims so near at its target, as a share of the window, and no more than so far above it.
NEAR = 0.02
FAR = 0.05
#: So many times the files that fit are looked at, to find those that fill the room.
MATERIAL = 3
#: The rank of files that nothing needs now.
LAST = 3


async def fit(desk: Desk, gathered: Gathered, ceiling: int, composed: list[Composed]) -> Events:
    """Make the next request one of at most `ceiling` tokens, by our own count, and put it into `composed`.

    Most of the time nothing must give way. What does is named: first the contents of older files, then older
    messages, then the open files, last the files that this turn asked for. Raises `ContextTooLong` where the
    person's own words are too long; then nothing is sent.
    """
    sent = desk.state().conversation
    if not sent.messages:
        yield await begin(desk, gathered, "first")
    elif needs_begin(desk.state()) or (sent.uploads and sent.uploads_ended):
        async for event in _begin_again(desk, gathered, _shares(desk, ceiling)):
            yield event
    shares = _shares(desk, ceiling)
    request = await _counted(desk, gathered, shares)
    if (
        request.size > shares.window * shares.reset_at
        and _files_in(desk.state()) >= shares.window * WORTHWHILE
    ):
        async for event in _give_way(desk, gathered, shares, int(request.size - shares.window * WORTHWHILE)):
            yield event
        request = await compose(desk, gathered)
    if request.size > shares.window * shares.condense_at:
        async for event in _condense(desk, gathered, shares, request):
            yield event
        request = await compose(desk, gathered)
    full = request.size > ceiling
    for step in (_empty_all, _drop_messages, _shorten_editor, _leave_out_files):
        if request.size > ceiling:
            async for event in step(desk, gathered, ceiling):
                yield event
            request = await compose(desk, gathered)
    if full and desk.state().conversation.anew and desk.state().conversation.why != "first":
        async for event in _give_way(
            desk, gathered, shares
        ):  # what was left out may have been more than had to go
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


async def _give_way(desk: Desk, gathered: Gathered, shares: Shares, most: int = sys.maxsize) -> Events:
    """Older contents are emptied, and the files that matter are in the system prompt as they are now.

    With them the request comes as near to `reset_to` as whole files allow. Where it would still have more than
    `most` tokens, since what it needs is what is there already, nothing changes.
    """
    ranked = _by_rank(desk.state(), gathered.shown)
    for event in await _rebuilt(desk, gathered, shares, "files", ranked, most):
        yield event


async def _begin_again(desk: Desk, gathered: Gathered, shares: Shares) -> Events:
    """Another model, another dialect, or what was uploaded is gone: the same, with no more files than are in view."""
    state = desk.state()
    why = "model" if needs_begin(state) else "files"
    ranked = [
        (entry, rank)
        for entry, rank in _by_rank(state, gathered.shown)
        if entry.path in state.conversation.files or rank < LAST
    ]
    for event in await _rebuilt(desk, gathered, shares, why, ranked):
        yield event


async def _rebuilt(
    desk: Desk,
    gathered: Gathered,
    shares: Shares,
    why: Why,
    ranked: Sequence[tuple[KnownFile, int]],
    most: int = sys.maxsize,
) -> list[e.Event]:
    """Without older contents, and with as many of the files in `ranked` as bring it to `reset_to`.

    Nothing where the request would then have more than `most` tokens.
    """
    state = desk.state()
    before = state.conversation.messages[1:]
    pending = {change.path for change in state.review.open}
    messages = [
        emptied(message, pending, answered=sent.blob not in gathered.own)
        for message, sent in zip((await conversation(desk))[1:], before, strict=True)
    ]
    if why == "model":
        messages = in_words(messages)
    carried = tuple(map(_as_before, (await keep(desk, messages))[0], before))
    gathered.own |= {new.blob for new, old in zip(carried, before, strict=True) if old.blob in gathered.own}

    async def with_files(files: Sequence[LoadedFile]) -> tuple[e.ConversationBegun, Composed]:
        begun = await begin(desk, gathered, why, carried, files)
        return begun, await compose(desk, gathered, fold(state, begun))

    begun, request = await with_files(())
    working, out = await _working(desk, gathered, shares, request, ranked)
    while working:
        begun, request = await with_files(working)
        over = request.size > shares.window * (shares.reset_to + FAR)
        if not over or working[-1].path in gathered.shown:
            break
        working.pop()
    if not working:
        begun, request = await with_files(())
    if request.size > most:
        return []
    events: list[e.Event] = []
    for file in working:
        known = state.known.files.get(file.path)
        if known is not None and known.md5 != file.md5:
            events.append(e.FileLoaded(known_file(file, gathered.turn, known)))
    events += left_out(gathered, "", out, of=len(gathered.shown))
    return [*events, begun]


async def _condense(desk: Desk, gathered: Gathered, shares: Shares, request: Composed) -> Events:
    """So many older messages give way to a summary that the request comes to `reset_to`; files fill what is left."""
    older = desk.state().conversation.messages[1:]
    room = int(shares.window * shares.reset_to) - request.size + sum(message.tokens for message in older)
    async for event in condense(desk, gathered, shares, room):
        yield event
    if desk.state().conversation.messages[1:] != older:
        async for event in _give_way(desk, gathered, shares):
            yield event


def _as_before(new: SentMessage, old: SentMessage) -> SentMessage:
    """What kind of message it is does not change by being emptied."""
    return SentMessage(new.role, new.blob, new.tokens, 0, old.instructions, old.kind)


async def _working(
    desk: Desk,
    gathered: Gathered,
    shares: Shares,
    bare: Composed,
    ranked: Sequence[tuple[KnownFile, int]],
) -> tuple[list[LoadedFile], list[str]]:
    """The files that matter, newest text, those that matter most first, that fit into a request beside all else.

    What this turn has shown already stays while there is room at all, and is else named; the rest up to `reset_to`.
    """
    room, most, near, far = (
        int(shares.window * share) for share in (shares.reset_to, shares.condense_at, NEAR, FAR)
    )
    room, most = room - bare.size, most - bare.size
    shown, out, files, costs = [], [], [], []
    firm = 0
    for entry, rank in ranked:
        if entry.path in bare.event.files or entry.freshness in ("deleted", "renamed"):
            continue
        if rank and sum(cost for cost in costs if cost <= room + near) > MATERIAL * room:
            break
        try:
            file = await load(desk, entry.path, entry.loaded_by)
        except TuiAgentError:
            continue  # what cannot be read now is marked in the table
        cost = await _cost(desk, file)
        if rank:
            files.append(file)
            costs.append(cost)
            firm += rank < LAST
        elif cost <= most:
            shown.append(file)
            room, most = room - cost, most - cost
        else:
            out.append(file.path)
    return [*shown, *(files[place] for place in filling(costs, room, near, far, firm))], out


async def _cost(desk: Desk, file: LoadedFile) -> int:
    """What a file adds to the system prompt, in tokens."""
    text = read_files_result([file], InView())
    return (await desk.model.count(desk.state().model.name, [text], wait=True)).counts[0]


def _by_rank(state: State, shown: Collection[str]) -> list[tuple[KnownFile, int]]:
    """Known files by how much they matter, each with its rank.

    0: this turn has shown it, 1: open or pending, 2: named in an open todo, `LAST`: the most recently used.
    """
    pending = {change.path for change in state.review.open}
    opened = {buffer.path for buffer in state.buffers.open}
    todos = "\n".join(f"{todo.text}\n{todo.details}" for todo in state.todos if not todo.done)
    tied = {change for todo in state.todos if not todo.done for change in todo.changes}
    tied_paths = {change.path for change in state.review.changes if change.id in tied}

    def matters(path: str) -> int:
        if path in shown:
            return 0
        if path in opened or path in pending:
            return 1
        return 2 if path in tied_paths or path in todos else LAST

    ranked = [(entry, matters(entry.path)) for entry in state.known.files.values()]
    seen = [
        (entry, rank)
        for entry, rank in ranked
        if entry.whole or entry.path in state.conversation.files or rank < LAST
    ]
    return sorted(
        seen, key=lambda each: (each[1], -max(each[0].seen_turn, each[0].modified_turn), each[0].path)
    )


async def _empty_all(desk: Desk, gathered: Gathered, ceiling: int) -> Events:
    """Contents that were too few to be worth a reset."""
    if _files_in(desk.state()):
        yield _removed("the contents of the files that earlier turns read")
        async for event in _give_way(desk, gathered, _shares(desk, ceiling)):
            yield event


async def _drop_messages(desk: Desk, gathered: Gathered, ceiling: int) -> Events:
    """All older messages give way to a summary, or to nothing where none comes."""
    shares, older = _shares(desk, ceiling), desk.state().conversation.messages[1:]
    while True:
        before = len(desk.state().conversation.messages)
        async for event in condense(desk, gathered, shares, all_of_them=True):
            yield event
        if len(desk.state().conversation.messages) >= before or not gathered.no_summary:
            break
        if (await compose(desk, gathered)).size <= ceiling:
            break
    if desk.state().conversation.messages[1:] != older:
        async for event in _give_way(desk, gathered, shares):
            yield event


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
