"""The scan of one folder: secrets by name, files to search, and files that changed since the last scan."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from support.trees import make_tree, until

from tui_agent.files.folder_scan import (
    FolderScan,
    Kind,
    ModifiedFolders,
    encoding_of,
    in_letters,
    keys_in,
    kind_below,
    read_text,
    scan_folder,
)

TEXT = "sixteen letters and more\n"
KEY = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
OLD = 1_600_000_000


@pytest.fixture
def root(tmp_path: Path) -> Path:
    names = [
        "a.py",
        ".env",
        "server.pem",
        "picture.png",
        "config.toml",
        "x/in.py",
        ".git/config",
        "logs/.env",
    ]
    return make_tree(tmp_path / "work", dict.fromkeys(names, TEXT) | {"short": "x"})


def scan(root: Path, kind: Kind = "own", before: FolderScan | None = None, folder: str = "") -> FolderScan:
    return scan_folder(str(root), folder, kind, root.stat(), before)


@pytest.mark.parametrize(
    ("kind", "named", "waiting", "folders"),
    [
        ("own", {".env", "server.pem"}, {"a.py", "config.toml"}, {"x", ".git", "logs"}),
        ("partly", {".env"}, {"a.py", "config.toml", "server.pem"}, {"x", ".git", "logs"}),
        ("git", {".env"}, {"a.py", "server.pem"}, {"x", ".git", "logs"}),
        ("shipped", {".env", "logs/.env"}, set(), set()),
    ],
)
def test_a_folder_has_secrets_files_to_search_and_folders(
    root: Path, kind: Kind, named: set[str], waiting: set[str], folders: set[str]
) -> None:
    seen = scan(root, kind)
    assert set(seen.named) == named
    assert set(seen.waiting) == waiting
    assert set(seen.folders) == folders
    assert ("a.py" in seen.sizes) is (kind == "own")


def test_links_and_files_with_several_names_are_listed(root: Path) -> None:
    (root / "link").symlink_to("a.py")
    os.link(root / "a.py", root / "second.py")
    own, shipped = scan(root), scan(root, "shipped")
    assert own.links == ["link"] and shipped.links == []
    assert sorted((path, number) for path, _, number in own.several) == [("a.py", 2), ("second.py", 2)]
    assert shipped.several == [] and len({identity for _, identity, _ in own.several}) == 1
    assert scan(root, folder="below").links == ["below/link"]


async def test_a_searched_file_waits_again_once_it_changes(root: Path) -> None:
    def settled() -> bool:
        found = scan(root)
        return found.changed is not None and all(found.waiting.values())

    await until(settled, "a folder and files older than the clock's resolution")
    first = scan(root)
    assert first.changed is not None
    first.was_searched("a.py", ("digest", [("a key", 1)]))
    first.was_searched("config.toml", None)
    assert set(first.searched) == {"a.py", "config.toml"} and set(first.keys) == {"a.py"}
    second = scan(root, before=first)
    assert second.waiting == {} and set(second.searched) == {"a.py", "config.toml"}
    (root / "a.py").write_text(TEXT * 2)
    second.rescan_modified(str(root))
    assert set(second.waiting) == {"a.py"} and set(second.searched) == {"config.toml"}
    (root / "config.toml").unlink()
    third = scan(root, before=second)
    assert third.searched == {} and set(third.keys) == {"a.py"}
    third.was_searched("a.py", None)
    assert third.keys == {} and third.waiting["a.py"] == 0, "just written: it is searched once more"


@pytest.mark.parametrize(
    ("kind", "name", "expected"),
    [
        ("own", "src", "own"),
        ("own", "vendor", "partly"),
        ("own", "node_modules", "shipped"),
        ("own", ".git", "git"),
        ("partly", "src", "partly"),
        ("partly", ".git", "git"),
        ("shipped", ".git", "shipped"),
        ("git", "vendor", "git"),
    ],
)
def test_the_kind_of_a_subfolder(kind: Kind, name: str, expected: Kind) -> None:
    assert kind_below(kind, name) == expected


def test_git_has_folders_without_names_of_files(root: Path) -> None:
    make_tree(root, ["objects/", "refs/", "lfs/", "hooks/", "annex/"])
    assert set(scan(root, "git").folders) >= {"hooks", "annex"}
    assert not set(scan(root, "git").folders) & {"objects", "refs", "lfs"}
    assert "objects" in scan(root, "git", folder=".git/annex").folders


def test_modified_folders_are_reported_once(root: Path) -> None:
    watch = ModifiedFolders()
    watch.add(str(root), "top")
    watch.add(str(root / "x"), "top/x")
    assert watch.take() == set()
    (root / "x/in.py").write_text("changed\n")
    assert watch.take() == {"top/x"} and watch.take() == set()
    (root / "new.py").write_text("")
    assert watch.take() == {"top"}
    watch.add(str(root / "missing"), "missing")
    assert watch.take() is None, "a folder that is not watched could have changed"
    watch.close()
    assert watch.take() is None


@pytest.mark.parametrize(
    ("data", "encoding"),
    [
        (b"plain", "utf-8"),
        (b"", "utf-8"),
        (b"a\0b\0c\1d\2", ""),
        ("text".encode("utf-16"), "utf-16"),
        ("text".encode("utf-32"), "utf-32"),
        (("text " * 20).encode("utf-16-le"), "utf-16-le"),
        (("text " * 20).encode("utf-16-be"), "utf-16-be"),
        (("text " * 20).encode("utf-32-le"), "utf-32-le"),
        (("text " * 20).encode("utf-32-be"), "utf-32-be"),
    ],
)
def test_the_encoding_of_text(data: bytes, encoding: str) -> None:
    assert encoding_of(data) == encoding
    if encoding.startswith("utf-") and data.strip():
        assert in_letters(data).strip("\ufeff").split()[0] in ("plain", "text")


def test_keys_are_found_with_the_line_of_each_kind(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text(f"first\nsecond {KEY}\nthird {KEY}\n")
    found = keys_in(str(path))
    assert found is not None and [line for _, line in found[1]] == [2]
    path.write_bytes(f"first\n{KEY}\n".encode("utf-16"))
    found = keys_in(str(path))
    assert found is not None and [line for _, line in found[1]] == [2]
    path.write_text("nothing\n")
    assert keys_in(str(path)) is None
    assert read_text(str(path)) == b"nothing\n"
    assert read_text(str(tmp_path)) is None and read_text(str(tmp_path / "missing")) is None
    path.write_bytes(b"\0\1\2\0")
    assert read_text(str(path)) is None
