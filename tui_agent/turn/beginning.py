"""Beginning a conversation: its system prompt, what is carried over into it, and what goes with every request."""

from __future__ import annotations

import asyncio
import json
import platform
from collections.abc import Sequence
from hashlib import md5
from typing import Any, Literal, cast

from msgspec import Struct

from tui_agent.answers import schema as reply_schema
from tui_agent.context import instructions, loaded, prompt
from tui_agent.context.folders import outline
from tui_agent.context.loaded import LoadedFile
from tui_agent.context.prompt import LEFT_OUT, SUMMARY, as_sent
from tui_agent.model.client import Message
from tui_agent.store import events as e
from tui_agent.store.state import SentMessage, State
from tui_agent.turn.desk import Desk, Gathered

Dialect = Literal["tools", "structured"]
#: What an image in a message costs, in tokens: what the common models take for a large one.
IMAGE_TOKENS = 1_600
Why = Literal["first", "model", "files", "condensed", "edited"]


class Head(Struct, frozen=True):
    """What goes with every request beside the messages."""

    tools: tuple[dict[str, Any], ...] = ()
    schema: dict[str, Any] | None = None

    @property
    def text(self) -> str:
        return json.dumps([self.tools, self.schema]) if self.tools or self.schema else ""

    @property
    def digest(self) -> str:
        return md5(self.text.encode(), usedforsecurity=False).hexdigest()


def needs_begin(state: State) -> bool:
    """Whether the conversation begins again: the first request, or another model or dialect."""
    sent = state.conversation
    return not sent.messages or (sent.model, sent.protocol) != (state.model.name, state.model.protocol)


def head_of(desk: Desk) -> Head:
    state = desk.state()
    if state.model.protocol == "tools":
        return Head(tools=tuple(reply_schema.tools(desk.reply_schema)))
    return Head(schema=reply_schema.strict(desk.reply_schema) if state.model.takes_schema else None)


async def begin(
    desk: Desk,
    gathered: Gathered,
    why: Why,
    carried: Sequence[SentMessage] = (),
    working: Sequence[LoadedFile] = (),
) -> e.ConversationBegun:
    """A conversation with a system prompt of now, the messages that go on in it, and the files that matter."""
    state, head = desk.state(), head_of(desk)
    system, _ = await keep(desk, [await _system(desk, gathered, working)], _shares(gathered, working))
    counted = await desk.model.count(state.model.name, [head.text])
    return e.ConversationBegun(
        turn=gathered.turn,
        why=why,
        messages=(*system, *carried),
        files={file.path: file.md5 for file in working},
        contexts={file.path: file.md5 for file in gathered.contexts},
        model=state.model.name,
        protocol=state.model.protocol,
        head=head.digest,
        head_tokens=counted.counts[0] if head.text else 0,
        open_calls=state.conversation.open_calls if why not in ("first", "model") else (),
    )


class Sizes(Struct, frozen=True):
    """How many characters of a message are files' contents, and instructions."""

    files: int = 0
    instructions: int = 0


async def keep(
    desk: Desk, messages: Sequence[Message], sizes: Sizes | None = None
) -> tuple[tuple[SentMessage, ...], bool]:
    """Keep messages as they are sent, counted, and whether the count is exact; `sizes` are of the last of them."""
    texts = [as_sent(message) for message in messages]
    counted = await desk.model.count(desk.state().model.name, [_countable(message) for message in messages])
    blobs = await asyncio.to_thread(lambda: [desk.blobs.hold_text(text) for text in texts])
    last = len(messages) - 1
    kept = tuple(
        _sent(message, blob, tokens, sizes if place == last else None)
        for place, (message, blob, tokens) in enumerate(zip(messages, blobs, counted.counts, strict=True))
    )
    return kept, counted.exact


def _sent(message: Message, blob: str, tokens: int, sizes: Sizes | None) -> SentMessage:
    tokens += IMAGE_TOKENS * len(message.get("images") or ())
    if sizes is None:
        stands_for_older = message["role"] == "user" and _countable(message).startswith((SUMMARY, LEFT_OUT))
        return SentMessage(message["role"], blob, tokens, kind="summary" if stands_for_older else "")
    characters = max(1, len(_countable(message)))
    files = min(tokens, tokens * sizes.files // characters)
    rules = min(tokens - files, tokens * sizes.instructions // characters)
    return SentMessage(message["role"], blob, tokens, files, rules)


def _countable(message: Message) -> str:
    """What a message costs: its words, and those of its calls."""
    calls = message.get("tool_calls")
    content = str(message.get("content") or "")
    return content + json.dumps(calls, ensure_ascii=False) if calls else content


async def _system(desk: Desk, gathered: Gathered, working: Sequence[LoadedFile]) -> Message:
    state = desk.state()
    dialect = cast(Dialect, state.model.protocol)
    place = prompt.Surroundings(
        root=str(desk.workspace.root),
        start_folder=desk.start_folder,
        system=platform.system(),
        outline=await asyncio.to_thread(outline, desk.workspace.index.paths, desk.settings.outline_tokens),
    )
    needs_words = dialect == "structured" and not state.model.takes_schema
    return prompt.system_message(
        desk.prompt_words,
        dialect,
        desk.reply_schema if needs_words else None,
        place,
        gathered.contexts,
        working,
        desk.part,
    )


def _shares(gathered: Gathered, working: Sequence[LoadedFile]) -> Sizes:
    return Sizes(
        len(loaded.read_files_result(working, loaded.InView())) if working else 0,
        sum(len(instructions.block(file)) for file in gathered.contexts),
    )


def in_words(messages: Sequence[Message]) -> list[Message]:
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
