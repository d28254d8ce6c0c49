"""Export of sessions as JSON, Markdown, a patch or requests, and import from an export or a task folder."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import reduce
from operator import or_
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from tui_agent.context.blocks import fenced
from tui_agent.edits.change import Checkpoint, diff_of, unified
from tui_agent.errors import FileError, SessionError
from tui_agent.files.blobs import Blobs
from tui_agent.files.gate import LOOKS_SECRET
from tui_agent.files.known_secrets import KnownSecrets
from tui_agent.files.masking import masked, masked_values
from tui_agent.files.names import display_path
from tui_agent.files.operating_system import HALF_A_LETTER, TOO_DEEP, read_given, read_start
from tui_agent.files.secret_values import SecretValues
from tui_agent.files.sensitive_paths import is_secret
from tui_agent.files.text import md5, one_line
from tui_agent.log import directory, log, task_folder
from tui_agent.log.records import body_of
from tui_agent.log.snapshot import messages_of
from tui_agent.store import events as e
from tui_agent.store.conversation import SentMessage
from tui_agent.store.events import LASTING, Event, Lasting
from tui_agent.store.state import ChatMessage


class ForkResult(Struct, frozen=True):
    """The new id, and the paths whose files on disk differ from those of its turn. `lost` are sentences
    about unreadable records, which are not copied.
    """

    id: str
    differing: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()

    @property
    def sentence(self) -> str:
        said = []
        if self.differing:
            names = ", ".join(display_path(path) for path in self.differing[:10])
            more = f" and {len(self.differing) - 10} more" if len(self.differing) > 10 else ""
            said = [
                f"These files changed after that turn and were not reverted: {names}{more}. Undo reverts them"
            ]
        return ". ".join([*said, *self.lost])


def fork(data: Path, session: str, turn: int | None = None) -> ForkResult:
    """Copies the events up to the end of `turn`, or all. Raises SessionError.

    Changes applied later stay on disk; the new session lists them as applies that can be undone.
    """
    source = directory.existing(data, session) / directory.LOG
    lost: list[str] = []
    events = list(log.events_of(source, lost))
    kept = _up_to(events, session, turn)
    later = applies_in_force(events, len(kept))
    entry = directory.read_entry(source.parent)
    workspace = Path(entry.workspace) if entry else Path()
    forked = ForkResult(directory.new_id(data), differing(workspace, later), tuple(lost))
    copied: list[Lasting] = [*kept, *(e.CheckpointMade(replace(point, picks=())) for point in later)]
    copied.append(e.SessionForked(session, forked.sentence))
    started = [event for event in kept if isinstance(event, e.TurnStarted)]
    values: dict[str, object] = {"turns": len(started)}
    if started:
        values["first_request"] = started[0].request[:200]
    if entry is not None:
        values |= {"workspace": entry.workspace, "started_from": entry.started_from}
        values["name"] = f"{entry.name} (fork)" if entry.name else ""
    write(data, forked.id, as_copied(copied, forked.id), **values)
    return forked


def as_copied(events: Sequence[Lasting], session: str) -> list[Lasting]:
    """`session` does not count the events of another session as its own."""
    return [
        replace(event, id=session, copied=len(events) - 1) if isinstance(event, e.SessionStarted) else event
        for event in events
    ]


def write(data: Path, session: str, events: Sequence[Lasting], **meta: object) -> None:
    """Raises SessionError and removes an incomplete session."""
    folder = directory.folder_of(data, session)
    made = log.Log.create(folder / directory.LOG)
    failures: list[SessionError] = []
    made.append(events, lambda _: None, failures.append)
    made.set_meta(**meta)
    made.close()
    if failures:
        shutil.rmtree(folder, ignore_errors=True)
        raise failures[0]


def applies_in_force(events: Sequence[Lasting], start: int) -> list[Checkpoint]:
    points: dict[str, Checkpoint] = {}
    for event in events[start:]:
        match event:
            case e.CheckpointMade(checkpoint):
                points[checkpoint.id] = checkpoint
            case e.CheckpointUndone(name, undone) if name in points:
                points[name] = replace(points[name], undone=undone)
    return [point for point in points.values() if not point.undone]


def moved_since(log_path: Path, turn: int) -> list[Checkpoint]:
    """Returns the applies whose effect on the files changed since the start of `turn`: those made or done
    again, newest first, then those undone. Blocking.
    """
    then: dict[str, bool] = {}
    now: dict[str, Checkpoint] = {}
    begun = False
    for event in log.events_of(log_path, []):
        match event:
            case e.TurnStarted(number) if number >= turn and not begun:
                begun, then = True, {name: point.undone for name, point in now.items()}
            case e.CheckpointMade(point):
                now[point.id] = point
            case e.CheckpointUndone(name, undone) if name in now:
                now[name] = replace(now[name], undone=undone)
    moved = [point for point in now.values() if begun and point.undone != then.get(point.id, True)]
    return [
        *reversed([point for point in moved if not point.undone]),
        *(point for point in moved if point.undone),
    ]


def differing(workspace: Path, points: Iterable[Checkpoint]) -> tuple[str, ...]:
    """Compares with the state before the first of these applies."""
    before: dict[str, str] = {}
    for point in points:
        for step in point.files:
            before.setdefault(step.path, step.before)
    found = []
    for path, key in before.items():
        try:
            now = md5(read_start(workspace / path))
        except OSError:
            now = ""
        if now != key:
            found.append(path)
    return tuple(found)


def _up_to(events: Sequence[Lasting], session: str, turn: int | None) -> list[Lasting]:
    kept: list[Lasting] = []
    last = 0
    for event in events:
        if isinstance(event, e.TurnStarted):
            last = event.turn
            if turn is not None and event.turn > turn:
                break
        kept.append(event)
    if turn is not None and turn > last:
        raise SessionError(f"{session} has no turn {turn}", f"its last is {last}")
    return kept


class Exchange(Struct, frozen=True):
    """`messages` are added, as JSON; with `reset` they start a conversation. A note replaces a missing text."""

    turn: int
    purpose: str
    model: str
    protocol: str
    reset: bool
    tokens: int
    messages: tuple[str, ...]
    reply: str = ""


def exchanges(events: Iterable[e.Event], blobs: Blobs) -> Iterator[Exchange]:
    waiting: Exchange | None = None
    begun: tuple[str, ...] = ()
    for event in events:
        match event:
            case e.ConversationBegun(messages=messages):
                begun = tuple(_text_of(message, blobs) for message in messages)
            case e.RequestSent():
                if waiting is not None:
                    yield waiting
                waiting = Exchange(
                    turn=event.turn,
                    purpose=event.purpose,
                    model=event.model,
                    protocol=event.protocol,
                    reset=event.reset or bool(begun),
                    tokens=event.tokens,
                    messages=(*begun, *(_text_of(message, blobs) for message in event.messages)),
                )
                begun = ()
            case e.ReplyRead(sent=SentMessage() as sent) if waiting is not None:
                yield replace(waiting, reply=_text_of(sent, blobs))
                waiting = None
    if waiting is not None:
        yield waiting


def _text_of(message: SentMessage, blobs: Blobs) -> str:
    try:
        return blobs.get_text(message.blob)
    except FileError as error:
        return f'{{"role": "{message.role}", "content": null, "missing": "{error.what}"}}'


VERSION = 1
TYPE = "tui-agent-session"
KEY = re.compile(r"[0-9a-f]{32}")


def known_secrets(events: Sequence[Event], cache: Path | None = None) -> SecretValues:
    """Returns the secrets now in the session's folder. With `cache` (a folder of ours), also those of its
    repository's history if commands ran. Blocking.
    """
    roots = [event.workspace for event in events if isinstance(event, e.SessionStarted)]
    decisions = {event.digest: event.choice for event in events if isinstance(event, e.SecretDecided)}
    known = KnownSecrets(*roots)
    if cache is not None and any(isinstance(event, e.CommandEnded) for event in events):
        from tui_agent.git.object_stores import secrets_in_history

        for root in dict.fromkeys(roots):
            for name, data in secrets_in_history(root, cache):
                known.add(os.fsdecode(name), data)
    return known.look(decisions)


def as_markdown(session: str, events: Sequence[Event], secrets: SecretValues | None = None) -> str:
    parts = [f"# Session {session}", *(_section(message) for message in messages_of(events))]
    text = "\n\n".join(parts)
    return masked(secrets.masked(text)[0] if secrets else text) + "\n"


def as_json(
    session: str, events: Sequence[Event], blobs: Blobs | None = None, secrets: SecretValues | None = None
) -> str:
    """Writes a header, every event in order, then the referenced texts by hash. Masks keys and the values of
    `secrets`.

    Values are masked before serialization, so the JSON stays valid. A masked text keeps the hash of the
    original. Omits binary contents, files that look like secrets, and files that the model received
    masked.
    """
    bodies = [json.loads(body_of(event).data) for event in events]

    def written(value: Any) -> str:
        return json.dumps(masked_values(secrets.masked_json(value) if secrets else value))

    head = json.dumps({"type": TYPE, "version": VERSION, "id": session})
    lines = [written(body) for body in bodies]
    texts = _texts(bodies, secret_paths(events), blobs) if blobs else ()
    kept = [f"{json.dumps(key)}: {written(text)}" for key, text in texts]
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
            continue


def _keys(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
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


def secret_paths(events: Sequence[Event]) -> set[str]:
    """Returns files that are secret by more than their names."""
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


def as_patch(events: Sequence[Event], blobs: Blobs, secrets: SecretValues) -> tuple[str, list[str]]:
    """Returns the net effect of all applied and not undone changes, for `git apply`, and the omissions in
    sentences. Covers edits by others between two applies of a file. Masks secrets.
    """
    first: dict[str, tuple[str, int | None]] = {}
    last: dict[str, tuple[str, int | None]] = {}
    checkpoints: dict[str, Checkpoint] = {}
    for event in events:
        match event:
            case e.CheckpointMade(checkpoint):
                checkpoints[checkpoint.id] = checkpoint
                for step in checkpoint.files:
                    first.setdefault(step.path, (step.before, step.mode))
                    last[step.path] = (step.after, step.mode_after)
            case e.CheckpointUndone(id=name, undone=undone, written=written) if name in checkpoints:
                for step in checkpoints[name].files:
                    key = written.get(step.path, step.before if undone else step.after)
                    last[step.path] = (key, step.mode if undone else step.mode_after)
    hidden, parts, notes = secret_paths(events), [], []
    for path, (before, old_mode) in first.items():
        after, new_mode = last[path]
        if (before, old_mode) == (after, new_mode):
            continue
        if path in hidden or is_secret(path):
            notes.append(f"{path} is left out: it looks like a secret")
            continue
        try:
            base, new = (blobs.get(key).decode() if key else None for key in (before, after))
        except FileError:
            notes.append(f"{path} is left out: its texts were deleted")
            continue
        except UnicodeDecodeError:
            notes.append(f"{path} is left out: it is not UTF-8 text")
            continue
        base_shown, new_shown = (
            None if text is None else masked(secrets.masked(text)[0]) for text in (base, new)
        )
        if (base_shown, new_shown) != (base, new):
            notes.append(f"{path} is masked in part, so git may refuse its patch")
        modes = tuple("100755" if (mode or 0) & 0o100 else "100644" for mode in (old_mode, new_mode))
        parts.append(_file_patch(path, base_shown, new_shown, modes))
    return "".join(parts), notes


def _file_patch(path: str, base: str | None, new: str | None, modes: tuple[str, ...]) -> str:
    old_name, new_name = (_git_name(f"{side}/{path}") for side in "ab")
    head = [f"diff --git {old_name} {new_name}"]
    if base is None:
        head.append(f"new file mode {modes[1]}")
    elif new is None:
        head.append(f"deleted file mode {modes[0]}")
    elif modes[0] != modes[1]:
        head += [f"old mode {modes[0]}", f"new mode {modes[1]}"]
    _, *body = unified(diff_of("", base or "", new or "")).split("\n", 2)  # Without the names.
    if body:
        names = (
            name if text is not None else "/dev/null" for name, text in ((old_name, base), (new_name, new))
        )
        # A tab ends a name with spaces, as in git.
        names = (f"{name}\t" if " " in name else name for name in names)
        head += [f"{mark} {name}" for mark, name in zip(("---", "+++"), names, strict=True)]
    return "\n".join([*head, *(body[1:] or [""])])


def _git_name(name: str) -> str:
    if name.isprintable() and not set(name) & set('"\\'):
        return name
    escaped = (
        chr(byte) if 32 <= byte < 127 and byte not in b'"\\' else f"\\{byte:03o}"
        for byte in os.fsencode(name)
    )
    return f'"{"".join(escaped)}"'


def _section(message: ChatMessage) -> str:
    if message.command:
        # A longer fence than any inside cannot be closed by them.
        ran = message.command
        ending = f"{ran.ending}, {ran.seconds:.1f} s"
        return (
            f"## {one_line(message.title)}, turn {message.turn}\n\n{ending}\n\n{fenced(ran.printed, 'text')}"
        )
    words = [f"**{message.headline}**" if message.headline else "", message.text.strip()]
    return f"## {message.title}, turn {message.turn}\n\n" + "\n\n".join(word for word in words if word)


def import_session(data: Path, source: Path, workspace: Path, remove_legacy: bool = False) -> str:
    """Returns the new session's id. Raises SessionError, and stores nothing, if `source` is damaged or of an
    unknown kind.

    `remove_legacy` deletes an older messages file once it has been completely read back from the new log.
    """
    blobs = Blobs(data / "blobs")
    session = directory.new_id(data)
    history: Path | None = None
    try:
        if source.is_dir() or source.name in task_folder.NAMES:
            history, messages = (
                task_folder.read_folder(source)
                if source.is_dir()
                else (source, task_folder.read_messages(source))
            )
            events = task_folder.events_of(messages, session, workspace, blobs)
            events += task_folder.known_files(history.parent, messages, workspace)
        else:
            try:
                text = read_given(source).decode()
            except OSError as error:
                what = f"{display_path(str(source))} cannot be read ({error.strerror})"
                raise SessionError(what, "name another file") from error
            except ValueError as error:
                raise _refused(source, "it is not UTF-8 text") from error
            started, *others = parsed(text, source, blobs.put_text)
            events = [replace(started, id=session, workspace=str(workspace), replay=""), *others]
    except RecursionError:
        raise _refused(source, TOO_DEEP) from None
    except UnicodeEncodeError:
        raise _refused(source, HALF_A_LETTER) from None
    requests = [event.request for event in events if isinstance(event, e.TurnStarted)]
    names = [event.name for event in events if isinstance(event, e.SessionRenamed)]
    write(
        data,
        session,
        as_copied(events, session),
        workspace=str(workspace),
        started_from=os.fspath(workspace),
        turns=len(requests),
        first_request=requests[0][:200] if requests else "",
        name=names[-1] if names else "",
    )
    if history is not None and remove_legacy:
        task_folder.remove_legacy(history, directory.folder_of(data, session) / directory.LOG, blobs)
    return session


def parsed(text: str, source: Path, put_text: Callable[[str], str] = str) -> list[Any]:
    """Passes the texts of an export to `put_text`. `source` is its name in errors. Raises SessionError.

    Drops the user's decisions about secrets: they concern files elsewhere.
    """
    try:
        value: Any = json.loads(text)
    except ValueError as error:
        raise _refused(source, "its JSON is not complete") from error
    except RecursionError as error:
        raise _refused(source, TOO_DEEP) from error
    if not isinstance(value, dict) or value.get("type") != TYPE:
        raise _refused(source, "it is not an export of a session")
    version, events, texts = value.get("version"), value.get("events"), value.get("texts", {})
    if not isinstance(version, int) or version > VERSION:
        raise _refused(source, "a newer tui-agent wrote it")
    if not isinstance(events, list) or not isinstance(texts, dict) or not events:
        raise _refused(source, "parts of it are missing")
    try:
        kept = {key: put_text(text) for key, text in texts.items()}
        kinds: Any = reduce(or_, LASTING.values())
        found = [msgspec.convert(_renamed(event, kept), type=kinds) for event in events]
    except (msgspec.ValidationError, AttributeError, TypeError) as error:
        raise _refused(source, f"an event in it cannot be read: {error}") from error
    if not isinstance(found[0], e.SessionStarted):
        raise _refused(source, "its beginning is missing")
    # Another user's permissions, mode and goal do not apply here.
    decided = (e.SecretDecided, e.PermissionDecided, e.PermissionRevoked, e.ModeChosen, e.GoalSet)
    return [event for event in found if not isinstance(event, decided)]


def _renamed(value: Any, kept: dict[str, str]) -> Any:
    match value:
        case str():
            return kept.get(value, value)
        case list():
            return [_renamed(item, kept) for item in value]
        case dict():
            return {key: _renamed(item, kept) for key, item in value.items()}
    return value


def _refused(source: Path, why: str) -> SessionError:
    return SessionError(
        f"{display_path(str(source))} was not imported, {why}",
        "name a file of `sessions export --format json`, or a task folder",
    )
