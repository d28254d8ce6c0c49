"""The conversation as sent: a stable system prompt, with all news and the folders appended in the newest message.

Output is deterministic: no clock and no generated ids.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any, Literal

from msgspec import Struct

from tui_agent.context import editor, file_contents, known_files
from tui_agent.context.blocks import cell, inert, item, name, quoted
from tui_agent.files.text import size_in_words
from tui_agent.model.parts import Message
from tui_agent.workspace.index import Index

#: Approximate: the outline's size need only be bounded.
BYTES_A_TOKEN = 4


def outline(index: Index, max_tokens: int) -> str:
    """Shallow folders first."""
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


class ContextFile(Struct, frozen=True):
    """`path` is absolute for the user's own; `folder` is its scope, empty for all."""

    path: str
    folder: str
    why: str
    text: str
    md5: str
    kind: Literal["instructions", "base"] = "instructions"


def changed_files(
    files: Sequence[ContextFile], told: Mapping[str, str]
) -> tuple[list[ContextFile], list[str]]:
    """`told` maps paths to the last hash sent, empty for a removed file."""
    now = {file.path for file in files}
    new = [file for file in files if told.get(file.path) != file.md5]
    return new, [path for path, md5 in told.items() if md5 and path not in now]


def instruction_block(file: ContextFile) -> str:
    return f"<context filename={quoted(file.path)}>\n{inert(file.text.rstrip())}\n</context>"


def instructions_section(new: Sequence[ContextFile], gone: Sequence[str]) -> str:
    parts = []
    if new:
        parts.append("Instruction files that are new or have changed; these texts are the ones in force:")
        parts += [instruction_block(file) for file in new]
    if gone:
        parts.append(f"No longer in force: {', '.join(map(name, gone))}")
    return "\n".join(parts)


MAX_ENTRIES = 100
MAX_DEPTH = 3
MAX_REQUESTS = 10


class DirectoryListing(Struct, frozen=True):
    """Entries are (name, type, size in bytes). `total` counts all; only the first `MAX_ENTRIES` are
    included.
    """

    path: str
    entries: tuple[tuple[str, str, int], ...] = ()
    total: int = 0
    error: str = ""
    filter: str = ""
    recursive: bool = False


def listing_section(listings: Sequence[DirectoryListing]) -> str:
    if not listings:
        return ""
    tables = []
    for listing in listings:
        only = f" (only {name(listing.filter)})" if listing.filter else ""
        title = f"### {name(listing.path or '.')}{only}"
        if listing.error:
            tables.append(f"{title}\n{item(listing.error)}")
            continue
        rows = "\n".join(
            f"| {cell(entry)} | {kind} | {size_in_words(size) if kind == 'file' else ''} |"
            for entry, kind, size in listing.entries
        )
        shown = len(listing.entries)
        count = "1 entry" if listing.total == 1 else f"{listing.total} entries"
        count += f", the first {shown} shown" if shown < listing.total else ""
        tables.append(f"{title}\n| Name | Type | Size |\n| --- | --- | --- |\n{rows}\n{count}")
    return "## DIRECTORY LISTING RESULTS\n" + "\n\n".join(tables)


Dialect = Literal["tools", "structured"]
SUMMARY = "# Summary of the conversation so far\nIt replaces the older messages, which are no longer shown."
LEFT_OUT = "# The older messages of this conversation are no longer shown"


class Environment(Struct, frozen=True):
    root: str
    start_folder: str
    system: str
    outline: str


def system_message(
    words: dict[str, Any],
    dialect: Dialect,
    schema: dict[str, Any] | None,
    place: Environment,
    contexts: Sequence[ContextFile] = (),
    working: Sequence[file_contents.LoadedFile] = (),
    part: str = "",
    tools: Sequence[str] = (),
) -> Message:
    """A sub-task's hand-over (`part`) is last, so that sub-tasks share a prefix. Working files are data:
    never in a `<context>` block.
    """
    sections = []
    for section in words["sections"]:
        if section.get("dialect", dialect) == dialect:
            sections.append(section["text"])
            sections += tools if section.get("id") == "replies" else ()
    if schema is not None:
        shape = json.dumps(schema, ensure_ascii=False, separators=(",", ":"))  # saves a fifth of the tokens
        sections.append(f"Answer with one JSON object of this schema:\n{shape}")
    sections.append(
        f"Workspace root: {name(place.root)}\nStart folder: {name(place.start_folder)}\n"
        f"Operating system: {place.system}"
    )
    if place.outline:
        sections.append("Outline of the workspace (files below each folder):\n" + place.outline)
    sections += [instruction_block(file) for file in contexts if file.kind == "instructions"]
    sections += [instruction_block(file) for file in contexts if file.kind == "base"]
    if working:
        sections.append(
            "# Working files\n" + file_contents.read_files_result(working, file_contents.FilesInPrompt())
        )
    if part:
        sections.append(part)
    return {"role": "system", "content": "\n\n".join(sections)}


class MessageParts(Struct, frozen=True):
    """Omits empty parts. `rows` are table rows followed by `left_out`; `facts` are sentences about earlier
    proposals.
    """

    query: str = ""
    rows: tuple[str, ...] = ()
    left_out: str = ""
    facts: tuple[str, ...] = ()
    listings: tuple[DirectoryListing, ...] = ()
    found: str = ""
    bundled: tuple[file_contents.LoadedFile, ...] = ()
    memory: str = ""
    sub_tasks: str = ""
    new_contexts: tuple[ContextFile, ...] = ()
    gone_contexts: tuple[str, ...] = ()
    files: tuple[file_contents.LoadedFile, ...] = ()
    editor_blocks: dict[str, str] = {}
    mode: str = ""


def user_text(news: MessageParts, in_view: file_contents.FilesInPrompt) -> str:
    parts = [
        known_files.table(news.rows, news.left_out),
        listing_section(news.listings),
        news.found,
        file_contents.bundle_section(news.bundled),
        news.memory,
        news.sub_tasks,
        "\n".join(("Since your last message:", *(f"- {item(fact)}" for fact in news.facts)))
        if news.facts
        else "",
        instructions_section(news.new_contexts, news.gone_contexts),
        file_contents.read_files_result(news.files, in_view) if news.files else "",
        editor.additional_data(news.editor_blocks),
        news.mode,
        f"<user_query>\n{inert(news.query)}\n</user_query>" if news.query else "",
    ]
    return "\n\n".join(part for part in parts if part)


def as_sent(message: Message) -> str:
    return json.dumps(message, ensure_ascii=False)
