"""Folders as the model sees them: the outline of the workspace, and the listings that it asked for."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

from msgspec import Struct

from tui_agent.context.blocks import cell, item, name
from tui_agent.files.visible import size_in_words
from tui_agent.workspace.index import Index

#: A path costs about this many bytes a token; the outline need not be exact, only bounded.
BYTES_A_TOKEN = 4


def outline(index: Index, max_tokens: int) -> str:
    """Top-level files and every folder with the number of files below it, the shallow ones first.

    At most about `max_tokens` long; a last line says how many folders did not fit.
    """
    there = index.overview()
    lines = chain(map(name, there.files), (f"{name(path)}/ ({count})" for path, count in there.folders))
    kept: list[str] = []
    room = max_tokens * BYTES_A_TOKEN
    for line in lines:
        room -= len(line.encode(errors="replace")) + 1
        if room < 0:
            kept.append(f"… and {len(there.files) + len(there.folders) - len(kept)} more")
            break
        kept.append(line)
    return "\n".join(kept)


MAX_ENTRIES = 100
MAX_DEPTH = 3
MAX_REQUESTS = 10


class DirectoryListing(Struct, frozen=True):
    """A folder's entries as (name, type, size in bytes), or the sentence why there are none.

    `total` is how many there are in all; only the first `MAX_ENTRIES` are held. `filter` is the pattern that their
    names fit, empty for all of them; a `recursive` listing goes down some levels.
    """

    path: str
    entries: tuple[tuple[str, str, int], ...] = ()
    total: int = 0
    error: str = ""
    filter: str = ""
    recursive: bool = False


def listing_section(listings: Sequence[DirectoryListing]) -> str:
    """The `## DIRECTORY LISTING RESULTS` section; empty without any."""
    if not listings:
        return ""
    return "## DIRECTORY LISTING RESULTS\n" + "\n\n".join(_table(listing) for listing in listings)


def _table(listing: DirectoryListing) -> str:
    title = f"### {name(listing.path or '.')}" + (f" (only {name(listing.filter)})" if listing.filter else "")
    if listing.error:
        return f"{title}\n{item(listing.error)}"
    rows = "\n".join(
        f"| {cell(entry)} | {kind} | {size_in_words(size) if kind == 'file' else ''} |"
        for entry, kind, size in listing.entries
    )
    shown = len(listing.entries)
    count = ("1 entry" if listing.total == 1 else f"{listing.total} entries") + (
        f", the first {shown} shown" if shown < listing.total else ""
    )
    return f"{title}\n| Name | Type | Size |\n| --- | --- | --- |\n{rows}\n{count}"
