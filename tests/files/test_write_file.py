"""Replacing a file: whole or not at all, over what was seen, with everything about it kept."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from support.faults import before_each_call, failing_at, killed_at, tree
from support.privileges import unprivileged

from tui_agent.errors import FileError, Outdated, PathRefused, TuiAgentError
from tui_agent.files import operating_system, staging
from tui_agent.files.batch import mode_on_disk, write_file
from tui_agent.files.gate import Gate
from tui_agent.files.text import md5


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "a.txt").write_bytes(b"old")
    return folder


@pytest.fixture
def gate(root: Path) -> Gate:
    return Gate(root)


def test_replacing_what_was_seen(gate: Gate, root: Path) -> None:
    assert write_file(gate, "a.txt", b"new", md5(b"old")) == md5(b"new")
    assert tree(root) == {"a.txt": b"new"}


def test_creating_with_folders(gate: Gate, root: Path) -> None:
    write_file(gate, "b/c/d.txt", b"new", "")
    assert tree(root)["b/c/d.txt"] == b"new"
    umask = os.umask(0)
    os.umask(umask)
    assert mode_on_disk(gate, "b/c/d.txt") == 0o666 & ~umask


def test_deleting(gate: Gate, root: Path) -> None:
    assert write_file(gate, "a.txt", None, md5(b"old")) == ""
    assert tree(root) == {}
    assert write_file(gate, "a.txt", None, "") == ""
    assert write_file(gate, "no/folder/a.txt", None, None) == ""


def test_whatever_is_there(gate: Gate) -> None:
    assert write_file(gate, "a.txt", b"1", None) == write_file(gate, "b.txt", b"1", None) == md5(b"1")


@pytest.mark.parametrize("data", [b"new", None])
@pytest.mark.parametrize(
    ("path", "expected", "words"),
    [
        ("a.txt", md5(b"other"), "has changed since"),
        ("a.txt", "", "already exists"),
        ("gone.txt", md5(b"old"), "no longer exists"),
        ("no/folder/gone.txt", md5(b"old"), "no longer exists"),
    ],
)
def test_what_is_not_as_expected_stays(
    gate: Gate, root: Path, path: str, expected: str, words: str, data: bytes | None
) -> None:
    before = tree(root)
    with pytest.raises(Outdated, match=words):
        write_file(gate, path, data, expected)
    assert tree(root) == before


def test_mode_attributes_and_owner_stay(gate: Gate, root: Path) -> None:
    path = root / "a.txt"
    path.chmod(0o751)
    os.setxattr(path, "user.note", b"kept")
    if os.geteuid() == 0:
        os.chown(path, 1234, 4321)
    owner = (path.stat().st_uid, path.stat().st_gid)
    write_file(gate, "a.txt", b"new", None)
    status = path.stat()
    assert (stat.S_IMODE(status.st_mode), status.st_uid, status.st_gid) == (0o751, *owner)
    assert os.getxattr(path, "user.note") == b"kept"


def test_a_mode_that_was_asked_for(gate: Gate) -> None:
    write_file(gate, "run.sh", b"#!/bin/sh\n", "", mode=0o755)
    assert mode_on_disk(gate, "run.sh") == 0o755


def test_a_link_is_written_through(gate: Gate, root: Path) -> None:
    (root / "link").symlink_to("a.txt")
    write_file(gate, "link", b"new", md5(b"old"))
    assert tree(root) == {"a.txt": b"new", "link": "a.txt"}


def test_a_link_is_not_removed(gate: Gate, root: Path) -> None:
    (root / "link").symlink_to("a.txt")
    with pytest.raises(PathRefused, match="is a link"):
        write_file(gate, "link", None, None)
    assert tree(root) == {"a.txt": b"old", "link": "a.txt"}


def test_the_other_name_of_a_hard_link_keeps_its_content(gate: Gate, root: Path) -> None:
    other = root.parent / "outside.txt"
    os.link(root / "a.txt", other)
    write_file(gate, "a.txt", b"new", None)
    assert other.read_bytes() == b"old"


def test_write_protection_is_respected(gate: Gate, root: Path) -> None:
    (root / "a.txt").chmod(0o444)
    for work in (
        lambda: write_file(gate, "a.txt", b"new", None),
        lambda: write_file(gate, "a.txt", None, None),
    ):
        with pytest.raises(FileError, match="write-protected"):
            work()
    assert tree(root) == {"a.txt": b"old"}


@pytest.mark.parametrize(
    "path", ["../x", "/tmp/x", "a\nb", ".git/hooks/x", "x/.GIT/config", ".tui-agent/x", "a.txt/x"]
)
def test_every_way_of_writing_goes_through_the_gate(gate: Gate, root: Path, path: str) -> None:
    for work in (
        lambda: write_file(gate, path, b"x", None),
        lambda: write_file(gate, path, None, None),
    ):
        with pytest.raises(PathRefused):
            work()
    assert tree(root.parent) == {"work": None, "work/a.txt": b"old"}


def test_no_permission(tmp_path: Path) -> None:
    with unprivileged() as public:
        (public / "a.txt").write_bytes(b"old")
        public.chmod(0o500)
        with pytest.raises(FileError, match="permission"):
            write_file(Gate(public), "a.txt", b"new", None)
        with pytest.raises(FileError, match="permission"):
            write_file(Gate(public), "new/b.txt", b"new", None)
        assert tree(public) == {"a.txt": b"old"}


@pytest.mark.parametrize(
    ("code", "words"),
    [(errno.ENOSPC, "disk is full"), (errno.EROFS, "read-only"), (errno.EIO, "disk reported")],
)
@pytest.mark.parametrize("path", ["a.txt", "new/folder/b.txt"])
def test_whatever_call_fails_nothing_is_left_of_it(
    gate: Gate, root: Path, path: str, code: int, words: str
) -> None:
    """Each system call in turn refuses once: the tree is as before (or the write made it), and clean."""
    before = tree(root)
    number, failed = 0, 0
    while True:
        number += 1
        with before_each_call(failing_at(number, code)) as calls:
            try:
                write_file(gate, path, b"new", None)
            except TuiAgentError as error:
                assert words in str(error)
                failed += 1
        if len(calls) < number:
            break
        after = tree(root)
        if calls[number - 1] == "unlink":  # what cannot be removed is swept by a later writer
            after = {name: data for name, data in after.items() if ".tui-agent" not in name}
        assert after == before or after[path] == b"new"
        _restore(root, path, before)
    assert failed > 3


def _restore(root: Path, path: str, before: dict) -> None:
    (root / "a.txt").write_bytes(b"old")
    if path != "a.txt":
        for left in (root / "new").rglob("*.t*"):
            left.unlink()
        for folder in (root / "new" / "folder", root / "new"):
            if folder.exists():
                folder.rmdir()
    assert tree(root) == before


def test_killed_at_any_call_the_file_is_old_or_new(gate: Gate, root: Path) -> None:
    number = 1
    while killed_at(number, lambda: write_file(gate, "a.txt", b"new", None)):
        assert (root / "a.txt").read_bytes() in (b"old", b"new")
        number += 1
    assert number > 5
    write_file(gate, "b.txt", b"next", "")
    assert sorted(tree(root)) == ["a.txt", "b.txt"], "the next writer sweeps what a dead one left"


def test_the_temporary_of_a_living_writer_is_not_swept(gate: Gate, root: Path) -> None:
    mine = staging.temporary_name()
    (root / mine).write_bytes(b"on its way")
    assert staging.is_temporary(mine)
    write_file(gate, "b.txt", b"next", "")
    assert (root / mine).exists()


def test_a_change_between_check_and_rename_is_seen(gate: Gate, root: Path) -> None:
    """Somebody else writes before any of our calls up to the rename: we see it, and theirs stays."""
    with before_each_call(lambda at, name: None) as calls:
        write_file(gate, "a.txt", b"old", None)
    rename = calls.index("rename") + 1
    for number in range(1, rename):
        (root / "a.txt").write_bytes(b"old")

        def write(at: int, name: str, number: int = number) -> None:
            if at == number:
                (root / "a.txt").write_bytes(b"theirs")

        with before_each_call(write), pytest.raises(Outdated):
            write_file(gate, "a.txt", b"ours", md5(b"old"))
        assert tree(root) == {"a.txt": b"theirs"}


def test_content_is_durable_before_it_has_the_name_and_the_name_after(gate: Gate) -> None:
    with before_each_call(lambda at, name: None, ("write", "fsync", "rename", "unlink", "link")) as calls:
        write_file(gate, "a.txt", b"new", None)
    assert calls == ["write", "fsync", "rename", "fsync"]
    with before_each_call(lambda at, name: None, ("write", "fsync", "rename", "unlink", "link")) as calls:
        write_file(gate, "b.txt", b"new", None)
        write_file(gate, "b.txt", None, None)
    assert calls == ["write", "fsync", "link", "unlink", "fsync", "unlink", "fsync"]


def test_a_file_made_by_somebody_else_meanwhile_stays(gate: Gate, root: Path) -> None:
    def make(at: int, name: str) -> None:
        if name == "link":
            (root / "b.txt").write_bytes(b"theirs")

    with before_each_call(make), pytest.raises(Outdated):
        write_file(gate, "b.txt", b"ours", "")
    assert tree(root) == {"a.txt": b"old", "b.txt": b"theirs"}


def test_without_hard_links_it_works_too(gate: Gate, root: Path) -> None:
    def no_links(at: int, name: str) -> None:
        if name == "link":
            raise PermissionError(errno.EPERM, "no links here")

    with before_each_call(no_links):
        write_file(gate, "b.txt", b"ours", "")
    assert tree(root) == {"a.txt": b"old", "b.txt": b"ours"}


def test_only_one_of_many_writers_wins(gate: Gate, root: Path) -> None:
    def write(number: int) -> str:
        try:
            return write_file(gate, "a.txt", b"%d" % number, md5(b"old"))
        except Outdated:
            return ""

    with ThreadPoolExecutor(8) as pool:
        written = [result for result in pool.map(write, range(24)) if result]
    assert written == [md5((root / "a.txt").read_bytes())]
    assert list(tree(root)) == ["a.txt"]


def test_new_files_in_one_new_folder_from_many_threads(gate: Gate, root: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: write_file(gate, f"new/f/{n}", b"x", ""), range(24)))
    assert len(list((root / "new" / "f").iterdir())) == 24


def test_a_folder_that_another_program_holds(gate: Gate, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operating_system, "PATIENCE", 0.02)
    other = os.open(root, os.O_RDONLY)
    try:
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(FileError, match="another program"):
            write_file(gate, "a.txt", b"new", None)
    finally:
        os.close(other)
    write_file(gate, "a.txt", b"new", None)
