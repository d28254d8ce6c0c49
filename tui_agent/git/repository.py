"""Runs git without trusting a repository's configuration. Runs in the child.

Configuration can name commands: filters, hooks, monitors, helpers, transports. So git never reads the
repository's. Each call gets a temporary shared folder (`GIT_COMMON_DIR`) with links to the repository's
objects, refs and logs, without hooks and reachable remotes, and with a generated `config` of allowlisted
settings of user and repository.

git itself reads the user's settings, since it evaluates includes, in an empty repository that has only the
remote addresses for their conditions. Filters run only if the user trusted exactly these; commit hooks only
at the user's request.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import islice
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
from tui_agent.files.names import is_text
from tui_agent.files.numbers import whole_number
from tui_agent.files.private import temporary_folder
from tui_agent.git.process import Result, Start, find_git, listed, run_git
from tui_agent.processes.environment import avoid_programs_in

_SECONDS: Final = 10.0
_WHERE: Final = ("HOME", "XDG_CONFIG_HOME", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM")
_FILES: Final = {"core.excludesfile": "ignore", "core.attributesfile": "attributes"}
_MOST_ANSWERS: Final = 64

Stamps = dict[str, tuple[int, ...]]
#: Valid while the possible source files are unchanged.
_answers: Final[dict[object, tuple[Stamps, Entries]]] = {}


def persons_settings(found: GitFolder) -> Entries:
    """Returns the user's settings in order of increasing precedence; file paths are absolute. Raises
    ChildFailed.
    """
    where = {key: os.environ[key] for key in _WHERE if key in os.environ}
    about = (found, *sorted(where.items()))
    kept = _answers.get(about)
    if kept is not None and kept[0] == _stamps(kept[0]):
        return kept[1]
    addresses = tuple((k, v) for k, v in found.entries if k.startswith("remote.") and k.endswith(".url"))
    with temporary_folder() as shared:
        for name in ("objects", "refs"):
            os.mkdir(os.path.join(shared, name))
        _write(os.path.join(shared, "config"), format_config((("core.bare", "false"), *addresses)))
        variables = {**dict.fromkeys(_WHERE), **where, "GIT_DIR": found.git_dir, "GIT_COMMON_DIR": shared}
        command = ("config", "--list", "--includes", "--show-scope", "--show-origin", "-z")
        told = run_git(found.work_tree, command, variables, seconds=_SECONDS)
    words = os.fsdecode(told.out).split("\0")
    files, entries = [], []
    for scope, origin, setting in zip(words[::3], words[1::3], words[2::3], strict=False):
        if scope in ("system", "global"):
            files.append(origin.removeprefix("file:"))
            key, marker, value = setting.partition("\n")
            entries.append((key, value if marker else "true"))
    folder = os.path.join(where.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config"), "git")
    settings = dict(entries)
    answer = [entry for entry in entries if entry[0] not in _FILES]
    for key, name in _FILES.items():
        path = os.path.expanduser(settings.get(key) or os.path.join(folder, name))
        if os.path.isabs(path) and os.path.isfile(path):
            answer.append((key, path))
    own = (os.path.expanduser("~/.gitconfig"), os.path.join(folder, "config"))
    named = (where.get("GIT_CONFIG_GLOBAL", ""), where.get("GIT_CONFIG_SYSTEM", "/etc/gitconfig"))
    if len(_answers) >= _MOST_ANSWERS:
        _answers.clear()
    _answers[about] = (_stamps((*own, *filter(None, named), *files)), tuple(answer))
    return _answers[about][1]


def _stamps(paths: Iterable[str]) -> Stamps:
    stamps: Stamps = dict.fromkeys(paths, ())
    for path in stamps:
        with suppress(OSError):
            status = os.stat(path)
            stamps[path] = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)
    return stamps


#: Seconds for reading, and for writing a whole work tree.
SECONDS, LONG_SECONDS = 60.0, 600.0
MAX_DEPTH: Final = 4
#: For more paths, tracked ones are determined first.
FEW: Final = 100
#: Only commits of submodules: looking for changes would use their configuration.
UNOPENED: Final = "--ignore-submodules=dirty"
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
_PERSONS_FILES: Final = ("core.excludesfile", "core.attributesfile")
_SHARED: Final = (
    *("objects", "refs", "packed-refs", "shallow", "logs", "worktrees", "reftable", "lfs"),
    *("info/exclude", "info/attributes"),
)


class Repository(Struct, frozen=True):
    """`prefix`: path from its top (empty, or ending in `/`). `git_dir` belongs to this work tree;
    `common_dir` is shared by linked worktrees.
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
    """Runs `git` in a folder's repository with standard input `feed`.

    `index` replaces the index file; `hooks` is a folder of hooks to run. `start` starts the process
    outside the workspace child. Raises ChildFailed after `seconds`; all other failures are results.
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
    """Runs git with an empty temporary repository. Raises ChildFailed."""
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
    """Returns None if there is none or it ignores the folder."""
    found = opened(root)
    if found is None or not find_git():
        return None
    here = os.path.relpath(os.path.realpath(root), found.work_tree)
    prefix = "" if here == "." else here + "/"
    if prefix and git(root, "check-ignore", "-q", "--", ".").ok:
        return None
    return Repository(root, prefix, found.git_dir, found.common_dir)


def withheld_filters(root: str) -> dict[str, bool]:
    found = opened(root)
    if found is None or _is_trusted(found):
        return {}
    entries = (*persons_settings(found), *found.entries)
    withheld = dict.fromkeys(_filter_of(key) for key, _ in entries if key.startswith("filter."))
    required = {_filter_of(key): is_true(value) for key, value in entries if key.endswith(".required")}
    return {name: required.get(name, False) for name in withheld}


#: A name that few patterns match, and paths in one command.
_UNUSUAL, _MOST_ARGUMENTS = "\x01", 500
_CHECK_IGNORE = ("check-ignore", "-z", "--stdin")


def _listed(paths: Sequence[str]) -> bytes:
    # git fails for all paths if one has a colon and a special character at its beginning.
    return listed(f"./{path}" for path in paths)


def _named(told: Result) -> set[str] | None:
    if told.status not in (0, 1):
        return None
    return {os.fsdecode(path[2:]) for path in told.names}


def ignored(repository: Repository, paths: Sequence[str], *, untracked: bool = False) -> set[str] | None:
    """Returns ignored `paths`; None if git cannot decide (in a submodule or behind a link).

    git scans its whole index for each path not known to be `untracked`, so for many paths tracked files
    are excluded first.
    """
    if len(paths) > FEW and not untracked:
        told = git(repository.root, "ls-files", "-z", "-t")
        tracked = set(told.names)
        names = {os.fsencode(path): path for path in paths}
        folders = {parent for name in names for parent in _parents(name)}
        if not told.ok or any(b"H " + folder in tracked for folder in folders):
            return None
        paths = [path for name, path in names.items() if not {b"H " + name, b"M " + name} & tracked]
        if not paths:
            return set()
        untracked = True
    index = ("--no-index",) if untracked else ()
    return _named(git(repository.root, *_CHECK_IGNORE, *index, feed=_listed(paths)))


def ignored_without_repository(root: str, paths: Sequence[str]) -> set[str] | None:
    """Returns None if git cannot decide, an empty set if git is missing."""
    if not paths or not find_git():
        return set()
    return _named(git_without_repository(root, *_CHECK_IGNORE, feed=_listed(paths)))


def wholly_ignored(root: str, paths: list[str]) -> set[str]:
    """Returns folders in which git ignores each file, and has none."""
    repository = find_repository(root)
    feed = _listed([f"{folder}/{_UNUSUAL}" for folder in paths])
    if repository is not None:
        told = git(repository.root, *_CHECK_IGNORE, "--verbose", "--no-index", feed=feed)
    else:
        told = git_without_repository(root, *_CHECK_IGNORE, "--verbose", feed=feed)
    fields = told.out.split(b"\0") if not told.status else []
    found = set()
    for pattern, path in zip(fields[2::4], fields[3::4], strict=False):
        # A pattern such as "*" is about the file: another can except other files of the folder.
        last = pattern.rstrip(b"/").rpartition(b"/")[2]
        wide = not last.strip(b"*?") or b"[!" in last or b"[^" in last
        if not wide and not pattern.startswith(b"!"):
            found.add(os.fsdecode(path[2:]).rpartition("/")[0])
    return found - _with_tracked(root, found)


def ignored_by(
    rules: Mapping[str, str], root: str, paths: Sequence[str], ask: Callable[[str, list[str]], Iterable[str]]
) -> set[str]:
    """Returns untracked paths that `ask` finds in a folder with ignore files. `rules`: their texts by path."""
    with temporary_folder() as folder:
        for path, text in rules.items():
            place = os.path.join(folder, path)
            os.makedirs(os.path.dirname(place), exist_ok=True)
            _write(place, text.encode())
        found = set(ask(folder, list(paths)))
    return found - _with_tracked(root, found)


def _with_tracked(root: str, paths: Iterable[str]) -> set[str]:
    ordered, found = sorted(paths), set[str]()
    for at in range(0, len(ordered), _MOST_ARGUMENTS):
        some = ordered[at : at + _MOST_ARGUMENTS]
        told = git(root, "--literal-pathspecs", "ls-files", "-z", "--", *some)
        names = told.names if told.ok else []
        within = {os.fsdecode(one) for name in names for one in (name, *_parents(name))}
        found |= within.intersection(some)
    return found


def tracked(root: str, paths: Sequence[str]) -> list[str]:
    told = git(root, "--literal-pathspecs", "ls-files", "-z", "--", *paths)
    found = set(map(os.fsdecode, told.names)) if told.ok else set()
    return [path for path in paths if path in found]


def ignored_apart(repository: Repository, paths: Sequence[str]) -> set[str]:
    """Like `ignored`, one by one, if git cannot decide for all; no path is behind a link. Paths in
    submodules count as ignored, and all paths if git fails.
    """
    told = git(repository.root, "ls-files", "-z", "--stage")
    if not told.ok:
        return set(paths)
    entries = [line.partition(b"\t") for line in told.names]
    inner = {name for mode, _, name in entries if mode.startswith(b"160000 ")}
    tracked = {name for _, _, name in entries}
    names = {path: os.fsencode(path) for path in paths}
    inside = {path for path, name in names.items() if any(up in inner for up in _parents(name))}
    others = [path for path, name in names.items() if path not in inside and name not in tracked]
    found = ignored(repository, others, untracked=True) if others else set()
    return inside | (set(others) if found is None else found)


def _parents(name: bytes) -> Iterator[bytes]:
    while name := name.rpartition(b"/")[0]:
        yield name


def ignored_folders(repository: Repository) -> set[str]:
    """Outermost only."""
    told = git(
        repository.root,
        *("ls-files", "-z", "--others", "--ignored", "--exclude-standard"),
        *("--directory", "--no-empty-directory"),
    )
    empty_of_others = [os.fsdecode(path[:-1]) for path in told.names if path.endswith(b"/")]
    # git also lists folders whose files all happen to be ignored
    return (ignored(repository, empty_of_others, untracked=True) or set()) if empty_of_others else set()


def ignored_folders_without_repository(root: str, depth: int = 0) -> set[str]:
    """Like `ignored_folders`; nested repositories use their own rules."""
    told = git_without_repository(
        root, "status", "--porcelain", "-z", "--ignored=matching", "--untracked-files=all"
    )
    folders = [line for line in told.names if line.endswith(b"/")]
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


def submodules(root: str, index: str = "") -> list[str]:
    told = git(root, "ls-files", "--stage", "-z", index=index)
    return [os.fsdecode(line.partition(b"\t")[2]) for line in told.names if line.startswith(b"160000 ")]


def _started(
    command: list[str], folder: str, environment: dict[str, str], stdin: IO[bytes]
) -> subprocess.Popen[bytes]:
    """Starts git through GitPython, which extends the inherited environment, so `env -i` clears it first.
    Its import takes long.
    """
    # On import, GitPython would run the first git of the PATH, possibly from the workspace.
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
    owner.proc.owner = owner  # GitPython kills the process when its owner is collected
    return owner.proc


def opened(root: str) -> GitFolder | None:
    """Returns the repository, unless another user owns it and it is not marked safe."""
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
    with temporary_folder() as folder:
        os.mkdir(os.path.join(folder, "info"))
        persons = persons_settings(found)
        files = tuple((key, value) for key, value in persons if key in _PERSONS_FILES)
        chosen = tuple(
            (key, value)
            for key, value in (*persons, *found.entries)
            if key in _ALLOWED and re.fullmatch(_ALLOWED[key], value, re.IGNORECASE)
        )
        filters: Entries = ()
        if _is_trusted(found):
            filters = (*((k, v) for k, v in persons if k.startswith("filter.")), *found.filters)
        settings = (*files, *chosen, *filters, *_upstream(found), *_FIXED)
        if hooks:
            settings = (*settings, ("core.hookspath", hooks))
        if any(key.startswith("filter.lfs.") for key, _ in settings):
            os.makedirs(os.path.join(found.common_dir, "lfs"), exist_ok=True)
        for name in _SHARED:
            there = os.path.join(found.common_dir, name)
            if name == "packed-refs" or os.path.exists(there):
                os.symlink(there, os.path.join(folder, name))
        _write(os.path.join(folder, "config"), format_config(settings))
        yield folder


def _upstream(found: GitFolder) -> Entries:
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


#: A larger message would block the interface.
MAX_MARKS: Final = 5000
#: Number of fields before the path, which may contain spaces, by kind of a record.
_FIELDS: Final = {"1": 7, "2": 8, "u": 9}
_NO_REPOSITORY: dict[str, Any] = {"is_repository": False, "branch": "", "ahead": 0, "behind": 0, "marks": {}}


def read_status(root: str) -> dict[str, Any]:
    return status_and_deleted(root)[0]


def status_and_deleted(root: str, untracked: Iterable[str] | None = None) -> tuple[dict[str, Any], list[str]]:
    """Returns the status below `root`, as fields of `GitStatus`, and tracked files missing on disk.

    With `untracked`, git does not scan for untracked files. Marks are git's two characters by path:
    staged and unstaged, a space for unchanged; `??` is untracked. At most `MAX_MARKS` paths, tracked ones first.
    """
    repository = find_repository(root)
    if repository is None:
        return _NO_REPOSITORY, []
    looked_for = f"--untracked-files={'all' if untracked is None else 'no'}"
    told = git(root, "status", "--porcelain=v2", "--branch", "-z", looked_for, UNOPENED, "--", ".")
    if not told.ok:
        return _NO_REPOSITORY, []
    marks = {path: mark for _, mark, path in status_entries(repository, told) if is_text(path)}
    for path in untracked or ():
        marks.setdefault(path, "??")
    deleted = []
    for path, mark in marks.items():
        unmerged = "U" in mark or mark == "DD"
        if not os.path.lexists(os.path.join(root, path)) if unmerged else mark[1] == "D":
            deleted.append(path)
    kept = dict(islice(marks.items(), MAX_MARKS))
    headers = (os.fsdecode(record) for record in told.names if record.startswith(b"# "))
    facts = dict(header[2:].split(" ", 1) for header in headers)
    branch = facts.get("branch.head", "")
    if branch == "(detached)":
        branch = facts.get("branch.oid", "")[:7]
    distance = re.fullmatch(r"\+(\d+) -(\d+)", facts.get("branch.ab", "+0 -0"))
    ahead, behind = (whole_number(distance[1]), whole_number(distance[2])) if distance else (0, 0)
    return {
        "is_repository": True,
        "branch": branch,
        "ahead": ahead,
        "behind": behind,
        "marks": kept,
    }, deleted


def status_entries(repository: Repository, told: Result) -> Iterator[tuple[str, str, str]]:
    """Yields kind ("S": a submodule), mark and path below the root from `git status --porcelain=v2 -z`."""
    records = iter(told.names)
    for record in map(os.fsdecode, records):
        kind, _, rest = record.partition(" ")
        mark, path = "??", rest
        if kind in _FIELDS:
            words = rest.split(" ", _FIELDS[kind])
            mark, path = words[0].replace(".", " "), words[-1]
            if kind == "2":
                next(records, b"")  # the old path
            kind = "S" if words[1].startswith("S") else kind
        elif kind != "?":
            continue
        if path.startswith(repository.prefix):
            yield kind, mark, path[len(repository.prefix) :]
