"""Looking around for the model: folders listed (C8) and text searched, inside the workspace only."""

from __future__ import annotations

import asyncio
import fnmatch
import re
from collections.abc import AsyncGenerator, Iterator, Sequence
from pathlib import Path

from tui_agent.answers.plans import DirectoryAction
from tui_agent.answers.values import SearchRequest
from tui_agent.context.blocks import inert, item, name
from tui_agent.context.listing import MAX_DEPTH, MAX_ENTRIES, MAX_REQUESTS, Listing
from tui_agent.errors import TuiAgentError
from tui_agent.files.gate import Gate, is_secret, read
from tui_agent.files.judging import Decisions, judge
from tui_agent.files.key_formats import masked
from tui_agent.files.text import TextFile, decode
from tui_agent.store import events as e
from tui_agent.turn.desk import Desk, Gathered
from tui_agent.workspace.index import Index

MAX_PLACES = 50
MAX_SEARCHED_BYTES = 1024 * 1024
MAX_LINE = 200


async def list_directories(
    desk: Desk, gathered: Gathered, requests: Sequence[DirectoryAction]
) -> AsyncGenerator[e.Event, None]:
    """List each folder once, at most `MAX_REQUESTS` a turn; what is refused is a listing with an error.

    What is over the limit is told to the model as well, which else would ask for it again and again.
    """
    for number, request in enumerate(dict.fromkeys(requests)):
        if gathered.listed >= MAX_REQUESTS:
            left = ", ".join(each.path for each in list(dict.fromkeys(requests))[number:][:MAX_REQUESTS])
            sentence = f"At most {MAX_REQUESTS} folders are listed in one turn; not listed: {left}"
            yield e.NoticeGiven("warning", sentence)
            gathered.facts.append(f"{sentence}.")
            return
        found = await asyncio.to_thread(_list, desk.workspace.gate, desk.workspace.index, request)
        gathered.listings.append(found)
        gathered.listed += 1
        yield e.DirectoryListed(found.path, found.entries, found.error)


def _list(gate: Gate, index: Index, request: DirectoryAction) -> Listing:
    folder = request.path.strip().removeprefix("./").strip("/")
    if folder in ("", "."):
        root, folder = gate.root, ""
    else:
        try:
            root = gate.place(folder, "list").absolute
        except TuiAgentError as error:
            return Listing(request.path, error=str(error))
    if not root.is_dir():
        return Listing(request.path, error=f"there is no folder {request.path}")
    paths = index.below(folder)
    names = sorted(set(_below(paths, folder, MAX_DEPTH if request.recursive else 1)))
    if request.filter:
        names = [
            name for name in names if fnmatch.fnmatchcase(name.rstrip("/").rpartition("/")[2], request.filter)
        ]
    entries = tuple(_entry(root, name) for name in names[:MAX_ENTRIES])
    return Listing(folder or ".", entries, total=len(names))


def _below(paths: Sequence[str], folder: str, depth: int) -> Iterator[str]:
    """Names below a folder that the index knows, folders with a slash, at most `depth` levels down."""
    start = f"{folder}/" if folder else ""
    for path in paths:
        parts = path[len(start) :].split("/")
        for level in range(1, min(len(parts), depth + 1)):
            yield "/".join(parts[:level]) + "/"
        if len(parts) <= depth:
            yield "/".join(parts)


def _entry(root: Path, name: str) -> tuple[str, str, int]:
    if name.endswith("/"):
        return name, "folder", 0
    try:
        return name, "file", (root / name).lstat().st_size
    except OSError:
        return name, "file", 0


async def search_text(desk: Desk, request: SearchRequest) -> str:
    """The places where a text stands, as a section of the next message."""
    title = f"## SEARCH RESULTS\n“{name(request.pattern)}”" + (
        f" in {name(request.glob)}" if request.glob else ""
    )
    try:
        expression = re.compile(request.pattern if request.regex else re.escape(request.pattern))
    except re.error as error:
        return f"{title}\nnot an expression that can be searched: {item(str(error))}"
    places = await asyncio.to_thread(
        _search,
        desk.workspace.gate,
        desk.workspace.index.paths,
        expression,
        request.glob,
        desk.state().secrets,
    )
    return f"{title}\n" + ("\n".join(places) or "found nowhere")


def _search(
    gate: Gate, paths: Sequence[str], expression: re.Pattern[str], glob: str, decisions: Decisions
) -> list[str]:
    places: list[str] = []
    for path in paths:
        if is_secret(path) or (glob and not fnmatch.fnmatchcase(path, glob)):
            continue
        try:
            data = read(gate, path, MAX_SEARCHED_BYTES)
            file = decode(data)
        except TuiAgentError:
            continue  # what cannot be read has no places; a search names only what it found
        if not any(_fitting(file.text, expression)):
            continue
        for number, line in _fitting(_searchable(path, data, file, decisions), expression):
            places.append(f"{name(path)}:{number}: {inert(line.strip()[:MAX_LINE])}")
            if len(places) >= MAX_PLACES:
                return [*places, f"… the first {MAX_PLACES} places"]
    return places


def _fitting(text: str, expression: re.Pattern[str]) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(text.splitlines(), 1):
        if expression.search(line[: MAX_LINE * 10]):
            yield number, line


def _searchable(path: str, data: bytes, file: TextFile, decisions: Decisions) -> str:
    """The text as the model may know it: to be told where a secret matches would be to be told the secret."""
    judged = judge(path, data, file, named=False)
    match judged.choice(decisions):
        case "send":
            return file.text
        case "leave":
            return ""
    return masked(file.text, judged.hits)
