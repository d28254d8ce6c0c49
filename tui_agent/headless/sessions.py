"""`tui-agent sessions …` and `stats`: what is kept, listed, read, searched, exported, forked and deleted."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import msgspec

from tui_agent.errors import FileError, SessionError, UsageError
from tui_agent.files.blobs import Blobs
from tui_agent.files.private import replace_private
from tui_agent.files.secret_values import SecretValues
from tui_agent.headless.output import document, json_line, note, row, say
from tui_agent.log import catalog, directory
from tui_agent.log.catalog import FoundLine, Sort, delete, rename, search
from tui_agent.log.cleanup import Cleaned, clean, readable, used
from tui_agent.log.directory import SessionEntry
from tui_agent.log.exchanges import Exchange, exchanges
from tui_agent.log.fork import fork
from tui_agent.log.log import events_of, timed_events_of
from tui_agent.log.stats import Figures, figures_over_time
from tui_agent.log.transcript import in_order
from tui_agent.log.transfer import as_json as exported_json
from tui_agent.log.transfer import as_markdown, known_secrets
from tui_agent.settings import trust
from tui_agent.settings.folders import user_folders
from tui_agent.settings.loading import load
from tui_agent.store.events import Event
from tui_agent.store.state import ChatMessage

#: How wide the bars of `stats --plot` are.
BAR_CELLS = 24


def list_sessions(workspace: Path, everywhere: bool, as_json: bool, sort: Sort = "newest") -> int:
    """Newest first, or in another order; the id comes first on each line."""
    entries = catalog.sorted_by(_entries(workspace, everywhere), sort)
    for entry in entries:
        json_line(_entry_values(entry)) if as_json else row(_entry_line(entry, everywhere))
    if not entries and not as_json:
        note(
            "No session yet."
            if everywhere
            else "No session of this workspace yet; --all lists those of others."
        )
    return 0


def show_session(session: str, as_json: bool, sent: bool = False) -> int:
    """What was said, in words, or a JSON object a message; with `sent`, what the model was sent and answered."""
    if sent:
        return _show_sent(session, as_json)
    events = _events(session)
    secrets = _secrets(events)
    for message in in_order(events):
        _show(message, _message_text(message), as_json, secrets)
    return 0


def _show_sent(session: str, as_json: bool) -> int:
    events = _events(session)
    secrets = _secrets(events)
    for exchange in exchanges(events, Blobs(user_folders().data / "blobs")):
        _show(exchange, _exchange_text(exchange), as_json, secrets)
    return 0


def _secrets(events: Sequence[Event]) -> SecretValues:
    from tui_agent.git.object_stores import KEPT

    return known_secrets(events, user_folders().state / KEPT)


def _show(value: Any, text: str, as_json: bool, secrets: SecretValues) -> None:
    """A message in words or as JSON, without secret values: what is shown is passed on."""
    json_line(secrets.masked_json(msgspec.to_builtins(value))) if as_json else say(secrets.masked(text)[0])


def search_sessions(words: str, workspace: Path, everywhere: bool, as_json: bool) -> int:
    """Every message or file name that holds all the words; each line begins with the session's id."""
    for line in search(user_folders().data, words, None if everywhere else workspace):
        json_line(_found(line)) if as_json else row(_found_line(line))
    return 0


def export_session(session: str, form: Literal["md", "json"], output: Path | None) -> int:
    """A session as one file, secrets masked; on standard output where no file is named.

    It is read back, as `import` would, before this is done. A file is made with the rights 0600.
    """
    events = _events(session)
    blobs = Blobs(user_folders().data / "blobs")
    secrets = _secrets(events)
    if form == "md":
        text = as_markdown(session, events, secrets)
    else:
        text = exported_json(session, events, blobs, secrets)
    if form == "json":
        _check_readable(session, text)
    data = text.encode("utf-8", "replace")
    if output is None:
        document(text, is_json=form == "json")
        return 0
    try:
        _write_out(output, data)
        back = output.read_bytes() if output.is_file() else data
    except OSError as error:
        raise FileError(f"{output} cannot be written ({error.strerror})", "name another file") from error
    if back != data:
        raise FileError(f"{output} does not hold what was written", "free some space, or name another file")
    return 0


def _check_readable(session: str, text: str) -> None:
    from tui_agent.log import transfer

    try:
        transfer.parsed(text, Path(session))
    except SessionError as error:
        what = f"The export of {session} cannot be read back ({error.what})"
        raise FileError(what, "take --format md, and report it") from error


def _write_out(output: Path, data: bytes) -> None:
    """A session is the person's alone, whatever the umask; a pipe or a device takes it as it is. Raises OSError."""
    if output.exists() and not output.is_file():
        output.write_bytes(data)
    else:
        replace_private(output.resolve(), data)


def import_session(source: Path, workspace: Path, remove_legacy: bool) -> int:
    """An export or a task folder becomes a session of this workspace; prints its id."""
    from tui_agent.log import transfer

    row(transfer.import_session(user_folders().data, source, workspace, remove_legacy))
    return 0


def fork_session(session: str, turn: int | None) -> int:
    """A new session that begins where this one stood; prints its id, and on standard error which files differ."""
    forked = fork(user_folders().data, session, turn)
    row(forked.id)
    if forked.sentence:
        note(forked.sentence)
    return 0


def rename_session(session: str, name: str) -> int:
    """Give a session a name."""
    rename(user_folders().data, session, name)
    return 0


def delete_session(session: str, yes: bool) -> int:
    """Delete a session for good, its private commits too; without `yes` nothing is deleted."""
    data = user_folders().data
    directory.existing(data, session)
    if not yes:
        raise UsageError(f"{session} was not deleted", "say --yes to delete it for good")
    asyncio.run(delete(data, session))
    return 0


def stats(workspace: Path, session: str, everywhere: bool, form: Literal["words", "json", "plot"]) -> int:
    """The figures of one session, of this workspace's, or of all."""
    names = [session] if session else [entry.id for entry in _entries(workspace, everywhere)]
    total = Figures()
    for name in names:
        lost: list[str] = []
        total = total.plus(figures_over_time(timed_events_of(_log(name), lost), name))
        _say_lost(lost)
    match form:
        case "json":
            json_line(total.values())
        case "plot":
            for line in _plot(total):
                row(line)
        case "words":
            for words, value in total.in_words():
                row(f"{words:<36} {value}")
    return 0


def _plot(figures: Figures) -> Iterator[str]:
    """Bars: each figure against its goal, then what became of the patterns."""
    yield f"{_count(figures.sessions, 'session')}, {_count(figures.turns, 'turn')}"
    for goal in figures.goals():
        bound = f"≤ {goal.most:g}" if goal.most is not None else f"≥ {goal.least:g}"
        value = "–" if goal.value is None else f"{goal.value:g}"
        scale = max(goal.value or 0, (goal.most or 0) * 2, goal.least or 0)
        yield f"{goal.words:<38} {_bar(goal.value or 0, scale)} {value:>7}  {bound}{'' if goal.met else '  missed'}"
    counts = {f"hit at pattern {place}": count for place, count in sorted(figures.hits.items())}
    if figures.built_in:
        counts["hit by a built-in pattern"] = figures.built_in
    counts |= {
        outcome.replace("_", " "): count
        for outcome, count in sorted(figures.outcomes.items())
        if outcome != "hit"
    }
    for words, count in counts.items():
        yield f"{words:<38} {_bar(count, max(counts.values()))} {count:>7}"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _bar(value: float, scale: float) -> str:
    """A bar of eighths of a cell, `BAR_CELLS` wide where `value` is `scale`."""
    eighths = round(8 * BAR_CELLS * min(value / scale, 1.0)) if scale else 0
    return ("█" * (eighths // 8) + (" ▏▎▍▌▋▊▉"[eighths % 8] if eighths % 8 else "")).ljust(BAR_CELLS)


def _entries(workspace: Path, everywhere: bool) -> list[SessionEntry]:
    return catalog.list_sessions(user_folders().data, None if everywhere else workspace)


def _log(session: str) -> Path:
    return directory.existing(user_folders().data, session) / directory.LOG


def _events(session: str) -> list[Any]:
    lost: list[str] = []
    events = list(events_of(_log(session), lost))
    _say_lost(lost)
    return events


def _say_lost(lost: list[str]) -> None:
    """What could not be read of a log goes to standard error."""
    for sentence in lost:
        note(sentence)


def _entry_values(entry: SessionEntry) -> dict[str, Any]:
    values: dict[str, Any] = msgspec.to_builtins(entry)
    del values["rank"]  # the order of the lines says it
    return values


def _entry_line(entry: SessionEntry, everywhere: bool) -> str:
    when = datetime.fromtimestamp(entry.updated, UTC).astimezone().strftime("%Y-%m-%d %H:%M")
    title = entry.title[:60] + (f"  ({entry.note})" if entry.note else "")
    where = f"  {entry.workspace}" if everywhere else ""
    return f"{entry.id}  {when}  {_count(entry.turns, 'turn'):>9}  {entry.size_in_words:>7}  {title}{where}"


def _message_text(message: ChatMessage) -> str:
    if ran := message.command:
        check = f"check {message.check.name}: " if message.check else "command: "
        head = f"[{message.turn}] {check}{ran.command} ({ran.ending}, {ran.seconds:.1f} s)"
        return "\n".join(part for part in (head, ran.output.rstrip()) if part)
    who = "you" if message.kind == "person" else message.kind
    parts = [part for part in (message.headline, message.text.strip()) if part]
    return f"[{message.turn}] {who}: " + "\n".join(parts) + (" (cut off)" if message.cut else "")


def _exchange_text(exchange: Exchange) -> str:
    restarted = ", restarted" if exchange.reset else ""
    to = f"{exchange.purpose} to {exchange.model or 'the model'}"
    head = f"== turn {exchange.turn}, {to}, {exchange.tokens} tokens{restarted}"
    answer = ["-- answer", exchange.reply] if exchange.reply else ["-- no answer"]
    return "\n".join([head, *exchange.messages, *answer])


def _found(line: FoundLine) -> dict[str, Any]:
    return {"id": line.session, "turn": line.turn, "kind": line.kind, "text": " ".join(line.text.split())}


def _found_line(line: FoundLine) -> str:
    return f"{line.session}  turn {line.turn}  {line.kind}: {' '.join(line.text.split())[:120]}"


def clean_store(workspace: Path, *, young: bool, yes: bool, as_json: bool) -> int:
    """Print what the store holds, and with `yes` clean it first; 1 where it stays over its limit."""
    folders = user_folders()
    limit = load(folders, workspace, trust.is_trusted(workspace, folders)).settings.undo.max_bytes
    size = used(folders.data)
    done = clean(folders.data, limit, young=young) if yes else Cleaned(size, size)
    if as_json:
        json_line({**msgspec.to_builtins(done), "limit": limit})
    else:
        row(in_words(done, limit))
    return 1 if yes and done.after > limit else 0


def in_words(done: Cleaned, limit: int) -> str:
    """What there is, what went, and what could be done."""
    said = [f"{readable(done.after)} of {readable(limit)} kept for undo and resume"]
    if done.removed:
        said.append(f"{done.removed} texts removed ({readable(done.before - done.after)})")
    if done.why_not:
        said.append(f"nothing was removed: {done.why_not}")
    elif done.young:
        said.append(f"{readable(done.young)} are younger than 30 days: --young removes them too")
    elif done.after > limit and not done.removed:
        said.append("--yes removes the oldest")
    return "; ".join(said)
