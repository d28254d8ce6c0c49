"""Masks secret values in messages once, when they enter a conversation.

Sent messages never change, to keep the provider's prefix cache valid. A value that becomes known later is
masked in subsequent messages only.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from msgspec.structs import replace

from tui_agent.model.client import Message, ModelRequest
from tui_agent.store import events as e
from tui_agent.tools.context import Emit
from tui_agent.turn.context import TurnContext


async def mask_in_thread(context: TurnContext, messages: Sequence[Message]) -> list[Message]:
    """Masks known secret values in new messages: tool results, command output, and the user's text and
    pastes. Model replies are unchanged."""
    return await asyncio.to_thread(mask_messages, context, messages)


def mask_messages(context: TurnContext, messages: Sequence[Message]) -> list[Message]:
    """`mask_in_thread` for a worker thread."""
    context.secrets.look(context.state().secrets)
    return [_masked(context, message) for message in messages]


async def mask_request(context: TurnContext, request: ModelRequest) -> ModelRequest:
    """Masks a request outside the conversation; if it extends the conversation, only the added messages."""
    if request.purpose in ("main", "subtask"):
        return request
    begun = await asyncio.to_thread(_begun, context, request) if request.purpose == "plan" else 0
    added = await mask_in_thread(context, request.messages[begun:])
    return replace(request, messages=(*request.messages[:begun], *added))


async def notify_masked(context: TurnContext, emit: Emit) -> None:
    """Notifies the user about masking, once per session."""
    if said := context.secrets.pending_notice():
        await emit(e.NoticeGiven("warning", said))


def _begun(context: TurnContext, request: ModelRequest) -> int:
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
