"""`tui-agent sessions …` and `stats`: what is kept, listed, read, searched, exported, forked and deleted."""

from __future__ import annotations

import asyncio
import json
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import msgspec

from tui_agent.errors import FileError, UsageError
from tui_agent.files.blobs import Blobs
from tui_agent.headless.words import clean
from tui_agent.session import catalog
from tui_agent.session.catalog import Entry, Sort
from tui_agent.session.exporting import as_json as exported_json
from tui_agent.session.exporting import as_markdown
from tui_agent.session.figures import Figures, figures_of
from tui_agent.session.forking import fork
from tui_agent.session.log import events_of
from tui_agent.session.managing import delete, rename
from tui_agent.session.search import Line, search
from tui_agent.session.sent import Exchange, exchanges
from tui_agent.session.transcript import in_order
from tui_agent.settings.folders import user_folders
from tui_agent.store.state import ChatMessage


def list_sessions(workspace: Path, everywhere: bool, as_json: bool, sort: Sort = "newest") -> int:
    """Newest first, or in another order; the id comes first on each line."""
    for entry in catalog.sorted_by(_entries(workspace, everywhere), sort):
        _print(_entry_values(entry) if as_json else _entry_line(entry, everywhere))
    return 0


def show_session(session: str, as_json: bool, sent: bool = False) -> int:
    """What was said, in words, or a JSON object a message; with `sent`, what the model was sent and answered."""
    if sent:
        return _show_sent(session, as_json)
    lost: list[str] = []
    for message in in_order(events_of(_log(session), lost)):
        _print(msgspec.to_builtins(message) if as_json else _message_text(message))
    _say_lost(lost)
    return 0


def _show_sent(session: str, as_json: bool) -> int:
    blobs = Blobs(user_folders().data / "blobs")
    lost: list[str] = []
    for exchange in exchanges(events_of(_log(session), lost), blobs):
        _print(msgspec.to_builtins(exchange) if as_json else _exchange_text(exchange))
    _say_lost(lost)
    return 0


def search_sessions(words: str, workspace: Path, everywhere: bool, as_json: bool) -> int:
    """Every message or file name that holds all the words; each line begins with the session's id."""
    for line in search(user_folders().data, words, None if everywhere else workspace):
        _print(_found(line, as_json))
    return 0


def export_session(session: str, form: Literal["md", "json"], output: Path | None) -> int:
    """A session as one file, secrets masked; on standard output where no file is named."""
    events = _events(session)
    blobs = Blobs(user_folders().data / "blobs")
    text = as_markdown(session, events) if form == "md" else exported_json(session, events, blobs)
    if output is None:
        sys.stdout.write(text)
        return 0
    try:
        output.write_text(text, encoding="utf-8", errors="replace")
    except OSError as error:
        raise FileError(f"{output} cannot be written ({error.strerror})", "name another file") from error
    return 0


def import_session(source: Path, workspace: Path, remove_legacy: bool) -> int:
    """An export or a task folder becomes a session of this workspace; prints its id."""
    from tui_agent.session import importing

    _print(importing.import_session(user_folders().data, source, workspace, remove_legacy))
    return 0


def fork_session(session: str, turn: int | None) -> int:
    """A new session that begins where this one stood; prints its id, and on standard error which files differ."""
    forked = fork(user_folders().data, session, turn)
    _print(forked.id)
    if forked.sentence:
        sys.stderr.write(clean(forked.sentence) + "\n")
    return 0


def rename_session(session: str, name: str) -> int:
    """Give a session a name."""
    rename(user_folders().data, session, name)
    return 0


def delete_session(session: str, yes: bool) -> int:
    """Delete a session for good, its private commits too; without `yes` nothing is deleted."""
    data = user_folders().data
    catalog.existing(data, session)
    if not yes:
        raise UsageError(f"{session} was not deleted", "say --yes to delete it for good")
    asyncio.run(delete(data, session))
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


def _log(session: str) -> Path:
    return catalog.existing(user_folders().data, session) / catalog.LOG


def _events(session: str) -> list[Any]:
    lost: list[str] = []
    events = list(events_of(_log(session), lost))
    _say_lost(lost)
    return events


def _say_lost(lost: list[str]) -> None:
    """What could not be read of a log goes to standard error."""
    for sentence in lost:
        sys.stderr.write(clean(sentence) + "\n")


def _entry_values(entry: Entry) -> dict[str, Any]:
    values: dict[str, Any] = msgspec.to_builtins(entry)
    del values["rank"]  # the order of the lines says it
    return values


def _entry_line(entry: Entry, everywhere: bool) -> str:
    when = datetime.fromtimestamp(entry.updated, UTC).astimezone().strftime("%Y-%m-%d %H:%M")
    title = entry.title[:60] + (f"  ({entry.note})" if entry.note else "")
    where = f"  {entry.workspace}" if everywhere else ""
    return f"{entry.id}  {when}  {entry.turns:>3} turns  {entry.size_in_words:>7}  {title}{where}"


def _message_text(message: ChatMessage) -> str:
    who = {"person": "you", "agent": "agent", "note": "note"}[message.kind]
    parts = [part for part in (message.summary, message.text.strip()) if part]
    return f"[{message.turn}] {who}: " + "\n".join(parts) + (" (cut off)" if message.cut else "")


def _exchange_text(exchange: Exchange) -> str:
    anew = ", begun anew" if exchange.reset else ""
    to = f"{exchange.purpose} to {exchange.model or 'the model'}"
    head = f"== turn {exchange.turn}, {to}, {exchange.tokens} tokens{anew}"
    answer = ["-- answer", exchange.reply] if exchange.reply else ["-- no answer"]
    return "\n".join([head, *exchange.messages, *answer])


def _found(line: Line, as_json: bool) -> str | dict[str, Any]:
    text = " ".join(line.text.split())
    if as_json:
        return {"id": line.session, "turn": line.turn, "kind": line.kind, "text": text}
    return f"{line.session}  turn {line.turn}  {line.kind}: {text[:120]}"


def _print(value: str | dict[str, Any]) -> None:
    text = json.dumps(value, ensure_ascii=False) if isinstance(value, dict) else clean(value)
    sys.stdout.write(text + "\n")
