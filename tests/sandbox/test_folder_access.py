"""Folders by descriptor: reading with limits, and writing that follows no link."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

import pytest

from tui_agent.sandbox import folder_access
from tui_agent.sandbox.folder_access import FolderAccess, WritableFolder, mode_of


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "root"
    (root / "d/e").mkdir(parents=True)
    (root / "d/a").write_text("12345")
    (tmp_path / "outside").mkdir()
    (root / "link").symlink_to("../outside")
    return root


def test_a_file_is_read_up_to_a_size(root: Path) -> None:
    with WritableFolder(str(root)) as folder:
        assert folder.read("d/a", 5) == b"12345"
        assert folder.read("missing", 5) is None
        assert folder.read("link/missing", 5) is None
        with pytest.raises(OSError) as refused:
            folder.read("d/a", 4)
        assert refused.value.errno == errno.EFBIG
        for path in ("d", "link"):
            with pytest.raises(OSError):
                folder.read(path, 1 << 20)


def test_a_file_that_grows_while_it_is_read_is_too_large(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with WritableFolder(str(root)) as folder:
        before = folder.status("d/a")
        (root / "d/a").write_text("123456")
        monkeypatch.setattr(folder, "status", lambda path: before)
        with pytest.raises(OSError, match="too large"):
            folder.read("d/a", 5)


@pytest.mark.parametrize("kernel", ["openat2", "without"])
def test_a_file_is_replaced_with_its_mode_and_new_folders(
    root: Path, monkeypatch: pytest.MonkeyPatch, kernel: str
) -> None:
    if kernel == "without":
        monkeypatch.setattr(folder_access, "_openat2_works", lambda: False)
    with WritableFolder(str(root)) as folder:
        for path, mode in (("d/a", 0o640), ("new/f/b", 0o755), ("top", 0o600)):
            folder.replace(path, b"new", mode)
            assert (root / path).read_bytes() == b"new"
            assert stat.S_IMODE((root / path).stat().st_mode) == mode
        folder.set_mode("d/a", 0o700)
        assert stat.S_IMODE((root / "d/a").stat().st_mode) == 0o700
        for path in ("link/x", "d/../x", "d/./x", "d//x"):
            with pytest.raises(OSError):
                folder.replace(path, b"new", 0o644)
        with pytest.raises(OSError):
            folder.replace("d/e", b"new", 0o644)
    assert sorted(os.listdir(root)) == ["d", "link", "new", "top"]
    assert sorted(os.listdir(root / "d")) == ["a", "e"]
    assert os.listdir(root.parent / "outside") == []


def test_a_removed_file_takes_empty_folders_above_with_it(root: Path) -> None:
    (root / "x/y/z").mkdir(parents=True)
    (root / "x/y/z/a").touch()
    (root / "x/kept").touch()
    with WritableFolder(str(root)) as folder:
        for path in ("x/y/z/a", "missing", "d/missing", "link"):
            folder.remove(path)
        assert folder.status("x/y") is None
        assert folder.names("x") == ["kept"]
        (root / "x/y").mkdir()
        assert folder.names("x/y") == []
        (root / "x/y/new").touch()
        assert folder.names("x/y") == ["new"]
    assert sorted(os.listdir(root)) == ["d", "x"]
    assert sorted(os.listdir(root / "d")) == ["a", "e"]


def test_a_folder_is_listed_in_order_and_has_attributes(root: Path) -> None:
    for name in "zbc":
        (root / "d" / name).touch()
    os.setxattr(root / "d", "user.overlay.opaque", b"y")
    with FolderAccess(str(root)) as folder:
        assert folder.names("d") == folder.listing("d") == ["a", "b", "c", "e", "z"]
        assert folder.names("d/a") == folder.names("missing") == []
        with pytest.raises(OSError):
            folder.listing("d/a")
        assert folder.is_opaque("d")
        assert not folder.is_opaque("d/e") and not folder.is_opaque("link")
        assert folder.target("d/a") is None
        with pytest.raises(OSError) as refused:
            folder.open("d/e")
        assert refused.value.errno == errno.EINVAL


def test_no_descriptor_is_left(root: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        with WritableFolder(str(root)) as folder:
            folder.names("d/e")
            folder.status("d/a")
            folder.is_opaque("d")
            folder.replace("d/a", b"1", 0o600)
            folder.read("d/a", 5)
            folder.remove("d/a")
            for path in ("link/x/y", "d/e"):
                with pytest.raises(OSError):
                    os.close(folder.open(path))
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_root_by_descriptor_is_another_descriptor(root: Path) -> None:
    held = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    with FolderAccess(held) as folder:
        assert folder.names("") == ["d", "link"]
    os.fstat(held)
    os.close(held)
    with pytest.raises(OSError):
        FolderAccess(str(root / "link"))


def test_the_mode_of_what_is_no_file_is_the_usual_one(root: Path) -> None:
    (root / "d/a").chmod(0o751)
    (root / "d/e").chmod(0o700)
    assert [mode_of(one) for one in (None, (root / "d/a").stat(), (root / "d/e").stat())] == [
        0o644,
        0o751,
        0o644,
    ]
