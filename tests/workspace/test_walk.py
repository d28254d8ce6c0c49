"""Without git, a walk finds what git would find with the same ignore files."""

from __future__ import annotations

import os
import random
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.trees import make_repository, make_tree, run_git

from tui_agent.git import process as git_process
from tui_agent.workspace.git_listing import list_without_repository
from tui_agent.workspace.ignore_files import IgnoreFiles, rules_for
from tui_agent.workspace.walk import holds_more, walk


def walked(root: Path) -> list[str]:
    return walk(str(root), IgnoreFiles(str(root))).paths


def test_ignore_files_in_every_folder(tmp_path: Path) -> None:
    make_tree(
        tmp_path,
        {
            ".gitignore": "*.log\nbuild/\n/top.txt\nnot\\[a\n",
            "a/.gitignore": "!keep.log\n",
            "a/.ignore": "b/\n",
            **dict.fromkeys(
                ["x.log", "a/keep.log", "a/x.log", "build/o", "a/build/o", "top.txt", "a/top.txt"], ""
            ),
            **dict.fromkeys(["a/b/c.py", "b/c.py", ".hidden", "node_modules/m.js"], ""),
        },
    )
    assert walked(tmp_path) == [
        ".gitignore",
        ".hidden",
        "a/.gitignore",
        "a/.ignore",
        "a/keep.log",
        "a/top.txt",
        "b/c.py",
        "node_modules/m.js",
    ]


def test_the_rules_above_a_folder(tmp_path: Path) -> None:
    make_tree(tmp_path, {".gitignore": "out/\n*.log\n", "src/.gitignore": "!a.log\n"})
    rules = rules_for(str(tmp_path), "src/")
    assert rules is not None
    assert rules.enter("src/", [".gitignore"]).ignores("src/b.log", False)
    assert not rules.enter("src/", [".gitignore"]).ignores("src/a.log", False)
    assert rules_for(str(tmp_path), "src/out/deep/") is None


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
    assert walked(root) == ["a.py", "link.py", "sub/b.py"]
    assert walked(tmp_path / "none") == []


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


RULES = st.lists(
    st.sampled_from(["a", "b/", "/a", "*.x", "!a", "!*.x", "a/b", "**/b", "a/**", "# a", "", "/*/b", "!b/"]),
    max_size=4,
)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(above=RULES, below=RULES)
def test_a_walk_finds_what_git_finds(tmp_path_factory, above: list[str], below: list[str]) -> None:  # type: ignore[no-untyped-def]
    root: Path = tmp_path_factory.mktemp("tree")
    names = ["a", "b", "c.x", "d/a", "d/b", "d/c.x", "e/a/b", "e/b/a", "d/e/b/c.x", "b.d/a/c.x"]
    make_tree(root, names)
    make_tree(root, {".gitignore": "\n".join(above), "d/.gitignore": "\n".join(below)})
    found = walked(root)
    make_repository(root, commit=False)
    told = run_git(root, "ls-files", "--others", "--exclude-standard", "-z")
    assert found == sorted(name for name in told.split("\0") if name)


SIGNS = (
    *("a", "b", "ab", "x.y", "*", "**", "?", "/", "!", "\\", " ", "\\ ", "#", "é", "-", "\t", "\r"),
    *("[ab]", "[!a]", "[^b]", "[a-c]", "[c-a]", "[", "]", "[]a]", "[a-", "[-a]", "[a-]", "[\\]]", "[a-c-e]"),
    *("[[:alpha:]]", "[[:digit:]x]", "[[:none:]]", "[[:upper:]", "[[a]"),
)
NAMES = ("a", "b", "c", "ab", "abc", "x.y", "a b", "é", "-", "]", "A", "[", "d", "#", "!a", "\\", "ba", "a ")


def odd_tree(root: Path, seed: int) -> None:
    """A few files with odd names, and ignore files of odd rules in some of their folders."""
    chance = random.Random(seed)
    for _ in range(chance.randrange(4, 25)):
        path = root.joinpath(*(chance.choice(NAMES) for _ in range(chance.randrange(1, 5))))
        if not any(folder.is_file() for folder in path.parents) and not path.exists():
            make_tree(root, [str(path.relative_to(root))])
    folders = [folder for folder, _, _ in os.walk(root)]
    for folder in chance.sample(folders, min(len(folders), 3)):
        rules = ("".join(chance.choices(SIGNS, k=chance.randrange(1, 5))) for _ in range(4))
        # what `**` means right after a name has changed between versions of git
        kept = [rule for rule in rules if "**" not in rule[1:] or "/**" in rule]
        Path(folder, ".gitignore").write_text("\n".join(kept), newline="")


def test_odd_rules_mean_what_git_makes_of_them(tmp_path: Path) -> None:
    run_git(tmp_path, "init", "-q", "empty")
    for seed in range(25):
        root = tmp_path / str(seed)
        root.mkdir()
        odd_tree(root, seed)
        found = walked(root)
        assert list_without_repository(str(root)).paths == found, seed
        where = ("--git-dir", str(tmp_path / "empty/.git"), "--work-tree", str(root))
        told = run_git(root, *where, "ls-files", "--others", "--exclude-standard", "-z")
        assert found == sorted(name for name in told.split("\0") if name), seed


def test_many_stars_take_no_time(tmp_path: Path) -> None:
    rules = "*a" * 40 + "b\n" + "**/a/" * 30 + "b\n"
    make_tree(tmp_path, {".gitignore": rules, "a" * 200: "", "/".join("a" * 100): ""})
    began = time.process_time()
    assert len(walked(tmp_path)) == 3
    assert time.process_time() - began < 2


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
    listed = list_without_repository(str(root)).paths
    assert [path for path in listed if path.endswith(".py")] == ["a.py", "linked/c.py", "sub/b.py"]


def test_repositories_inside_a_plain_folder_keep_their_own_rules(tmp_path: Path) -> None:
    make_tree(tmp_path, {".gitignore": "*.log\n", "a.py": "", "x.log": "", ".hg/store": ""})
    make_repository(tmp_path / "inner", {".gitignore": "*.tmp\n", "i.py": ""})
    make_tree(tmp_path, ["inner/x.tmp", "inner/y.log"])
    assert list_without_repository(str(tmp_path)).paths == [
        *(".gitignore", "a.py", "inner/.gitignore", "inner/i.py", "inner/y.log")
    ]


def test_files_are_counted_without_what_is_bulky_until_there_are_more(tmp_path: Path) -> None:
    make_tree(tmp_path, {"a/b.py": "", "c.py": "", "node_modules/d.js": "", ".git/config": ""})
    assert holds_more(str(tmp_path), 1, 60.0)
    assert not holds_more(str(tmp_path), 2, 60.0)
