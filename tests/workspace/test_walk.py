"""A folder in no repository: git tells its files by its ignore files; without git it is walked."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from support.trees import make_repository, make_tree

from tui_agent.git import process as git_process
from tui_agent.git import repository
from tui_agent.git.repository import ignored_folders_without_repository, ignored_without_repository
from tui_agent.workspace import git_listing
from tui_agent.workspace.git_listing import list_without_repository
from tui_agent.workspace.listing import holds_more, walk


def listed(root: Path) -> list[str]:
    return list_without_repository(str(root)).paths


def test_ignore_files_in_every_folder(tmp_path: Path) -> None:
    make_tree(
        tmp_path,
        {
            ".gitignore": "*.log\nbuild/\n/top.txt\nnot\\[a\n",
            "a/.gitignore": "!keep.log\nb/\n",
            **dict.fromkeys(
                ["x.log", "a/keep.log", "a/x.log", "build/o", "a/build/o", "top.txt", "a/top.txt"], ""
            ),
            **dict.fromkeys(["a/b/c.py", "b/c.py", ".hidden", "node_modules/m.js"], ""),
        },
    )
    assert listed(tmp_path) == [
        ".gitignore",
        ".hidden",
        "a/.gitignore",
        "a/keep.log",
        "a/top.txt",
        "b/c.py",
        "node_modules/m.js",
    ]


def test_what_is_ignored_where_there_is_no_repository(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_tree(tmp_path, {".gitignore": "out/\n*.log\n", "src/.gitignore": "!a.log\n", "src/link": ""})
    paths = ["src/a.log", "src/b.log", "src/out/deep/new", "new/x", "out"]
    assert ignored_without_repository(str(tmp_path), paths) == {"src/b.log", "src/out/deep/new"}
    (tmp_path / "up").symlink_to("src")
    assert ignored_without_repository(str(tmp_path), ["up/b.log"]) is None
    monkeypatch.setattr(repository, "find_git", lambda: "")
    assert ignored_without_repository(str(tmp_path), paths) == set()


def test_ignored_folders_of_repositories_inside_follow_their_own_rules(tmp_path: Path) -> None:
    make_tree(
        tmp_path, {".gitignore": "out/\n", "a/out/x": "", "a/b/out/y": "", "a/c": "", "inner/out/k": ""}
    )
    make_repository(tmp_path / "inner", {".gitignore": "made/\n", "i.py": "", "deep/made/z": ""})
    make_tree(tmp_path, ["inner/made/o"])
    found = ignored_folders_without_repository(str(tmp_path))
    assert found == {"a/out", "a/b/out", "inner/made"}


def test_without_rules_what_is_bulky_stays_out(tmp_path: Path) -> None:
    make_tree(
        tmp_path,
        {".gitignore": "a.py\n", "a.py": "", "node_modules/m.js": "", ".venv/x": "", ".git/HEAD": ""},
    )
    assert walk(str(tmp_path)).paths == [".gitignore", "a.py"]


def test_links_pipes_and_closed_folders(tmp_path: Path) -> None:
    root = make_tree(tmp_path / "root", ["a.py", "sub/b.py"])
    make_tree(tmp_path / "out", ["o.py"])
    (root / "out").symlink_to(tmp_path / "out")
    (root / "round").symlink_to(root)
    (root / "dangling").symlink_to(root / "none")
    (root / "link.py").symlink_to(root / "a.py")
    os.mkfifo(root / "pipe")
    assert listed(root) == walk(str(root)).paths == ["a.py", "link.py", "sub/b.py"]
    assert walk(str(tmp_path / "none")).paths == []


def test_odd_names(tmp_path: Path) -> None:
    make_tree(tmp_path, ["-n", "a b", "new\nline", "é/🐍"])
    (tmp_path / os.fsdecode(b"\xff")).touch()
    listing = walk(str(tmp_path))
    assert (listing.paths, listing.unnamed) == (["-n", "a b", "new\nline", "é/🐍"], 1)


def test_a_limit(tmp_path: Path) -> None:
    make_tree(tmp_path, [f"d{number}/f" for number in range(5)])
    listing = walk(str(tmp_path), limit=3)
    assert (len(listing.paths), listing.cut) == (3, True)
    assert not walk(str(tmp_path), limit=5).cut


@pytest.mark.parametrize("with_git", [True, False])
def test_an_ignore_file_that_is_a_pipe_or_a_link_has_no_rules(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, with_git: bool
) -> None:
    root = make_tree(tmp_path / "root", ["a.py", "sub/b.py", "linked/c.py"])
    os.mkfifo(root / ".gitignore")
    os.mkfifo(root / "sub/.gitignore")
    (tmp_path / "rules").write_text("*\n")
    (root / "linked/.gitignore").symlink_to(tmp_path / "rules")
    if not with_git:
        monkeypatch.setattr(git_process, "find_git", lambda: "")
    assert [path for path in listed(root) if path.endswith(".py")] == ["a.py", "linked/c.py", "sub/b.py"]


def test_repositories_inside_a_plain_folder_keep_their_own_rules(tmp_path: Path) -> None:
    make_tree(tmp_path, {".gitignore": "*.log\n", "a.py": "", "x.log": "", ".hg/store": ""})
    make_repository(tmp_path / "inner", {".gitignore": "*.tmp\n", "i.py": ""})
    make_tree(tmp_path, ["inner/x.tmp", "inner/y.log"])
    assert listed(tmp_path) == [*(".gitignore", "a.py", "inner/.gitignore", "inner/i.py", "inner/y.log")]


def test_files_are_counted_without_what_is_bulky_until_there_are_more(tmp_path: Path) -> None:
    make_tree(tmp_path, {"a/b.py": "", "c.py": "", "node_modules/d.js": "", ".git/config": ""})
    assert holds_more(str(tmp_path), 1, 60.0)
    assert not holds_more(str(tmp_path), 2, 60.0)


def test_too_many_files_are_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_tree(tmp_path, [f"d{number}/f" for number in range(5)])
    monkeypatch.setattr(git_listing, "MAX_FILES", 3)
    listing = list_without_repository(str(tmp_path))
    assert (len(listing.paths), listing.cut) == (3, True)
    monkeypatch.setattr(git_listing, "MAX_FILES", 5)
    assert not list_without_repository(str(tmp_path)).cut


def test_a_link_that_leads_back_to_itself_hides_no_file_beside_it(tmp_path: Path) -> None:
    make_tree(tmp_path, {"src/a.py": "", "src/z.py": ""})
    (tmp_path / "src/m.py").symlink_to("m.py")
    (tmp_path / "src/gone.py").symlink_to("nowhere")
    assert sorted(walk(str(tmp_path)).paths) == ["src/a.py", "src/z.py"]
