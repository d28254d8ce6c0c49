"""The conversation as sent: a system prompt that stays, and everything new appended in the newest message.

Nothing here knows a clock or makes an id; the same arguments always give the same bytes (C1, C2).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Literal

from msgspec import Struct

from tui_agent.context import editor, known, listing, loaded

Message = dict[str, Any]
Dialect = Literal["tools", "structured"]


class Surroundings(Struct, frozen=True):
    """What the system prompt says of the place: the root, where work began below it, and the system."""

    root: str
    start_folder: str
    system: str
    outline: str


def system_message(
    words: dict[str, Any],
    dialect: Dialect,
    schema: dict[str, Any] | None,
    place: Surroundings,
    base_files: Sequence[tuple[str, str]] = (),
) -> Message:
    """The system prompt: the shipped words of this dialect, the schema where no provider holds the model to
    it, the surroundings, and base files as (path, text), in this order."""
    sections = [part["text"] for part in words["sections"] if part.get("dialect", dialect) == dialect]
    if schema is not None:
        sections.append(
            "Answer with one JSON object of this schema:\n" + json.dumps(schema, ensure_ascii=False)
        )
    sections.append(
        f"Workspace root: {place.root}\nStart folder: {place.start_folder}\nOperating system: {place.system}"
    )
    if place.outline:
        sections.append("Outline of the workspace (files below each folder):\n" + place.outline)
    sections += [f'<context filename="{path}">\n{text}\n</context>' for path, text in base_files]
    return {"role": "system", "content": "\n\n".join(sections)}


class News(Struct, frozen=True):
    """All that the newest message may carry; empty parts are left out.

    `rows` are finished table rows, `facts` sentences about what became of earlier proposals.
    """

    query: str = ""
    rows: tuple[str, ...] = ()
    facts: tuple[str, ...] = ()
    listings: tuple[listing.Listing, ...] = ()
    found: str = ""
    memory: str = ""
    files: tuple[loaded.LoadedFile, ...] = ()
    editor_blocks: dict[str, str] = {}


def user_text(news: News, sent_files: dict[str, str], sent_blocks: dict[str, str]) -> str:
    """The newest message, in the order that protocol.md gives."""
    parts = [
        known.table(list(news.rows)),
        listing.section(news.listings),
        news.found,
        news.memory,
        _facts(news.facts),
        loaded.read_files_result(news.files, sent_files) if news.files else "",
        editor.additional_data(news.editor_blocks, sent_blocks),
        f"<user_query>\n{news.query}\n</user_query>" if news.query else "",
    ]
    return "\n\n".join(part for part in parts if part)


def tool_results(calls: Sequence[str], first: str, others: str) -> list[Message]:
    """A result for each open call, so that none is left without one: the first carries the content."""
    return [
        {"role": "tool", "tool_call_id": call, "content": first if place == 0 else others}
        for place, call in enumerate(calls)
    ]


def _facts(facts: Sequence[str]) -> str:
    if not facts:
        return ""
    return "Since your last message:\n" + "\n".join(f"- {fact}" for fact in facts)
