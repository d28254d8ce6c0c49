"""`tui-agent sessions …`: list, read, search, export, fork and delete sessions."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import click
import msgspec

from tui_agent.errors import FileError, SessionError, UsageError
from tui_agent.files.blobs import Blobs
from tui_agent.files.private import replace_private
from tui_agent.git.object_stores import KEPT
from tui_agent.headless import arguments
from tui_agent.headless.arguments import CommandGroup
from tui_agent.headless.output import document, json_line, note, row, write_text
from tui_agent.log import catalog, cleanup, directory, transfer
from tui_agent.log.catalog import Sort
from tui_agent.log.cleanup import CleanupResult, cleanup_summary, used
from tui_agent.log.directory import SessionEntry
from tui_agent.log.log import events_of, timed_events_of
from tui_agent.log.snapshot import in_order
from tui_agent.log.stats import SPENT_SHOWN, Figures, figures_over_time
from tui_agent.log.transfer import Exchange, exchanges
from tui_agent.log.web_page import as_web_page
from tui_agent.settings.folders import user_folders
from tui_agent.settings.trust import load_as_trusted
from tui_agent.store.state import ChatMessage

session_argument = click.argument(
    "session",
    metavar="ID|last",
    shell_complete=arguments.sessions,
    callback=lambda context, parameter, value: arguments.session_id(value),
)


@click.group("sessions", cls=CommandGroup)
def sessions() -> None:
    """List, read, search, export, fork and delete sessions."""


@sessions.command("list")
@arguments.all_option
@click.option(
    "--sort",
    type=click.Choice(["newest", "turns", "size", "name"]),
    default="newest",
    help="Sort order.",
)
@arguments.json_option
def list_(everywhere: bool, sort: Sort, as_json: bool) -> int:
    """List sessions, newest first. The first column is the id."""
    entries = catalog.sorted_by(entries_of(arguments.workspace_folder("."), everywhere), sort)
    for entry in entries:
        if as_json:
            values = msgspec.to_builtins(entry)
            del values["rank"]
            json_line(values)
        else:
            when = datetime.fromtimestamp(entry.updated, UTC).astimezone().strftime("%Y-%m-%d %H:%M")
            figures = f"{count(entry.turns, 'turn'):>9}  {entry.size_in_words:>7}"
            title = entry.title[:60] + (f"  ({entry.note})" if entry.note else "")
            where = f"  {entry.workspace}" if everywhere else ""
            row(f"{entry.id}  {when}  {figures}  {title}{where}")
    if not entries and not as_json:
        note(
            "There are no sessions."
            if everywhere
            else "There are no sessions of this workspace; --all lists the others."
        )
    return 0


@sessions.command()
@session_argument
@click.option("--sent", is_flag=True, help="Show the complete requests and replies.")
@arguments.json_option
def show(session: str, sent: bool, as_json: bool) -> int:
    """Show the messages of a session."""
    events = _events(session)
    secrets = transfer.known_secrets(events, user_folders().state / KEPT)  # Displayed text can be shared.
    shown: Iterable[tuple[Any, str]] = ((one, _message_text(one)) for one in in_order(events))
    if sent:
        blobs = Blobs(user_folders().data / "blobs")
        shown = ((one, _exchange_text(one)) for one in exchanges(events, blobs))
    for value, text in shown:
        if as_json:
            json_line(secrets.masked_json(msgspec.to_builtins(value)))
        else:
            write_text(secrets.masked(text)[0])
    return 0


@sessions.command()
@click.argument("words", metavar="WORDS", nargs=-1, required=True)
@arguments.all_option
@arguments.json_option
def search(words: tuple[str, ...], everywhere: bool, as_json: bool) -> int:
    """Search all messages for WORDS. The first column is the session's id."""
    here = arguments.workspace_folder(".")
    for line in catalog.search(user_folders().data, " ".join(words), None if everywhere else here):
        text = " ".join(line.text.split())
        if as_json:
            json_line({"id": line.session, "turn": line.turn, "kind": line.kind, "text": text})
        else:
            row(f"{line.session}  turn {line.turn}  {line.kind}: {text[:120]}")
    return 0


@sessions.command()
@session_argument
@click.option(
    "--format",
    "form",
    type=click.Choice(["md", "json", "html", "patch"]),
    default="md",
    help="Markdown, JSON (for import), a web page, or a patch of the applied changes for git.",
)
@click.option(
    "--output",
    metavar="FILE",
    shell_complete=arguments.files,
    help="Output file; default: standard output.",
)
def export(session: str, form: Literal["md", "json", "html", "patch"], output: str | None) -> int:
    """Export a session to a file. Secrets are masked."""
    target = arguments.new_file(output)
    events = _events(session)
    secrets = transfer.known_secrets(events, user_folders().state / KEPT)
    blobs = Blobs(user_folders().data / "blobs")
    match form:
        case "md":
            text = transfer.as_markdown(session, events, secrets)
        case "html":
            text = as_web_page(session, events, blobs, secrets)
        case "patch":
            text, omissions = transfer.as_patch(events, blobs, secrets)
            for sentence in omissions or ([] if text else ["This session has applied no change."]):
                note(sentence)
        case "json":
            text = transfer.as_json(session, events, blobs, secrets)
            try:
                transfer.parsed(text, Path(session))
            except SessionError as error:
                what = f"The export of {session} cannot be read back ({error.what})"
                raise FileError(what, "use --format md, and report it") from error
    if target is None:
        document(text, is_json=form == "json")
        return 0
    data = text.encode("utf-8", "replace")
    try:
        if target.exists() and not target.is_file():
            target.write_bytes(data)
            return 0
        replace_private(target, data)  # Private regardless of the umask.
        back = target.read_bytes()
    except OSError as error:
        raise FileError(f"{target} cannot be written ({error.strerror})", "name another file") from error
    if back != data:
        raise FileError(f"{target} was not written completely", "free some space, or name another file")
    return 0


@sessions.command("import")
@click.argument("source", metavar="FILE|FOLDER", type=click.Path(exists=True))
@click.option("--remove-legacy", is_flag=True, help="Delete the older messages file after the import.")
def import_(source: str, remove_legacy: bool) -> int:
    """Import an exported session or a task folder of Roo Code."""
    here = arguments.workspace_folder(".")
    row(transfer.import_session(user_folders().data, Path(source), here, remove_legacy))
    return 0


@sessions.command()
@session_argument
@click.option("--turn", type=click.IntRange(min=1), help="Last turn to copy; default: all.")
def fork(session: str, turn: int | None) -> int:
    """Copy a session to a new one, and print its id."""
    forked = transfer.fork(user_folders().data, session, turn)
    row(forked.id)
    if forked.sentence:
        note(forked.sentence)
    return 0


@sessions.command()
@session_argument
@click.argument("name", metavar="NAME")
def rename(session: str, name: str) -> int:
    """Rename a session."""
    catalog.rename(user_folders().data, session, name)
    return 0


@sessions.command()
@click.argument("session", metavar="ID", shell_complete=arguments.sessions)
@click.option("--yes", is_flag=True, help="Delete; otherwise only report.")
def delete(session: str, yes: bool) -> int:
    """Delete a session permanently."""
    data = user_folders().data
    directory.existing(data, session)
    if not yes:
        raise UsageError(f"{session} was not deleted", "add --yes to delete it permanently")
    asyncio.run(catalog.delete(data, session))
    return 0


@sessions.command()
@click.option("--young", is_flag=True, help="Include data of the last 30 days, except of open sessions.")
@click.option("--yes", is_flag=True, help="Delete; otherwise only report.")
@arguments.json_option
def clean(young: bool, yes: bool, as_json: bool) -> int:
    """Delete the oldest undo data, down to undo.max_bytes."""
    limit = load_as_trusted(arguments.workspace_folder(".")).settings.undo.max_bytes
    data = user_folders().data
    size = used(data)
    done = cleanup.clean(data, limit, young=young) if yes else CleanupResult(size, size)
    if as_json:
        json_line({**msgspec.to_builtins(done), "limit": limit})
    else:
        row(cleanup_summary(done, limit))
    return 1 if yes and done.after > limit else 0


def count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def entries_of(workspace: Path, everywhere: bool) -> list[SessionEntry]:
    return catalog.list_sessions(user_folders().data, None if everywhere else workspace)


def log_of(session: str) -> Path:
    return directory.existing(user_folders().data, session) / directory.LOG


def _events(session: str) -> list[Any]:
    lost: list[str] = []
    events = list(events_of(log_of(session), lost))
    write_lost(lost)
    return events


def write_lost(lost: list[str]) -> None:
    for sentence in lost:
        note(sentence)


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


BAR_CELLS = 24


@click.command()
@click.option(
    "--session",
    default="",
    metavar="ID|last",
    shell_complete=arguments.sessions,
    help="One session; default: all of this workspace.",
)
@arguments.all_option
@arguments.json_option
@click.option("--plot", is_flag=True, help="Draw bar charts with targets.")
def stats(session: str, everywhere: bool, as_json: bool, plot: bool) -> int:
    """Show statistics of turns, files and changes."""
    if session and everywhere:
        raise UsageError("--session and --all cannot be combined", "use one of them")
    if as_json and plot:
        raise UsageError("--json and --plot cannot be combined", "use one of them")
    here, one = arguments.workspace_folder("."), arguments.session_id(session)
    names = [one] if one else [entry.id for entry in entries_of(here, everywhere)]
    total = Figures()
    for name in names:
        lost: list[str] = []
        try:
            total = total.plus(figures_over_time(timed_events_of(log_of(name), lost), name))
        except SessionError as error:
            if one:
                raise
            lost.append(str(error))
        write_lost(lost)
    if as_json:
        json_line(total.values())
    elif plot:
        for line in _plot(total):
            row(line)
    else:
        for words, value in total.in_words():
            row(f"{words:<36} {value}")
    return 0


def _plot(figures: Figures) -> Iterator[str]:
    yield f"{count(figures.sessions, 'session')}, {count(figures.turns, 'turn')}"
    for goal in figures.goals():
        value = "–" if goal.value is None else f"{goal.value:g}"
        scale = max(goal.value or 0, (goal.most or 0) * 2, goal.least or 0)
        missed = "" if goal.met else "  missed"
        yield f"{goal.words:<38} {_bar(goal.value or 0, scale)} {value:>7}  {goal.bound}{missed}"
    found = {f"matched by pattern {place}": number for place, number in sorted(figures.hits.items())}
    if figures.built_in:
        found["matched by a built-in pattern"] = figures.built_in
    found |= {
        outcome.replace("_", " "): number
        for outcome, number in sorted(figures.outcomes.items())
        if outcome != "hit"
    }
    for words, number in found.items():
        yield f"{words:<38} {_bar(number, max(found.values()))} {number:>7}"
    spent = {
        folder: (sums["input"] or 0) + (sums["output"] or 0)
        for folder, sums in figures.spent("workspace").items()
    }
    for folder, tokens in sorted(spent.items(), key=lambda one: -one[1])[:SPENT_SHOWN]:
        name = folder if len(folder) <= 38 else f"…{folder[-37:]}"
        yield f"{name:<38} {_bar(tokens, max(spent.values()))} {tokens:>7,} tokens"


def _bar(value: float, scale: float) -> str:
    eighths = round(8 * BAR_CELLS * min(value / scale, 1.0)) if scale else 0
    return ("█" * (eighths // 8) + (" ▏▎▍▌▋▊▉"[eighths % 8] if eighths % 8 else "")).ljust(BAR_CELLS)
