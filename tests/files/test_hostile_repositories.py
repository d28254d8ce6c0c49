"""A repository that wants something run gets nothing run, and a private one beside it stays private."""

from __future__ import annotations

import os
import random
import time
from pathlib import Path

import pytest
from support.hostile import KEY, PRIVATE, armed
from support.program import run
from support.recordings import recorded
from support.sessions import open_session
from support.trees import make_repository, make_tree, run_git, until

from tui_agent.errors import ChildFailed
from tui_agent.files.git_folder import (
    TRUSTED_FILTERS,
    find_git_folder,
    format_config,
    git_folder_elsewhere,
    parse_config,
)
from tui_agent.git.commits import commit, commit_diff, commit_plan, file_at, make_checkpoint, seen_of
from tui_agent.git.process import run_git as git_process
from tui_agent.git.repository import find_repository, git, read_status
from tui_agent.git.worktrees import add_worktree, take_snapshot
from tui_agent.workspace.git_listing import list_files
from tui_agent.workspace.workspace import Workspace

#: The worst of `support.hostile`, one of each cause; all of them are tried by `make attacks`.
WORST = (
    *("filter: name with =", "worktree configuration", "submodule: fsmonitor, never ignored"),
    *("partial clone: ext address", "partial clone: never answers", "include by branch"),
    *("pointer to a hostile git folder", "linked worktree of a hostile repository"),
    *("objects and refs of a private repository", "branch and alternates of a private repository"),
    *("shared folder of a private repository", "work tree elsewhere", "environment: settings one by one"),
    *("a git of the folder's own", "pipe: branch", "pipe: ignore file below"),
)


@pytest.fixture(autouse=True)
def person(home: Path) -> None:
    (home / "gitconfig").write_text("[user]\n\tname = A\n\temail = a@example.com\n")


@pytest.mark.parametrize("attack", WORST)
def test_opening_looking_and_writing_run_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, attack: str
) -> None:
    ground = armed(attack, tmp_path)
    for key, value in {**ground.environment, "OPENAI_API_KEY": KEY}.items():
        monkeypatch.setenv(key, value)
    root, told = str(ground.root), []
    repository = find_repository(root)
    told.append(list_files(repository) if repository else None)
    told.append(read_status(root))
    told += [file_at(root, "HEAD", name) for name in ("a.txt", "notes.txt")]
    told.append(make_checkpoint(root, "s1", "k1", ["a.txt", "sub/m.txt"]))
    if snapshot := take_snapshot(root):
        add_worktree(root, snapshot, str(tmp_path / "copies/one"))
        told += [path.read_bytes() for path in (tmp_path / "copies/one").glob("*.txt")]
    told.append(commit_plan(root, ["a.txt", "src/b.txt"]))
    told.append(commit_diff(root, ["a.txt", "src/b.txt"]))
    for message in ("A change", "Nothing more"):
        told.append(commit(root, message, seen_of(root, ["a.txt", "src/b.txt"]), {}))
    assert not ground.ran
    assert PRIVATE not in repr(told) and "notes.txt" not in repr(told)


def filtered(root: Path, command: str, *, required: bool = False) -> Path:
    """A repository whose text files go through a filter of its own."""
    make_repository(root, {"a.txt": "one\n", ".gitattributes": "*.txt filter=upper\n"})
    run_git(root, "config", "filter.upper.clean", command)
    if required:
        run_git(root, "config", "filter.upper.required", "true")
    (root / "a.txt").write_text("two\n")
    return root


def fingerprint(root: Path) -> str:
    found = find_git_folder(str(root))
    assert found is not None
    return found.fingerprint


async def test_the_child_runs_no_program_of_the_folder_as_it_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ground = armed("a git of the folder's own", tmp_path)
    monkeypatch.setenv("PATH", ground.environment["PATH"])
    workspace = Workspace(ground.root)
    workspace.start()
    await workspace.ready()
    assert (await workspace.git_status()).is_repository
    await workspace.close()
    assert not ground.ran


def test_a_command_runs_no_program_of_the_folder(tmp_path: Path) -> None:
    ground = armed("a git of the folder's own", tmp_path)
    for words in (
        ["doctor", "--json"],
        ["run", "--replay", str(recorded(tmp_path / "r", ("Hi", "Ho"))), "Hi"],
    ):
        done = run(*words, folder=ground.root, environment=ground.environment)
        assert not done.stderr.count("Traceback") and done.stdout
    assert not ground.ran


def test_a_filter_runs_once_it_is_trusted_and_not_after_it_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = filtered(tmp_path / "root", f"env > {tmp_path}/environment; tr a-z A-Z")
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv(TRUSTED_FILTERS, fingerprint(root))
    assert commit(str(root), "Filtered", seen_of(str(root), ["a.txt"]), {})["error"] == ""
    assert file_at(str(root), "HEAD", "a.txt") == b"TWO\n"
    assert KEY not in (tmp_path / "environment").read_text()
    run_git(root, "config", "filter.upper.clean", "rev")
    (root / "a.txt").write_text("three\n")
    assert commit(str(root), "As it is", seen_of(str(root), ["a.txt"]), {})["error"] == ""
    assert file_at(str(root), "HEAD", "a.txt") == b"three\n"


def test_trust_in_one_repository_is_none_in_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = (filtered(tmp_path / name, "tr a-z A-Z") for name in ("one", "other"))
    monkeypatch.setenv(TRUSTED_FILTERS, fingerprint(one))
    assert commit(str(other), "As it is", seen_of(str(other), ["a.txt"]), {})["error"] == ""
    assert file_at(str(other), "HEAD", "a.txt") == b"two\n"


def test_a_file_that_needs_its_filter_is_not_committed_without(tmp_path: Path) -> None:
    root = filtered(tmp_path / "root", "tr a-z A-Z", required=True)
    told = commit(str(root), "A change", seen_of(str(root), ["a.txt"]), {})
    assert told["commit"] == "" and "needs the filter upper" in told["error"]
    assert file_at(str(root), "HEAD", "a.txt") == b"one\n"


async def test_the_person_is_told_once_which_filters_do_not_run(tmp_path: Path) -> None:
    root = filtered(tmp_path / "root", "tr a-z A-Z")
    for filters, count in (("", 1), (fingerprint(root), 0)):
        notices: list[str] = []
        workspace = Workspace(root, filters=filters)
        workspace.listen(on_notice=lambda _, text, told=notices: told.append(text))
        workspace.start()
        await workspace.ready()
        await workspace.refresh()
        await until(lambda workspace=workspace: not workspace.busy)
        await workspace.close()
        assert len(notices) == count and all(
            "upper" in text and "tui-agent trust" in text for text in notices
        )


def test_a_missing_object_is_not_fetched(tmp_path: Path) -> None:
    ground = armed("partial clone: upload pack", tmp_path)
    assert file_at(str(ground.root), "HEAD", "a.txt") is None
    assert not ground.ran


def test_a_git_that_never_answers_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = (
        make_tree(tmp_path / "bin", {"git": f"#!/bin/sh\necho $$ > {tmp_path}/pid\nexec sleep 60\n"}) / "git"
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    began = time.monotonic()
    with pytest.raises(ChildFailed, match=r"within 0\.5 s"):
        git_process(str(tmp_path / "bin/.."), ("status",), {}, seconds=0.5)
    assert time.monotonic() - began < 10
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


def test_shallow_sha256_and_separate_repositories_work(tmp_path: Path) -> None:
    origin = make_repository(tmp_path / "origin", {"a.txt": "one\n"})
    run_git(origin, "commit", "-q", "--allow-empty", "-m", "second")
    run_git(tmp_path, "clone", "-q", "--depth=1", f"file://{origin}", "shallow")
    run_git(tmp_path, "init", "-q", "--object-format=sha256", "sha256")
    run_git(tmp_path, "init", "-q", "--separate-git-dir", str(tmp_path / "kept.git"), "separate")
    run_git(tmp_path / "separate", "config", "core.worktree", str(tmp_path / "separate"))
    for name in ("shallow", "sha256", "separate"):
        root = tmp_path / name
        (root / "a.txt").write_text("changed\n")
        done = commit(str(root), "A change", seen_of(str(root), ["a.txt"]), {})
        assert done["commit"] == run_git(root, "rev-parse", "HEAD"), done
        assert make_checkpoint(str(root), "s1", "k1", ["a.txt"])
        assert read_status(str(root))["marks"] == {}
        assert "A change" in run_git(root, "reflog", "show", "HEAD")
        run_git(root, "fsck", "--strict")


@pytest.mark.parametrize("kind", ["separate", "bare name", "worktree of another", "link"])
def test_a_repository_that_names_another_folder_or_none_is_not_taken(tmp_path: Path, kind: str) -> None:
    """The person has it for another folder; this one brings a `.git` that points to it."""
    theirs, root = tmp_path / "theirs", make_tree(tmp_path / "root", {"a.txt": "a\n"})
    run_git(tmp_path, "init", "-q", "--separate-git-dir", str(tmp_path / "kept"), str(theirs))
    run_git(theirs, "commit", "-q", "--allow-empty", "-m", "private words")
    named = tmp_path / "kept"
    match kind:
        case "bare name":
            named = named.rename(tmp_path / "kept.git")
        case "worktree of another":
            run_git(theirs, "worktree", "add", "-q", str(tmp_path / "linked"))
            named = named / "worktrees/linked"
    if kind == "link":
        (root / ".git").symlink_to(named)
    else:
        (root / ".git").write_text(f"gitdir: {named}\n")
    assert find_git_folder(str(root)) is None
    assert git_folder_elsewhere(str(root)) == str(named)
    assert not read_status(str(root))["is_repository"]
    assert not make_checkpoint(str(root), "s1", "k1", ["a.txt"])


def test_linked_work_trees_and_submodules_are_not_elsewhere(tmp_path: Path) -> None:
    module = make_repository(tmp_path / "module", {"m.txt": "m\n"})
    root = make_repository(tmp_path / "root", ["a.txt"])
    run_git(root, "submodule", "--quiet", "add", str(module), "sub")
    run_git(root, "worktree", "add", "-q", str(tmp_path / "linked"))
    for folder in (root, root / "sub", tmp_path / "linked", tmp_path):
        assert git_folder_elsewhere(str(folder)) == ""
        assert (find_git_folder(str(folder)) is None) == (folder == tmp_path)


async def test_a_repository_elsewhere_is_said_at_the_start(tmp_path: Path) -> None:
    run_git(tmp_path, "init", "-q", "--separate-git-dir", str(tmp_path / "kept"), "root")
    async with open_session(tmp_path / "root") as session:
        await session.notify_opening()
        said = [notice.text for notice in session.state.notices.items]
        assert any("does not name this folder as its work tree" in text for text in said), said


def test_a_submodule_is_worked_in_like_any_repository(tmp_path: Path) -> None:
    module = make_repository(tmp_path / "module", {"m.txt": "m\n"})
    root = make_repository(tmp_path / "root", ["a.txt"])
    run_git(root, "submodule", "--quiet", "add", str(module), "sub")
    (root / "sub/m.txt").write_text("changed\n")
    assert read_status(str(root / "sub"))["marks"] == {"m.txt": " M"}
    assert commit(str(root / "sub"), "A change", seen_of(str(root / "sub"), ["m.txt"]), {})["commit"]
    assert read_status(str(root))["marks"] == {".gitmodules": "A ", "sub": "AM"}


def test_the_persons_own_settings_count(tmp_path: Path, home: Path) -> None:
    make_tree(home, {"work": "[user]\n\temail = work@example.com\n", "ignored": "*.own\n"})
    (home / "gitconfig").write_text(
        "[user]\n\tname = A\n\temail = a@example.com\n"
        f'[core]\n\texcludesFile = {home}/ignored\n[includeIf "gitdir:{tmp_path}/work/"]\n\tpath = work\n'
    )
    for folder, address in (("work/root", "work@example.com"), ("other", "a@example.com")):
        root = make_repository(tmp_path / folder, {"a.txt": "", "b.own": ""}, commit=False)
        assert commit(str(root), "First", seen_of(str(root), ["a.txt"]), {})["commit"]
        assert run_git(root, "log", "-1", "--format=%ae") == address
        assert read_status(str(root))["marks"] == {}


def test_a_folder_of_another_owner_is_opened_where_the_person_says_so(tmp_path: Path, home: Path) -> None:
    root = make_repository(tmp_path / "root", ["a.txt"])
    if os.geteuid() != 0:
        assert find_repository(str(root))  # only a superuser can give a folder away
        return
    os.chown(root, 12345, 12345)
    assert find_repository(str(root)) is None
    (home / "gitconfig").write_text(f"[safe]\n\tdirectory = {root}\n")
    assert find_repository(str(root)) is not None


HEADS = (
    "[core]",
    '[a "b"]',
    '[a "b\\"c\\\\d"]',
    "[A.B]",
    '[ a  "B b" ] x = y',
    "[a]k=v",
    "# [x]",
    "; k = v",
    "",
)
SIGNS = (
    *("v", "x y", "  ", '"a  b"', '"a;b"', "#", " ; c", "\\\\", "\\n", '\\"', '"', "true", "=", "\\\n"),
    *("é", '""', "\\b", "\\q"),
)


def test_a_configuration_is_read_as_git_reads_it(tmp_path: Path) -> None:
    chance, valid = random.Random(7), 0
    for _ in range(80):
        lines = ["[core]", "\tbare", "  K-1=x ; y"]
        for number in range(3):
            value = "".join(chance.choices(SIGNS, k=chance.randrange(4)))
            lines += [chance.choice(HEADS), f" k{number} {chance.choice(('=', ' = '))}{value}"]
        (tmp_path / "config").write_text("\n".join(lines) + "\n", newline="")
        told = git_process(
            str(tmp_path), ("config", "--file", "config", "-z", "--list", "--no-includes"), {}, seconds=10
        )
        if not told.ok:
            continue
        valid += 1
        pairs = [line.partition("\n") for line in told.out.decode().split("\0") if line]
        expected = tuple((key, value if marker else "true") for key, marker, value in pairs)
        text = (tmp_path / "config").read_bytes().decode()
        assert parse_config(text) == expected, text
        assert parse_config(format_config(expected).decode()) == expected
    assert valid > 20, valid


def test_a_repository_is_looked_at_anew_by_every_call(tmp_path: Path) -> None:
    root = make_repository(tmp_path / "root", {"a.txt": "one\n"})
    assert git(str(root), "config", "--get", "core.autocrlf").text == ""
    run_git(root, "config", "core.autocrlf", "input")
    assert git(str(root), "config", "--get", "core.autocrlf").text == "input"
    run_git(root, "config", "core.autocrlf", "!touch x")
    assert git(str(root), "config", "--get", "core.autocrlf").text == ""
