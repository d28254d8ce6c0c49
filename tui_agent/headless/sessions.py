"""`tui-agent sessions …` and `stats`: what is kept, listed, read, searched, exported, forked and deleted."""

from __future__ import annotations

import json
import shutil
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import msgspec

from tui_agent.errors import FileError, SessionError, UsageError
from tui_agent.headless.words import clean
from tui_agent.session import catalog, log
from tui_agent.session.catalog import Entry
from tui_agent.session.exporting import as_json as exported_json
from tui_agent.session.exporting import as_markdown
from tui_agent.session.figures import Figures, figures_of
from tui_agent.session.forking import fork
from tui_agent.session.lock import SessionLock
from tui_agent.session.transcript import said
from tui_agent.settings.folders import user_folders
from tui_agent.store.state import ChatMessage


def list_sessions(workspace: Path, everywhere: bool, as_json: bool) -> int:
    """Newest first; the id comes first on each line."""
    for entry in _entries(workspace, everywhere):
        _print(_entry_values(entry) if as_json else _entry_line(entry, everywhere))
    return 0


def show_session(session: str, as_json: bool) -> int:
    """What was said, in words, or a JSON object a message."""
    for message in said(_events(session)):
        _print(msgspec.to_builtins(message) if as_json else _message_text(message))
    return 0


def search_sessions(words: str, workspace: Path, everywhere: bool, as_json: bool) -> int:
    """Every message that holds all the words; each line begins with the session's id."""
    wanted = words.lower().split()
    for entry in _entries(workspace, everywhere):
        for message in said(_events(entry.id)):
            text = " ".join(f"{message.summary} {message.text}".split())
            if all(word in text.lower() for word in wanted):
                _print(_found(entry, message, text, as_json))
    return 0


def export_session(session: str, form: Literal["md", "json"], output: Path | None) -> int:
    """A session as one file, secrets masked; on standard output where no file is named."""
    events = _events(session)
    text = as_markdown(session, events) if form == "md" else exported_json(session, events)
    if output is None:
        sys.stdout.write(text)
        return 0
    try:
        output.write_text(text, encoding="utf-8", errors="replace")
    except OSError as error:
        raise FileError(f"{output} cannot be written ({error.strerror})", "name another file") from error
    return 0


def fork_session(session: str, turn: int | None) -> int:
    """A new session that begins where this one stood; prints its id."""
    _print(fork(user_folders().data, session, turn))
    return 0


def rename_session(session: str, name: str) -> int:
    """Give a session a name."""
    from tui_agent.store.events import SessionRenamed

    folder = _folder(session)
    with SessionLock.take(folder):
        kept = log.Log.open(folder / catalog.LOG)
        kept.append([SessionRenamed(name)], lambda _: None)
        kept.set_meta(name=name)
        kept.close()
    return 0


def delete_session(session: str, yes: bool) -> int:
    """Delete a session for good; without `yes` nothing is deleted."""
    folder = _folder(session)
    if not yes:
        raise UsageError(f"{session} was not deleted", "say --yes to delete it for good")
    with SessionLock.take(folder):
        shutil.rmtree(folder)
    return 0


def stats(workspace: Path, everywhere: bool, as_json: bool) -> int:
    """The figures of product.md over the sessions of this workspace, or of all."""
    total = Figures()
    for entry in _entries(workspace, everywhere):
        total = total.plus(figures_of(_events(entry.id)))
    if as_json:
        _print(total.values())
    else:
        for words, value in total.in_words():
            _print(f"{words:<34} {value}")
    return 0


def _entries(workspace: Path, everywhere: bool) -> list[Entry]:
    return catalog.list_sessions(user_folders().data, None if everywhere else workspace)


def _folder(session: str) -> Path:
    folder = catalog.folder_of(user_folders().data, session)
    if not (folder / catalog.LOG).exists():
        raise SessionError(f"There is no session {session}", "`tui-agent sessions list --all` shows them")
    return folder


def _events(session: str) -> list[Any]:
    return list(log.load(_folder(session) / catalog.LOG).events)


def _entry_values(entry: Entry) -> dict[str, Any]:
    return msgspec.to_builtins(entry)


def _entry_line(entry: Entry, everywhere: bool) -> str:
    when = datetime.fromtimestamp(entry.updated, UTC).astimezone().strftime("%Y-%m-%d %H:%M")
    title = " ".join((entry.name or entry.first_request or "nothing said yet").split())[:60]
    where = f"  {entry.workspace}" if everywhere else ""
    return f"{entry.id}  {when}  {entry.turns:>3} turns  {title}{where}"


def _message_text(message: ChatMessage) -> str:
    who = {"person": "you", "agent": "agent", "note": "note"}[message.kind]
    parts = [part for part in (message.summary, message.text.strip()) if part]
    return f"[{message.turn}] {who}: " + "\n".join(parts) + (" (cut off)" if message.cut else "")


def _found(entry: Entry, message: ChatMessage, text: str, as_json: bool) -> str | dict[str, Any]:
    if as_json:
        return {"id": entry.id, "turn": message.turn, "kind": message.kind, "text": text}
    return f"{entry.id}  turn {message.turn}  {message.kind}: {text[:120]}"


def _print(value: str | dict[str, Any]) -> None:
    text = json.dumps(value, ensure_ascii=False) if isinstance(value, dict) else clean(value)
    sys.stdout.write(text + "\n")
