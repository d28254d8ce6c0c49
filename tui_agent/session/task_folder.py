"""Task folders as Roo Code and its relatives keep them: a list of messages in Anthropic's form, as JSON.

`api_conversation_history.json` holds it; older versions called it `claude_messages.json`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tui_agent.errors import FileError, SessionError
from tui_agent.files.blobs import Blobs
from tui_agent.files.given import read_given
from tui_agent.files.names import shown
from tui_agent.session import log
from tui_agent.store import events as e
from tui_agent.store.events import Lasting
from tui_agent.store.state import SentMessage

CURRENT, LEGACY = "api_conversation_history.json", "claude_messages.json"
NAMES = (CURRENT, LEGACY)
#: What a request is marked with that came from there: the next real one begins the conversation anew.
MODEL = "imported"
#: What those programs put around the person's words, and what they add to them.
_ADDED = re.compile(r"<environment_details>.*?</environment_details>", re.DOTALL)
_AROUND = re.compile(r"</?(?:task|feedback|answer|user_message)>")
_RESULT = re.compile(r"<result>(.*?)(?:</result>|\Z)", re.DOTALL)
_TOOL_ANSWER = re.compile(r"\A\s*\[[\w-]+(?: for '.*?')?\] Result:", re.DOTALL)
Message = dict[str, Any]


def events_of(folder: Path, session: str, workspace: Path, blobs: Blobs) -> list[Lasting]:
    """The session that a task folder makes: each message as it was, and who said what. Raises SessionError."""
    messages = read_messages(_file_of(folder))
    events: list[Lasting] = [e.SessionStarted(session, str(workspace))]
    turn = 0
    for message in messages:
        sent = SentMessage(message["role"], blobs.put_text(as_text(message)))
        words = "\n\n".join(_words(message)).strip()
        if message["role"] == "assistant":
            summary, text = _parted(words)
            events.append(e.ReplyRead(max(turn, 1), summary, text, sent=sent))
            continue
        if words or not turn:
            events += [e.TurnEnded(turn, True)] if turn else []
            turn += 1
            events.append(e.TurnStarted(turn, words))
        events.append(e.RequestSent(turn, "main", (sent,), model=MODEL))
    return [*events, e.TurnEnded(turn, True)]


def read_messages(file: Path) -> list[Message]:
    """The messages of such a file. Raises SessionError where it is not whole; it is only read."""
    try:
        value = json.loads(read_given(file).decode())
    except OSError as error:
        raise SessionError(f"{shown(str(file))} cannot be read ({error.strerror})", "name another") from error
    except ValueError as error:
        raise _refused(file, "its JSON is not complete") from error
    if not isinstance(value, list) or not value:
        raise _refused(file, "it holds no list of messages")
    for number, message in enumerate(value, 1):
        if not _is_message(message):
            raise _refused(file, f"its message {number} is none")
    return value


def remove_legacy(folder: Path, path: Path, blobs: Blobs) -> None:
    """Remove the older file, if it is the one that was read and every message of it is in the log at `path`.

    Raises SessionError where that cannot be shown; the file stays.
    """
    file = folder / LEGACY
    if _file_of(folder) != file:
        return
    kept = [message for event in log.events_of(path) for message in _sent_of(event)]
    try:
        texts = [blobs.get_text(message.blob) for message in kept]
    except FileError as error:
        raise SessionError(f"{shown(str(file))} stays ({error.what})", "import it again") from error
    if texts != [as_text(message) for message in read_messages(file)]:
        raise SessionError(f"{shown(str(file))} stays, not all of it is in the log", "import it again")
    try:
        file.unlink()
    except OSError as error:
        raise SessionError(f"{shown(str(file))} stays ({error.strerror})", "remove it by hand") from error


def as_text(message: Message) -> str:
    return json.dumps(message, ensure_ascii=False, sort_keys=True)


def _file_of(folder: Path) -> Path:
    for name in NAMES:
        if (folder / name).is_file():
            return folder / name
    raise SessionError(
        f"{shown(str(folder))} is not a task folder",
        f"name one that holds {CURRENT} or {LEGACY}, or an export",
    )


def _is_message(value: Any) -> bool:
    if not isinstance(value, dict) or value.get("role") not in ("user", "assistant"):
        return False
    content = value.get("content")
    return isinstance(content, str) or (
        isinstance(content, list) and all(isinstance(block, dict) for block in content)
    )


def _words(message: Message) -> Iterator[str]:
    """What was said in a message: not what was read, run or added by the program."""
    content = message["content"]
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    for block in blocks:
        text = block.get("text")
        if block.get("type") != "text" or not isinstance(text, str):
            continue
        if message["role"] == "user":
            if _TOOL_ANSWER.match(text):
                continue
            text = _AROUND.sub("", _ADDED.sub("", text))
        if text.strip():
            yield text.strip()


def _parted(words: str) -> tuple[str, str]:
    """Summary and message of an answer: the first line, and all of it where there is more."""
    found = _RESULT.search(words)
    first = (found[1] if found else words).strip().partition("\n")[0]
    return first[:200], words if words != first else ""


def _sent_of(event: Lasting) -> tuple[SentMessage, ...]:
    match event:
        case e.RequestSent(messages=messages):
            return messages
        case e.ReplyRead(sent=SentMessage() as sent):
            return (sent,)
    return ()


def _refused(file: Path, why: str) -> SessionError:
    return SessionError(f"{shown(str(file))} was not imported, {why}", "it stays as it is; name another")
