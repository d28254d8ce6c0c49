"""The conversation as JSON lines, in the form that hooks of the most used agent read."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from tui_agent.extensions.names import SHOWN
from tui_agent.files.private import make_private
from tui_agent.store.state import ChatMessage, State

NAME = "transcript.jsonl"


class HookTranscript:
    def __init__(self, folder: Path, cwd: Path) -> None:
        self.path = folder / NAME
        self._cwd = str(cwd)
        #: Last message of earlier turns in the file, and the file's size up to it.
        self._kept: ChatMessage | None = None
        self._settled = 0
        self._messages: Sequence[ChatMessage] = ()

    def write(self, state: State) -> None:
        """Blocking. Raises OSError."""
        messages = state.chat.messages
        if messages is self._messages:
            return
        kept = self._kept
        follows = kept is None or kept in messages or (messages and messages[0].number > kept.number)
        if not follows:
            kept, self._settled = None, 0
        new = [one for one in messages if kept is None or one.number > kept.number]
        earlier = [one for one in new if one.turn != messages[-1].turn]
        make_private(self.path.parent)
        descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        with open(descriptor, "wb") as file:
            file.seek(self._settled)
            file.truncate()
            file.write(self._lines(earlier, state))
            size = file.tell()
            file.write(self._lines(new[len(earlier) :], state))
        self._messages, self._settled = messages, size
        self._kept = earlier[-1] if earlier else kept

    def _lines(self, messages: Sequence[ChatMessage], state: State) -> bytes:
        now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        common = {"sessionId": state.session.id, "cwd": self._cwd, "timestamp": now, "isSidechain": False}
        lines = []
        for message in messages:
            for part, (role, content) in enumerate(_parts(message)):
                said = {"role": role, "content": content}
                if role == "assistant":
                    said |= {"type": "message", "model": state.model.name}
                name = str(uuid.uuid5(uuid.NAMESPACE_OID, f"{state.session.id}.{message.number}.{part}"))
                lines.append(msgspec.json.encode({**common, "type": role, "uuid": name, "message": said}))
        return b"".join(line + b"\n" for line in lines)


def last_reply(state: State) -> str:
    return next((one.text or one.summary for one in reversed(state.chat.messages) if one.kind == "agent"), "")


def _parts(message: ChatMessage) -> Iterator[tuple[str, Any]]:
    if message.kind == "person":
        yield "user", message.text
    if message.kind != "agent":
        return
    content: list[dict[str, Any]] = []
    if text := message.text or message.summary:
        content.append({"type": "text", "text": text})
    for use in message.calls:
        call = {"type": "tool_use", "id": use.id, "name": SHOWN.get(use.name, use.name)}
        content.append({**call, "input": {"description": use.shown}})
    if content:
        yield "assistant", content
    results = [
        {"type": "tool_result", "tool_use_id": use.id, "content": use.details, "is_error": not use.ok}
        for use in message.calls
    ]
    if results:
        yield "user", results
