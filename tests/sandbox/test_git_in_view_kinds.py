"""Git in a view of other kinds of repositories: parts of one, submodules, work trees, other formats."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

import pytest

from tests.sandbox.test_git_in_view import SECRET, Views
from tests.support.repositories import git, repository
from tests.support.views import text
from tui_agent.files.secret_files import SecretFiles
from tui_agent.sandbox.view_plan import Seed, plan

LOOK = "git log -p --all; git show HEAD:.env; git status -s; git cat-file --batch-all-objects --batch --unordered"


def history(root: Path) -> Path:
    """Two versions of a secret and of a file."""
    repository(root, {".env": f"TOKEN={SECRET}-1\n", "a.txt": "a\n"})
    return again(root)


def again(root: Path) -> Path:
    (root / ".env").write_text(f"TOKEN={SECRET}-2\n")
    (root / "a.txt").write_text("b\n")
    git(root, "add", "--all")
    git(root, "commit", "-qm", "Second")
    return root


async def test_a_folder_of_a_repository(tmp_path: Path) -> None:
    top = repository(
        tmp_path / "top", {".env": f"TOKEN={SECRET}\n", "part/.env": f"T={SECRET}-2\n", "part/a": "a\n"}
    )
    git(top, "repack", "-adq")
    views = Views(top / "part", tmp_path / "cache")
    result = await views.run(
        f"{LOOK}; git commit -q --allow-empty -m x && echo done", await views.planned(top=top)
    )
    assert "hush" not in text(result)
    assert text(result).endswith("done\n")
    assert text(await views.run("git status -s", await views.planned(top=top))) == ""


async def test_a_linked_work_tree(tmp_path: Path) -> None:
    main = history(tmp_path / "main")
    git(main, "worktree", "add", "-q", "../tree")
    views = Views(tmp_path / "tree", tmp_path / "cache")
    made = await views.planned(apart=(str(main / ".git"),))
    result = await views.run(f"{LOOK}; git commit -q --allow-empty -m x && echo done", made)
    assert "hush" not in text(result)
    assert text(result).endswith("done\n")


async def test_a_submodule(tmp_path: Path) -> None:
    inner = history(tmp_path / "inner")
    root = repository(tmp_path / "work", {"a.txt": "a\n"})
    git(root, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(inner), "sub")
    git(root, "commit", "-qm", "With a submodule")
    views = Views(root, tmp_path / "cache")
    result = await views.run(f"git status -s; cd sub; {LOOK}; git describe --always")
    assert "hush" not in text(result)
    assert text(result).endswith(git(inner, "describe", "--always"))
    shutil.rmtree(root / "sub")
    result = await views.run("git log -1 --format=%s; cd .git/modules/sub; git log -p --all; ls objects")
    assert "hush" not in text(result)
    assert text(result).startswith("With a submodule\n")


@pytest.mark.parametrize(
    "how",
    [
        ("init", "-q", "--object-format=sha256"),
        ("update-index", "--split-index"),
        ("update-index", "--index-version", "4"),
        ("config", "core.fsmonitor", "true"),
        ("config", "core.untrackedCache", "true"),
        ("multi-pack-index", "write"),
        ("commit-graph", "write", "--reachable"),
        ("pack-refs", "--all"),
        ("sparse-checkout", "set", "--cone", "--sparse-index", "part"),
    ],
    ids=lambda words: " ".join(words),
)
async def test_other_formats(tmp_path: Path, how: tuple[str, ...]) -> None:
    root = tmp_path / "work"
    if how[0] == "init":
        root.mkdir()
        git(root, *how)
    history(root)
    repository(root, {"part/b.txt": "b\n", "left/c.txt": "c\n"})
    git(root, "repack", "-adq")
    if how[0] != "init":
        git(root, *how)
    views = Views(root, tmp_path / "cache")
    result = await views.run(
        f"{LOOK}; echo c > part/b.txt; git commit -qam x && git show --format= --name-only; git status -s"
    )
    assert "hush" not in text(result)
    assert text(result).endswith("\npart/b.txt\n")
    assert views.why == ""


async def test_a_shallow_clone(tmp_path: Path) -> None:
    history(tmp_path / "whole")
    git(tmp_path, "clone", "-q", "--depth", "1", f"file://{tmp_path}/whole", "work")
    views = Views(tmp_path / "work", tmp_path / "cache")
    result = await views.run(f"{LOOK}; git log --oneline | wc -l")
    assert "hush" not in text(result)
    assert text(result).endswith("\n1\n")


async def test_objects_of_another_folder(tmp_path: Path) -> None:
    root = repository(tmp_path / "work", {"b.txt": "b\n"})
    history(root / "inner")
    git(root / "inner", "repack", "-adq")
    (root / ".git/objects/info/alternates").write_text(f"{root}/inner/.git/objects\n")
    head = git(root / "inner", "rev-parse", "HEAD").strip()
    views = Views(root, tmp_path / "cache")
    result = await views.run(f"git show {head}; git show {head}:.env; git log -p {head}; git status -s -uno")
    assert "hush" not in text(result)
    assert "+b\n" in text(result)


async def test_a_merge_that_stops_at_the_secret(tmp_path: Path) -> None:
    root = history(tmp_path / "work")
    git(root, "config", "rerere.enabled", "true")
    git(root, "checkout", "-qb", "other", "HEAD~1")
    (root / ".env").write_text(f"TOKEN={SECRET}-3\n")
    (root / "a.txt").write_text("c\n")
    git(root, "commit", "-qam", "Third")
    with pytest.raises(Exception, match="merge"):
        git(root, "merge", "main")
    views = Views(root, tmp_path / "cache")
    result = await views.run(
        "git status -s; git diff; git rerere diff; cat .git/rr-cache/*/*; git log -p --merge; cat .env"
    )
    assert "hush" not in text(result)
    assert text(result).startswith("UU .env\nUU a.txt\n")
    result = await views.run(
        "git merge --abort; git merge main; git diff; git commit -am x; cat .env; git status -s"
    )
    assert "hush" not in text(result)


async def test_a_message_with_a_diff_and_patches(tmp_path: Path) -> None:
    root = history(tmp_path / "work")
    (root / ".git/COMMIT_EDITMSG").write_text(f"Second\n# ---- >8 ----\n+TOKEN={SECRET}-2\n")
    (root / ".git/rebase-apply").mkdir()
    (root / ".git/rebase-apply/0001").write_text(git(root, "format-patch", "-1", "--stdout"))
    views = Views(root, tmp_path / "cache")
    assert "hush" not in text(await views.run("grep -r hush .git"))


async def test_what_lfs_keeps(tmp_path: Path) -> None:
    name = hashlib.sha256(SECRET.encode()).hexdigest()
    root = repository(
        tmp_path / "work",
        {"id.key": f"version https://git-lfs.github.com/spec/v1\noid sha256:{name}\nsize 20\n"},
    )
    place = root / ".git/lfs/objects" / name[:2] / name[2:4] / name
    place.parent.mkdir(parents=True)
    place.write_text(SECRET)
    (root / "id.key").write_text(SECRET)
    views = Views(root, tmp_path / "cache")
    assert "hush" not in text(await views.run("grep -r hush .git . ; git status -s"))


async def test_a_history_that_cannot_be_searched_is_not_shown(tmp_path: Path) -> None:
    root = history(tmp_path / "work")
    tree = git(root, "rev-parse", "HEAD~1^{tree}").strip()
    (root / ".git/objects" / tree[:2] / tree[2:]).unlink()
    views = Views(root, tmp_path / "cache")
    result = await views.run("git show HEAD:.env; git log; find .git/objects -type f; echo end")
    assert "hush" not in text(result)
    assert text(result).endswith("end\n")
    assert ".git/objects" not in text(result).replace("‘.git/objects’", "")
    assert "could not be searched" in views.why


async def test_odd_names_stay_out_of_the_way(tmp_path: Path) -> None:
    names = [
        "secrets/a b\n.txt",
        "secrets/[x]*?.txt",
        "secrets/!#\\.txt",
        "secrets/ü\udcff.txt",
        "secrets/end ",
    ]
    root = repository(tmp_path / "work", {"x.txt": "x\n", **{name: f"{SECRET} {name!r}\n" for name in names}})
    views = Views(root, tmp_path / "cache")
    result = await views.run(
        "git status -s; git switch -qc other; git rm -rq --cached secrets; git commit -qm x; git switch main"
    )
    assert "hush" not in text(result)
    result = await views.run(
        "git status -s; git log -p; git stash; git checkout .; echo y > x.txt; git commit -qam y; git status -s"
    )
    assert "hush" not in text(result)
    assert [each.path for each in result.changes] == ["x.txt"]


@pytest.mark.parametrize("is_repository", [True, False])
async def test_a_repository_in_the_folder(tmp_path: Path, is_repository: bool) -> None:
    root = tmp_path / "work"
    history(root / "deep/inner")
    git(root / "deep/inner", "repack", "-adq")
    if is_repository:
        repository(root, {"a.txt": "a\n", ".gitignore": "deep\n"})
    judge = SecretFiles(root)
    judge.found()
    assert judge.repositories() == [str(root / "deep/inner")]
    views = Views(root, tmp_path / "cache")
    seeds = [Seed("deep/inner/.env", "hidden")]
    made, _ = await views.git.hidden_in_view(plan(root, seeds=seeds), seeds, judge.repositories())
    result = await views.run(f"cd deep/inner; {LOOK}; git commit -q --allow-empty -m x && echo done", made)
    assert "hush" not in text(result)
    assert text(result).endswith("done\n")
