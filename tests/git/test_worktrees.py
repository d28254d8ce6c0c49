"""Worktrees of the folder as it is on disk: all that a sub-task is to see is in them, and nothing of theirs stays."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from support.faults import tree
from support.repositories import git, repository

from tui_agent.errors import FileError
from tui_agent.files.private import own_place, sweep
from tui_agent.git import commits, worktrees
from tui_agent.git.process import Result
from tui_agent.git.worktrees import (
    add_worktree,
    remove_worktree,
    remove_worktrees,
    take_snapshot,
    tidy,
)

FILES = {"a.txt": "a\n", "src/b.txt": "b\n", ".gitignore": "*.log\n"}


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return repository(tmp_path / "repo", FILES)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Where the copies of a session lie."""
    return tmp_path / "worktrees" / "s1"


def standing(repo: Path) -> tuple[object, ...]:
    """All that must be as it was when a copy is made, and when it is gone."""
    files = {name: data for name, data in tree(repo).items() if not name.startswith(".git/")}
    return (
        (repo / ".git/HEAD").read_text(),
        git(repo, "ls-files", "--stage"),
        git(repo, "for-each-ref"),
        git(repo, "stash", "list"),
        git(repo, "status", "--porcelain"),
        git(repo, "reflog", "--all"),
        files,
    )


def content(folder: Path) -> dict[str, bytes | str | None]:
    return {name: data for name, data in tree(folder).items() if not name.startswith(".git")}


def in_conflict(repo: Path) -> None:
    """The middle of a merge: a file in conflict, and one that the other side added."""
    git(repo, "checkout", "-q", "-b", "other")
    (repo / "a.txt").write_text("theirs\n")
    (repo / "theirs.txt").write_text("new\n")
    git(repo, "add", "--all")
    git(repo, "commit", "-q", "-m", "theirs")
    git(repo, "checkout", "-q", "main")
    (repo / "a.txt").write_text("ours\n")
    git(repo, "commit", "-q", "-am", "ours")
    with pytest.raises(Exception, match="merge"):
        git(repo, "merge", "other")


def test_a_copy_is_the_folder_as_on_disk_without_what_git_ignores(repo: Path, place: Path) -> None:
    (repo / "a.txt").write_text("c\n")  # as long as before, in the same second
    (repo / "src/b.txt").unlink()
    (repo / ":(top)new [1]*.txt").write_text("new\n")
    (repo / "x.log").write_text("ignored\n")
    (repo / "run.sh").write_text("#!/bin/sh\n")
    (repo / "run.sh").chmod(0o755)
    (repo / "link").symlink_to("a.txt")
    repository(repo / "nested", {"n.txt": "n\n"})
    before = standing(repo)
    made = add_worktree(str(repo), take_snapshot(str(repo)), str(place / "one"))
    assert made == {"root": str(place / "one"), "submodules": []}
    assert standing(repo) == before
    assert content(place / "one") == {
        "a.txt": b"c\n",
        ":(top)new [1]*.txt": b"new\n",
        "link": "a.txt",
        "run.sh": b"#!/bin/sh\n",
    }
    assert os.access(place / "one/run.sh", os.X_OK)
    assert git(place / "one", "status", "--porcelain") == ""
    remove_worktree(str(repo), str(place / "one"))
    tidy(str(repo), str(place))
    assert standing(repo) == before
    assert not place.exists() and not (repo / ".git/worktrees").exists()


def test_a_change_in_the_second_in_which_git_looked_is_seen(repo: Path) -> None:
    then = (1_700_000_000, 1_700_000_000)
    os.utime(repo / "a.txt", then)
    git(repo, "add", "a.txt")
    os.utime(repo / ".git/index", then)
    (repo / "a.txt").write_text("c\n")
    os.utime(repo / "a.txt", then)
    assert git(repo, "show", f"{take_snapshot(str(repo))}:a.txt") == "c\n"


def test_without_commits_in_a_merge_and_in_a_folder_below(tmp_path: Path, repo: Path, place: Path) -> None:
    young = tmp_path / "young"
    young.mkdir()
    git(young, "init", "-q")
    assert add_worktree(str(young), take_snapshot(str(young)), str(place / "empty"))
    (young / "a.txt").write_text("a\n")
    add_worktree(str(young), take_snapshot(str(young)), str(place / "young"))
    assert content(place / "young") == {"a.txt": b"a\n"}
    in_conflict(repo)
    before = standing(repo)
    add_worktree(str(repo), take_snapshot(str(repo)), str(tmp_path / "s2/merging"))
    assert standing(repo) == before
    assert b"<<<<<<<" in (tmp_path / "s2/merging/a.txt").read_bytes()
    assert (tmp_path / "s2/merging/theirs.txt").read_text() == "new\n"
    (repo / "empty").mkdir()
    for folder in ("src", "empty"):
        root = str(repo / folder)
        made = add_worktree(root, take_snapshot(root), str(tmp_path / "s2" / folder))
        assert made["root"] == str(tmp_path / "s2" / folder / folder) and os.path.isdir(made["root"])


def test_a_copy_of_a_copy_holds_what_was_done_in_that(repo: Path, place: Path, tmp_path: Path) -> None:
    outer = add_worktree(str(repo), take_snapshot(str(repo)), str(place / "outer"))["root"]
    (Path(outer) / "done.txt").write_text("done\n")
    inner = tmp_path / "s2" / "inner"
    add_worktree(outer, take_snapshot(outer), str(inner))
    assert (inner / "done.txt").read_text() == "done\n" and (inner / "a.txt").exists()
    remove_worktree(outer, str(place / "outer"))
    remove_worktrees(str(inner.parent))  # its folder of origin has gone before
    assert not inner.parent.exists() and not (repo / ".git/worktrees").exists()


def test_where_no_repository_can_hold_it_there_is_no_snapshot(tmp_path: Path, repo: Path) -> None:
    (repo / "out.log").mkdir()
    bare = tmp_path / "bare"
    git(tmp_path, "init", "-q", "--bare", str(bare))
    plain = tmp_path / "plain"
    plain.mkdir()
    assert [take_snapshot(str(folder)) for folder in (plain, bare, repo / "out.log", repo / ".git")] == [
        ""
    ] * 4
    with pytest.raises(FileError):
        add_worktree(str(plain), "0" * 40, str(tmp_path / "s/one"))
    assert not (tmp_path / "s/one").exists()


def test_a_file_that_cannot_be_read_or_is_huge_does_not_keep_the_others_out(
    repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tui_agent.git.commits.LARGEST_UNTRACKED", 10)
    (repo / "new.txt").write_text("new\n")
    (repo / "huge.bin").write_text("more than ten")
    os.mkfifo(repo / "pipe")
    snapshot = take_snapshot(str(repo))
    names = git(repo, "ls-tree", "-r", "--name-only", snapshot).split()
    assert names == [".gitignore", "a.txt", "new.txt", "src/b.txt"]


def test_nothing_that_the_repository_configures_is_run(tmp_path: Path, repo: Path, place: Path) -> None:
    trap, program = tmp_path / "trap", tmp_path / "program"
    program.write_text(f'#!/bin/sh\ntouch "{trap}"\ncat\n')
    program.chmod(0o755)
    for name in ("post-checkout", "post-index-change", "reference-transaction", "pre-commit"):
        hook = repo / ".git/hooks" / name
        hook.write_text(f'#!/bin/sh\ntouch "{trap}"\n')
        hook.chmod(0o755)
    for key in ("filter.evil.clean", "filter.evil.smudge", "filter.evil.process", "core.fsmonitor"):
        git(repo, "config", key, str(program))
    (repo / ".gitattributes").write_text("* filter=evil\n")
    (repo / "a.txt").write_text("changed\n")
    trap.unlink(missing_ok=True)
    snapshot = take_snapshot(str(repo))
    assert not trap.exists()
    git(repo, "config", "--global", "filter.large.smudge", str(program))
    git(repo, "config", "--global", "filter.large.required", "true")
    (repo / ".git/info/attributes").write_text("* filter=large\n")
    add_worktree(str(repo), snapshot, str(place / "one"))
    assert (place / "one/a.txt").read_text() == "changed\n"
    remove_worktree(str(repo), str(place / "one"))
    assert not trap.exists()


def test_submodules_are_named_and_left_empty(tmp_path: Path, repo: Path, place: Path) -> None:
    inner = repository(tmp_path / "inner", {"i.txt": "i\n"})
    git(repo, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(inner), "src/sub")
    made = add_worktree(str(repo), take_snapshot(str(repo)), str(place / "one"))
    assert made["submodules"] == ["src/sub"] and os.listdir(place / "one/src/sub") == []
    below = add_worktree(str(repo / "src"), take_snapshot(str(repo / "src")), str(place / "two"))
    assert below["submodules"] == ["sub"]
    remove_worktrees(str(place))
    assert not place.exists()


def test_what_is_written_into_one_copy_is_in_no_other_and_not_in_the_next(
    repo: Path, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worktrees, "WHOLE_FOR", 0)
    snapshot = take_snapshot(str(repo))
    add_worktree(str(repo), snapshot, str(place / "one"))
    (place / "one/new").write_text("two\n")
    os.replace(place / "one/new", place / "one/a.txt")
    add_worktree(str(repo), snapshot, str(place / "two"))
    assert (place / "two/a.txt").read_text() == "a\n" and not (place / "two/new").exists()
    (place / "two/src/b.txt").write_text("by another program\n")
    add_worktree(str(repo), snapshot, str(place / "three"))
    assert (place / "three/src/b.txt").read_text() == "b\n"
    assert (place / "three/.gitignore").stat().st_ino == (place / "one/.gitignore").stat().st_ino
    assert (repo / "src/b.txt").read_text() == "b\n"


def test_the_next_copy_may_be_of_another_snapshot(repo: Path, place: Path) -> None:
    first = take_snapshot(str(repo))
    (repo / "a.txt").unlink()
    (repo / "a.txt").mkdir()
    (repo / "a.txt/inner.txt").write_text("inner\n")
    (repo / "src/b.txt").unlink()
    second = take_snapshot(str(repo))
    for name, snapshot in (("one", first), ("two", second), ("three", first)):
        add_worktree(str(repo), snapshot, str(place / name))
        assert git(place / name, "status", "--porcelain") == ""
    assert content(place / "two") == {"a.txt": None, "a.txt/inner.txt": b"inner\n"}
    assert content(place / "one") == content(place / "three")


def test_a_seed_that_was_just_looked_at_is_not_looked_at_again(
    repo: Path, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_worktree(str(repo), take_snapshot(str(repo)), str(place / "one"))
    looked = []
    checkout = worktrees._checkout
    monkeypatch.setattr(worktrees, "_checkout", lambda *args: looked.append(args) or checkout(*args))
    add_worktree(str(repo), take_snapshot(str(repo)), str(place / "two"))
    assert looked == []
    (repo / "a.txt").write_text("another\n")
    add_worktree(str(repo), take_snapshot(str(repo)), str(place / "three"))
    assert len(looked) == 1 and (place / "three/a.txt").read_text() == "another\n"


def test_a_seed_over_which_git_was_killed_is_made_anew(repo: Path, place: Path) -> None:
    snapshot = take_snapshot(str(repo))
    add_worktree(str(repo), snapshot, str(place / "one"))
    (place / ".seed/half.txt").write_text("half")
    (place / ".seed.index.lock").touch()
    add_worktree(str(repo), snapshot, str(place / "two"))
    assert content(place / "two") == content(place / "one")
    (place / ".seed.index").write_bytes(b"no index at all")
    add_worktree(str(repo), snapshot, str(place / "three"))
    assert content(place / "three") == content(place / "one")


def test_the_index_of_one_who_was_killed_over_a_snapshot_is_swept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with subprocess.Popen(["true"]) as process:
        process.wait()
    place = Path(own_place())
    mine, dead = place / f"{os.getpid()}-x", place / f"{process.pid}-y"
    for folder in (mine, dead, place / "z"):
        folder.mkdir()
    sweep()
    assert mine.exists() and not dead.exists() and (place / "z").exists()


def test_where_no_file_can_have_two_names_it_gets_files_of_its_own(
    repo: Path, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(worktrees.os, "link", refuse)
    add_worktree(str(repo), take_snapshot(str(repo)), str(place / "one"))
    assert content(place / "one") == {"a.txt": b"a\n", "src": None, "src/b.txt": b"b\n"}
    assert git(place / "one", "status", "--porcelain") == ""


def test_a_file_that_vanishes_as_it_is_added_leaves_the_others(
    repo: Path, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = commits.git

    def vanishing(root: str, *arguments: str, **named: Any) -> Result:
        if arguments[0] == "add" and "--update" not in arguments:
            (repo / "vanishes.txt").unlink(missing_ok=True)
        return run(root, *arguments, **named)

    (repo / "new.txt").write_text("new\n")
    (repo / "vanishes.txt").write_text("")
    monkeypatch.setattr(commits, "git", vanishing)
    add_worktree(str(repo), take_snapshot(str(repo)), str(place / "one"))
    assert content(place / "one") == {"a.txt": b"a\n", "new.txt": b"new\n", "src": None, "src/b.txt": b"b\n"}


@pytest.mark.parametrize("failing", ["link", "mkdir"])
def test_a_full_disk_leaves_nothing_and_says_so(
    repo: Path, place: Path, monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    snapshot, real, calls = take_snapshot(str(repo)), getattr(os, failing), []

    def fill(*arguments: object, **named: object) -> object:
        calls.append(arguments)
        if (len(calls) > 1 and failing == "link") or "src" in str(arguments[0]):
            raise OSError(28, "No space left on device")
        return real(*arguments, **named)

    monkeypatch.setattr(worktrees.os, failing, fill)
    with pytest.raises(FileError, match="disk is full"):
        add_worktree(str(repo), snapshot, str(place / "one"))
    tidy(str(repo), str(place))
    assert not place.exists() and not (repo / ".git/worktrees").exists()


def test_one_that_is_half_made_or_gone_or_closed_to_us_is_removed_all_the_same(
    repo: Path, place: Path
) -> None:
    snapshot = take_snapshot(str(repo))
    for name in ("gone", "closed", "locked", "other"):
        add_worktree(str(repo), snapshot, str(place / name))
    for path in sorted((place / "gone").rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    (place / "gone").rmdir()
    (place / "closed/src").chmod(0)
    git(repo, "worktree", "lock", str(place / "locked"))
    half = repo / ".git/worktrees/half"
    half.mkdir()
    (half / "locked").write_text("initializing")
    for name in ("gone", "closed", "locked", "half"):
        remove_worktree(str(repo), str(place / name))
    assert os.listdir(repo / ".git/worktrees") == ["other"]
    assert sorted(set(os.listdir(place)) - worktrees.NAMES) == [".other.repository", "other"]


def test_no_link_is_followed_when_a_copy_is_removed(tmp_path: Path, repo: Path, place: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "precious.txt").write_text("precious")
    add_worktree(str(repo), take_snapshot(str(repo)), str(place / "one"))
    (place / "one/out").symlink_to(outside)
    (place / "two").symlink_to(outside)
    remove_worktree(str(repo), str(place / "one"))
    remove_worktree(str(repo), str(place / "two"))
    assert (outside / "precious.txt").read_text() == "precious"
    assert not os.path.lexists(place / "two")


def test_a_folder_that_is_there_already_is_left_alone(repo: Path, place: Path) -> None:
    (place / "one").mkdir(parents=True)
    (place / "one/mine.txt").write_text("mine")
    with pytest.raises(FileError, match="already exists"):
        add_worktree(str(repo), take_snapshot(str(repo)), str(place / "one"))
    assert (place / "one/mine.txt").read_text() == "mine"
