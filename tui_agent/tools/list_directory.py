"""Tool that lists folders."""

from __future__ import annotations

import asyncio
import fnmatch
import os
import stat
from collections.abc import Sequence
from contextlib import suppress

from msgspec.structs import replace

from tui_agent.answers.plans import DirectoryAction
from tui_agent.context.prompt import MAX_DEPTH, MAX_ENTRIES, MAX_REQUESTS, DirectoryListing
from tui_agent.errors import TuiAgentError
from tui_agent.files.gate import Gate
from tui_agent.store import events as e
from tui_agent.tools.tool import Emit, Invocation, Tool, ToolContext, ToolResult, counted
from tui_agent.workspace.index import Index
from tui_agent.workspace.listing import is_text


async def run(call: Invocation, context: ToolContext, emit: Emit) -> ToolResult:
    listings, left_out = await list_directories(context, call.entries, emit)
    return ToolResult(
        left_out,
        listings=listings,
        ok=not left_out and not any(listing.error for listing in listings),
        amount=counted(sum(len(listing.entries) for listing in listings), "entry", "entries"),
        details="\n".join(
            listing.error or f"{listing.path}: {', '.join(name for name, _, _ in listing.entries)}"
            for listing in listings
        ),
    )


async def list_directories(
    context: ToolContext, requests: Sequence[DirectoryAction], emit: Emit
) -> tuple[tuple[DirectoryListing, ...], str]:
    """Returns a sentence about folders over the limit, because the model would repeat the request."""
    requests = list(dict.fromkeys(requests))
    room = max(0, MAX_REQUESTS - context.progress.listed)
    context.progress.listed += min(room, len(requests))
    workspace = context.core.workspace
    gate, index = workspace.gate, workspace.index
    listings: list[DirectoryListing] = []
    for request in requests[:room]:
        found = await asyncio.to_thread(_list, gate, index, request)
        folder = "" if found.path == "." else f"{found.path}/"
        if not (found.error or found.total) and folder and await workspace.ignored([f"{folder}any file"]):
            why = f"{found.path} is ignored, by git or an ignore file: it is not listed"
            found = replace(found, error=why)
        links = [] if found.error else await asyncio.to_thread(_folder_links, gate, index, found)
        if links:
            ignored = await workspace.ignored([folder + link for link in links])
            links = [link for link in links if folder + link not in ignored]
            found = await asyncio.to_thread(_list, gate, index, request, links)
        listings.append(found)
        await emit(
            e.DirectoryListed(
                found.path, found.entries, found.error, found.filter, found.recursive, found.total
            )
        )
    if len(requests) <= room:
        return tuple(listings), ""
    left = ", ".join(request.path for request in requests[room:][:MAX_REQUESTS])
    sentence = f"At most {MAX_REQUESTS} folders are listed in one turn; not listed: {left}"
    await emit(e.NoticeGiven("warning", sentence))
    return tuple(listings), f"{sentence}."


def _list(gate: Gate, index: Index, request: DirectoryAction, links: Sequence[str] = ()) -> DirectoryListing:
    folder = request.path.strip().removeprefix("./").strip("/")
    about = DirectoryListing(request.path, filter=request.filter, recursive=request.recursive)
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
    depth, begin = MAX_DEPTH if request.recursive else 1, len(folder) + bool(folder)
    found = set(links)
    for parts in (path[begin:].split("/") for path in paths):
        found |= {"/".join(parts[:level]) + "/" for level in range(1, min(len(parts), depth + 1))}
        if len(parts) <= depth:
            found.add("/".join(parts))
    names = sorted(found)
    if request.filter:
        names = [
            name for name in names if fnmatch.fnmatchcase(name.rstrip("/").rpartition("/")[2], request.filter)
        ]
    entries: list[tuple[str, str, int]] = []
    for name in names[:MAX_ENTRIES]:
        kind, size = "folder" if name.endswith("/") else "file", 0
        if kind == "file":
            with suppress(OSError):
                status = (root / name).lstat()
                kind, size = "link" if stat.S_ISLNK(status.st_mode) else "file", status.st_size
        entries.append((name, kind, size))
    return replace(about, path=folder or ".", entries=tuple(entries), total=len(names))


def _folder_links(gate: Gate, index: Index, found: DirectoryListing) -> list[str]:
    top = gate.root if found.path == "." else gate.root / found.path
    inner = [name for name, kind, _ in found.entries if kind == "folder" and name.count("/") < MAX_DEPTH]
    links: list[str] = []
    for folder in ("", *(inner if found.recursive else ())):
        try:
            with os.scandir(top / folder) as entries:
                links += [folder + entry.name for entry in entries if entry.is_symlink() and entry.is_dir()]
        except OSError:
            continue
    return [link for link in sorted(links) if is_text(link)][:MAX_ENTRIES]


TOOL = Tool(
    name="list_directory",
    key="directoryRequests",
    parameter="requests",
    words="Folders whose listing you need.",
    entry={
        "type": "object",
        "properties": {
            "path": {"type": "string"},
            "recursive": {"type": "boolean"},
            "filter": {"type": "string", "description": "A pattern for names, such as *.ts."},
        },
        "required": ["path"],
    },
    example={"path": "src", "recursive": False, "filter": "*.ts"},
    section=(
        "# Folders\nThe outline shows the workspace in short. To see more ask for a listing: inside the workspace, at "
        "most 3 levels and 100 entries each, 10 a turn. A listing is shown once."
    ),
    place=40,
    run=run,
    seconds=60.0,
    targets=lambda call: tuple(request.path for request in call.entries),
)
