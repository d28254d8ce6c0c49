"""A session as one file that can be given away: Markdown to read, JSON to import; secrets are masked."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from tui_agent.errors import FileError
from tui_agent.files.blobs import Blobs
from tui_agent.files.gate import LOOKS_SECRET, is_secret
from tui_agent.files.key_formats import masked, masked_values
from tui_agent.log.records import body_of
from tui_agent.log.transcript import said
from tui_agent.store import events as e
from tui_agent.store.events import Event
from tui_agent.store.state import ChatMessage

VERSION = 1
TYPE = "tui-agent-session"
#: What names a text of the store.
KEY = re.compile(r"[0-9a-f]{32}")


def as_markdown(session: str, events: Sequence[Event]) -> str:
    """What was said, a heading a message."""
    parts = [f"# Session {session}", *(_section(message) for message in said(events))]
    return masked("\n\n".join(parts)) + "\n"


def as_json(session: str, events: Sequence[Event], blobs: Blobs | None = None) -> str:
    """Every event, in order, under a header that says what it is; then the texts that they name, by their hash.

    Values are masked before they are written as JSON, so that the document is whole whatever they hold. A text that
    had to be masked is under the hash of what it was; one that is no text is left out, and so are those of files
    that look like secrets, or that the model saw masked.
    """
    bodies = [json.loads(body_of(event).data) for event in events]
    head = json.dumps({"type": TYPE, "version": VERSION, "id": session})
    lines = [json.dumps(masked_values(body)) for body in bodies]
    texts = _texts(bodies, _secret_paths(events), blobs) if blobs else ()
    kept = [f"{json.dumps(key)}: {json.dumps(masked_values(text))}" for key, text in texts]
    joined = ",\n".join
    return f'{head[:-1]}, "events": [\n{joined(lines)}\n], "texts": {{\n{joined(kept)}\n}}}}\n'


def _texts(bodies: Sequence[Any], secret: set[str], blobs: Blobs) -> Iterator[tuple[str, str]]:
    found = [pair for body in bodies for pair in _keys(body)]
    hidden = {key for path, key in found if path in secret or is_secret(path)}
    for key in dict.fromkeys(key for _, key in found):
        if key in hidden:
            continue
        try:
            yield key, blobs.get(key).decode()
        except (FileError, UnicodeDecodeError):
            continue  # the hash of a file that was never kept, or no text


def _keys(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Every hash in an event, after the path of the file that it is of: the one beside it, or its name in a table."""
    match value:
        case list():
            for item in value:
                yield from _keys(item, path)
        case dict():
            path = value.get("path", path)
            for name, item in value.items():
                yield from _keys(item, path or name)
        case str() if KEY.fullmatch(value):
            yield path, value


def _secret_paths(events: Sequence[Event]) -> set[str]:
    """The paths of which it was found out, by more than their names, that their texts are for nobody else."""
    paths: set[str] = set()
    for event in events:
        match event:
            case e.FileLoaded(file) if file.masked:
                paths.add(file.path)
            case e.SecretDecided(path):
                paths.add(path)
            case e.ChangeProposed(change) | e.ChangeReworked(change) if change.ask == LOOKS_SECRET:
                paths.update((change.path, change.rename_to))
    return paths - {""}


def _section(message: ChatMessage) -> str:
    who = {"person": "You", "agent": "Agent", "note": "Note"}[message.kind]
    words = [f"**{message.summary}**" if message.summary else "", message.text.strip()]
    return f"## {who}, turn {message.turn}\n\n" + "\n\n".join(word for word in words if word)
