"""Reading a file for the model: the newest version, through the gate, kept under its hash."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Iterable, Iterator, Sequence
from dataclasses import replace as replace_fields
from functools import partial

from msgspec.structs import replace

from tui_agent.context.known import MAX_BYTES, KnownFile, LoadedBy, table_row
from tui_agent.context.loaded import InView, LoadedFile, cost, read_files_result
from tui_agent.errors import FileError, LooksSecret, PathRefused, TuiAgentError
from tui_agent.files.gate import read_for_person
from tui_agent.files.judging import Judged, judge_file
from tui_agent.files.stamps import inode_of
from tui_agent.files.text import decode, encode, md5
from tui_agent.store import events as e
from tui_agent.store.state import State
from tui_agent.turn.desk import Desk, Gathered
from tui_agent.turn.secrets import decided
from tui_agent.workspace.languages import language

#: The share of the window that one turn's files may fill.
FILES_SHARE = 0.5
#: A text of more bytes a token than this does not occur; what is read to be counted is bounded by it.
MOST_BYTES_A_TOKEN = 16
#: Where nobody knows the model's window, in tokens.
DEFAULT_WINDOW = 32_000
NO_ROOM = "no room in the model's window"
#: How many of the files that were left out are named in a sentence.
NAMED = 20


async def load(desk: Desk, path: str, loaded_by: LoadedBy, action: str = "") -> LoadedFile:
    """The newest text of a file: unsaved edits of an open buffer, else the disk.

    Raises `PathRefused` for what may not be read (`Undecided` where the person may allow it), `FileError` for what
    cannot be.
    """
    buffer = desk.state().buffers.get(path)
    newer = buffer.text if buffer is not None and buffer.unsaved else None
    judged = await asyncio.to_thread(judge_file, desk.workspace.gate, path, MAX_BYTES, newer)
    text, hidden = judged.shown(desk.state().secrets)
    await asyncio.to_thread(desk.blobs.hold, judged.data)
    return LoadedFile(
        path=path,
        md5=md5(judged.data),
        text=text,
        size=len(judged.data),
        loaded_by=loaded_by,
        language=language(path),
        unsaved=newer is not None,
        action=action,
        masked=bool(hidden),
        inode=inode_of(desk.workspace.root / path),
    )


def known_file(file: LoadedFile, turn: int, before: KnownFile | None) -> KnownFile:
    """The registry's entry for a file that the model is about to see."""
    return KnownFile(
        path=file.path,
        md5=file.md5,
        seen_turn=turn,
        size=file.size,
        lines=file.lines,
        tokens=cost(file.size, file.lines),
        language=file.language,
        loaded_by=file.loaded_by,
        whole=not file.masked,
        masked=file.masked,
        inode=file.inode,
        modified_turn=before.modified_turn if before else 0,
    )


async def load_files(
    desk: Desk,
    gathered: Gathered,
    paths: Iterable[str],
    loaded_by: LoadedBy,
    action: str = "",
    *,
    smallest_first: bool = False,
    asking: bool = True,
) -> AsyncGenerator[e.Event, None]:
    """Read files for the next request while they fit; what does not fit or cannot be read is named.

    Without `asking` those that hold secrets are left out at once.
    """
    files: list[LoadedFile] = []
    out: list[str] = []
    most = files_room(desk) * MOST_BYTES_A_TOKEN
    paths = list(paths)
    nobody = desk if asking else replace_fields(desk, ask=None)
    for path in paths:
        if any(file.path == path for file in (*gathered.files, *gathered.bundled, *files)):
            continue
        if sum(file.size for file in files) > most:
            out.append(path)
            continue
        loaded: list[LoadedFile] = []
        try:
            attempt = partial(load, desk, path, loaded_by, action)
            async for event in decided(nobody, gathered, attempt, loaded):
                yield event
        except LooksSecret as error:
            yield e.NoticeGiven("warning", str(error))
            yield e.FilesLeftOut(action, (path,), str(error), "secret")
            fact = f"{path} is there and not shown to you: it is a secret, or holds one."
            gathered.facts += [fact] if fact not in gathered.facts else []
            continue
        except TuiAgentError as error:
            yield e.NoticeGiven("warning", str(error))
            yield e.FilesLeftOut(action, (path,), str(error), "unreadable")
        files += loaded
    fitting, rest = await that_fit(desk, gathered, files, smallest_first=smallest_first)
    for file in fitting:
        for event in see(desk, gathered, file):
            yield event
    for event in left_out(gathered, action, [*(file.path for file in rest), *out], of=len(paths)):
        yield event


async def that_fit(
    desk: Desk, gathered: Gathered, files: Sequence[LoadedFile], *, smallest_first: bool = False
) -> tuple[list[LoadedFile], list[LoadedFile]]:
    """Those that fit into what one request may take of files, in order, and those that do not.

    Nothing is counted where all of them fit even at one token a byte.
    """
    room = files_room(desk)
    held = (*gathered.files, *gathered.bundled)
    texts = await _in_requests(desk, (*held, *files))
    if sum(len(text.encode(errors="replace")) for text in texts) <= room:
        return list(files), []
    costs = await costs_of(desk, gathered, (*held, *files))
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


async def costs_of(desk: Desk, gathered: Gathered, files: Sequence[LoadedFile]) -> list[int]:
    """What each file adds to a request, in tokens: its text, path and hash, and its row in the table."""
    fresh = [file for file in files if (file.path, file.md5) not in gathered.costs]
    if fresh:
        texts = await _in_requests(desk, fresh)
        counted = await desk.model.count(desk.state().model.name, texts, wait=True)
        gathered.costs.update(
            {(file.path, file.md5): count for file, count in zip(fresh, counted.counts, strict=True)}
        )
    return [gathered.costs[file.path, file.md5] for file in files]


def files_room(desk: Desk) -> int:
    """How many tokens of files one request may hold, by our own count."""
    return int(window_of(desk.state()) * FILES_SHARE)


def window_of(state: State) -> int:
    """The model's window in tokens by our own count: a provider may count more than we do."""
    return round((state.model.window or DEFAULT_WINDOW) / state.usage.scale)


async def _in_requests(desk: Desk, files: Sequence[LoadedFile]) -> list[str]:
    """Each file as a request carries it, with its row in the table; in a thread, since files may be long."""
    view = InView(desk.state().conversation.files)

    def in_request(file: LoadedFile) -> str:
        return f"{table_row(known_file(file, 0, None), 0)}\n{read_files_result([file], view)}"

    return await asyncio.to_thread(lambda: [in_request(file) for file in files])


def left_out(
    gathered: Gathered, action: str, paths: Sequence[str], *, of: int, loaded: bool = False
) -> Iterator[e.Event]:
    """Name files that do not go with the request for want of room: on the screen, in JSON, and to the model.

    There were so many `of` them. `loaded` says that they were to go and had to make room: the registry then has
    what it had before.
    """
    if not paths:
        return
    named = ", ".join(paths[:NAMED]) + (f" and {len(paths) - NAMED} more" if len(paths) > NAMED else "")
    all_of_it = f"{of} file{'s' if of != 1 else ''}" + (f" of “{action}”" if action else "")
    what = f"{len(paths)} of the {all_of_it}" if len(paths) < of else all_of_it
    one = len(paths) == 1
    what += f" {'does' if one else 'do'} not fit into the request"
    before = tuple(known for path in paths if loaded and (known := gathered.before.get(path)))
    yield e.FilesLeftOut(action, tuple(paths), NO_ROOM, "room", loaded, before)
    yield e.NoticeGiven("warning", f"{what} and {'is' if one else 'are'} left out: {named}")
    gathered.facts.append(f"{what} and {'is' if one else 'are'} not shown: {named}. Ask for less at a time.")


def see(desk: Desk, gathered: Gathered, file: LoadedFile) -> list[e.Event]:
    """The file goes with the next request; where the registry had an older version, that it had is remembered."""
    before = desk.state().known.files.get(file.path)
    gathered.before.setdefault(file.path, before)
    (gathered.bundled if file.loaded_by == "bundle" else gathered.files).append(file)
    events: list[e.Event] = []
    now = time.time()
    if before is not None:
        if before.freshness in ("fresh", "edited") and file.md5 not in (before.md5, before.written):
            moved = e.FreshnessChanged(file.path, "buffer" if file.unsaved else "disk", at=now)
            events.append(moved)
            before = replace(before, freshness=moved.freshness)
        if before.freshness != "fresh":
            gathered.again[file.path] = before
    loaded = known_file(file, gathered.turn, before)
    action = "" if file.loaded_by == "bundle" else file.action
    return [*events, e.FileLoaded(loaded, action, now)]


def judge_now(desk: Desk, path: str) -> Judged | None:
    """What is secret in the newest text of a file; None where there is no text to look at. Blocking."""
    buffer = desk.state().buffers.get(path)
    newer = buffer.text if buffer is not None and buffer.unsaved else None
    try:
        return judge_file(desk.workspace.gate, path, MAX_BYTES, newer)
    except TuiAgentError:
        return None


async def text_on_disk(desk: Desk, path: str) -> tuple[str, str] | None:
    """The text and hash of a file as it is now on disk or, unsaved, in the editor; None where there is none."""
    buffer = desk.state().buffers.get(path)
    try:
        data = await asyncio.to_thread(read_for_person, desk.workspace.gate, path, MAX_BYTES)
    except PathRefused:
        raise
    except FileError:
        if desk.workspace.gate.place(path, "read").exists:
            raise
        return None  # the disk says so; the index hears of it a moment later
    if buffer is not None and buffer.unsaved:
        data = encode(decode(data), buffer.text)
    await asyncio.to_thread(desk.blobs.hold, data)
    return decode(data).text, md5(data)
