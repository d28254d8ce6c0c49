"""Looking around for the model: folders listed and text searched, inside the workspace only."""

from __future__ import annotations

import asyncio
import fnmatch
import os
import re
import stat
from collections.abc import AsyncGenerator, Iterator, Sequence
from pathlib import Path

from msgspec.structs import replace

from tui_agent.answers.plans import DirectoryAction
from tui_agent.answers.values import SearchRequest
from tui_agent.context.blocks import inert, item, name
from tui_agent.context.folders import MAX_DEPTH, MAX_ENTRIES, MAX_REQUESTS, Listing
from tui_agent.errors import TuiAgentError
from tui_agent.files.gate import Gate, is_secret, read
from tui_agent.files.judging import Decisions, judge
from tui_agent.files.key_formats import masked
from tui_agent.files.names import is_text
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
        found = await _listing(desk, request)
        gathered.listings.append(found)
        gathered.listed += 1
        yield e.DirectoryListed(
            found.path, found.entries, found.error, found.filter, found.recursive, found.total
        )


async def _listing(desk: Desk, request: DirectoryAction) -> Listing:
    """The listing; of a folder that the index leaves out it says so, and names in it that only links have."""
    gate, index = desk.workspace.gate, desk.workspace.index
    found = await asyncio.to_thread(_list, gate, index, request)
    if found.error:
        return found
    folder = "" if found.path == "." else f"{found.path}/"
    if not found.total and folder and await desk.workspace.ignored([f"{folder}any file"]):
        return replace(found, error=f"{found.path} is ignored, by git or an ignore file: it is not listed")
    links = await asyncio.to_thread(_folder_links, gate, index, found)
    if not links:
        return found
    ignored = await desk.workspace.ignored([folder + link for link in links])
    return await asyncio.to_thread(
        _list, gate, index, request, [link for link in links if folder + link not in ignored]
    )


def _list(gate: Gate, index: Index, request: DirectoryAction, links: Sequence[str] = ()) -> Listing:
    """What the index has in a folder, and these `links` to folders, which it does not have."""
    folder = request.path.strip().removeprefix("./").strip("/")
    about = Listing(request.path, filter=request.filter, recursive=request.recursive)
    if folder in ("", "."):
        root, folder = gate.root, ""
    else:
        try:
            root = gate.place(folder, "list").absolute
        except TuiAgentError as error:
            return replace(about, error=str(error))
    if not root.is_dir():
        return replace(about, error=f"there is no folder {request.path}")
    paths = index.below(folder)
    names = sorted({*_below(paths, folder, MAX_DEPTH if request.recursive else 1), *links})
    if request.filter:
        names = [
            name for name in names if fnmatch.fnmatchcase(name.rstrip("/").rpartition("/")[2], request.filter)
        ]
    entries = tuple(_entry(root, name) for name in names[:MAX_ENTRIES])
    return replace(about, path=folder or ".", entries=entries, total=len(names))


def _folder_links(gate: Gate, index: Index, found: Listing) -> list[str]:
    """Links to folders in a folder that is listed and, where it is recursive, in those below; at most so many."""
    top = gate.root if found.path == "." else gate.root / found.path
    inner = [name for name, kind, _ in found.entries if kind == "folder" and name.count("/") < MAX_DEPTH]
    links: list[str] = []
    for folder in ("", *(inner if found.recursive else ())):
        try:
            with os.scandir(top / folder) as entries:
                links += [folder + entry.name for entry in entries if entry.is_symlink() and entry.is_dir()]
        except OSError:
            continue  # it went just now
    return [link for link in sorted(links) if is_text(link)][:MAX_ENTRIES]


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
        status = (root / name).lstat()
    except OSError:
        return name, "file", 0
    return name, "link" if stat.S_ISLNK(status.st_mode) else "file", status.st_size


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
