"""Directory listings as the model reads them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct

from tui_agent.context.blocks import cell, item, name
from tui_agent.files.sizes import size_in_words

MAX_ENTRIES = 100
MAX_DEPTH = 3
MAX_REQUESTS = 10


class Listing(Struct, frozen=True):
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


def section(listings: Sequence[Listing]) -> str:
    """The `## DIRECTORY LISTING RESULTS` section; empty without any."""
    if not listings:
        return ""
    return "## DIRECTORY LISTING RESULTS\n" + "\n\n".join(_table(listing) for listing in listings)


def _table(listing: Listing) -> str:
    title = f"### {name(listing.path or '.')}" + (f" (only {name(listing.filter)})" if listing.filter else "")
    if listing.error:
        return f"{title}\n{item(listing.error)}"
    rows = "\n".join(_rows(listing.entries))
    shown = len(listing.entries)
    count = f"{listing.total} entries" + (f", the first {shown} shown" if shown < listing.total else "")
    return f"{title}\n| Name | Type | Size |\n| --- | --- | --- |\n{rows}\n{count}"


def _rows(entries: Iterable[tuple[str, str, int]]) -> Iterable[str]:
    for entry, kind, size in entries:
        yield f"| {cell(entry)} | {kind} | {size_in_words(size) if kind == 'file' else ''} |"
