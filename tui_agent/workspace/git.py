"""git, asked in a fixed environment, so that nothing which a repository holds is run. Lives in the child.

Every command goes through GitPython's `Git.execute`. No variable of the person's that begins with `GIT_` gets
through, hooks and the file system monitor are off, nothing asks and nothing pages, paths stand behind `--`,
and filters that the repository itself configures are not run.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import Final

from msgspec import Struct

os.environ["GIT_PYTHON_REFRESH"] = "quiet"  # where there is no git we say so ourselves

from git import Git
from git.exc import GitCommandNotFound

_FIXED: Final = (
    "--no-pager",
    "--no-optional-locks",
    *("-c", "core.hooksPath=/dev/null"),
    *("-c", "core.fsmonitor=false"),
    *("-c", "core.quotePath=false"),
    *("-c", "credential.helper="),
    *("-c", "gc.auto=0"),
    *("-c", "maintenance.auto=false"),
    *("-c", "submodule.recurse=false"),
    *("-c", "safe.bareRepository=explicit"),
)
_VARIABLES: Final = {"GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0", "GIT_ATTR_NOSYSTEM": "1"}
AUTHOR: Final = ("-c", "user.name=tui-agent", "-c", "user.email=tui-agent@localhost")


_NOTHING_MORE: Final[Mapping[str, str]] = MappingProxyType({})


class Result(Struct, frozen=True):
    """How a command ended, and what it wrote."""

    status: int
    out: bytes
    err: bytes

    @property
    def ok(self) -> bool:
        return self.status == 0

    @property
    def text(self) -> str:
        """The output as one stripped text; undecodable bytes are replaced."""
        return self.out.decode(errors="replace").strip()


class Repository(Struct, frozen=True):
    """Where a folder stands in a repository: `prefix` is the way down from its top (empty, or ending in `/`).

    `git_dir` is this work tree's own; `common_dir` is the one that linked work trees share.
    """

    root: str
    prefix: str
    git_dir: str
    common_dir: str


def scrub_environment() -> None:
    """Take every `GIT_` variable out of this process's environment, for itself and all that it starts."""
    for name in [
        name for name in os.environ if name.startswith("GIT_") and not name.startswith("GIT_PYTHON")
    ]:
        del os.environ[name]


def git(root: str, *arguments: str, feed: bytes | None = None, index: str = "") -> Result:
    """Run `git` in a folder. `feed` is its standard input; without, there is none. Raises nothing of git's own.

    With `index` that file takes the place of the repository's own index.
    """
    command = ["git", *_FIXED, *_without_own_filters(root), *arguments]
    return _run(root, command, feed, {"GIT_INDEX_FILE": index} if index else {})


def find_repository(root: str) -> Repository | None:
    """The repository whose work tree a folder is in; None where there is none, or where it ignores the folder."""
    found = _run(
        root,
        ["git", *_FIXED, "rev-parse", "--show-prefix", "--absolute-git-dir", "--git-common-dir"],
    )
    lines = os.fsdecode(found.out).split("\n")
    if not found.ok or len(lines) < 3:
        return None
    prefix, git_dir, common = lines[0], lines[1], os.path.join(root, lines[2])
    if prefix and git(root, "check-ignore", "-q", "--", ".").ok:
        return None
    return Repository(root, prefix, git_dir, os.path.realpath(common))


def ignored(repository: Repository, paths: Sequence[str]) -> set[str] | None:
    """Those of `paths` that git ignores; None where it cannot tell (a path in a submodule, or behind a link)."""
    feed = b"\0".join(os.fsencode(path) for path in paths) + b"\0"
    told = git(repository.root, "check-ignore", "-z", "--stdin", feed=feed)
    if told.status not in (0, 1):
        return None
    return {os.fsdecode(path) for path in told.out.split(b"\0") if path}


def ignored_folders(repository: Repository) -> set[str]:
    """Folders that git ignores as a whole, without a trailing slash; nothing that lies inside one of them."""
    told = git(
        repository.root,
        *(
            "ls-files",
            "-z",
            "--others",
            "--ignored",
            "--exclude-standard",
            "--directory",
            "--no-empty-directory",
        ),
    )
    empty_of_others = [os.fsdecode(path[:-1]) for path in told.out.split(b"\0") if path.endswith(b"/")]
    # git names a folder too when all that is in it now happens to be ignored: a new file there is not
    return (ignored(repository, empty_of_others) or set()) if empty_of_others else set()


def init_with_commit(root: str, message: str) -> str:
    """Make a repository of a folder, with all its files in a first commit; the commit's name. "" if that failed."""
    steps = (
        ("init", "--quiet", "--initial-branch=main"),
        ("add", "--all"),
        (*AUTHOR, "commit", "--quiet", "--no-verify", "--no-gpg-sign", "--allow-empty", "-m", message),
    )
    for step in steps:
        if not git(root, *step).ok:
            return ""
    return git(root, "rev-parse", "HEAD").text


def without_filters(root: str, *scope: str) -> tuple[str, ...]:
    """Options that switch off every filter which a configuration (`scope` as for `git config`, else any) would run."""
    told = _run(root, ["git", *_FIXED, "config", *scope, "--includes", "-z", "--name-only", "--list"])
    keys = told.out.decode(errors="surrogateescape").split("\0")
    names = {found[1] for key in keys if (found := re.fullmatch(r"filter\.(.+)\.\w+", key, re.DOTALL))}
    settings = (("clean", ""), ("smudge", ""), ("process", ""), ("required", "false"))
    return tuple(
        option
        for name in sorted(names)
        for key, value in settings
        for option in ("-c", f"filter.{name}.{key}={value}")
    )


@lru_cache(maxsize=64)
def _without_own_filters(root: str) -> tuple[str, ...]:
    """Those that the repository itself configures."""
    return without_filters(root, "--local")


def _run(
    root: str, command: Iterable[str], feed: bytes | None = None, more: Mapping[str, str] = _NOTHING_MORE
) -> Result:
    if not os.path.isdir(root):
        return Result(
            127, b"", f"{root} is no folder".encode(errors="replace")
        )  # git would run where we stand
    with tempfile.TemporaryFile() as file:
        if feed is not None:
            file.write(feed)
            file.seek(0)
        try:
            status, out, err = Git(root).execute(
                list(command),
                istream=file,
                with_extended_output=True,
                with_exceptions=False,
                stdout_as_string=False,
                strip_newline_in_stdout=False,
                env={**_VARIABLES, **more},
            )
        except GitCommandNotFound as error:
            return Result(127, b"", str(error).encode(errors="replace"))
    return Result(status, bytes(out), err.encode() if isinstance(err, str) else bytes(err))
