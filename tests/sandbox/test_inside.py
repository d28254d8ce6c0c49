"""Parts of the program inside a view that need no view: processes, memory, planted files, messages."""

from __future__ import annotations

import ast
import errno
import marshal
import os
import socket
import stat
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import pytest

from tui_agent.sandbox.inside import kernel, main
from tui_agent.sandbox.inside.mounts import plant


def test_processes_are_listed_with_parent_name_and_size_until_they_end() -> None:
    child = subprocess.Popen(["sleep", "60"])
    try:
        assert (child.pid, os.getpid(), "sleep") in [one[:3] for one in main.processes()]
        found = {pid: size for pid, _, _, size in main.processes()}
        assert 0 < found[child.pid] < 100 << 20 < 100 * found[os.getpid()]
    finally:
        child.kill()
    ended = os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert ended is not None
    assert child.pid not in [pid for pid, *_ in main.processes()]
    child.wait()


def test_memory_files_count_once_beyond_what_is_mapped() -> None:
    ours = [os.getpid()]
    before = main.unmapped(ours, 0)
    held = os.memfd_create("test")
    again = os.dup(held)
    try:
        os.write(held, b"x" * (2 << 20))
        assert main.unmapped(ours, 0) - before == 2 << 20
        assert main.unmapped(ours, before + (1 << 20)) == 1 << 20
        assert main.unmapped(ours, before + (5 << 20)) == 0
        assert 0 <= main.unmapped(ours) <= before + (2 << 20)
    finally:
        os.close(held)
        os.close(again)


def test_memory_of_a_process_without_details_is_its_size() -> None:
    missing = 1 << 22
    assert main.in_memory([(missing, "x", 12_345), (missing, "y", 5)]) == 12_350
    assert 10 << 20 < main.in_memory([(os.getpid(), "x", 0)]) < 4 << 30


@pytest.mark.parametrize(
    ("given", "waits"), [("write end", True), ("read end", False), ("null", False), ("ended", False)]
)
def test_a_program_that_reads_from_a_pipe_for_writing_waits_for_a_keyboard(given: str, waits: bool) -> None:
    reading, writing = os.pipe()
    stdin = {"write end": writing, "read end": reading}.get(given, subprocess.DEVNULL)
    child = subprocess.Popen(["sleep", "60"], stdin=stdin)
    try:
        if given == "ended":
            child.kill()
            child.wait()
        assert main.waits_for_keyboard(child.pid) is waits
    finally:
        child.kill()
        child.wait()
        os.close(reading)
        os.close(writing)


def test_the_room_taken_in_folders_includes_shared_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    def space(path: str) -> SimpleNamespace:
        if path == "/missing":
            raise FileNotFoundError
        return SimpleNamespace(f_blocks=10, f_bfree={"/tmp": 4, "/dev/shm": 9}[path], f_frsize=4096)

    monkeypatch.setattr(main.os, "statvfs", space)
    assert main.in_folders([("/tmp", 0o1777, 1), ("/missing", 0o755, 1)]) == 7 * 4096


def test_a_message_has_descriptors_and_an_ended_line_none() -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    reading, writing = os.pipe()
    with ours, theirs:
        socket.send_fds(ours, [b"run"], [reading, writing])
        text, got = kernel.received(theirs, 100, 4)
        assert (text, len(got)) == (b"run", 2)
        os.write(got[1], b"x")
        assert os.read(reading, 1) == b"x"
        ours.close()
        assert kernel.received(theirs, 100, 4) == (b"", [])
    for each in (reading, writing, *got):
        os.close(each)


def test_a_refused_step_has_its_name_and_number(tmp_path: Path) -> None:
    with pytest.raises(kernel.Failed) as refused:
        kernel.write(str(tmp_path / "missing/x"), "text")
    assert refused.value.args == (f"write {tmp_path}/missing/x", errno.ENOENT)
    with pytest.raises(kernel.Failed) as refused:
        kernel.syscall("number", 1 << 20)
    assert refused.value.args == ("number", errno.ENOSYS)
    assert kernel.call("zero", lambda: 0) == 0
    kernel.write(str(tmp_path / "x"), "text")
    assert (tmp_path / "x").read_text() == "text"


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (kernel.Failed("mount", errno.EPERM), ("mount", errno.EPERM, os.strerror(errno.EPERM))),
        (kernel.Failed("Landlock is too old", 0), ("Landlock is too old", 0, "not on this machine")),
        (OSError(errno.ENOENT, "x", "/a"), ("/a", errno.ENOENT, os.strerror(errno.ENOENT))),
    ],
)
def test_a_view_that_failed_says_its_step(
    error: Exception, message: tuple[str, int, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, tempfile.TemporaryFile() as plan:
        marshal.dump({"isolated": "overlay"}, plan)
        plan.seek(0)
        socket.send_fds(ours, [b"plan"], [plan.fileno()])
        monkeypatch.setattr(sys, "argv", ["main", str(theirs.detach())])
        monkeypatch.setattr(main, "map_users", Mock(side_effect=error))
        main.main()
        told = ast.literal_eval(ours.recv(1000).decode())
    assert (told["failed"], told["errno"], told["why"]) == message


@pytest.mark.parametrize(
    ("parents", "descends"),
    [({7: 6, 6: "own"}, True), ({7: "own"}, True), ({7: 6, 6: 5}, False), ({7: 6, 6: 7}, False), ({}, False)],
)
def test_descendants_are_found_by_their_parents(
    parents: dict[int, int | str], descends: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = [(pid, os.getpid() if parent == "own" else parent, "x", 1) for pid, parent in parents.items()]
    monkeypatch.setattr(main, "processes", lambda: [(os.getpid(), 1, "x", 1), *there])
    found = [pid for pid, *_ in main.Supervisor({}, None, 6)._others()]
    assert found == ([7] if descends else [])


OLD = 1_000_000_000


@pytest.mark.parametrize(
    ("kind", "mode", "there", "expected"),
    [
        ("file", None, None, 0o644),
        ("file", None, 0o751, 0o751),
        ("file", 0o600, 0o751, 0o600),
        ("hidden", None, 0o604, 0o604),
    ],
)
def test_a_planted_file_has_the_mode_of_the_one_below(
    tmp_path: Path, kind: str, mode: int | None, there: int | None, expected: int
) -> None:
    lower, upper = tmp_path / "lower", tmp_path / "upper"
    (lower / "d").mkdir(parents=True)
    (lower / "d").chmod(0o711)
    upper.mkdir()
    if there is not None:
        (lower / "d/a").write_text("old")
        (lower / "d/a").chmod(there)
        os.utime(lower / "d/a", (OLD, OLD))
    begun = int(time.time())
    plant(str(lower), str(upper), "d/a", kind, mode, b"new")
    made = (upper / "d/a").stat()
    assert (upper / "d/a").read_bytes() == b"new"
    assert stat.S_IMODE(made.st_mode) == expected
    assert stat.S_IMODE((upper / "d").stat().st_mode) == 0o711
    assert begun <= made.st_mtime <= time.time() + 1


@pytest.mark.parametrize(("kind", "newer"), [("file", True), ("hidden", False)])
def test_a_pending_file_is_newer_than_one_of_this_second(tmp_path: Path, kind: str, newer: bool) -> None:
    lower, upper = tmp_path / "lower", tmp_path / "upper"
    lower.mkdir()
    upper.mkdir()
    (lower / "a").write_text("old")
    later = int(time.time()) + 100
    os.utime(lower / "a", (later, later))
    plant(str(lower), str(upper), "a", kind, None, b"new")
    assert ((upper / "a").stat().st_mtime == later + 1) is newer


def test_a_deletion_is_planted_only_over_a_file(tmp_path: Path) -> None:
    lower, upper = tmp_path / "lower", tmp_path / "upper"
    lower.mkdir()
    upper.mkdir()
    (lower / "a").write_text("old")
    for path in ("a", "missing", "a/below"):
        plant(str(lower), str(upper), path, "gone", None, b"")
    assert not (upper / "missing").exists()
    assert not (upper / "a/below").exists()
    (upper / "a").rmdir() if (upper / "a").is_dir() else None
    plant(str(lower), str(upper), "a", "gone", None, b"")
    made = (upper / "a").lstat()
    assert stat.S_ISCHR(made.st_mode) and made.st_rdev == 0


def test_a_file_in_the_way_of_a_pending_folder_is_replaced(tmp_path: Path) -> None:
    lower, upper = tmp_path / "lower", tmp_path / "upper"
    lower.mkdir()
    upper.mkdir()
    plant(str(lower), str(upper), "a", "file", None, b"first")
    plant(str(lower), str(upper), "a/b", "file", None, b"second")
    assert (upper / "a/b").read_bytes() == b"second"


def test_an_owned_file_is_copied_with_its_mode_and_times_once(tmp_path: Path) -> None:
    lower, upper = tmp_path / "lower", tmp_path / "upper"
    (lower / "d").mkdir(parents=True)
    (lower / "d").chmod(0o711)
    upper.mkdir()
    content = b"x" * ((1 << 20) + 5)
    (lower / "a").write_bytes(content)
    (lower / "a").chmod(0o640)
    os.utime(lower / "a", (OLD, OLD))
    for path in ("a", "d", "missing"):
        plant(str(lower), str(upper), path, "owned", None, b"")
    made = (upper / "a").stat()
    assert ((upper / "a").read_bytes(), stat.S_IMODE(made.st_mode), made.st_mtime) == (content, 0o640, OLD)
    assert stat.S_IMODE((upper / "d").stat().st_mode) == 0o711
    (upper / "a").write_bytes(b"pending")
    plant(str(lower), str(upper), "a", "owned", None, b"")
    assert (upper / "a").read_bytes() == b"pending"
