"""Loads files for the model: the newest permitted version, stored by hash, within the available room.

The user decides for a file's exact bytes whether secrets in it are sent, masked or withheld.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import replace as with_fields
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from tui_agent.answers import plans
from tui_agent.answers.plans import FileAction
from tui_agent.context import file_contents
from tui_agent.context.file_contents import FilesInPrompt, LoadedFile, cost, read_files_result
from tui_agent.context.known_files import MAX_BYTES, KnownFile, LoadedBy, table_row
from tui_agent.errors import LooksSecret, TuiAgentError
from tui_agent.files.gate import SecretChoice, UndecidedSecret, find_secrets_in_file
from tui_agent.files.operating_system import inode_of
from tui_agent.model.client import reply_room
from tui_agent.store import events as e
from tui_agent.store.state import State
from tui_agent.store.turn_events import OutReason
from tui_agent.tools.tool import Emit, LoadedFiles, ToolContext
from tui_agent.workspace.syntax_trees import has_symbols, language, symbols

#: Share of the window for one turn's files.
FILES_SHARE = 0.5
#: Upper bound of bytes per token; limits the text read for counting.
MOST_BYTES_A_TOKEN = 16
#: Assumed tokens of an unknown window.
DEFAULT_WINDOW = 32_000
NO_ROOM = "no room in the model's window"
LEAST_PART = 200
#: Initial estimate of bytes per token, and number of measurements, for an excerpt.
_BYTES_FIRST, _MEASURED = 3.0, 4
_MOST_OUTLINE, _MOST_OUTLINED = 150, 400_000
NAMED = 20
OFFERED = ("mask", "send")
#: A file can change while the user is asked.
MOST_QUESTIONS = 3


async def load(context: ToolContext, path: str, loaded_by: LoadedBy, action: str = "") -> LoadedFile:
    """Reads the unsaved buffer, or the disk. Raises `PathRefused` and `FileError`."""
    newer = context.unsaved_text(path)
    judged = await asyncio.to_thread(
        find_secrets_in_file, context.core.workspace.gate, path, MAX_BYTES, newer
    )
    decisions = context.core.state.secrets
    text, hidden = judged.shown(decisions)

    def loaded() -> LoadedFile:
        context.secrets.begin(decisions)
        clean = context.secrets.masked(text)
        return LoadedFile(
            path=path,
            md5=context.core.blobs.hold(judged.data),
            text=clean,
            size=len(judged.data),
            loaded_by=loaded_by,
            language=language(path),
            unsaved=newer is not None,
            action=action,
            masked=bool(hidden) or clean != text,
            inode=inode_of(context.core.workspace.root / path),
        )

    return await asyncio.to_thread(loaded)


def known_file(file: LoadedFile, turn: int, before: KnownFile | None) -> KnownFile:
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
        shown=plans.within(shown, file.lines) if file.ranges and not seen_whole else (),
        masked=file.masked,
        inode=file.inode,
        modified_turn=before.modified_turn if before else 0,
    )


async def with_decision(
    context: ToolContext, attempt: Callable[[], Awaitable[LoadedFile]], emit: Emit
) -> LoadedFile:
    """Retries after the user's decision about a secret. Raises the errors of `attempt`, and `LooksSecret`
    for a withheld file.
    """
    for _ in range(MOST_QUESTIONS):
        try:
            return await attempt()
        except UndecidedSecret as found:
            if context.ask is None:
                raise
            undecided = found
        await ask_about_secret(context, undecided, emit)
    return await attempt()


async def ask_about_secret(context: ToolContext, found: UndecidedSecret, emit: Emit) -> None:
    """The answer applies to the exact bytes."""
    taken = {slot.action.name for slot in context.core.state.plan.actions}
    name, number = f"Secret in {found.path}", 1
    while name in taken:
        number += 1
        name = f"Secret in {found.path} ({number})"
    await emit(e.ActionsAdded((FileAction(name, (found.path,), "is sent only with your consent"),)))
    async with context.progress.asking:
        await emit(e.QuestionAsked(name, OFFERED, f"{found.what}. What may the model see?"))
        answer = await context.answer(name, OFFERED)
    choices: dict[str, SecretChoice] = {"mask": "mask", "send": "send"}
    await emit(e.SecretDecided(found.path, found.digest, choices.get(answer.path, "leave"), name))


class FilesRead(Struct, frozen=True):
    """With pending events and sentences about other files."""

    files: tuple[LoadedFile, ...] = ()
    facts: tuple[str, ...] = ()
    events: tuple[e.Event, ...] = ()
    #: Skipped: the files before them fill the room.
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
    """Skips files in `held`. Without `asking`, omits files with undecided secrets."""
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


async def add_fitting_files(
    context: ToolContext,
    read: FilesRead,
    fitting: Sequence[LoadedFile],
    rest: Sequence[LoadedFile],
    emit: Emit,
    action: str = "",
) -> LoadedFiles:
    for event in read.events:
        await emit(event)
    loaded = LoadedFiles(facts=read.facts)
    for file in fitting:
        loaded = loaded.plus(await admit(context, file, emit))
    paths = [*(file.path for file in rest), *read.out]
    waits = action in batches_of(context.core.state)
    return loaded.plus(LoadedFiles(facts=await leave_out(action, paths, read.asked_for, emit, waits=waits)))


def batches_of(state: State) -> frozenset[str]:
    return frozenset(slot.action.name for slot in state.plan.actions if slot.action.all)


async def load_files(
    context: ToolContext,
    paths: Iterable[str],
    loaded_by: LoadedBy,
    held: Sequence[LoadedFile],
    emit: Emit,
    action: str = "",
    ranges: Sequence[plans.Range] = (),
) -> LoadedFiles:
    read = in_part(await read_files(context, paths, loaded_by, held, emit, action=action), ranges)
    fitting, rest = await that_fit(context, held, read.files)
    fitting, rest = await named_fit(context, held, fitting, rest, emit)
    return await add_fitting_files(context, read, fitting, rest, emit, action)


async def that_fit(
    context: ToolContext,
    held: Sequence[LoadedFile],
    files: Sequence[LoadedFile],
    *,
    smallest_first: bool = False,
) -> tuple[list[LoadedFile], list[LoadedFile]]:
    """Splits `files` into those that fit into one request's share, and the rest. Skips the count if all fit
    at one token per byte.
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


def in_part(read: FilesRead, ranges: Sequence[plans.Range]) -> FilesRead:
    """Keeps the whole file if `ranges` has none of its lines."""
    if not ranges:
        return read
    return replace(
        read, files=tuple(replace(file, ranges=plans.within(ranges, file.lines)) for file in read.files)
    )


async def named_fit(
    context: ToolContext,
    held: Sequence[LoadedFile],
    fitting: Sequence[LoadedFile],
    rest: Sequence[LoadedFile],
    emit: Emit,
    most: int = 1_000,
) -> tuple[list[LoadedFile], list[LoadedFile]]:
    """Gives files requested by name all free room; cuts a larger file to an excerpt."""
    fitting, out, rest = list(fitting), list(rest[most:]), rest[:most]
    if not rest:
        return fitting, out
    state = context.core.state
    taken = state.conversation.head_tokens + cost(len(state.turn.request), 0)
    taken += sum(message.tokens - message.files for message in state.conversation.messages)
    left = window_of(state) - taken - sum(await costs_of(context, (*held, *fitting)))
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
    lines = plans.in_words(part.ranges)
    return e.NoticeGiven("info", f"{part.path}: the model sees lines {lines} of {part.lines:,}")


async def shortened(context: ToolContext, file: LoadedFile, room: int) -> LoadedFile | None:
    """Prefers `lines`; None if it would be too short."""
    if room < LEAST_PART:
        return None
    state, name = context.core.state, file.path.rpartition("/")[2]
    request = state.turn.request
    slot = next((one for one in state.plan.actions if one.action.name == file.action), None)
    about = [slot.action.reason, slot.action.name] if slot else []
    todos = [f"{todo.text} {todo.details}" for todo in state.todos if not todo.done]
    lines = file.ranges or (slot.action.lines if slot else ()) or plans.ranges_in(request, name)
    hits = tuple(context.progress.hits.get(file.path, ()))
    wanted = file_contents.PortionRequest(tuple(lines), hits, " ".join([request, *about, *todos]))
    measured = await asyncio.to_thread(file_contents.Portions, file.text, wanted)
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


def _outline(file: LoadedFile) -> tuple[str, ...]:
    if file.masked or len(file.text) > _MOST_OUTLINED or not has_symbols(file.path):
        return ()
    found = [symbol for symbol in symbols(file.path, file.text) or () if symbol.depth < 2]
    return tuple(f"{symbol.row + 1}: {symbol.kind} {symbol.name}"[:120] for symbol in found[:_MOST_OUTLINE])


async def costs_of(context: ToolContext, files: Sequence[LoadedFile]) -> list[int]:
    """Estimates texts far larger than the window."""
    most = window_of(context.core.state) * MOST_BYTES_A_TOKEN
    for file in files:
        if least_bytes(file) > most:
            context.progress.costs[file.path, file.view] = cost(len(file.text), file.lines)
    fresh = [file for file in files if (file.path, file.view) not in context.progress.costs]
    if fresh:
        texts = await _in_requests(context, fresh)
        counted = await context.model.count(context.core.state.model.name, texts, wait=True)
        context.progress.costs.update(
            {(file.path, file.view): count for file, count in zip(fresh, counted.counts, strict=True)}
        )
    return [context.progress.costs[file.path, file.view] for file in files]


def least_bytes(file: LoadedFile) -> int:
    return 0 if file.ranges or file.file_id else len(file.text)


def files_room(context: ToolContext) -> int:
    return int(window_of(context.core.state) * FILES_SHARE)


def window_of(state: State) -> int:
    """Corrected by the provider's scale and, for a local server, by the reply's share."""
    window = state.model.window or DEFAULT_WINDOW
    if state.model.server:
        window -= reply_room(window)
    return round(window / state.usage.scale)


async def _in_requests(context: ToolContext, files: Sequence[LoadedFile]) -> list[str]:
    view = FilesInPrompt(context.core.state.conversation.files)

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
    """Returns sentences for the model. `waits`: the batch continues later. `made_room` are withdrawn files."""
    if not paths:
        return ()
    named = ", ".join(paths[:NAMED]) + (f" and {len(paths) - NAMED} more" if len(paths) > NAMED else "")
    all_of_it = f"{of} file{'s' if of != 1 else ''}" + (f" of “{action}”" if action else "")
    what = f"{len(paths)} of the {all_of_it}" if len(paths) < of else all_of_it
    one = len(paths) == 1
    what += f" {'does' if one else 'do'} not fit into the request"
    before = tuple(known for path in paths if made_room and (known := made_room.before.get(path)))
    await emit(e.FilesLeftOut(action, tuple(paths), NO_ROOM, "room", made_room is not None, before))
    then = "; “continue” sends the rest" if waits else ""
    await emit(e.NoticeGiven("warning", f"{what} and {'is' if one else 'are'} left out: {named}{then}"))
    if waits:
        then = "Work on the files that are shown now. Do not request the others: they follow."
        return (f"{what} and {'is' if one else 'are'} not shown yet: {named}. {then}",)
    return (f"{what} and {'is' if one else 'are'} not shown: {named}. Ask for less at a time.",)


async def admit(context: ToolContext, file: LoadedFile, emit: Emit) -> LoadedFiles:
    first = before = context.core.state.known.files.get(file.path)
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
