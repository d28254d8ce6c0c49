"""A session as one file that can be given away: Markdown to read, JSON to import; secrets are masked (X4)."""

from __future__ import annotations

import json
from collections.abc import Sequence

import msgspec

from tui_agent.model.masking import masked
from tui_agent.session.transcript import said
from tui_agent.store.events import Event
from tui_agent.store.state import ChatMessage

VERSION = 1


def as_markdown(session: str, events: Sequence[Event]) -> str:
    """What was said, a heading a message."""
    parts = [f"# Session {session}", *(_section(message) for message in said(events))]
    return masked("\n\n".join(parts)) + "\n"


def as_json(session: str, events: Sequence[Event]) -> str:
    """Every event, in order, under a header that says what it is."""
    lines = [masked(msgspec.json.encode(event).decode()) for event in events]
    head = json.dumps({"type": "tui-agent-session", "version": VERSION, "id": session})
    return head[:-1] + ', "events": [\n' + ",\n".join(lines) + "\n]}\n"


def _section(message: ChatMessage) -> str:
    who = {"person": "You", "agent": "Agent", "note": "Note"}[message.kind]
    words = [f"**{message.summary}**" if message.summary else "", message.text.strip()]
    return f"## {who}, turn {message.turn}\n\n" + "\n\n".join(word for word in words if word)
