"""A session whose log was removed, or whose files are pipes, sockets, devices or folders."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from support.sessions import open_session, reply

from tui_agent.errors import SessionError
from tui_agent.log import catalog, snapshot
from tui_agent.log.catalog import NAME
from tui_agent.log.directory import LOG


async def test_a_removed_log_is_said_and_what_its_snapshot_has_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshot, "AT_CLOSE", 1)
    async with open_session(tmp_path, [reply("Hello.")]) as session:
        await session.chat.submit("hello there")
        await session.chat.finished()
        folder, data = session.storage.folder, session.folders.data
    for path in folder.glob(f"{LOG}*"):
        path.unlink()
    (entry,) = [one for one in catalog.list_sessions(data) if one.id == folder.name]
    assert "damaged" in entry.note
    async with open_session(tmp_path, [], session=folder.name) as again:
        assert [it.summary or it.text for it in again.state.chat.messages] == ["hello there", "Hello."]
        assert "the log of the session" in " ".join(again.storage.lost)
        assert again.state.session.id != folder.name
    (folder / snapshot.NAME).unlink()
    with pytest.raises(SessionError, match="There is no session"):
        async with open_session(tmp_path, [], session=folder.name):
            pass


def make_pipe(place: Path) -> None:
    os.mkfifo(place)


def make_socket(place: Path) -> None:
    os.mknod(place, stat.S_IFSOCK | 0o600)


def link_to_device(place: Path) -> None:
    place.symlink_to("/dev/zero")


@pytest.mark.parametrize("make", [make_pipe, make_socket, link_to_device, Path.mkdir])
@pytest.mark.parametrize("suffix", ["", "-wal", "-shm", "-journal"])
async def test_another_kind_of_file_in_place_of_the_log_is_named_at_once(
    tmp_path: Path, make: Callable[[Path], None], suffix: str
) -> None:
    async with open_session(tmp_path, [reply("Hello.")]) as session:
        await session.chat.submit("hello there")
        await session.chat.finished()
        folder, data = session.storage.folder, session.folders.data
    (folder / f"{LOG}{suffix}").unlink(missing_ok=True)
    make(folder / f"{LOG}{suffix}")
    for opened in (folder.name, "last"):
        with pytest.raises(SessionError, match=rf"{LOG}{suffix} is not a regular file: move it away"):
            async with open_session(tmp_path, [], session=opened):
                pass
    (entry,) = catalog.list_sessions(data, tmp_path)
    assert suffix in ("-shm", "-journal") or f"{LOG}{suffix} is not a regular file" in entry.note


@pytest.mark.parametrize("make", [make_pipe, make_socket, link_to_device, Path.mkdir])
@pytest.mark.parametrize("name", ["snapshot", "closed", "late", "recovered", "pages.sqlite3", "lock"])
async def test_another_kind_of_file_beside_the_log_costs_nothing(
    tmp_path: Path, make: Callable[[Path], None], name: str
) -> None:
    async with open_session(tmp_path, [reply("Hello.")]) as session:
        await session.chat.submit("hello there")
        await session.chat.finished()
        folder = session.storage.folder
    (folder / name).unlink(missing_ok=True)
    make(folder / name)
    async with open_session(tmp_path, [reply("Hello again.")], session=folder.name) as again:
        await again.chat.submit("once more")
        await again.chat.finished()
        assert [it.summary or it.text for it in again.state.chat.messages][-1] == "Hello again."
        said = again.state.session.not_kept
        assert not said or (name == "lock" and "lock is not a regular file: move it away" in said)


@pytest.mark.parametrize("name", [f"{NAME}{suffix}" for suffix in ("", "-journal", "-wal")])
async def test_a_pipe_in_place_of_the_list_of_sessions_costs_nothing(tmp_path: Path, name: str) -> None:
    async with open_session(tmp_path, [reply("Hello.")]) as session:
        await session.chat.submit("hello there")
        await session.chat.finished()
        data = session.folders.data
    assert catalog.list_sessions(data, tmp_path)
    (data / name).unlink(missing_ok=True)
    os.mkfifo(data / name)
    (entry,) = catalog.list_sessions(data, tmp_path)
    assert entry.first_request == "hello there"


async def test_a_pipe_in_place_of_the_log_leaves_its_snapshot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshot, "AT_CLOSE", 1)
    async with open_session(tmp_path, [reply("Hello.")]) as session:
        await session.chat.submit("hello there")
        await session.chat.finished()
        folder, data = session.storage.folder, session.folders.data
    (folder / LOG).unlink()
    os.mkfifo(folder / LOG)
    (entry,) = catalog.list_sessions(data)
    assert "damaged" in entry.note
    async with open_session(tmp_path, [], session="last") as again:
        assert [it.summary or it.text for it in again.state.chat.messages] == ["hello there", "Hello."]
