"""What git does not ignore is listed, whatever kind of work tree it is, and nothing of the repository's is run."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from support.trees import make_repository, make_tree, run_git

from tui_agent.git import repository as git_repository
from tui_agent.git import repository as git_status
from tui_agent.git.process import Result
from tui_agent.git.repository import (
    find_repository,
    git,
    ignored,
    ignored_by,
    ignored_folders,
    read_status,
    status_and_deleted,
    wholly_ignored,
)
from tui_agent.workspace import git_listing
from tui_agent.workspace.git_listing import list_files
from tui_agent.workspace.worker import list_paths


def listed(root: Path) -> list[str] | None:
    """The paths; in each case the status is the same whether or not git looks for untracked files once more."""
    repository = find_repository(str(root))
    listing = list_files(repository) if repository else None
    if listing is None:
        return None
    assert status_and_deleted(str(root), listing.untracked) == status_and_deleted(str(root))
    return listing.paths


async def test_a_listing_with_its_status_looks_through_the_folders_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_repository(tmp_path, ["a.py", "gone.py"])
    make_tree(tmp_path, ["sub/new.py"])
    (tmp_path / "gone.py").unlink()
    looks: list[tuple[str, ...]] = []

    def noted(root: str, *arguments: str) -> Result:
        if {"--others", "--untracked-files=all"} & {*arguments}:
            looks.append(arguments)
        return git(root, *arguments)

    for module in (git_status, git_listing):
        monkeypatch.setattr(module, "git", noted)
    sent: list[dict[str, Any]] = []

    async def send(item: dict[str, Any]) -> None:
        sent.append(item)

    await list_paths({"root": str(tmp_path)}, send)
    assert len(looks) == 1
    assert sent[1] == {"paths": ["a.py", "gone.py", "sub/new.py"]}
    assert sent[-1]["gone"] == ["gone.py"] and sent[-1]["status"]["marks"] == {
        "gone.py": " D",
        "sub/new.py": "??",
    }


def test_tracked_and_untracked_but_not_ignored(tmp_path: Path) -> None:
    make_repository(
        tmp_path,
        {
            ".gitignore": "*.log\nbuild/\n",
            "a.py": "",
            "sub/.gitignore": "!keep.log\n/only-here\n",
            "sub/b.py": "",
        },
    )
    (tmp_path / ".git/info/exclude").write_text("secret.txt\n")
    make_tree(
        tmp_path, ["new.py", "x.log", "sub/keep.log", "sub/only-here", "only-here", "build/o", "secret.txt"]
    )
    assert listed(tmp_path) == [
        ".gitignore",
        "a.py",
        "new.py",
        "only-here",
        "sub/.gitignore",
        "sub/b.py",
        "sub/keep.log",
    ]


def test_global_excludes_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = make_tree(tmp_path / "home", {"git/ignore": "*.tmp\n"})
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home))
    root = make_repository(tmp_path / "root", ["a.py", "b.tmp"], commit=False)
    assert listed(root) == ["a.py"]


def test_hostile_names(tmp_path: Path) -> None:
    names = [
        "-n",
        "--help",
        "a b",
        "new\nline",
        "tab\t",
        'quo"te',
        "back\\slash",
        "é",
        "🐍.py",
        "[x]",
        "*.py",
        ":(top)a",
    ]
    make_repository(tmp_path, names[:6])
    make_tree(tmp_path, names[6:])
    assert listed(tmp_path) == sorted(names)


def test_names_that_are_not_utf8_are_left_out_and_counted(tmp_path: Path) -> None:
    make_repository(tmp_path, ["a.py"])
    (tmp_path / os.fsdecode(b"caf\xe9.py")).touch()
    repository = find_repository(str(tmp_path))
    assert repository is not None
    listing = list_files(repository)
    assert listing is not None and (listing.paths, listing.unnamed) == (["a.py"], 1)


def test_below_the_root_of_the_repository(tmp_path: Path) -> None:
    make_repository(
        tmp_path, {".gitignore": "*.log\n", "a.py": "", "sub/b.py": "", "sub/x.log": ""}, commit=False
    )
    repository = find_repository(str(tmp_path / "sub"))
    assert repository is not None and repository.prefix == "sub/"
    assert listed(tmp_path / "sub") == ["b.py"]


def test_a_folder_that_the_repository_ignores_stands_for_itself(tmp_path: Path) -> None:
    make_repository(tmp_path, {".gitignore": "vendor/\n"})
    make_tree(tmp_path, ["vendor/lib/a.py"])
    assert find_repository(str(tmp_path / "vendor/lib")) is None


def test_no_repository_and_no_folder(tmp_path: Path) -> None:
    assert find_repository(str(tmp_path)) is None
    assert find_repository(str(tmp_path / "none")) is None
    assert read_status(str(tmp_path))["is_repository"] is False


def test_a_linked_work_tree(tmp_path: Path) -> None:
    main = make_repository(tmp_path / "main", ["a.py"])
    run_git(main, "worktree", "add", "-q", str(tmp_path / "linked"), "-b", "other")
    make_tree(tmp_path / "linked", ["new.py"])
    repository = find_repository(str(tmp_path / "linked"))
    assert repository is not None
    assert Path(repository.git_dir) == main / ".git/worktrees/linked"
    assert Path(repository.common_dir) == main / ".git"
    assert listed(tmp_path / "linked") == ["a.py", "new.py"]
    assert read_status(str(tmp_path / "linked"))["branch"] == "other"


def test_submodules_and_repositories_inside_are_listed_by_their_own_rules(tmp_path: Path) -> None:
    module = make_repository(tmp_path / "module", {".gitignore": "*.log\n", "m.py": ""})
    root = make_repository(tmp_path / "root", ["a.py"])
    run_git(root, "submodule", "add", "-q", str(module), "sub")
    make_repository(root / "inner", {".gitignore": "*.tmp\n", "i.py": ""})
    make_tree(root, ["sub/x.log", "inner/x.tmp", "inner/x.log"])
    assert listed(root) == [
        ".gitmodules",
        "a.py",
        "inner/.gitignore",
        "inner/i.py",
        "inner/x.log",
        "sub/.gitignore",
        "sub/m.py",
    ]


def test_links_to_files_are_listed_and_links_to_folders_are_not_followed(tmp_path: Path) -> None:
    outside = make_tree(tmp_path / "outside", ["o.py"])
    root = make_tree(tmp_path / "root", ["a.py", "sub/b.py"])
    for name, target in {"file": root / "a.py", "out": outside, "round": root, "gone": root / "none"}.items():
        (root / name).symlink_to(target)
    make_repository(root)
    assert listed(root) == ["a.py", "file", "gone", "sub/b.py"]


def test_deleted_files_are_told_apart(tmp_path: Path) -> None:
    make_repository(tmp_path, ["a.py", "b.py", "c.py", "top.py"])
    make_tree(tmp_path, {"sub/d.py": "", "new.py": ""})
    run_git(tmp_path, "add", "sub")
    run_git(tmp_path, "rm", "-q", "--cached", "c.py")
    for name in ("b.py", "sub/d.py", "new.py", "c.py"):
        (tmp_path / name).unlink()
    assert status_and_deleted(str(tmp_path))[1] == ["b.py", "sub/d.py"]
    assert status_and_deleted(str(tmp_path / "sub"))[1] == ["d.py"]


def test_a_sparse_checkout_lists_what_is_there(tmp_path: Path) -> None:
    make_repository(tmp_path, ["a.py", "in/b.py", "out/c.py"])
    run_git(tmp_path, "sparse-checkout", "set", "in")
    assert listed(tmp_path) == ["a.py", "in/b.py"]


def test_a_conflict_is_listed_once(tmp_path: Path) -> None:
    make_repository(tmp_path, {"a.py": "one\n"})
    for branch, text in (("left", "left\n"), ("right", "right\n")):
        run_git(tmp_path, "checkout", "-q", "-b", branch, "main")
        (tmp_path / "a.py").write_text(text)
        run_git(tmp_path, "commit", "-qam", branch)
    with pytest.raises(Exception, match="merge"):
        run_git(tmp_path, "merge", "left")
    assert listed(tmp_path) == ["a.py"]
    assert status_and_deleted(str(tmp_path))[1] == []
    assert read_status(str(tmp_path))["marks"] == {"a.py": "UU"}
    (tmp_path / "a.py").unlink()
    assert status_and_deleted(str(tmp_path))[1] == ["a.py"]


def test_what_is_ignored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_repository(tmp_path, {".gitignore": "*.log\nbuild/\n", "kept.log": ""})
    inner = make_repository(tmp_path / "inner", ["a.py"])
    run_git(tmp_path, "add", "inner")
    make_tree(tmp_path, ["build/deep/o", "sub/deep/build/o"])
    (tmp_path / "link").symlink_to(inner)
    repository = find_repository(str(tmp_path))
    assert repository is not None
    asked = ["a b.log", "kept.log", "build/x", "new\n.py", "-x.log", ":!x.log", ":(glob)y.py"]
    for few in (git_repository.FEW, 0):
        monkeypatch.setattr(git_repository, "FEW", few)
        assert ignored(repository, asked) == {"a b.log", "build/x", "-x.log", ":!x.log"}
        assert ignored(repository, ["kept.log"]) == set()
        assert ignored(repository, [*asked, "inner/x.log"]) is None
        assert ignored(repository, [*asked, "link/x.log"]) is None
    calls: list[tuple[str, ...]] = []

    def noted(root: str, *arguments: str, feed: bytes | None = None) -> Result:
        calls.append(arguments)
        return git(root, *arguments, feed=feed)

    monkeypatch.setattr(git_repository, "git", noted)
    folders = ignored_folders(repository)
    assert folders >= {"build"} and not folders & {"sub", ""}
    assert "--no-index" in calls[-1], "for each folder git would look through its whole index"
    calls.clear()
    ignored(repository, asked)
    assert [arguments[0] for arguments in calls] == ["ls-files", "check-ignore"] and "--no-index" in calls[-1]


def test_folders_are_ignored_if_no_file_in_them_can_be_listed(tmp_path: Path) -> None:
    make_repository(tmp_path, {".gitignore": "*\n!*.py\n!*/\nout/\nheld\n*.d\n", "a.py": ""})
    make_tree(tmp_path, ["held/kept.o"])
    run_git(tmp_path, "add", "-f", "held/kept.o")
    asked = ["src", "out", "src/out", "out/deep", "held", "x.d", ":!out/out"]
    ignored_ones = {"out", "src/out", "out/deep", "x.d", ":!out/out"}
    assert wholly_ignored(str(tmp_path), asked) == ignored_ones
    rules = {".gitignore": "src\nheld/\n", "deep/.gitignore": "inner\n"}
    asked = ["src", "held", "deep", "deep/inner", "inner"]
    assert ignored_by(rules, str(tmp_path), asked, wholly_ignored) == {"src", "deep/inner"}
    shutil.rmtree(tmp_path / ".git")
    assert wholly_ignored(str(tmp_path), ["src", "out", "held"]) == {"out", "held"}


def test_status_below_the_root(tmp_path: Path) -> None:
    make_repository(tmp_path, {"sub/a b.py": "1\n", "sub/old.py": "text that is moved\n", "top.py": "1\n"})
    (tmp_path / "sub/a b.py").write_text("2\n")
    (tmp_path / "top.py").write_text("2\n")
    run_git(tmp_path, "mv", "sub/old.py", "sub/new name.py")
    make_tree(tmp_path, ["sub/untracked/x y.py"])
    status = read_status(str(tmp_path / "sub"))
    assert status["marks"] == {"a b.py": " M", "new name.py": "R ", "untracked/x y.py": "??"}
    assert (status["is_repository"], status["branch"], status["ahead"], status["behind"]) == (
        True,
        "main",
        0,
        0,
    )


def test_distance_from_upstream_and_a_detached_head(tmp_path: Path) -> None:
    origin = make_repository(tmp_path / "origin", ["a"])
    run_git(tmp_path, "clone", "-q", str(origin), "clone")
    for _ in range(2):
        run_git(tmp_path / "clone", "commit", "-q", "--allow-empty", "-m", "more")
    run_git(origin, "commit", "-q", "--allow-empty", "-m", "other")
    run_git(tmp_path / "clone", "fetch", "-q")
    status = read_status(str(tmp_path / "clone"))
    assert (status["ahead"], status["behind"]) == (2, 1)
    run_git(tmp_path / "clone", "checkout", "-q", "--detach")
    assert (
        read_status(str(tmp_path / "clone"))["branch"] == run_git(tmp_path / "clone", "rev-parse", "HEAD")[:7]
    )


def test_nothing_that_a_repository_configures_is_run(tmp_path: Path) -> None:
    root = make_repository(tmp_path / "root", {"a.txt": "1\n", ".gitattributes": "*.txt filter=evil\n"})
    trap = tmp_path / "trap"
    trap.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\ncat\n")
    trap.chmod(0o755)
    for key in ("filter.evil.clean", "filter.evil.smudge", "core.fsmonitor", "core.pager", "core.editor"):
        run_git(root, "config", key, str(trap))
    hooks = make_tree(root / ".git/hooks", [])
    for hook in ("pre-commit", "post-commit", "post-index-change", "fsmonitor-watchman"):
        (hooks / hook).write_text(trap.read_text())
        (hooks / hook).chmod(0o755)
    (root / "a.txt").write_text("2\n")
    os.utime(root / "a.txt", (1, 1))
    assert listed(root) == [".gitattributes", "a.txt"]
    assert read_status(str(root))["marks"] == {"a.txt": " M"}
    assert not (tmp_path / "ran").exists()


def test_inherited_variables_do_not_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = make_repository(tmp_path / "other", ["o.py"])
    root = make_repository(tmp_path / "root", ["a.py"])
    monkeypatch.setattr(os, "environ", os.environ.copy())
    os.environ["GIT_DIR"] = str(other / ".git")
    assert listed(root) == ["a.py"]


def test_failing_is_a_result(tmp_path: Path) -> None:
    told = git(str(tmp_path), "rev-parse", "HEAD")
    assert not told.ok and b"not a git repository" in told.err


def test_very_many_marks_are_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(git_status, "MAX_MARKS", 3)
    make_repository(tmp_path, {"z.py": "1\n"})
    make_tree(tmp_path, {"z.py": "2\n", **{f"new{number}": "" for number in range(5)}})
    assert read_status(str(tmp_path))["marks"] == {"z.py": " M", "new0": "??", "new1": "??"}
