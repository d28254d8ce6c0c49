"""A session as one file that can be given away: Markdown to read, JSON to import; secrets are masked (X4)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence

from tui_agent.errors import FileError
from tui_agent.files.blobs import Blobs
from tui_agent.model.masking import masked
from tui_agent.session.records import body_of
from tui_agent.session.transcript import said
from tui_agent.store.events import Event
from tui_agent.store.state import ChatMessage

VERSION = 1
TYPE = "tui-agent-session"
#: What names a text of the store.
KEY = re.compile(rb'"([0-9a-f]{32})"')


def as_markdown(session: str, events: Sequence[Event]) -> str:
    """What was said, a heading a message."""
    parts = [f"# Session {session}", *(_section(message) for message in said(events))]
    return masked("\n\n".join(parts)) + "\n"


def as_json(session: str, events: Sequence[Event], blobs: Blobs | None = None) -> str:
    """Every event, in order, under a header that says what it is; then the texts that they name, by their hash.

    A text that had to be masked stands under the hash of what it was; one that is no text is left out.
    """
    bodies = [body_of(event).data for event in events]
    head = json.dumps({"type": TYPE, "version": VERSION, "id": session})
    lines = [masked(body.decode()) for body in bodies]
    texts = dict(_texts(bodies, blobs)) if blobs else {}
    kept = [f"{json.dumps(key)}: {json.dumps(masked(text))}" for key, text in texts.items()]
    joined = ",\n".join
    return f'{head[:-1]}, "events": [\n{joined(lines)}\n], "texts": {{\n{joined(kept)}\n}}}}\n'


def _texts(bodies: Sequence[bytes], blobs: Blobs) -> Iterator[tuple[str, str]]:
    keys = dict.fromkeys(found.decode() for body in bodies for found in KEY.findall(body))
    for key in keys:
        try:
            yield key, blobs.get(key).decode()
        except (FileError, UnicodeDecodeError):
            continue  # the hash of a file that was never kept, or no text


def _section(message: ChatMessage) -> str:
    who = {"person": "You", "agent": "Agent", "note": "Note"}[message.kind]
    words = [f"**{message.summary}**" if message.summary else "", message.text.strip()]
    return f"## {who}, turn {message.turn}\n\n" + "\n\n".join(word for word in words if word)
