"""Files for the model: the newest version, through the gate, kept under its hash, as many as there is room for.

A secret in one is sent, masked or left out as the person says, for exactly those bytes.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import replace as with_fields
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from tui_agent.answers import line_ranges
from tui_agent.answers.plans import FileAction
from tui_agent.context import portions
from tui_agent.context.known import MAX_BYTES, KnownFile, LoadedBy, table_row
from tui_agent.context.loaded import InView, LoadedFile, cost, read_files_result
from tui_agent.errors import LooksSecret, TuiAgentError
from tui_agent.files.disclosure import SecretChoice, Undecided, judge_file
from tui_agent.files.systems import inode_of
from tui_agent.model.tokens import reply_room
from tui_agent.store import events as e
from tui_agent.store.state import State
from tui_agent.store.turn_events import OutReason
from tui_agent.tools.context import Emit, ToolContext
from tui_agent.workspace.languages import language

#: The share of the window that one turn's files may fill.
FILES_SHARE = 0.5
#: A text of more bytes a token than this does not occur; what is read to be counted is bounded by it.
MOST_BYTES_A_TOKEN = 16
#: Where nobody knows the model's window, in tokens.
DEFAULT_WINDOW = 32_000
NO_ROOM = "no room in the model's window"
#: A part of fewer tokens is of no use.
LEAST_PART = 200
#: What a token takes at the least where a part is measured first, and how often it is measured.
_BYTES_FIRST, _MEASURED = 3.0, 4
#: A part comes with an outline of so many lines at most, of a text of so many bytes at most.
_MOST_OUTLINE, _MOST_OUTLINED = 150, 400_000
#: How many of the files that were left out are named in a sentence.
NAMED = 20
#: What the person can choose for a file with a secret, beside leaving it out.
OFFERED = ("mask", "send")
#: How often a file that changes while the person is asked about it is asked about again.
MOST_QUESTIONS = 3


class LoadedFiles(Struct, frozen=True):
    """Files that go with the next request, and sentences about those that do not.

    `before` is how the registry had each of them until then, `again` the same of those that had moved since.
    """

    files: tuple[LoadedFile, ...] = ()
    facts: tuple[str, ...] = ()
    again: dict[str, KnownFile] = {}
    before: dict[str, KnownFile | None] = {}

    def plus(self, more: LoadedFiles) -> LoadedFiles:
        facts = tuple(fact for fact in more.facts if fact not in self.facts)
        return LoadedFiles(
            (*self.files, *more.files),
            (*self.facts, *facts),
            {**self.again, **more.again},
            {**more.before, **self.before},
        )

    @property
    def asked_for(self) -> tuple[LoadedFile, ...]:
        return tuple(file for file in self.files if file.loaded_by != "bundle")

    @property
    def bundled(self) -> tuple[LoadedFile, ...]:
        return tuple(file for file in self.files if file.loaded_by == "bundle")

    def with_part(self, part: LoadedFile) -> LoadedFiles:
        """With a part of a file in place of all of it."""
        return replace(self, files=tuple(part if file.path == part.path else file for file in self.files))

    def without(self, paths: Iterable[str]) -> LoadedFiles:
        gone = set(paths)
        return replace(self, files=tuple(file for file in self.files if file.path not in gone))


async def load(context: ToolContext, path: str, loaded_by: LoadedBy, action: str = "") -> LoadedFile:
    """The newest text of a file: unsaved edits of an open buffer, else the disk.

    Raises `PathRefused` for what may not be read (`Undecided` where the person may allow it), `FileError` for what
    cannot be.
    """
    buffer = context.state().buffers.get(path)
    newer = buffer.text if buffer is not None and buffer.unsaved else None
    judged = await asyncio.to_thread(judge_file, context.workspace.gate, path, MAX_BYTES, newer)
    decisions = context.state().secrets
    text, hidden = judged.shown(decisions)

    def without_values() -> str:
        """Values of other files may be in it too."""
        context.secrets.begin(decisions)
        return context.secrets.masked(text)

    clean = await asyncio.to_thread(without_values)

    def kept() -> LoadedFile:
        return LoadedFile(
            path=path,
            md5=context.blobs.hold(judged.data),
            text=clean,
            size=len(judged.data),
            loaded_by=loaded_by,
            language=language(path),
            unsaved=newer is not None,
            action=action,
            masked=bool(hidden) or clean != text,
            inode=inode_of(context.workspace.root / path),
        )

    return await asyncio.to_thread(kept)


def known_file(file: LoadedFile, turn: int, before: KnownFile | None) -> KnownFile:
    """The registry's entry for a file that the model is about to see."""
    same = before is not None and before.freshness == "fresh" and before.md5 == file.md5
    seen_whole = before is not None and same and before.whole
    shown = (*before.shown, *file.ranges) if before is not None and same else file.ranges
    return KnownFile(
        path=file.path,
        md5=file.md5,
        seen_turn=turn,
        size=file.size,
        lines=file.lines,
        tokens=cost(len(file.numbered), 0) if file.ranges else cost(file.size, file.lines),
        language=file.language,
        loaded_by=file.loaded_by,
        whole=not file.masked and (not file.ranges or seen_whole),
        ranges=() if seen_whole else file.ranges,
        shown=line_ranges.within(shown, file.lines) if file.ranges and not seen_whole else (),
        masked=file.masked,
        inode=file.inode,
        modified_turn=before.modified_turn if before else 0,
    )


async def with_decision(
    context: ToolContext, attempt: Callable[[], Awaitable[LoadedFile]], emit: Emit
) -> LoadedFile:
    """The file that `attempt` loads; where it meets a secret the person is asked, and it is tried again.

    Raises what `attempt` does: `LooksSecret` for a file that is left out, by the person or because nobody can be asked.
    """
    for _ in range(MOST_QUESTIONS):
        try:
            return await attempt()
        except Undecided as found:
            if context.ask is None:
                raise
            undecided = found
        await ask_about_secret(context, undecided, emit)
    return await attempt()


async def ask_about_secret(context: ToolContext, found: Undecided, emit: Emit) -> None:
    """Put the question into the plan and wait for the answer, which covers exactly those bytes."""
    assert context.ask is not None
    name = _question_name(context, found.path)
    await emit(e.ActionsAdded((FileAction(name, (found.path,), "is not sent without asking"),)))
    async with context.asking:
        await emit(e.QuestionAsked(name, OFFERED, f"{found.what}. What is the model to see of it?"))
        while (answer := await context.ask(name, OFFERED)).action != name:
            context.progress.pending.append(answer)
    choices: dict[str, SecretChoice] = {"mask": "mask", "send": "send"}
    await emit(e.SecretDecided(found.path, found.digest, choices.get(answer.path, "leave"), name))


def _question_name(context: ToolContext, path: str) -> str:
    """A name for the question that no action of the plan has."""
    taken = {slot.action.name for slot in context.state().plan.actions}
    name, number = f"Secret in {path}", 1
    while name in taken:
        number += 1
        name = f"Secret in {path} ({number})"
    return name


class FilesRead(Struct, frozen=True):
    """Files that were read, and what became of the others: events and sentences that are yet to be told."""

    files: tuple[LoadedFile, ...] = ()
    facts: tuple[str, ...] = ()
    events: tuple[e.Event, ...] = ()
    #: Paths that were not read, since more than there is room for were read already.
    out: tuple[str, ...] = ()
    asked_for: int = 0


async def read_files(
    context: ToolContext,
    paths: Iterable[str],
    loaded_by: LoadedBy,
    held: Sequence[LoadedFile],
    emit: Emit,
    *,
    action: str = "",
    asking: bool = True,
) -> FilesRead:
    """Read files that are not `held` already; what cannot be read is named.

    Without `asking` those that hold secrets are left out at once.
    """
    files: list[LoadedFile] = []
    facts: list[str] = []
    events: list[e.Event] = []
    out: list[str] = []
    most = files_room(context) * MOST_BYTES_A_TOKEN
    paths = list(paths)
    there = {file.path for file in held}
    asked = context if asking else with_fields(context, ask=None)
    for path in paths:
        if path in there:
            continue
        if why := context.refusal(path):
            events += [
                e.NoticeGiven("warning", f"{path} is left out: {why}"),
                e.FilesLeftOut(action, (path,), why, "denied"),
            ]
            facts.append(f"{path} is not shown to you: {why}.")
            continue
        if sum(file.size for file in files) > most:
            out.append(path)
            continue
        try:
            file = await with_decision(asked, partial(load, context, path, loaded_by, action), emit)
        except LooksSecret as error:
            events += _left_alone(action, path, error, "secret")
            facts.append(f"{path} is there and not shown to you: it is a secret, or holds one.")
        except TuiAgentError as error:
            events += _left_alone(action, path, error, "unreadable")
        else:
            there.add(path)
            files.append(file)
    return FilesRead(tuple(files), tuple(facts), tuple(events), tuple(out), len(paths))


def _left_alone(action: str, path: str, error: TuiAgentError, reason: OutReason) -> list[e.Event]:
    return [e.NoticeGiven("warning", str(error)), e.FilesLeftOut(action, (path,), str(error), reason)]


async def take(
    context: ToolContext,
    read: FilesRead,
    fitting: Sequence[LoadedFile],
    rest: Sequence[LoadedFile],
    emit: Emit,
    action: str = "",
) -> LoadedFiles:
    """Of what was read, the files that fit go with the next request; the `rest`, which do not, are named."""
    for event in read.events:
        await emit(event)
    loaded = LoadedFiles(facts=read.facts)
    for file in fitting:
        loaded = loaded.plus(await admit(context, file, emit))
    paths = [*(file.path for file in rest), *read.out]
    waits = action in batches_of(context.state())
    return loaded.plus(LoadedFiles(facts=await leave_out(action, paths, read.asked_for, emit, waits=waits)))


def batches_of(state: State) -> frozenset[str]:
    """The names of the plan's actions that are batches."""
    return frozenset(slot.action.name for slot in state.plan.actions if slot.action.all)


async def load_files(
    context: ToolContext,
    paths: Iterable[str],
    loaded_by: LoadedBy,
    held: Sequence[LoadedFile],
    emit: Emit,
    action: str = "",
    ranges: Sequence[line_ranges.Range] = (),
) -> LoadedFiles:
    """Read files for the next request while they fit beside those that it holds, or these lines of them; what does not
    fit whole is shown in part, and else named."""
    read = in_part(await read_files(context, paths, loaded_by, held, emit, action=action), ranges)
    fitting, rest = await that_fit(context, held, read.files)
    fitting, rest = await named_fit(context, held, fitting, rest, emit)
    return await take(context, read, fitting, rest, emit, action)


async def that_fit(
    context: ToolContext,
    held: Sequence[LoadedFile],
    files: Sequence[LoadedFile],
    *,
    smallest_first: bool = False,
) -> tuple[list[LoadedFile], list[LoadedFile]]:
    """Those that fit into what one request may take of files, in order, and those that do not.

    Nothing is counted where all of them fit even at one token a byte.
    """
    room = files_room(context)
    if sum(map(least_bytes, (*held, *files))) <= room:
        texts = await _in_requests(context, (*held, *files))
        if sum(len(text.encode(errors="replace")) for text in texts) <= room:
            return list(files), []
    costs = await costs_of(context, (*held, *files))
    left = room - sum(costs[: len(held)])
    ranked = list(zip(costs[len(held) :], files, strict=True))
    fitting, rest = [], []
    for tokens, file in sorted(ranked, key=lambda pair: pair[0]) if smallest_first else ranked:
        if tokens <= left:
            left -= tokens
            fitting.append(file)
        else:
            rest.append(file)
    return fitting, rest


def in_part(read: FilesRead, ranges: Sequence[line_ranges.Range]) -> FilesRead:
    """The files with only these lines of each, where there are such; all of it where there are none."""
    if not ranges:
        return read
    return replace(
        read, files=tuple(replace(file, ranges=line_ranges.within(ranges, file.lines)) for file in read.files)
    )


async def named_fit(
    context: ToolContext,
    held: Sequence[LoadedFile],
    fitting: Sequence[LoadedFile],
    rest: Sequence[LoadedFile],
    emit: Emit,
    most: int = 1_000,
) -> tuple[list[LoadedFile], list[LoadedFile]]:
    """Files that are wanted by name may have all the room that is free; of one that is larger a part is shown.

    At most so many are looked at, the others stay out.
    """
    fitting, out, rest = list(fitting), list(rest[most:]), rest[:most]
    if not rest:
        return fitting, out
    left = free_room(context) - sum(await costs_of(context, (*held, *fitting)))
    for file in rest:
        (tokens,) = await costs_of(context, [file])
        if tokens > left:
            part = await shortened(context, file, min(left, files_room(context)))
            if part is None:
                out.append(file)
                continue
            await emit(part_notice(part))
            file = part
            (tokens,) = await costs_of(context, [file])
        left -= tokens
        fitting.append(file)
    return fitting, out


def part_notice(part: LoadedFile) -> e.NoticeGiven:
    lines = line_ranges.in_words(part.ranges)
    return e.NoticeGiven("info", f"{part.path} is shown in part: lines {lines} of {part.lines:,}")


def free_room(context: ToolContext) -> int:
    """How many tokens of the window are left for files: older contents can give way, what was said stays."""
    state = context.state()
    taken = state.conversation.head_tokens
    taken += sum(message.tokens - message.files for message in state.conversation.messages)
    return window_of(state) - taken - cost(len(state.turn.request), 0)


async def shortened(context: ToolContext, file: LoadedFile, room: int) -> LoadedFile | None:
    """The file with as many lines as have room, in tokens, those that are wanted before others; None where that is too
    few to be of use."""
    if room < LEAST_PART:
        return None
    wanted = wanted_of(context, file)
    measured = await asyncio.to_thread(portions.Portions, file.text, wanted)
    listed = () if wanted.ranges else await asyncio.to_thread(_outline, file)
    best: LoadedFile | None = None
    size = room * _BYTES_FIRST
    for _ in range(_MEASURED):
        ranges = measured.fitting(int(size))
        if not ranges:
            break
        part = replace(file, ranges=ranges, outline=listed)
        (tokens,) = await costs_of(context, [part])
        if tokens <= room:
            best = part
            if tokens > 0.8 * room or ranges == ((1, file.lines),):
                break
            size *= min(2.0, 0.95 * room / tokens)
        elif best is not None:
            break
        else:
            listed = listed[: len(listed) // 2]
            size *= 0.9 * room / tokens
    return best


def wanted_of(context: ToolContext, file: LoadedFile) -> portions.Wanted:
    """What this turn wants of a file: lines by number, places that a search found, and what its words name."""
    state = context.state()
    request = state.turn.request
    slot = next((one for one in state.plan.actions if one.action.name == file.action), None)
    about = [slot.action.reason, slot.action.name] if slot else []
    todos = [f"{todo.text} {todo.details}" for todo in state.todos if not todo.done]
    name = file.path.rpartition("/")[2]
    ranges = file.ranges or (slot.action.lines if slot else ()) or line_ranges.ranges_in(request, name)
    hits = tuple(context.progress.hits.get(file.path, ()))
    return portions.Wanted(tuple(ranges), hits, " ".join([request, *about, *todos]))


def _outline(file: LoadedFile) -> tuple[str, ...]:
    """What the file defines, by line, where its language is known."""
    from tui_agent.workspace.symbols import has_symbols, symbols

    if file.masked or len(file.text) > _MOST_OUTLINED or not has_symbols(file.path):
        return ()
    found = [symbol for symbol in symbols(file.path, file.text) or () if symbol.depth < 2]
    return tuple(f"{symbol.row + 1}: {symbol.kind} {symbol.name}"[:120] for symbol in found[:_MOST_OUTLINE])


async def costs_of(context: ToolContext, files: Sequence[LoadedFile]) -> list[int]:
    """What each file adds to a request, in tokens: its text, path and hash, and its row in the table. That of a text
    which no window like the model's could hold is estimated."""
    most = window_of(context.state()) * MOST_BYTES_A_TOKEN
    for file in files:
        if least_bytes(file) > most:
            context.costs[file.path, file.view] = cost(len(file.text), file.lines)
    fresh = [file for file in files if (file.path, file.view) not in context.costs]
    if fresh:
        texts = await _in_requests(context, fresh)
        counted = await context.model.count(context.state().model.name, texts, wait=True)
        context.costs.update(
            {(file.path, file.view): count for file, count in zip(fresh, counted.counts, strict=True)}
        )
    return [context.costs[file.path, file.view] for file in files]


def least_bytes(file: LoadedFile) -> int:
    """As many bytes as its text takes in a request at the least; 0 where that is only a part."""
    return 0 if file.ranges or file.file_id else len(file.text)


def files_room(context: ToolContext) -> int:
    """How many tokens of files one request may hold, by our own count."""
    return int(window_of(context.state()) * FILES_SHARE)


def window_of(state: State) -> int:
    """The room for a request in tokens by our own count: a provider may count more than we do, and with a local server
    the reply has to fit into the same window."""
    window = state.model.window or DEFAULT_WINDOW
    if state.model.server:
        window -= reply_room(window)
    return round(window / state.usage.scale)


async def _in_requests(context: ToolContext, files: Sequence[LoadedFile]) -> list[str]:
    """Each file as a request carries it, with its row in the table; in a thread, since files may be long."""
    view = InView(context.state().conversation.files)

    def in_request(file: LoadedFile) -> str:
        return f"{table_row(known_file(file, 0, None), 0)}\n{read_files_result([file], view)}"

    return await asyncio.to_thread(lambda: [in_request(file) for file in files])


async def leave_out(
    action: str,
    paths: Sequence[str],
    of: int,
    emit: Emit,
    *,
    made_room: LoadedFiles | None = None,
    waits: bool = False,
) -> tuple[str, ...]:
    """Name files that do not go with the request for want of room: on the screen, in JSON, and to the model, whose
    sentence is returned.

    There were so many `of` them. `waits` says that they are of a batch, which is carried on. `made_room` are those that
    were to go and have to make room: the registry then has what it had before.
    """
    if not paths:
        return ()
    named = ", ".join(paths[:NAMED]) + (f" and {len(paths) - NAMED} more" if len(paths) > NAMED else "")
    all_of_it = f"{of} file{'s' if of != 1 else ''}" + (f" of “{action}”" if action else "")
    what = f"{len(paths)} of the {all_of_it}" if len(paths) < of else all_of_it
    one = len(paths) == 1
    what += f" {'does' if one else 'do'} not fit into the request"
    before = tuple(known for path in paths if made_room and (known := made_room.before.get(path)))
    await emit(e.FilesLeftOut(action, tuple(paths), NO_ROOM, "room", made_room is not None, before))
    then = "; “continue” goes on with the rest" if waits else ""
    await emit(e.NoticeGiven("warning", f"{what} and {'is' if one else 'are'} left out: {named}{then}"))
    if waits:
        then = "Do what is asked for with the files that are shown, and do not ask for the others: they come next."
        return (f"{what} and {'is' if one else 'are'} not shown yet: {named}. {then}",)
    return (f"{what} and {'is' if one else 'are'} not shown: {named}. Ask for less at a time.",)


async def admit(context: ToolContext, file: LoadedFile, emit: Emit) -> LoadedFiles:
    """The file goes with the next request; where the registry had an older version, that it had is remembered."""
    first = before = context.state().known.files.get(file.path)
    now = time.time()
    unmoved = before is not None and before.freshness in ("fresh", "edited", "undone")
    if before is not None and unmoved and file.md5 not in (before.md5, before.written):
        moved = e.FreshnessChanged(file.path, "buffer" if file.unsaved else "disk", at=now)
        await emit(moved)
        before = replace(before, freshness=moved.freshness)
    again = {file.path: before} if before is not None and before.freshness != "fresh" else {}
    action = "" if file.loaded_by == "bundle" else file.action
    known = await asyncio.to_thread(known_file, file, context.turn, before)
    await emit(e.FileLoaded(known, action, now))
    return LoadedFiles((file,), (), again, {file.path: first})
