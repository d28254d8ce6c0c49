"""Git in a view of a repository that keeps secrets: it prints nothing of them, and all else works as outside."""

from __future__ import annotations

import hashlib
import os
import shlex
from pathlib import Path

import pytest
from support.sessions import open_session, reply
from support.trees import until

from tests.support.repositories import git, repository
from tests.support.views import text
from tui_agent.edits.change import Pick
from tui_agent.files.sensitive_paths import is_secret
from tui_agent.git.without_secrets import SENTENCE
from tui_agent.sandbox import git_objects, namespace_view
from tui_agent.sandbox.environment import variables
from tui_agent.sandbox.git_objects import GitObjects
from tui_agent.sandbox.isolation import RunFolder, runner_for
from tui_agent.sandbox.run import Run, RunResult
from tui_agent.sandbox.view_plan import NoView, Seed, ViewPlan, plan

SECRET = "hush-4711-abcdefghij"
IDENTITY = "GIT_AUTHOR_NAME=A GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=A GIT_COMMITTER_EMAIL=a@b"


class Views:
    """Commands in views of one repository, of which the secrets are known after the first."""

    def __init__(self, root: Path, cache: Path, reveal: tuple[str, ...] = ()) -> None:
        self.root, self.reveal = root, reveal
        self.git = GitObjects(str(root), cache, reveal)
        self.why = ""

    async def planned(self, *, top: Path | None = None, apart: tuple[str, ...] = (), **more: str) -> ViewPlan:
        """`top`: of the repository that the folder is a part of; `apart`: git folders elsewhere."""
        seeds = [Seed(path, "hidden") for path in self._secrets(self.root)]
        if top is not None:
            seeds += [Seed(path, "hidden", overlay=str(top)) for path in self._secrets(top)]
            apart = (str(top), *apart)
        made = plan(self.root, seeds=seeds, git_folders=apart, **more)  # ty: ignore[invalid-argument-type]
        made, self.why = await self.git.hidden_in_view(made, seeds)
        return made

    def _secrets(self, folder: Path) -> list[str]:
        found = (str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
        return [path for path in found if is_secret(path) and ".git/" not in path and path not in self.reveal]

    async def run(self, command: str, made: ViewPlan | None = None) -> RunResult:
        made = made or await self.planned()
        chosen, _ = variables(made.root, made.places, os.environ)
        return await Run(60).alone(
            runner_for(made), ["/bin/sh", "-c", f"export {IDENTITY}; {command}"], chosen
        )


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Views:
    folder = tmp_path_factory.mktemp("kept")
    return Views(made_in(folder), folder / "cache")


def made_in(folder: Path) -> Path:
    """A repository with a secret in a pack, in files of its own, staged once, stashed, and on another branch."""
    root = repository(
        folder / "work", {".env": f"TOKEN={SECRET}-1\n", "a.txt": "a\n", ".env.example": "TOKEN=\n"}
    )
    git(root, "tag", "-a", "v1.0", "-m", "v1")
    (root / ".env").write_text(f"TOKEN={SECRET}-2\n")
    git(root, "commit", "-qam", "Second")
    git(root, "repack", "-adq")
    git(root, "checkout", "-qb", "other")
    (root / ".env").write_text(f"TOKEN={SECRET}-3\n")
    (root / "b.txt").write_text("b\n")
    git(root, "add", "--all")
    git(root, "commit", "-qm", "Third")
    git(root, "checkout", "-q", "main")
    (root / ".env").write_text(f"TOKEN={SECRET}-4\n")
    git(root, "stash", "-q")
    (root / ".env").write_text(f"TOKEN={SECRET}-5\nSHARED={SECRET}-9\n")
    git(root, "add", ".env")
    git(root, "reset", "-q")
    (root / ".env").write_text(f"TOKEN={SECRET}-6\nSHARED={SECRET}-9\n")
    (root / "a.txt").write_text("a\nmore\n")
    return root


PRINTS = [
    "git diff; git diff HEAD; git diff main other; git diff --cached",
    "git show HEAD:.env; git show stash@{0}; git show --stat --patch HEAD",
    "git checkout -f .env; cat .env; git checkout HEAD -- .env; git restore -s HEAD~1 .env; cat .env",
    "git stash; git stash show -p stash@{1}; git stash pop; git stash apply stash@{1}; cat .env",
    "git log -p --all --reflog; git log -S hush --all -p; git blame .env",
    "git archive HEAD | tar xO; git grep hush HEAD; git grep --cached hush; git bundle create - --all",
    "git cat-file --batch-all-objects --batch --unordered; git fsck --lost-found; cat .git/lost-found/other/*",
    "git switch -f other; git reset -q --hard HEAD~1; git checkout-index -f .env; cat .env",
    "git clone -q . /tmp/copy; cat /tmp/copy/.env; git worktree add -f /tmp/tree other; cat /tmp/tree/.env",
    "mkdir /tmp/n; cd /tmp/n; git init -q; for p in $OLDPWD/.git/objects/pack/*.pack /run/tui-agent/*/pack/*.pack; do "
    "git unpack-objects < $p; done; git cat-file --batch-all-objects --batch",
    "git for-each-ref refs/replace --format='%(refname)' | xargs -n 1 git update-ref -d; "
    "git rev-parse HEAD:.env | git cat-file --batch; GIT_NO_REPLACE_OBJECTS=1 git show HEAD:.env",
    "rm .git/index .git/info/sparse-checkout; git config core.sparseCheckout false; git reset --hard; cat .env",
]


@pytest.mark.parametrize("command", PRINTS)
async def test_git_prints_no_secret(kept: Views, command: str) -> None:
    result = await kept.run(command)
    assert "hush" not in text(result).replace("hush --all", "")
    assert [each.path for each in result.changes if ".env" in each.path] == []


async def test_what_is_no_secret_is_as_it_is_outside(kept: Views) -> None:
    asked = (
        ("describe",),
        ("log", "--oneline", "--all"),
        ("status", "-s", "a.txt"),
        ("diff", "a.txt"),
        ("stash", "list"),
        ("show", "HEAD:.env.example"),
        ("rev-parse", "HEAD:.env", "HEAD^{tree}"),
    )
    result = await kept.run(
        "git status -s; " + "; ".join(f"git {' '.join(map(shlex.quote, words))}" for words in asked)
    )
    assert text(result) == " M a.txt\n" + "".join(git(kept.root, *words) for words in asked)
    assert "v1.0-1-g" in text(result)


async def test_a_commit_keeps_the_secret_as_it_is_in_the_tree(kept: Views) -> None:
    before = git(kept.root, "ls-tree", "HEAD", ".env")
    result = await kept.run(
        "git add -A; git commit -qam More; git ls-tree HEAD .env; git show --name-only --format= HEAD; git status -s"
    )
    assert text(result) == f"{before}a.txt\n"
    assert [(each.path, each.kind) for each in result.changes] == []


async def test_branches_are_switched_and_rebased(kept: Views) -> None:
    result = await kept.run(
        "git stash -q; git switch -q other && cat b.txt; git switch -q main; git rebase -q other && git describe; "
        "git bisect start -q HEAD HEAD~1; git bisect reset -q; git stash pop -q; git status -s; "
        "git gc -q && echo packed"
    )
    printed = text(result).splitlines()
    assert printed[0] == "b"
    assert printed[1].startswith("v1.0-2-g")
    assert printed[-2:] == [" M a.txt", "packed"]
    assert [(each.path, each.kind) for each in result.changes] == [("b.txt", "new")]


async def test_the_repository_is_left_as_it_is(kept: Views) -> None:
    def files() -> dict[str, int]:
        return {str(path): path.lstat().st_mtime_ns for path in (kept.root / ".git").rglob("*")}

    before = files()
    fresh = Views(kept.root, kept.root.parent / "another")
    assert "hush" not in text(await fresh.run("git log -p"))
    assert files() == before
    assert not {
        path
        for path in (kept.root.parent / "another").rglob("*")
        if path.is_dir() and path.stat().st_mode & 0o77
    }


async def test_without_a_tracked_secret_nothing_is_changed(tmp_path: Path) -> None:
    root = repository(tmp_path / "work", {"a.txt": "a\n", ".env.example": "A=\n", ".gitignore": ".env\n"})
    (root / ".env").write_text(f"TOKEN={SECRET}\n")
    views = Views(root, tmp_path / "cache")
    made = plan(root, seeds=[Seed(".env", "hidden")])
    assert (await views.git.hidden_in_view(made, made.seeds))[0] is made


async def test_what_was_staged_and_never_committed_is_not_shown(tmp_path: Path) -> None:
    root = repository(tmp_path / "work", {"a.txt": "a\n"})
    (root / ".env").write_text(f"TOKEN={SECRET}\n")
    git(root, "add", ".env")
    git(root, "reset", "-q")
    (root / ".env").write_text(f"A=1\nTOKEN={SECRET}\n")
    views = Views(root, tmp_path / "cache")
    assert "hush" not in text(
        await views.run("git cat-file --batch-all-objects --batch; git fsck --lost-found")
    )


async def test_what_is_committed_meanwhile_is_not_shown(tmp_path: Path) -> None:
    root = repository(tmp_path / "work", {"a.txt": "a\n"})
    views = Views(root, tmp_path / "cache")
    assert text(await views.run("git status -s")) == ""
    (root / ".env").write_text(f"TOKEN={SECRET}\n")
    git(root, "add", ".env")
    assert "hush" not in text(await views.run("git diff --cached"))
    git(root, "commit", "-qm", "Oh")
    assert "hush" not in text(await views.run("git log -p"))
    git(root, "mv", ".env", "x.txt")
    git(root, "commit", "-qm", "Other name")
    git(root, "gc", "-q")
    assert "hush" not in text(
        await views.run("git log -p --full-history; git show HEAD~1:.env; git status -s")
    )


async def test_a_pending_rename_shows_nothing(kept: Views) -> None:
    made = plan(kept.root, seeds=[Seed(".env", "gone"), Seed("x.txt", "hidden")])
    made, _ = await kept.git.hidden_in_view(made, [Seed(".env", "hidden")])
    assert "hush" not in text(
        await kept.run("git show HEAD:.env; git log -p; git checkout .; cat .env", made)
    )


async def test_what_an_apply_put_into_the_repository_is_looked_at_before_the_next_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = repository(tmp_path / "work", {".env": f"TOKEN={SECRET}\n", "a.txt": "a\n"})
    asked: list[object] = []
    answered = git_objects._answered

    async def counted(question: object) -> object:
        asked.append(question)
        return await answered(question)  # ty: ignore[invalid-argument-type]

    monkeypatch.setattr(git_objects, "_answered", counted)
    change = {"path": "a.txt", "edits": [{"search": "a", "replace": "b"}]}
    async with open_session(root, [reply(fileChanges=[change])]) as session:
        await session.commands.run("true", allowed=True)
        await session.commands.ended()
        await session.chat.submit("change it")
        await session.chat.finished()
        await session.review.apply([Pick(one.id, None, one.version) for one in session.state.review.open])
        await until(lambda: len(asked) == 2)
        await session.commands.views.known()
        await session.commands.run("cat .env; git log -p", allowed=True)
        await session.commands.ended()
        assert "hush" not in session.state.commands.results[-1].output
        assert len(asked) == 2


async def test_what_the_person_reveals_is_there(kept: Views) -> None:
    views = Views(kept.root, kept.root.parent / "cache", (".env",))
    result = await views.run("git show HEAD:.env; git diff --name-only")
    assert text(result) == f"TOKEN={SECRET}-2\n.env\na.txt\n"


async def test_of_what_the_person_sends_git_shows_exactly_those_bytes(kept: Views) -> None:
    sent = hashlib.sha256((kept.root / ".env").read_bytes()).hexdigest()
    seeds = [Seed(".env", "hidden")]
    made, _ = await kept.git.hidden_in_view(plan(kept.root), seeds, (), [sent])
    assert "-6" in text(await kept.run("cat .env", made))
    assert "hush" not in text(await kept.run("git log -p --all; git show HEAD:.env; git diff", made))
    sent = hashlib.sha256(f"TOKEN={SECRET}-2\n".encode()).hexdigest()
    made, _ = await kept.git.hidden_in_view(plan(kept.root, seeds=seeds), seeds, (), [sent])
    printed = text(await kept.run("git show HEAD:.env; git log -p --all --reflog", made))
    assert f"{SECRET}-2\n" in printed and f"{SECRET}-1" not in printed and f"{SECRET}-3" not in printed


async def test_files_that_are_hidden_for_what_is_in_them_are_hidden_in_git(tmp_path: Path) -> None:
    """However many there are: a program takes only so many words."""
    folder = "/".join(letter * 250 for letter in "abcde")
    many = {f"{folder}/{number}.txt": f"{number} {SECRET}\n" for number in range(1_700)}
    root = repository(tmp_path / "work", {"a.txt": "a\n", "conf.txt": f"one {SECRET}\n", **many})
    (root / "conf.txt").write_text(f"two {SECRET}\n")
    git(root, "commit", "-qam", "Second")
    views = Views(root, tmp_path / "cache")
    seeds = [Seed(path, "hidden") for path in ("conf.txt", *many)]
    made, _ = await views.git.hidden_in_view(plan(root, seeds=seeds), seeds)
    result = await views.run("git log -p; git status -s; git cat-file --batch-all-objects --batch", made)
    assert "hush" not in text(result)
    assert "conf.txt |" not in text(result)


@pytest.mark.parametrize("isolated", ["bubblewrap", "landlock"])
async def test_other_rungs(kept: Views, isolated: str, tmp_path: Path) -> None:
    if isolated == "bubblewrap":
        try:
            namespace_view.check()
        except NoView as error:
            raise pytest.skip.Exception(error.why) from error
    own = RunFolder(tmp_path / "trials")
    made = await kept.planned(isolated=isolated, folder=own.path)
    printed = text(await kept.run("; ".join((*PRINTS[:5], PRINTS[6])), made))
    own.remove()
    assert "hush" not in printed.replace("hush --all", "")
    assert "a secret, which is not shown" in printed
    own = RunFolder(tmp_path / "trials")
    made = await kept.planned(isolated=isolated, folder=own.path)
    result = await kept.run("git describe; git commit -qam More; git status -s; git ls-tree HEAD .env", made)
    own.remove()
    printed = text(result).splitlines()
    assert printed[0].startswith("v1.0-1-g")
    assert printed[1:] == [git(kept.root, "ls-tree", "HEAD", ".env").strip()]
    assert result.changes == ()


async def test_a_session_shows_no_secret_of_git(tmp_path: Path) -> None:
    root = repository(tmp_path / "work", {".env": f"TOKEN={SECRET}\n", "a.txt": "a\n"})
    async with open_session(root, []) as session:
        await session.commands.run(
            "git show HEAD:.env; git status -s; git rm -q --cached a.txt; echo b > b.txt"
        )
        await session.commands.ended()
        (result,) = session.state.commands.results
        assert result.output == SENTENCE.decode()
        assert result.changed == ("b.txt",)
