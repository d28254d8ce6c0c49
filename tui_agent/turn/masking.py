"""Messages without secret values, masked once: when they enter a conversation, and never again.

What was sent stays as it was sent, so that a provider's cache of a conversation's beginning holds: a value that becomes
known later is masked in the messages after that.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from msgspec.structs import replace

from tui_agent.model.client import Message, ModelRequest
from tui_agent.store import events as e
from tui_agent.tools.context import Emit
from tui_agent.turn.context import TurnContext


async def masked(context: TurnContext, messages: Sequence[Message]) -> list[Message]:
    """New messages without the values that the files with secrets hold now: what a tool found, what a command
    printed, what the person wrote or pasted. A model's own replies are as they came."""
    return await asyncio.to_thread(mask, context, messages)


def mask(context: TurnContext, messages: Sequence[Message]) -> list[Message]:
    """The same, for a thread."""
    context.secrets.look(context.state().secrets)
    return [_masked(context, message) for message in messages]


async def masked_apart(context: TurnContext, request: ModelRequest) -> ModelRequest:
    """The same for a request apart from the conversation; of one that goes on after it, what it adds."""
    if request.purpose in ("main", "subtask"):
        return request
    begun = await asyncio.to_thread(_begun, context, request) if request.purpose == "plan" else 0
    added = await masked(context, request.messages[begun:])
    return replace(request, messages=(*request.messages[:begun], *added))


async def tell(context: TurnContext, emit: Emit) -> None:
    """Tell the person, once in a session, that values are masked."""
    if said := context.secrets.untold():
        await emit(e.NoticeGiven("warning", said))


def _begun(context: TurnContext, request: ModelRequest) -> int:
    """With how many messages of the conversation a request begins."""
    kept = context.sent.read(context.blobs, context.state().conversation.messages)
    same = 0
    for one, message in zip(kept, request.messages, strict=False):
        if one.message != message:
            break
        same += 1
    return same


def _masked(context: TurnContext, message: Message) -> Message:
    content = message.get("content")
    if message["role"] == "assistant" or not isinstance(content, str):
        return message
    clean = context.secrets.masked(content)
    return message if clean == content else {**message, "content": clean}
