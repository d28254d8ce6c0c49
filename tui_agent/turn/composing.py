"""Composing a request: the conversation as it was sent, and the one message that is new."""

from __future__ import annotations

import asyncio
import json
import platform
from typing import Literal, cast

from msgspec import Struct

from tui_agent.answers import schema as reply_schema
from tui_agent.context import editor, prompt
from tui_agent.context.known import table_row
from tui_agent.context.outline import outline
from tui_agent.files.blobs import Blobs
from tui_agent.model.client import Message, ModelRequest
from tui_agent.store.events import RequestSent
from tui_agent.store.state import ConversationSlice, SentMessage, State
from tui_agent.turn.base_files import read_base_files
from tui_agent.turn.desk import Desk, Gathered
from tui_agent.turn.editor_state import open_files

Dialect = Literal["tools", "structured"]
GO_ON = "Here is what you asked for. Go on with the request."
SEE_FIRST = "See the first result."
DECISION_FOLLOWS = "Shown to the person, who decides; what became of it stands in the next message."


class Composed(Struct, frozen=True):
    """A request, and the event that says what it added."""

    request: ModelRequest
    event: RequestSent


async def compose(desk: Desk, gathered: Gathered) -> Composed:
    """The next request of this turn. The same state and material always give the same bytes."""
    state = desk.state()
    dialect = cast(Dialect, state.model.protocol)
    reset = needs_reset(state)
    before = ConversationSlice() if reset else state.conversation
    earlier = await asyncio.to_thread(_read_messages, desk.blobs, state.conversation.messages)
    kept = _carried_over(earlier) if reset else []
    started = [await _system(desk, dialect), *kept] if reset else []
    rows = _rows(state, gathered, before)
    blocks = editor.blocks(open_files(state.buffers))
    news = _news(state, gathered, before, rows, blocks, bool(before.open_calls))
    new = [*started, *_newest(news, before)]
    sent = await _keep(desk, state.model.name, new)
    tokens = sum(message.tokens for message in (*before.messages, *sent.messages))
    event = RequestSent(
        turn=gathered.turn,
        purpose="main",
        messages=sent.messages,
        files={file.path: file.md5 for file in gathered.files},
        rows=rows,
        blocks={name: editor.digest(text) for name, text in blocks.items()},
        tokens=tokens,
        estimated=not sent.exact,
        parts=_parts(before, sent.messages, state),
        prefix_share=0.0 if reset else 1.0,
        reset=reset,
        model=state.model.name,
        protocol=dialect,
    )
    request = ModelRequest(
        model=state.model.name,
        messages=tuple(new if reset else [*earlier, *new]),
        tools=tuple(reply_schema.tools(desk.reply_schema)) if dialect == "tools" else (),
        schema=reply_schema.strict(desk.reply_schema)
        if dialect == "structured" and state.model.takes_schema
        else None,
        timeout=float(desk.settings.request_timeout),
    )
    return Composed(request, event)


def needs_reset(state: State) -> bool:
    """Whether the conversation begins anew: the first request, or another model or dialect (C4)."""
    sent = state.conversation
    return not sent.messages or (sent.model, sent.protocol) != (state.model.name, state.model.protocol)


async def _system(desk: Desk, dialect: Dialect) -> Message:
    state = desk.state()
    place = prompt.Surroundings(
        root=str(desk.workspace.root),
        start_folder=desk.start_folder,
        system=platform.system(),
        outline=outline(desk.workspace.index.paths, desk.settings.outline_tokens),
    )
    needs_words = dialect == "structured" and not state.model.takes_schema
    base = await read_base_files(desk)
    return prompt.system_message(
        desk.prompt_words, dialect, desk.reply_schema if needs_words else None, place, base
    )


def _rows(state: State, gathered: Gathered, before: ConversationSlice) -> dict[str, str]:
    """The table's rows that differ from what the model was last told, by path, without `(this turn)`."""
    again = {file.path for file in gathered.files}
    rows = {
        path: table_row(entry, 0, again=entry.path in again and entry.freshness != "fresh")
        for path, entry in state.known.files.items()
    }
    return {path: row for path, row in rows.items() if before.rows.get(path) != row}


def _news(
    state: State,
    gathered: Gathered,
    before: ConversationSlice,
    rows: dict[str, str],
    blocks: dict[str, str],
    answers_calls: bool,
) -> prompt.News:
    again = {file.path for file in gathered.files}
    shown = [state.known.files[path] for path in rows]
    first_step = bool(gathered.query)
    return prompt.News(
        query=gathered.query if first_step or answers_calls else GO_ON,
        rows=tuple(table_row(entry, gathered.turn, entry.path in again) for entry in shown),
        facts=(*state.conversation.untold, *gathered.facts),
        listings=tuple(gathered.listings),
        found="\n\n".join(gathered.found),
        files=tuple(gathered.files),
        editor_blocks=blocks,
    )


def _newest(news: prompt.News, before: ConversationSlice) -> list[Message]:
    """One user message, or the results of the calls that are still open and then, with a request, that."""
    if not before.open_calls:
        return [{"role": "user", "content": prompt.user_text(news, before.files, before.blocks)}]
    if news.query:
        results = prompt.tool_results(before.open_calls, DECISION_FOLLOWS, DECISION_FOLLOWS)
        return [*results, {"role": "user", "content": prompt.user_text(news, before.files, before.blocks)}]
    text = prompt.user_text(news, before.files, before.blocks) or "Nothing was found."
    return prompt.tool_results(before.open_calls, text, SEE_FIRST)


class _Kept(Struct, frozen=True):
    messages: tuple[SentMessage, ...]
    exact: bool


async def _keep(desk: Desk, model: str, messages: list[Message]) -> _Kept:
    texts = [json.dumps(message, ensure_ascii=False) for message in messages]
    counted = await desk.model.count(model, [str(message.get("content") or "") for message in messages])
    blobs = await asyncio.to_thread(lambda: [desk.blobs.put_text(text) for text in texts])
    return _Kept(
        tuple(
            SentMessage(message["role"], blob, tokens)
            for message, blob, tokens in zip(messages, blobs, counted.counts, strict=True)
        ),
        counted.exact,
    )


def _read_messages(blobs: Blobs, messages: tuple[SentMessage, ...]) -> list[Message]:
    return [json.loads(blobs.get_text(message.blob)) for message in messages]


def _carried_over(messages: list[Message]) -> list[Message]:
    """The talk so far for another model or dialect: the words stay, function calls become words."""
    carried: list[Message] = []
    for message in messages:
        match message["role"]:
            case "user":
                carried.append(message)
            case "assistant":
                calls = "\n".join(call["function"]["arguments"] for call in message.get("tool_calls") or ())
                text = "\n\n".join(part for part in (message.get("content") or "", calls) if part)
                carried.append({"role": "assistant", "content": text})
            case "tool":
                carried.append({"role": "user", "content": message["content"]})
    return carried


def _parts(before: ConversationSlice, new: tuple[SentMessage, ...], state: State) -> dict[str, int]:
    everything = (*before.messages, *new)
    system = sum(message.tokens for message in everything if message.role == "system")
    files = sum(entry.tokens for path, entry in state.known.files.items() if path in before.files)
    total = sum(message.tokens for message in everything)
    return {"system": system, "files": min(files, total - system), "history": max(0, total - system - files)}
