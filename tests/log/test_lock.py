"""One writer a session: others are told who it is; a dead one holds nothing."""

from __future__ import annotations

import os
import signal
import stat
import threading
from pathlib import Path

import pytest
from support.privileges import unprivileged

from tui_agent import debug_log
from tui_agent.errors import SessionError
from tui_agent.files.private import MOST_PROCESSES
from tui_agent.log import directory
from tui_agent.log.directory import LOCK, SessionLock, holder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "sessions" / "one"


def test_one_at_a_time(folder: Path) -> None:
    with SessionLock.take(folder) as lock:
        assert lock.folder == folder
        assert holder(folder) == (os.getpid(), "")
        with pytest.raises(SessionError, match=rf"session one is open in process {os.getpid()}.*fork one"):
            SessionLock.take(folder)
    SessionLock.take(folder).release()


def test_releasing_twice_does_no_harm(folder: Path) -> None:
    lock = SessionLock.take(folder)
    lock.release()
    with SessionLock.take(folder):
        lock.release()
        with pytest.raises(SessionError):
            SessionLock.take(folder)


def test_another_process_is_named_and_its_death_ends_the_lock(folder: Path) -> None:
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            SessionLock.take(folder)
            os.write(writing, b"x")
            signal.pause()
        finally:
            os._exit(1)
    os.close(writing)
    with os.fdopen(reading, "rb") as said:
        assert said.read(1) == b"x"
    try:
        with pytest.raises(SessionError, match=f"process {child}"):
            SessionLock.take(folder)
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    with SessionLock.take(folder):
        assert holder(folder) == (os.getpid(), "")


def test_a_lock_file_with_rubbish_in_it(folder: Path) -> None:
    with SessionLock.take(folder):
        (folder / LOCK).write_bytes(b"\xff\x00 not a number")
        with pytest.raises(SessionError, match="another process"):
            SessionLock.take(folder)
    with SessionLock.take(folder):
        assert holder(folder) == (os.getpid(), "")


def test_an_owner_on_another_machine_is_named_and_not_waited_for(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A home can be a network disk. The process id of another machine says nothing about a process of this one."""
    monkeypatch.setattr(directory, "_PAUSE", None)  # a pause would raise TypeError
    with SessionLock.take(folder):
        (folder / LOCK).write_text(f"{MOST_PROCESSES} far.example\n")
        with pytest.raises(SessionError, match=f"process {MOST_PROCESSES} on far.example"):
            SessionLock.take(folder)


def test_private(folder: Path) -> None:
    with SessionLock.take(folder):
        assert stat.S_IMODE((folder / LOCK).stat().st_mode) == 0o600
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_a_home_that_cannot_be_written() -> None:
    with unprivileged() as public:
        public.chmod(0o500)
        with pytest.raises(SessionError, match="Permission denied"):
            SessionLock.take(public / "one")


def test_a_home_of_another_user() -> None:
    with unprivileged() as public:
        (public / "sessions").mkdir(0o000)
        session = directory.new_id(public)
        with pytest.raises(SessionError, match="Permission denied"):
            SessionLock.take(directory.folder_of(public, session))
        debug_log.start(public / "sessions")
        try:
            debug_log.place()  # raises nothing
        finally:
            debug_log.stop()


def test_a_lock_is_not_inherited(folder: Path) -> None:
    with SessionLock.take(folder) as lock:
        assert not os.get_inheritable(lock._descriptor)


def test_a_process_that_the_dead_owner_was_starting_is_waited_for(folder: Path) -> None:
    reading, writing = os.pipe()
    asked, ended = os.pipe()
    owner = os.fork()
    if owner == 0:
        SessionLock.take(folder)
        if os.fork():
            os.kill(os.getpid(), signal.SIGKILL)
        os.close(ended)
        os.write(writing, b"%d\n" % os.getpid())
        os.read(asked, 1)  # It has the lock's descriptor, as before an exec.
        os._exit(0)
    os.waitpid(owner, 0)
    assert os.read(reading, 20)
    os.close(asked)
    release = threading.Timer(0.3, os.close, (ended,))
    release.start()
    with SessionLock.take(folder):
        assert holder(folder) == (os.getpid(), "")
    release.join()
