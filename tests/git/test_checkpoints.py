"""Checkpoints as private commits: nothing of the person's repository moves, and nothing that it holds is run."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.faults import tree
from support.repositories import git, repository

from tui_agent.git.commits import (
    commit,
    commit_diff,
    commit_plan,
    file_at,
    forget_checkpoints,
    make_checkpoint,
    seen_of,
)

FILES = {"a.txt": "a\n", "src/b.txt": "b\n", ".gitignore": "*.log\n"}


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    folder = repository(tmp_path / "repo", FILES)
    git(folder, "config", "user.name", "A")
    git(folder, "config", "user.email", "a@example.com")
    return folder


def standing(repo: Path) -> tuple[object, ...]:
    """All that a checkpoint must leave as it is: branch, index, stash, status, and the files."""
    files = {name: data for name, data in tree(repo).items() if not name.startswith(".git/")}
    return (
        git(repo, "rev-parse", "HEAD"),
        git(repo, "symbolic-ref", "HEAD"),
        git(repo, "ls-files", "--stage"),
        git(repo, "stash", "list"),
        git(repo, "status", "--porcelain"),
        git(repo, "reflog", "--all"),
        files,
    )


def test_a_checkpoint_holds_the_tree_as_it_is_and_touches_nothing(repo: Path) -> None:
    (repo / "a.txt").write_text("changed\n")
    (repo / "staged.txt").write_text("staged\n")
    git(repo, "add", "staged.txt")
    (repo / "new.txt").write_text("new\n")
    (repo / "other.txt").write_text("not ours\n")
    (repo / "x.log").write_text("ignored\n")
    before = standing(repo)
    made = make_checkpoint(str(repo), "s1", "k1", ["new.txt", "x.log", "gone.txt"])
    assert standing(repo) == before
    assert git(repo, "rev-parse", "refs/tui-agent/s1/k1").strip() == made
    names = git(repo, "ls-tree", "-r", "--name-only", made).split()
    assert names == [".gitignore", "a.txt", "new.txt", "src/b.txt", "staged.txt"]
    assert file_at(str(repo), made, "a.txt") == b"changed\n"
    assert file_at(str(repo), "HEAD", "a.txt") == b"a\n"
    assert file_at(str(repo), made, "x.log") is None
    assert git(repo, "rev-parse", f"{made}^").strip() == git(repo, "rev-parse", "HEAD").strip()


def test_before_the_first_commit_and_in_the_middle_of_a_merge(tmp_path: Path, repo: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    git(empty, "init", "-q")
    (empty / "a.txt").write_text("a\n")
    assert file_at(str(empty), make_checkpoint(str(empty), "s", "k1", ["a.txt"]), "a.txt") == b"a\n"
    git(repo, "checkout", "-q", "-b", "other")
    (repo / "a.txt").write_text("theirs\n")
    git(repo, "commit", "-q", "-am", "theirs")
    git(repo, "checkout", "-q", "main")
    (repo / "a.txt").write_text("ours\n")
    git(repo, "commit", "-q", "-am", "ours")
    with pytest.raises(Exception, match="merge"):
        git(repo, "merge", "other")
    before = standing(repo)
    made = make_checkpoint(str(repo), "s", "k1", [])
    assert made and standing(repo) == before
    assert b"<<<<<<<" in (file_at(str(repo), made, "a.txt") or b"")


def test_below_the_root_in_a_linked_worktree_and_with_a_submodule(tmp_path: Path, repo: Path) -> None:
    (repo / "src/b.txt").write_text("changed\n")
    made = make_checkpoint(str(repo / "src"), "s", "k1", ["b.txt"])
    assert file_at(str(repo / "src"), made, "b.txt") == b"changed\n"
    linked = tmp_path / "linked"
    git(repo, "worktree", "add", "-q", str(linked), "-b", "side")
    (linked / "a.txt").write_text("linked\n")
    before = standing(linked)
    made = make_checkpoint(str(linked), "s", "k2", ["a.txt"])
    assert standing(linked) == before and file_at(str(linked), made, "a.txt") == b"linked\n"
    inner = repository(tmp_path / "inner", {"i.txt": "i\n"})
    git(repo, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(inner), "sub")
    (repo / "sub/i.txt").write_text("inside\n")
    before = standing(repo)
    made = make_checkpoint(str(repo), "s", "k3", ["a.txt", "sub/i.txt"])
    assert made and standing(repo) == before
    assert "160000 commit" in git(repo, "ls-tree", made, "sub")


def test_nothing_that_the_repository_configures_is_run(tmp_path: Path, repo: Path) -> None:
    trap = tmp_path / "trap"
    program = tmp_path / "program"
    program.write_text(f'#!/bin/sh\ntouch "{trap}"\ncat\n')
    program.chmod(0o755)
    hooks = repo / ".git/hooks"
    for name in ("pre-commit", "post-commit", "reference-transaction", "commit-msg", "post-index-change"):
        hook = hooks / name
        hook.write_text(f'#!/bin/sh\ntouch "{trap}"\n')
        hook.chmod(0o755)
    for key in (
        "filter.evil.clean",
        "filter.evil.process",
        "diff.evil.command",
        "diff.evil.textconv",
        "gpg.program",
        "core.fsmonitor",
        "core.pager",
        "core.editor",
        "core.sshCommand",
    ):
        git(repo, "config", key, str(program))
    git(repo, "config", "commit.gpgSign", "true")
    (repo / ".gitattributes").write_text("* filter=evil diff=evil\n")
    (repo / "a.txt").write_text("changed\n")
    trap.unlink(missing_ok=True)
    made = make_checkpoint(str(repo), "s", "k1", ["a.txt"])
    assert made and file_at(str(repo), made, "a.txt") == b"changed\n"
    plan = commit_plan(str(repo), ["a.txt"])
    assert "+changed" in commit_diff(str(repo), ["a.txt"])["diff"]
    assert set(plan["hooks"]) == {path.name for path in hooks.iterdir() if not path.suffix}
    assert commit(str(repo), "Changes a", seen_of(str(repo), ["a.txt"]), {})["commit"]
    assert not trap.exists()


def test_refs_go_one_by_one_or_all(repo: Path) -> None:
    for name in ("k1", "k2", "k3"):
        assert make_checkpoint(str(repo), "s1", name, [])
    assert make_checkpoint(str(repo), "s2", "k1", [])
    assert forget_checkpoints(str(repo), "s1", ["k1"]) == 1
    assert forget_checkpoints(str(repo), "s1") == 2
    assert git(repo, "for-each-ref", "--format=%(refname)", "refs/tui-agent").split() == [
        "refs/tui-agent/s2/k1"
    ]
    assert make_checkpoint(str(repo), "../heads/main", "k1", []) == ""


def test_packed_refs_are_those_of_the_repository(repo: Path) -> None:
    """git sees the repository through links of ours; what it replaces has to be behind them."""
    assert make_checkpoint(str(repo), "s1", "k1", [])
    git(repo, "pack-refs", "--all", "--prune")
    (repo / "a.txt").write_text("changed\n")
    done = commit(str(repo), "Changes a", seen_of(str(repo), ["a.txt"]), {})
    assert done["commit"] == git(repo, "rev-parse", "main").strip()
    assert forget_checkpoints(str(repo), "s1") == 1
    assert "tui-agent" not in (repo / ".git/packed-refs").read_text()
    assert not (repo / ".git/packed-refs").is_symlink()
    assert git(repo, "reflog", "show", "main").count("\n") == 2
    assert git(repo, "fsck", "--strict", "--no-dangling") == ""


def test_a_commit_holds_the_chosen_files_and_the_index_of_others_survives(repo: Path) -> None:
    root = str(repo)
    (repo / "c.txt").write_text("staged\n")
    git(repo, "add", "c.txt")
    (repo / "c.txt").write_text("staged\nand not staged\n")
    (repo / "a.txt").write_text("changed\n")
    (repo / "odd [name]*.txt").write_text("odd\n")
    (repo / "src/b.txt").unlink()
    plan = commit_plan(root, ["a.txt", "odd [name]*.txt", "x.log"])
    marks = [(file["path"], file["mark"]) for file in plan["files"]]
    assert marks == [("a.txt", " M"), ("odd [name]*.txt", "??"), ("c.txt", "AM"), ("src/b.txt", " D")]
    seen = {file["path"]: file["seen"] for file in plan["files"]}
    chosen = {path: seen[path] for path in ("a.txt", "odd [name]*.txt")}
    done = commit(root, "First line\n\nMore.\n", chosen, {})
    held = git(repo, "show", "--name-only", "--format=%s", done["commit"]).split("\n")
    assert held == ["First line", "", "a.txt", "odd [name]*.txt", ""]
    assert git(repo, "status", "--porcelain") == "AM c.txt\n D src/b.txt\n"
    assert git(repo, "show", ":c.txt") == "staged\n"
    assert commit(root, "Second", {"src/b.txt": seen["src/b.txt"]}, {})["commit"]
    assert git(repo, "status", "--porcelain") == "AM c.txt\n"
    (repo / "a.txt").write_text("again\n")
    assert "a.txt has changed since" in commit(root, "Third", {"a.txt": seen["a.txt"]}, {})["error"]
    assert "empty" in commit(root, "  \n", seen_of(root, ["a.txt"]), {})["error"].lower()
    assert git(repo, "diff", "--cached", "--name-only") == "c.txt\n"


@pytest.mark.parametrize("where", [".git/hooks", "tools/hooks"])
def test_hooks_run_where_they_are_asked_for_and_as_they_were_seen(repo: Path, where: str) -> None:
    root, ran = str(repo), repo / ".git/ran"
    if where != ".git/hooks":
        git(repo, "config", "core.hooksPath", where)
    hook = repo / where / "pre-commit"
    hook.parent.mkdir(parents=True, exist_ok=True)
    hook.write_text(
        f'#!/bin/sh\necho "$HOME $OPENAI_API_KEY" > "{ran}"\ngrep -q good a.txt || {{ echo no good >&2; exit 1; }}\n'
    )
    hook.chmod(0o755)
    (repo / "new.txt").write_text("new\n")
    (repo / "a.txt").write_text("bad\n")
    hooks, files = commit_plan(root, [])["hooks"], seen_of(root, ["a.txt", "new.txt"])
    assert list(hooks) == ["pre-commit"]
    assert commit(root, "Without", {"a.txt": files["a.txt"]}, {})["commit"] and not ran.exists()
    (repo / "a.txt").write_text("worse\n")
    files, before = seen_of(root, ["a.txt", "new.txt"]), git(repo, "ls-files", "--stage")
    assert commit(root, "With", files, hooks) == {"commit": "", "error": "no good"}
    assert ran.exists() and git(repo, "ls-files", "--stage") == before
    (repo / "a.txt").write_text("good\n")
    assert commit(root, "With", seen_of(root, ["a.txt", "new.txt"]), hooks)["commit"]
    (repo / "a.txt").write_text("good again\n")
    hook.write_text("#!/bin/sh\nexit 0\n")
    assert "hooks have changed" in commit(root, "Other", seen_of(root, ["a.txt"]), hooks)["error"]


def test_a_folder_without_git_has_neither(tmp_path: Path) -> None:
    assert make_checkpoint(str(tmp_path), "s", "k1", []) == ""
    assert commit_plan(str(tmp_path), ["a"])["is_repository"] is False
    assert file_at(str(tmp_path), "HEAD", "a") is None
