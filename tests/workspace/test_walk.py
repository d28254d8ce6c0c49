"""Without git, a walk finds what git would find with the same ignore files."""

from __future__ import annotations

import os
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.trees import make_repository, make_tree, run_git

from tui_agent.workspace.ignore_files import IgnoreFiles, rules_for
from tui_agent.workspace.walk import walk


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
