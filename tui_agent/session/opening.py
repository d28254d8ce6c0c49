"""Opening a session: a new one, or one from the log as it was left."""

from __future__ import annotations

import asyncio
from pathlib import Path

from msgspec import Struct

from tui_agent import __version__
from tui_agent.errors import SessionError
from tui_agent.files.blobs import Blobs
from tui_agent.session import catalog
from tui_agent.session.journal import Journal
from tui_agent.session.lock import SessionLock
from tui_agent.session.log import Log, set_aside
from tui_agent.session.models import make_model
from tui_agent.session.session import Kept, Session
from tui_agent.settings import loading, trust
from tui_agent.settings.folders import Folders, user_folders, why_not_writable
from tui_agent.store import events as e
from tui_agent.store.fold import fold_all
from tui_agent.store.state import State
from tui_agent.store.store import Store


class Opening(Struct, frozen=True):
    """What to open. `session` is "" for a new one, `last` for the workspace's newest, or an id.

    `started_from` is the folder in which the program was started. `interactive` says that a person can be asked.
    """

    workspace: Path
    session: str = ""
    overrides: tuple[str, ...] = ()
    trust: bool = False
    replay: Path | None = None
    record: Path | None = None
    rehearsal: bool = False
    started_from: Path | None = None
    interactive: bool = False
    draft: str = ""


async def open_session(opening: Opening, folders: Folders | None = None) -> Session:
    """The session, its state as it was left. Raises `SessionError` where it is missing or open elsewhere."""
    folders = folders or user_folders()
    unwritable = await asyncio.to_thread(why_not_writable, folders.data)
    if unwritable:
        folder = _memory_folder()
        kept, state = Kept(None, None, Blobs(folder), folder), State()
    else:
        kept, state = await asyncio.to_thread(_open_log, opening, folders)
    workspace = Path(state.session.workspace) if state.session.id else opening.workspace
    trusted = opening.trust or await asyncio.to_thread(trust.is_trusted, workspace, folders)
    loaded = await asyncio.to_thread(loading.load, folders, workspace, trusted, opening.overrides)
    replay = opening.replay or (Path(state.session.replay) if state.session.replay else None)
    store = Store(state)
    journal = Journal(store, kept.log)
    session = Session(
        journal=journal,
        kept=kept,
        loaded=loaded,
        folders=folders,
        workspace=workspace,
        start_folder=_start_folder(workspace, opening.started_from),
        model=make_model(loaded.settings, replay, opening.record, store),
        interactive=opening.interactive,
    )
    await _begin(session, opening, replay, trusted, unwritable)
    return session


def _open_log(opening: Opening, folders: Folders) -> tuple[Kept, State]:
    """The log that is asked for, and the state that it folds to; a new one where none is asked for."""
    data = folders.data
    blobs = Blobs(data / "blobs")
    if not opening.session:
        folder = catalog.folder_of(data, catalog.new_id())
        lock = SessionLock.take(folder)
        return Kept(Log.create(folder / catalog.LOG), lock, blobs, folder), State()
    folder = catalog.folder_of(data, _wanted(opening, data))
    if not (folder / catalog.LOG).exists():
        raise SessionError(f"There is no session {opening.session}", "`tui-agent sessions list` shows them")
    lock = SessionLock.take(folder)
    try:
        log = Log.open(folder / catalog.LOG)
    except SessionError as error:
        lock.release()
        raise SessionError(
            error.what, f"{error.remedy}; the file was kept as {set_aside(folder / catalog.LOG)}"
        ) from error
    read = log.load()
    state = fold_all([*read.events, *read.growing])
    return Kept(log, lock, blobs, folder, tuple(read.lost)), state


def _wanted(opening: Opening, data: Path) -> str:
    if opening.session != "last":
        return opening.session
    newest = catalog.newest(data, opening.workspace) or _begun_here(data, opening.workspace)
    if newest is None:
        raise SessionError(
            f"There is no session for {opening.workspace} yet",
            "start one with `tui-agent`, without --continue",
        )
    return newest.id


def _begun_here(data: Path, folder: Path) -> catalog.Entry | None:
    """The newest rehearsal that was started from this folder: its workspace is a temporary one that nobody knows."""
    entries = (entry for entry in catalog.list_sessions(data) if entry.started_from == str(folder))
    return next((entry for entry in entries if entry.workspace != str(folder)), None)


async def _begin(
    session: Session, opening: Opening, replay: Path | None, trusted: bool, not_kept: str
) -> None:
    journal = session.journal
    state = journal.store.state
    if not state.session.id:
        new_id = session.kept.lock.folder.name if session.kept.lock else catalog.new_id()
        await journal.record(
            e.SessionStarted(
                new_id, str(opening.workspace), str(replay or ""), opening.rehearsal, __version__
            )
        )
        if opening.draft:
            journal.grow(e.DraftChanged(opening.draft))
    else:
        await session.take_up()
    journal.tell(e.SessionOpened(trusted, False, not_kept))
    session.describe(started_from=opening.started_from)
    session.say_at_start([*session.kept.lost, *map(str, session.loaded.faults), *filter(None, [not_kept])])


def _start_folder(workspace: Path, started_from: Path | None) -> str:
    try:
        return (started_from or workspace).resolve().relative_to(workspace).as_posix()
    except ValueError:
        return "."


def _memory_folder() -> Path:
    """Where blobs go when nothing can be kept: a folder that lives as long as the machine lets it."""
    import tempfile

    return Path(tempfile.mkdtemp(prefix="tui-agent-"))
