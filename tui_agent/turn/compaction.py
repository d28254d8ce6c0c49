"""Fits a request into the model's window: drops file contents, summarises older messages, omits the rest."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from functools import partial

from msgspec.structs import replace

from tui_agent.answers.plans import within
from tui_agent.context.budget import TokenShares, emptied, filling
from tui_agent.context.file_contents import FilesInPrompt, LoadedFile, read_files_result
from tui_agent.context.known_files import KnownFile
from tui_agent.errors import ContextTooLong, ModelError, TuiAgentError
from tui_agent.store.conversation import SentMessage
from tui_agent.store.events import ConversationBegun, FileLoaded, NoticeGiven, RequestSent
from tui_agent.store.state import State
from tui_agent.tools.load_files import (
    batches_of,
    costs_of,
    files_room,
    known_file,
    leave_out,
    load,
    part_notice,
    shortened,
    window_of,
)
from tui_agent.tools.tool import Emit, LoadedFiles, unheard
from tui_agent.turn.context import TurnContext
from tui_agent.turn.conversation import (
    Why,
    accepts_previous_items,
    as_plain_text,
    begin,
    condense,
    drop_conversation,
    keep,
    needs_begin,
    shorten_summaries,
)
from tui_agent.turn.instructions import instruct
from tui_agent.turn.request import ComposedRequest, Draft, compose

#: Share of the window that dropping files must free to justify a cache miss.
WORTHWHILE = 0.1
#: Tolerances of a reset's target size below and above, as shares of the window.
NEAR = 0.02
FAR = 0.05
#: Multiple of the available room up to which candidate files are read.
MATERIAL = 3
#: Rank of files that nothing currently needs.
LAST = 3


@dataclass
class EarlierMessages:
    files: set[str] = field(default_factory=set)
    blobs: set[str] = field(default_factory=set)
    #: Open files are sent as excerpts.
    excerpts: bool = False
    no_summary: bool = False

    def add(self, sent: RequestSent) -> None:
        self.files.update(sent.files)
        self.blobs.update(message.blob for message in sent.messages)


async def fit_to_window(
    context: TurnContext, draft: Draft, earlier: EarlierMessages, ceiling: int, emit: Emit
) -> ComposedRequest:
    """Returns the next request with at most `ceiling` estimated tokens.

    Reduces, with a notice, in this order: contents of older files, older messages, open files, files
    requested in this turn. Raises `ContextTooLong` if the user's own text is too long; nothing is sent
    then.
    """
    draft = replace(draft, excerpts=earlier.excerpts)
    room = _RequestReducer(context, draft, earlier, _shares(context, ceiling), emit)
    sent = context.core.state.conversation
    if not sent.messages:
        await emit(await begin(context, draft.contexts, "first"))
    elif needs_begin(context.core.state) or (sent.uploads and sent.uploads_ended):
        await room.begin_again()
    shares = room.shares
    request = await room.counted()
    if (
        request.size > shares.window * shares.reset_at
        and _files_in(context.core.state) >= shares.window * WORTHWHILE
    ):
        await room.give_way(int(request.size - shares.window * WORTHWHILE))
        request = await room.composed()
    if request.size > shares.window * shares.condense_at:
        await room.condense(request)
        request = await room.composed()
    full = request.size > ceiling
    for step in (
        room.empty_all,
        room.drop_messages,
        room.shorten_editor,
        room.shorten_files,
        room.leave_out_files,
        room.shorten_the_rest,
    ):
        if request.size > ceiling:
            await step(ceiling)
            request = await room.composed()
    if full and context.core.state.conversation.restarts and context.core.state.conversation.why != "first":
        await room.give_way()  # The steps may have removed more than necessary.
        request = await room.composed()
    if request.size > ceiling:
        raise ContextTooLong(
            f"The request is too long for {context.core.state.model.name}, and cannot be made any smaller: "
            f"it has {request.size:,} tokens, and {ceiling:,} are the most",
            "shorten the message, or choose a model with a larger window",
        )
    return request


class _RequestReducer:
    def __init__(
        self, context: TurnContext, draft: Draft, earlier: EarlierMessages, shares: TokenShares, emit: Emit
    ) -> None:
        self._context = context
        self._draft = draft
        self._earlier = earlier
        self.shares = shares
        self._emit = emit
        self._hooked = False

    @property
    def _state(self) -> State:
        return self._context.core.state

    async def composed(self, state: State | None = None) -> ComposedRequest:
        return await compose(self._context, self._draft, state)

    async def counted(self) -> ComposedRequest:
        request = await self.composed()
        if request.event.estimated and request.bytes > self.shares.window * self.shares.reset_at:
            await self._context.model.count(self._state.model.name, [""], wait=True)
            request = await self.composed()
        return request

    async def give_way(self, most: int = sys.maxsize) -> None:
        """Changes nothing if the result would still exceed `most` tokens."""
        await self._rebuild("files", _by_rank(self._state, self._earlier.files), most)

    async def begin_again(self) -> None:
        """Restarts with only the files in view: another model or dialect, or expired uploads."""
        state = self._state
        ranked = [
            (entry, rank)
            for entry, rank in _by_rank(state, self._earlier.files)
            if entry.path in state.conversation.files or rank < LAST
        ]
        await self._rebuild("model" if needs_begin(state) else "files", ranked)

    async def condense(self, request: ComposedRequest) -> None:
        older = self._state.conversation.messages[1:]
        if await self._is_held_back(older):
            return
        room = int(self.shares.window * self.shares.reset_to) - request.size
        await self._summarise(room=room + sum(message.tokens for message in older))
        if self._state.conversation.messages[1:] != older:
            await self.give_way()

    async def empty_all(self, ceiling: int) -> None:
        if _files_in(self._state):
            await self._say_removed("the contents of the files that earlier turns read")
            await self.give_way()

    async def drop_messages(self, ceiling: int) -> None:
        """Summarises older messages, or drops them on failure. Hooks cannot prevent it."""
        older = self._state.conversation.messages[1:]
        await self._is_held_back(older)
        while True:
            before = len(self._state.conversation.messages)
            over = (await self.composed()).size - ceiling
            tokens = sum(message.tokens for message in self._state.conversation.messages[1:])
            await self._summarise(all_of_them=True, most_kept=max(tokens - over, 0))
            if len(self._state.conversation.messages) >= before or not self._earlier.no_summary:
                break
            if (await self.composed()).size <= ceiling:
                break
        if self._state.conversation.messages[1:] != older:
            await self.give_way()

    async def _is_held_back(self, older: Sequence[SentMessage]) -> bool:
        if self._hooked or not older or self._context.calls.hooks is None:
            return False
        self._hooked = True
        why = await self._context.calls.hooks.compacting("auto")
        if why:
            await self._emit(NoticeGiven("info", f"Older messages are kept as long as possible: {why}"))
        return bool(why)

    async def shorten_editor(self, ceiling: int) -> None:
        if self._state.buffers.open and not self._draft.excerpts:
            self._earlier.excerpts = True
            self._draft = replace(self._draft, excerpts=True)
            await self._say_removed("all but an excerpt of the open file")

    async def shorten_files(self, ceiling: int) -> None:
        """The largest first. Files of a batch stay whole."""
        files = self._draft.everything.asked_for
        batches = batches_of(self._state)
        named = [file for file in files if file.action not in batches and not file.file_id]
        costs = await costs_of(self._context, named)
        for cost, file in sorted(zip(costs, named, strict=True), key=lambda pair: -pair[0]):
            excess = (await self.composed()).size - ceiling
            if excess <= 0:
                break
            room = min(cost - excess - int(ceiling * NEAR), files_room(self._context))
            part = await shortened(self._context, file, room)
            if part is not None:
                self._draft = self._draft.changed(partial(LoadedFiles.with_part, part=part))
                before = self._draft.everything.before.get(file.path)
                known = await asyncio.to_thread(known_file, part, self._context.turn, before)
                await self._emit(FileLoaded(known, file.action))
                await self._emit(part_notice(part))

    async def leave_out_files(self, ceiling: int) -> None:
        """Bundled files, automatic reloads, requested files; within each group the largest first."""

        def rank(pair: tuple[int, LoadedFile]) -> tuple[int, int]:
            cost, file = pair
            return (0 if file.loaded_by == "bundle" else 1 if not file.action else 2), -cost

        everything = self._draft.everything
        files = [*everything.bundled, *everything.asked_for]
        costs = await costs_of(self._context, files)
        ranked = sorted(zip(costs, files, strict=True), key=rank)
        # The names of omitted files take room too.
        while ranked and (excess := (await self.composed()).size - ceiling) > 0:
            gone = [ranked.pop(0)]
            while ranked and sum(cost for cost, _ in gone) < excess:
                gone.append(ranked.pop(0))
            paths = [file.path for _, file in gone]
            waits = any(file.action in batches_of(self._state) for _, file in gone)
            facts = await leave_out("", paths, len(files), self._emit, made_room=everything, waits=waits)
            draft = self._draft.changed(partial(LoadedFiles.without, paths=paths))
            self._draft = replace(draft, loaded=draft.loaded.plus(LoadedFiles(facts=facts)))

    async def shorten_the_rest(self, ceiling: int) -> None:
        """Shortens summaries, calls and program-generated text, so that a short user message can always be
        sent.
        """
        self._draft = replace(self._draft, brief=True)
        request = await self.composed()
        summaries = [it.tokens for it in self._state.conversation.messages if it.kind == "summary"]
        if (over := request.size - ceiling) > 0 and summaries:
            most = max(0, max(summaries) - over - int(ceiling * NEAR))
            await shorten_summaries(self._context, most, self._emit)
            request = await self.composed()
        if request.size > ceiling and self._state.conversation.messages[1:]:
            await self._say_removed("everything that was said before")
            await drop_conversation(self._context, self._emit)

    async def _summarise(
        self, *, room: int = 0, all_of_them: bool = False, most_kept: int = sys.maxsize
    ) -> None:
        """At most one failed summary a turn; then kept messages are cut only for lack of room."""
        state = self._state
        failed = self._earlier.no_summary or self._context.sent.no_summary.get(state.model.name, 0) > 0
        came = await condense(
            self._context,
            self._draft.contexts,
            self.shares,
            self._emit,
            room=room,
            all_of_them=all_of_them,
            summarise=not self._earlier.no_summary,
            again=failed and not state.model.small,
            most_kept=most_kept,
        )
        self._earlier.no_summary = not came

    async def _rebuild(
        self, why: Why, ranked: Sequence[tuple[KnownFile, int]], most: int = sys.maxsize
    ) -> None:
        context, state, own = self._context, self._state, self._earlier.blobs
        before = state.conversation.messages[1:]
        pending = {change.path for change in state.review.open}
        kept = await asyncio.to_thread(context.sent.read, context.core.blobs, state.conversation.messages)
        messages = [
            emptied(one.message, pending, answered=sent.blob not in own)
            for one, sent in zip(kept[1:], before, strict=True)
        ]
        if why == "model" and not accepts_previous_items(state):
            messages = as_plain_text(messages)
        stored, _ = await keep(context, messages)
        carried = tuple(
            SentMessage(new.role, new.blob, new.tokens, 0, old.instructions, old.kind)
            for new, old in zip(stored, before, strict=True)
        )
        own |= {new.blob for new, old in zip(carried, before, strict=True) if old.blob in own}

        async def with_files(files: Sequence[LoadedFile]) -> tuple[ConversationBegun, ComposedRequest]:
            begun = await begin(context, self._draft.contexts, why, carried, files)
            return begun, await self.composed(begun.apply(state))

        begun, request = await with_files(())
        if state.model.small:
            ranked = [(entry, rank) for entry, rank in ranked if rank < LAST]
        working, out = await self._working(request, ranked)
        while working:
            begun, request = await with_files(working)
            over = request.size > self.shares.window * (self.shares.reset_to + FAR)
            if not over or working[-1].path in self._earlier.files:
                break
            working.pop()
        if not working:
            begun, request = await with_files(())
        if request.size > most:
            return
        for file in working:
            known = state.known.files.get(file.path)
            if known is not None and known.md5 != file.md5:
                await self._emit(FileLoaded(known_file(file, context.turn, known)))
        facts = await leave_out("", out, len(self._earlier.files), self._emit)
        self._draft = replace(self._draft, loaded=self._draft.loaded.plus(LoadedFiles(facts=facts)))
        await self._emit(begun)

    async def _working(
        self, bare: ComposedRequest, ranked: Sequence[tuple[KnownFile, int]]
    ) -> tuple[list[LoadedFile], list[str]]:
        """Returns files and the paths left out. Files of this turn fill up to `condense_at`, others to `reset_to`."""
        shares = (self.shares.reset_to, self.shares.condense_at, NEAR, FAR)
        room, most, near, far = (int(self.shares.window * share) for share in shares)
        room, most = room - bare.size, most - bare.size
        shown, out, files, costs = [], [], [], []
        firm = 0
        for entry, rank in ranked:
            if entry.path in bare.event.files or entry.freshness in ("deleted", "renamed"):
                continue
            if rank and sum(cost for cost in costs if cost <= room + near) > MATERIAL * room:
                break
            try:
                file = await load(self._context, entry.path, entry.loaded_by)
            except TuiAgentError:
                continue
            file = replace(file, ranges=within(entry.ranges, file.lines))
            text = read_files_result([file], FilesInPrompt())
            cost = (await self._context.model.count(self._state.model.name, [text], wait=True)).counts[0]
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

    async def _say_removed(self, what: str) -> None:
        await self._emit(
            NoticeGiven("info", f"The request is too long for the model and was sent without {what}")
        )


async def compact(context: TurnContext, emit: Emit) -> str:
    """Changes nothing if the summary fails or a hook blocks it."""
    if context.calls.hooks is not None and (why := await context.calls.hooks.compacting("manual")):
        await emit(NoticeGiven("warning", f"Nothing was summarised: {why}", in_chat=True))
        return ""
    contexts = await instruct(context, (), unheard)
    if not await condense(context, contexts, _shares(context, sys.maxsize), emit, all_of_them=True):
        raise ModelError("The model wrote no summary", "try again, or continue without one")
    return ""


def _shares(context: TurnContext, ceiling: int) -> TokenShares:
    settings = context.core.settings.context
    window = min(window_of(context.core.state), ceiling)
    return TokenShares(
        window, settings.reset_at, settings.reset_to, settings.condense_at, settings.keep_on_failure
    )


def _files_in(state: State) -> int:
    return sum(message.files for message in state.conversation.messages)


def _by_rank(state: State, shown: Collection[str]) -> list[tuple[KnownFile, int]]:
    """0: shown in this turn, 1: open or pending, 2: named in an open todo, `LAST`: by most recent use."""
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
