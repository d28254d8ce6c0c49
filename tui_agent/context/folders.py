"""Folders in the prompt: the workspace outline and requested listings."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

from msgspec import Struct

from tui_agent.context.blocks import cell, item, name
from tui_agent.files.sanitize import size_in_words
from tui_agent.workspace.index import Index

#: Approximate, as the outline's size need only be bounded.
BYTES_A_TOKEN = 4


def outline(index: Index, max_tokens: int) -> str:
    """Top-level files, and folders with file counts, shallow folders first.

    Limited to about `max_tokens`; a last line counts the omitted entries.
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
    """Entries of a folder as (name, type, size in bytes), or an error message.

    `total` counts all entries; only the first `MAX_ENTRIES` are included. `filter` is a name pattern or
    empty; `recursive` includes a few levels.
    """

    path: str
    entries: tuple[tuple[str, str, int], ...] = ()
    total: int = 0
    error: str = ""
    filter: str = ""
    recursive: bool = False


def listing_section(listings: Sequence[DirectoryListing]) -> str:
    """The `## DIRECTORY LISTING RESULTS` section, or ""."""
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
