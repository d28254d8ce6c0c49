"""Exact requests and responses of a session."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec
from msgspec import Struct

from tui_agent.errors import FileError
from tui_agent.files.blobs import Blobs
from tui_agent.store import events as e
from tui_agent.store.conversation import SentMessage


class Exchange(Struct, frozen=True):
    """`messages` are the added messages as JSON; `reset`: they start a new conversation.

    A note replaces a missing text.
    """

    turn: int
    purpose: str
    model: str
    protocol: str
    reset: bool
    tokens: int
    messages: tuple[str, ...]
    reply: str = ""


def exchanges(events: Iterable[e.Event], blobs: Blobs) -> Iterator[Exchange]:
    waiting: Exchange | None = None
    begun: tuple[str, ...] = ()
    for event in events:
        match event:
            case e.ConversationBegun(messages=messages):
                begun = _texts(messages, blobs)
            case e.RequestSent():
                if waiting is not None:
                    yield waiting
                waiting = Exchange(
                    turn=event.turn,
                    purpose=event.purpose,
                    model=event.model,
                    protocol=event.protocol,
                    reset=event.reset or bool(begun),
                    tokens=event.tokens,
                    messages=(*begun, *_texts(event.messages, blobs)),
                )
                begun = ()
            case e.ReplyRead(sent=SentMessage() as sent) if waiting is not None:
                yield msgspec.structs.replace(waiting, reply=_text(sent, blobs))
                waiting = None
    if waiting is not None:
        yield waiting


def _texts(messages: Sequence[SentMessage], blobs: Blobs) -> tuple[str, ...]:
    return tuple(_text(message, blobs) for message in messages)


def _text(message: SentMessage, blobs: Blobs) -> str:
    try:
        return blobs.get_text(message.blob)
    except FileError as error:
        return f'{{"role": "{message.role}", "content": null, "missing": "{error.what}"}}'
