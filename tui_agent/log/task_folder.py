"""Task folders of Roo Code and related programs: messages in Anthropic's format, as JSON.

Messages are in `api_conversation_history.json` (older: `claude_messages.json`). `task_metadata.json`
lists the files in the agent's context.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tui_agent.context.blocks import inert
from tui_agent.context.known_files import MAX_BYTES, KnownFile, Touch
from tui_agent.context.prompt import SUMMARY, as_sent
from tui_agent.errors import FileError, SessionError, TuiAgentError
from tui_agent.files.blobs import Blobs
from tui_agent.files.gate import Gate, read_for_person
from tui_agent.files.names import display_path
from tui_agent.files.operating_system import HALF_A_LETTER, TOO_DEEP, read_given
from tui_agent.files.text import md5
from tui_agent.log import log
from tui_agent.store import events as e
from tui_agent.store.conversation import SentMessage
from tui_agent.store.events import Lasting
from tui_agent.workspace.syntax_trees import language

CURRENT, LEGACY = "api_conversation_history.json", "claude_messages.json"
METADATA = "task_metadata.json"
#: Later timestamps (after the year 5000) are invalid.
MOST_MILLISECONDS = 10**14
NAMES = (CURRENT, LEGACY)
#: The next real request starts a new conversation.
MODEL = "imported"
#: Wrappers around the user's text, and text added by those programs.
_ADDED = re.compile(r"<environment_details>.*?</environment_details>", re.DOTALL)
_AROUND = re.compile(r"</?(?:task|feedback|answer|user_message)>")
_RESULT = re.compile(r"<result>(.*?)(?:</result>|\Z)", re.DOTALL)
_TOOL_ANSWER = re.compile(r"\A\s*\[[\w-]+(?: for '.*?')?\] Result:", re.DOTALL)
Message = dict[str, Any]


def events_of(messages: Sequence[Message], session: str, workspace: Path, blobs: Blobs) -> list[Lasting]:
    """Returns events for each original message, the chat, and the conversation to continue."""
    events: list[Lasting] = [e.SessionStarted(session, str(workspace))]
    turn = 0
    for message in messages:
        sent = SentMessage(message["role"], blobs.put_text(as_text(message)))
        words = "\n\n".join(_words(message)).strip()
        if message.get("isSummary"):
            events.append(e.RequestSent(max(turn, 1), "main", (sent,), model=MODEL, prefix_share=1.0))
            events.append(e.SummaryMade(max(turn, 1), words))
            continue
        if message["role"] == "assistant":
            found = _RESULT.search(words)
            first = (found[1] if found else words).strip().partition("\n")[0]
            summary, text = first[:200], words if words != first else ""
            events.append(e.ReplyRead(max(turn, 1), summary, text, sent=sent))
            continue
        if words or not turn:
            events += [e.TurnEnded(turn, True)] if turn else []
            turn += 1
            events.append(e.TurnStarted(turn, words))
        events.append(e.RequestSent(turn, "main", (sent,), model=MODEL, prefix_share=1.0))
    talk = tuple(
        SentMessage(
            one["role"],
            blobs.put_text(as_sent(one)),
            kind="summary" if one["content"].startswith(SUMMARY) else "",
        )
        for one in conversation(messages)
    )
    return [*events, e.ConversationBegun(turn, "first", talk, model=MODEL), e.TurnEnded(turn, True)]


def conversation(messages: Sequence[Message]) -> list[Message]:
    """Returns a system message, text and images. Of a summarized part, keeps only the first message (the
    task) and the last summary.
    """
    last = max((n for n, message in enumerate(messages) if message.get("isSummary")), default=0)
    names = {str(block.get("id")): str(block.get("name")) for m in messages for block in _blocks(m)}
    talk: list[Message] = [{"role": "system", "content": ""}]
    for number, message in enumerate(messages):
        if 0 < number < last:
            continue
        said = [_text_and_images(block, names) for block in _blocks(message)]
        text = "\n\n".join(words for words, _ in said if words)
        images = [image for _, found in said for image in found]
        role = message["role"]
        if message.get("isSummary"):
            role, text = "user", f"{SUMMARY}\n\n{inert(text)}"
        elif role == "user":
            text = inert(text)
        if text:
            talk.append({"role": role, "content": text, **({"images": images} if images else {})})
    return talk


def _text_and_images(block: Message, names: Mapping[str, str]) -> tuple[str, list[Message]]:
    match block:
        case {"type": "text", "text": str(text)}:
            return text, []
        case {"type": "image", "source": {"type": "base64", "media_type": str(kind), "data": str(data)}}:
            return f"[An image, {kind}]", [{"media_type": kind, "data": data}]
        case {"type": "image"}:
            return "[An image that is not kept here]", []
        case {"type": "tool_use", "name": str(name)}:
            return f"[Call of {name}]\n{json.dumps(block.get('input'), ensure_ascii=False)}", []
        case {"type": "tool_result"}:
            said = [_text_and_images(part, names) for part in _blocks(block)]
            failed = ", an error" if block.get("is_error") is True else ""
            heading = f"[Result of {names.get(str(block.get('tool_use_id')), 'a call')}{failed}]"
            words = "\n".join([heading, *(words for words, _ in said if words)])
            return words, [image for _, found in said for image in found]
    return "", []


def _blocks(message: Message) -> list[Message]:
    content = message.get("content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []


def known_files(folder: Path, messages: Sequence[Message], workspace: Path) -> list[Lasting]:
    """Returns entries for the workspace files in `task_metadata.json` that the agent's context holds. Raises
    SessionError.

    Stores no contents: a file unmodified since then counts as partly seen in its present state, any other
    as changed.
    """
    file = folder / METADATA
    value = _json(file) if file.is_file() else {}
    records = value.get("files_in_context") if isinstance(value, dict) else None
    found: dict[str, list[Message]] = {}
    for record in records if isinstance(records, list) else ():
        if isinstance(record, dict) and isinstance(record.get("path"), str):
            found.setdefault(record["path"].removeprefix("./"), []).append(record)
    if not found:
        return []
    gate = Gate(workspace)
    turns = [
        message
        for number, message in enumerate(messages)
        if message["role"] == "user" and not message.get("isSummary") and (not number or any(_words(message)))
    ]
    times = [_at(message, "ts") for message in turns]
    return [event for path, of_one in found.items() for event in _known_file(gate, path, of_one, times)]


def _known_file(gate: Gate, path: str, records: Sequence[Message], times: Sequence[float]) -> list[Lasting]:
    try:
        place = gate.place(path, "read")
        data = read_for_person(gate, path, MAX_BYTES) if place.exists else b""
    except TuiAgentError:
        return []
    seen, edited = (max(_at(record, key) for record in records) for key in ("roo_read_date", "roo_edit_date"))
    written = place.absolute.stat().st_mtime if place.exists else 0.0
    same = place.exists and written <= max(seen, edited) and records[-1].get("record_state") == "active"
    mentioned = records[-1].get("record_source") == "file_mentioned"
    entry = KnownFile(
        place.path,
        md5(data) if same else "",
        _turn(seen or edited, times),
        len(data),
        lines=len(data.splitlines()),
        language=language(path),
        loaded_by="mention" if mentioned else "request",
        whole=False,
        modified_turn=_turn(edited, times) if edited else 0,
    )
    touches: list[Lasting] = [
        e.FileTouched(Touch(place.path, _turn(at, times), kind, "", kind == "edited", at))
        for kind, key in (("edited", "roo_edit_date"), ("changed outside", "user_edit_date"))
        if (at := max(_at(record, key) for record in records))
    ]
    return [*touches, e.FileLoaded(entry, at=seen)]


def _at(record: Message, key: str) -> float:
    """Converts milliseconds to a Unix time; 0 if missing."""
    value = record.get(key)
    return value / 1000 if isinstance(value, int | float) and 0 < value < MOST_MILLISECONDS else 0.0


def _turn(at: float, times: Sequence[float]) -> int:
    return sum(time <= at for time in times) or 1 if at and all(times) else len(times)


def read_folder(folder: Path) -> tuple[Path, list[Message]]:
    """Raises SessionError, which suggests the older file if only that is readable."""
    there = [folder / name for name in NAMES if (folder / name).is_file()]
    if not there:
        raise SessionError(
            f"{display_path(str(folder))} is not a task folder",
            f"name one that holds {CURRENT} or {LEGACY}, or an export",
        )
    try:
        return there[0], read_messages(there[0])
    except SessionError as error:
        try:
            read_messages(there[1])
        except (IndexError, SessionError):
            raise error from None
        older = display_path(str(there[1]))
        raise SessionError(
            error.what, f"it stays as it is; {older} can be read: name that instead"
        ) from error


def read_messages(file: Path) -> list[Message]:
    """Raises SessionError if it is incomplete."""
    value = _json(file)
    if not isinstance(value, list) or not value:
        raise _refused(file, "it holds no list of messages")
    for number, message in enumerate(value, 1):
        match message:
            case {"role": "user" | "assistant", "content": str()}:
                continue
            case {"role": "user" | "assistant", "content": list(blocks)}:
                if all(isinstance(block, dict) for block in blocks):
                    continue
        raise _refused(file, f"its message {number} is not a message")
    return value


def _json(file: Path) -> Any:
    try:
        value = json.loads(read_given(file).decode())
        json.dumps(value, ensure_ascii=False).encode()
    except OSError as error:
        raise SessionError(
            f"{display_path(str(file))} cannot be read ({error.strerror})", "name another"
        ) from error
    except UnicodeEncodeError as error:
        raise _refused(file, HALF_A_LETTER) from error
    except ValueError as error:
        raise _refused(file, "its JSON is not complete") from error
    except RecursionError as error:
        raise _refused(file, TOO_DEEP) from error
    return value


def remove_legacy(file: Path, path: Path, blobs: Blobs) -> None:
    """Deletes the file once every message is in the log at `path`. Raises SessionError if that cannot be
    verified, and then keeps it.
    """
    if file.name != LEGACY:
        return
    kept: list[SentMessage] = []
    for event in log.events_of(path):
        match event:
            case e.RequestSent(messages=messages):
                kept += messages
            case e.ReplyRead(sent=SentMessage() as sent):
                kept.append(sent)
    try:
        texts = [blobs.get_text(message.blob) for message in kept]
    except FileError as error:
        raise SessionError(f"{display_path(str(file))} stays ({error.what})", "import it again") from error
    if texts != [as_text(message) for message in read_messages(file)]:
        raise SessionError(
            f"{display_path(str(file))} is kept because the import is incomplete", "import it again"
        )
    try:
        file.unlink()
    except OSError as error:
        raise SessionError(
            f"{display_path(str(file))} stays ({error.strerror})", "remove it by hand"
        ) from error


def as_text(message: Message) -> str:
    return json.dumps(message, ensure_ascii=False, sort_keys=True)


def _words(message: Message) -> Iterator[str]:
    for block in _blocks(message):
        text = block.get("text")
        if block.get("type") != "text" or not isinstance(text, str):
            continue
        if message["role"] == "user":
            if _TOOL_ANSWER.match(text):
                continue
            text = _AROUND.sub("", _ADDED.sub("", text))
        if text.strip():
            yield text.strip()


def _refused(file: Path, why: str) -> SessionError:
    return SessionError(
        f"{display_path(str(file))} was not imported, {why}", "it stays as it is; name another"
    )
