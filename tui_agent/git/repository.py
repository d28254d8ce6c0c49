"""git, which sees none of a repository's configuration but what we copied for it. Lives in the child.

A repository's configuration can name commands: filters, hooks, monitors, helpers, transports. So git never reads it.
Each call gets a shared folder of our own (`GIT_COMMON_DIR`): links to the objects, refs and logs of the repository, no
hooks, no remotes that could be asked, and a `config` that we wrote, with those settings of the person and the
repository that are on a list and have a value that such a setting can have. It is made for each call from what the
repository is now. The environment is made from nothing too, and every call has a time limit.

Filters may run, where the person trusted exactly these, and the hooks of a commit, where the person asks for them.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from typing import IO, Any, Final

from msgspec import Struct

from tui_agent.files.git_folder import (
    TRUSTED_FILTERS,
    Entries,
    GitFolder,
    find_git_folder,
    format_config,
    is_true,
)
from tui_agent.git.process import Result, Start, find_git, run_git, temporary_folder
from tui_agent.git.user_config import persons_settings
from tui_agent.processes.environment import avoid_programs_in

#: How long a call may take, in seconds: one that reads, and one that may write a whole work tree.
SECONDS, LONG_SECONDS = 60.0, 600.0
#: Repositories inside repositories are followed so deep.
MAX_DEPTH: Final = 4
#: Of more paths it is asked at once which are tracked.
FEW: Final = 100
#: Of a submodule only its commit counts: to see what changed in it git would believe its configuration.
UNOPENED: Final = "--ignore-submodules=dirty"
#: What the author of a private commit is called.
AUTHOR: Final = ("-c", "user.name=tui-agent", "-c", "user.email=tui-agent@localhost")
_FIXED: Final[Entries] = (
    ("core.bare", "false"),
    ("core.hookspath", os.devnull),
    ("core.fsmonitor", "false"),
    ("core.quotepath", "false"),
    ("credential.helper", ""),
    ("gc.auto", "0"),
    ("maintenance.auto", "false"),
    ("protocol.allow", "never"),
    ("submodule.recurse", "false"),
)
_ENV: Final = "/usr/bin/env"
_TRUTH: Final = "true|false|yes|no|on|off|1|0|"
#: The settings that git may know of, and the values that they may have.
_ALLOWED: Final = {
    **dict.fromkeys(
        (
            *("core.filemode", "core.ignorecase", "core.symlinks", "core.precomposeunicode"),
            *("core.trustctime", "core.sparsecheckout", "core.sparsecheckoutcone", "index.sparse"),
            *("user.useconfigonly", "extensions.noop", "extensions.preciousobjects"),
        ),
        _TRUTH,
    ),
    "core.repositoryformatversion": "[01]",
    "core.autocrlf": f"{_TRUTH}|input",
    "core.eol": "lf|crlf|native",
    "core.safecrlf": f"{_TRUTH}|warn",
    "core.checkstat": "default|minimal",
    "core.logallrefupdates": f"{_TRUTH}|always",
    "core.sharedrepository": f"{_TRUTH}|umask|group|all|world|everybody|0?[0-7]{{3}}",
    "index.version": "[234]",
    "extensions.objectformat": "sha1|sha256",
    "extensions.compatobjectformat": "sha1|sha256",
    "extensions.refstorage": "files|reftable",
    "extensions.relativeworktrees": _TRUTH,
    **dict.fromkeys(
        (f"{who}.{what}" for who in ("user", "author", "committer") for what in ("name", "email")),
        r"[^\x00-\x1f\x7f]+",
    ),
}
#: Those that only the person may set: files that git reads.
_PERSONS_FILES: Final = ("core.excludesfile", "core.attributesfile")
_SHARED: Final = (
    *("objects", "refs", "packed-refs", "shallow", "logs", "worktrees", "reftable", "lfs"),
    *("info/exclude", "info/attributes"),
)


class Repository(Struct, frozen=True):
    """Where a folder is in a repository: `prefix` is the way down from its top (empty, or ending in `/`).

    `git_dir` is this work tree's own; `common_dir` is the one that linked work trees share.
    """

    root: str
    prefix: str
    git_dir: str
    common_dir: str


def git(
    root: str,
    *arguments: str,
    feed: bytes | None = None,
    index: str = "",
    hooks: str = "",
    seconds: float = SECONDS,
    start: Start | None = None,
) -> Result:
    """Run `git` in the repository that a folder is in. `feed` is its standard input; without, there is none.

    With `index` that file takes the place of the repository's own index; with `hooks` the programs in that folder run.
    `start` starts it elsewhere than in the workspace child.
    Raises ChildFailed where it does not end within `seconds`; all else is a result.
    """
    found = opened(root)
    if found is None:
        return Result(128, b"", f"fatal: not a git repository: {root}".encode(errors="replace"))
    try:
        with _shared_folder(found, hooks) as shared:
            variables = {
                "GIT_DIR": found.git_dir,
                "GIT_COMMON_DIR": shared,
                "GIT_WORK_TREE": found.work_tree,
                **({"GIT_INDEX_FILE": index} if index else {}),
            }
            trusted = _is_trusted(found) or bool(hooks)
            return run_git(
                root,
                arguments,
                variables,
                feed=feed,
                seconds=seconds,
                trusted=trusted,
                start=start or _started,
            )
    except OSError as error:
        return Result(127, b"", str(error).encode(errors="replace"))


def git_without_repository(root: str, *arguments: str, feed: bytes | None = None) -> Result:
    """Run `git` in a folder as if it were the work tree of an empty repository, which lies elsewhere. Raises
    ChildFailed as `git` does."""
    avoid_programs_in(root)
    try:
        with temporary_folder() as empty:
            for name in ("objects", "refs"):
                os.mkdir(os.path.join(empty, name))
            _write(os.path.join(empty, "HEAD"), b"ref: refs/heads/none\n")
            _write(os.path.join(empty, "config"), format_config(_FIXED))
            variables = {"GIT_DIR": empty, "GIT_WORK_TREE": os.path.realpath(root)}
            return run_git(root, arguments, variables, feed=feed, seconds=SECONDS)
    except OSError as error:
        return Result(127, b"", str(error).encode(errors="replace"))


def find_repository(root: str) -> Repository | None:
    """The repository whose work tree a folder is in; None where there is none, or where it ignores the folder."""
    found = opened(root)
    if found is None or not find_git():
        return None
    here = os.path.relpath(os.path.realpath(root), found.work_tree)
    prefix = "" if here == "." else here + "/"
    if prefix and git(root, "check-ignore", "-q", "--", ".").ok:
        return None
    return Repository(root, prefix, found.git_dir, found.common_dir)


def withheld_filters(root: str) -> dict[str, bool]:
    """The filters that git would run here and we do not, since nobody trusted them; whether a file needs its filter."""
    found = opened(root)
    if found is None or _is_trusted(found):
        return {}
    entries = (*persons_settings(found), *found.entries)
    withheld = dict.fromkeys(_filter_of(key) for key, _ in entries if key.startswith("filter."))
    required = {_filter_of(key): is_true(value) for key, value in entries if key.endswith(".required")}
    return {name: required.get(name, False) for name in withheld}


def ignored(repository: Repository, paths: Sequence[str], *, untracked: bool = False) -> set[str] | None:
    """Those of `paths` that git ignores; None where it cannot tell (a path in a submodule, or behind a link).

    Git looks through its whole index for each path, unless they are known to be `untracked`: of many it is asked first
    which are.
    """
    if len(paths) > FEW and not untracked:
        others = _untracked(repository, paths)
        if not others:
            return None if others is None else set()
        return ignored(repository, others, untracked=True)
    feed = b"\0".join(os.fsencode(path) for path in paths) + b"\0"
    index = ("--no-index",) if untracked else ()
    told = git(repository.root, "check-ignore", "-z", "--stdin", *index, feed=feed)
    if told.status not in (0, 1):
        return None
    return {os.fsdecode(path) for path in told.out.split(b"\0") if path}


def ignored_without_repository(root: str, paths: Sequence[str]) -> set[str] | None:
    """Those of `paths` that the ignore files of a folder in no repository leave out; None if git cannot tell. None
    are left out if there is no git."""
    if not paths or not find_git():
        return set()
    feed = b"\0".join(os.fsencode(path) for path in paths) + b"\0"
    told = git_without_repository(root, "check-ignore", "-z", "--stdin", feed=feed)
    if told.status not in (0, 1):
        return None
    return {os.fsdecode(path) for path in told.out.split(b"\0") if path}


def tracked(root: str, paths: Sequence[str]) -> list[str]:
    """Those of `paths` that git tracks; none if it cannot tell."""
    told = git(root, "--literal-pathspecs", "ls-files", "-z", "--", *paths)
    found = {os.fsdecode(name) for name in told.out.split(b"\0")} if told.ok else set()
    return [path for path in paths if path in found]


def ignored_apart(repository: Repository, paths: Sequence[str]) -> set[str]:
    """Those of `paths` that git ignores, where it does not tell about all at once; none of them is behind a link on the
    disk. What lies in a submodule counts as ignored, and all does if git cannot be asked."""
    told = git(repository.root, "ls-files", "-z", "--stage")
    if not told.ok:
        return set(paths)
    entries = [line.partition(b"\t") for line in told.out.split(b"\0")]
    submodules = {name for mode, _, name in entries if mode.startswith(b"160000 ")}
    tracked = {name for _, _, name in entries}
    names = {path: os.fsencode(path) for path in paths}
    inside = {path for path, name in names.items() if any(up in submodules for up in _parents(name))}
    others = [path for path, name in names.items() if path not in inside and name not in tracked]
    found = ignored(repository, others, untracked=True) if others else set()
    return inside | (set(others) if found is None else found)


def _untracked(repository: Repository, paths: Sequence[str]) -> list[str] | None:
    """Those of `paths` that are not in the index, or that a sparse checkout leaves out; None where one is in a
    submodule, or git cannot tell."""
    told = git(repository.root, "ls-files", "-z", "-t")
    if not told.ok:
        return None
    tracked = set(told.out.split(b"\0"))
    names = {os.fsencode(path): path for path in paths}
    folders = {parent for name in names for parent in _parents(name)}
    if any(b"H " + folder in tracked for folder in folders):
        return None
    return [path for name, path in names.items() if not {b"H " + name, b"M " + name} & tracked]


def _parents(name: bytes) -> Iterator[bytes]:
    while name := name.rpartition(b"/")[0]:
        yield name


def ignored_folders(repository: Repository) -> set[str]:
    """Folders that git ignores as a whole, without a trailing slash; nothing that lies inside one of them."""
    told = git(
        repository.root,
        *("ls-files", "-z", "--others", "--ignored", "--exclude-standard"),
        *("--directory", "--no-empty-directory"),
    )
    empty_of_others = [os.fsdecode(path[:-1]) for path in told.out.split(b"\0") if path.endswith(b"/")]
    # git names a folder too when all that is in it now happens to be ignored: a new file there is not
    return (ignored(repository, empty_of_others, untracked=True) or set()) if empty_of_others else set()


def ignored_folders_without_repository(root: str, depth: int = 0) -> set[str]:
    """The same of a folder in no repository; those in it keep their own rules."""
    told = git_without_repository(
        root, "status", "--porcelain", "-z", "--ignored=matching", "--untracked-files=all"
    )
    folders = [line for line in told.out.split(b"\0") if line.endswith(b"/")]
    found = {os.fsdecode(line[3:-1]) for line in folders if line.startswith(b"!! ")}
    for line in folders if depth < MAX_DEPTH else ():
        if line.startswith(b"?? "):
            inner = os.fsdecode(line[3:-1])
            place = os.path.join(root, inner)
            repository = find_repository(place)
            left_out = (
                ignored_folders(repository)
                if repository
                else ignored_folders_without_repository(place, depth + 1)
            )
            found |= {f"{inner}/{folder}" for folder in left_out}
    return found


def without_submodules(root: str, index: str = "") -> list[str]:
    """Pathspecs that leave out the submodules below a folder: to see whether one changed, git would open it and
    believe its configuration."""
    listed = git(root, "ls-files", "--stage", "-z", index=index).out.split(b"\0")
    paths = (os.fsdecode(line.partition(b"\t")[2]) for line in listed if line.startswith(b"160000 "))
    return [f":(exclude,literal){path}" for path in paths]


def _started(
    command: list[str], folder: str, environment: dict[str, str], stdin: IO[bytes]
) -> subprocess.Popen[bytes]:
    """Start git through GitPython. It adds to the environment that it inherits, and `env -i` begins from nothing.

    It takes as long to import as all else that a folder without a repository needs.
    """
    # At its import it runs the first git of the PATH, which the workspace may have brought. It finds none here, and
    # says nothing of that; which git is run, and with which environment, is decided here.
    os.environ["GIT_PYTHON_REFRESH"] = "quiet"
    os.environ["GIT_PYTHON_GIT_EXECUTABLE"] = os.devnull
    from git import Git
    from git.exc import GitCommandNotFound

    variables = [f"{key}={value}" for key, value in environment.items()]
    try:
        execute: Any = Git(folder).execute
        owner = execute([_ENV, "-i", *variables, *command], istream=stdin, as_process=True)
    except GitCommandNotFound as error:
        raise OSError(str(error)) from error
    owner.proc.owner = owner  # GitPython ends the process with its owner
    return owner.proc


def opened(root: str) -> GitFolder | None:
    """The repository of a folder, unless it belongs to somebody whom the person did not declare safe."""
    avoid_programs_in(root)
    found = find_git_folder(root)
    if found is None or not found.is_foreign:
        return found
    safe = [value for key, value in persons_settings(found) if key == "safe.directory"]
    if "" in safe:
        safe = safe[len(safe) - safe[::-1].index("") :]
    return found if "*" in safe or found.work_tree in map(os.path.realpath, safe) else None


def _filter_of(key: str) -> str:
    return key.removeprefix("filter.").rpartition(".")[0]


def _is_trusted(found: GitFolder) -> bool:
    return os.environ.get(TRUSTED_FILTERS, "") == found.fingerprint


@contextmanager
def _shared_folder(found: GitFolder, hooks: str) -> Generator[str]:
    """The folder that git takes for the one that the work trees of this repository share."""
    with temporary_folder() as folder:
        os.mkdir(os.path.join(folder, "info"))
        settings = _settings(found)
        if hooks:
            settings = (*settings, ("core.hookspath", hooks))
        if any(key.startswith("filter.lfs.") for key, _ in settings):  # it keeps there what a commit needs
            os.makedirs(os.path.join(found.common_dir, "lfs"), exist_ok=True)
        for name in _SHARED:
            there = os.path.join(found.common_dir, name)
            if name == "packed-refs" or os.path.exists(there):
                os.symlink(there, os.path.join(folder, name))
        _write(os.path.join(folder, "config"), format_config(settings))
        yield folder


def _settings(found: GitFolder) -> Entries:
    """All that git is to know, the last value of a key in force."""
    persons = persons_settings(found)
    files = tuple((key, value) for key, value in persons if key in _PERSONS_FILES)
    chosen = tuple((key, value) for key, value in (*persons, *found.entries) if _is_allowed(key, value))
    filters: Entries = ()
    if _is_trusted(found):
        filters = (*((k, v) for k, v in persons if k.startswith("filter.")), *found.filters)
    return (*files, *chosen, *filters, *_upstream(found), *_FIXED)


def _is_allowed(key: str, value: str) -> bool:
    values = _ALLOWED.get(key)
    return values is not None and re.fullmatch(values, value, re.IGNORECASE) is not None


def _upstream(found: GitFolder) -> Entries:
    """With which branch the current one is compared, and where that is kept; no address."""
    branch = f"branch.{found.branch}."
    told = dict(found.entries)
    remote, merge = told.get(branch + "remote", ""), told.get(branch + "merge", "")
    if not found.branch or not re.fullmatch(r"[\w.][\w./-]*", remote) or not _is_ref(merge):
        return ()
    fetched = [
        value
        for key, value in found.entries
        if key == f"remote.{remote}.fetch" and all(map(_is_ref, value.removeprefix("+").split(":")))
    ]
    return (
        (branch + "remote", remote),
        (branch + "merge", merge),
        *((f"remote.{remote}.fetch", value) for value in fetched),
    )


def _is_ref(name: str) -> bool:
    return re.fullmatch(r"refs/[^\x00-\x20\x7f:?\[\\^~]+", name) is not None


def _write(path: str, data: bytes) -> None:
    with open(path, "wb") as file:
        file.write(data)
