"""Linked worktrees of a folder as it is on disk, for sub-tasks to work in. Lives in the child; one call at a time.

To write thousands of files takes seconds, to link them a tenth of that. So the copies of one session lie side by side,
each a tree of hard links to a *seed* beside them, which goes with the last of them. Nothing is linked with the folder
of the person, and tui-agent replaces files, never writes into them; a seed that somebody did write into is mended
before it is linked again. Beside each copy a small file names the repository, so that a copy that was left by a crash
is found there too.

    <folder of the session>/.seed/  .seed.index  .<name>.repository  <name>/
"""

from __future__ import annotations

import errno
import os
import re
import shutil
from contextlib import suppress
from typing import Any, Final

from tui_agent.errors import FileError
from tui_agent.files.failures import sentence
from tui_agent.files.folders import remove_folder
from tui_agent.workspace.git import Repository, Result, find_repository, git
from tui_agent.workspace.git_trees import commit_of, tree_on_disk

SEED: Final = ".seed"
SEED_INDEX: Final = ".seed.index"
_MARK: Final = ".repository"
#: Every link to a file changes the time at which its status changed; git is not to take that for a change of content.
_NO_CTIME: Final = ("-c", "core.trustctime=false")

_NO_LINKS: Final = (errno.EPERM, errno.EMLINK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EXDEV)


def take_snapshot(root: str) -> str:
    """A commit of the folder as it is on disk, under no ref; "" where there is no repository that could hold it."""
    repository = find_repository(root)
    tree = tree_on_disk(repository, untracked=True) if repository else ""
    return commit_of(root, tree, "tui-agent snapshot") if tree else ""


def add_worktree(root: str, commit: str, folder: str) -> dict[str, Any]:
    """A worktree of a commit at a folder that is not there yet → {root, submodules}.

    `root` is where the workspace lies in it, `submodules` are the paths below that are empty in it. Raises FileError
    where it cannot be made, with nothing left of it.
    """
    repository = find_repository(root)
    if repository is None or not re.fullmatch("[0-9a-f]{40,64}", commit):
        raise _failed(folder, f"{root} is in no git repository", "make a plain copy of the folder")
    if os.path.lexists(folder):
        raise _failed(folder, "it is there already", "remove it first")
    try:
        return _add(repository, commit, folder)
    except OSError as error:
        remove_worktree(root, folder)
        raise _failed(folder, *sentence(error)) from error
    except FileError:
        remove_worktree(root, folder)
        raise


def remove_worktree(root: str, folder: str) -> None:
    """Remove the copy at a folder from the disk and from its repository, whole, half made or gone already.

    Raises FileError where files cannot be removed.
    """
    try:
        common = _marked(folder) or _common_dir(root)
        remove_folder(folder)
        if common:
            _forget(common, folder)
        _remove_file(_mark(folder))
        _remove_seed(os.path.dirname(folder))
    except OSError as error:
        why, remedy = sentence(error)
        raise FileError(f"The work copy {folder} could not be removed, {why}", remedy) from error


def remove_worktrees(folder: str) -> None:
    """Remove every copy that lies in a session's folder, and the folder. Raises FileError."""
    names = {name[1 : -len(_MARK)] if name.endswith(_MARK) else name for name in _names(folder)}
    for name in names - {SEED, SEED_INDEX}:
        remove_worktree("", os.path.join(folder, name))
    _remove_seed(folder)


def _add(repository: Repository, commit: str, folder: str) -> dict[str, Any]:
    parent = os.path.dirname(folder)
    os.makedirs(parent, mode=0o700, exist_ok=True)
    with open(_mark(folder), "wb") as file:
        file.write(os.fsencode(repository.common_dir))
    _grow_seed(repository, commit, parent)
    options = ("--detach", "--no-checkout", "--force", "--quiet")
    _checked(folder, git(repository.root, "worktree", "add", *options, "--", folder, commit))
    _fill(parent, commit, folder)
    root = os.path.join(folder, repository.prefix).rstrip("/")
    os.makedirs(root, exist_ok=True)
    return {"root": root, "submodules": _submodules(root)}


def _grow_seed(repository: Repository, commit: str, parent: str) -> None:
    """Bring the seed to a commit: only what differs is written."""
    seed = os.path.join(parent, SEED)
    os.makedirs(seed, exist_ok=True)
    command = (*_NO_CTIME, f"--work-tree={seed}", "read-tree", "--reset", "-u", commit)
    index = os.path.join(parent, SEED_INDEX)
    _checked(seed, git(repository.root, *command, index=index))


def _fill(parent: str, commit: str, folder: str) -> None:
    try:
        _link(os.path.join(parent, SEED), folder)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        _checked(folder, git(folder, *_NO_CTIME, "read-tree", "--reset", "-u", commit))
        return
    index = git(folder, "rev-parse", "--git-path", "index").text
    shutil.copyfile(os.path.join(parent, SEED_INDEX), os.path.join(folder, index))


def _link(source: str, target: str) -> None:
    """The folders of one tree anew in another, and in them links to its files."""
    with os.scandir(source) as entries:
        for entry in entries:
            path = os.path.join(target, entry.name)
            if entry.is_dir(follow_symlinks=False):
                os.mkdir(path)
                _link(entry.path, path)
            else:
                os.link(entry.path, path, follow_symlinks=False)


def _submodules(root: str) -> list[str]:
    listed = git(root, "ls-files", "--stage", "-z").out.split(b"\0")
    return [os.fsdecode(line.partition(b"\t")[2]) for line in listed if line.startswith(b"160000 ")]


def _forget(common: str, folder: str) -> None:
    """Remove what the repository knows of a worktree at a folder; git's own command would want it whole."""
    known = os.path.join(common, "worktrees")
    for name in _names(known):
        entry = os.path.join(known, name)
        if _is_of(entry, folder):
            remove_folder(entry)
    with suppress(OSError):
        os.rmdir(known)  # as git does with the last one


def _is_of(entry: str, folder: str) -> bool:
    try:
        with open(os.path.join(entry, "gitdir"), "rb") as file:
            told = os.path.join(entry, os.fsdecode(file.read()).strip())
    except OSError:  # git was killed before it wrote where the worktree lies
        named = re.fullmatch(re.escape(os.path.basename(folder)) + r"\d*", os.path.basename(entry))
        return named is not None and set(_names(entry)) <= {"locked"}
    return os.path.realpath(os.path.dirname(told)) == os.path.realpath(folder)


def _remove_seed(parent: str) -> None:
    """Remove the seed, and the folder that it is in, when no copy is left that was linked to it."""
    if set(_names(parent)) - {SEED, SEED_INDEX}:
        return
    remove_folder(os.path.join(parent, SEED))
    _remove_file(os.path.join(parent, SEED_INDEX))
    with suppress(OSError):
        os.rmdir(parent)


def _mark(folder: str) -> str:
    parent, name = os.path.split(folder)
    return os.path.join(parent, f".{name}{_MARK}")


def _marked(folder: str) -> str:
    try:
        with open(_mark(folder), "rb") as file:
            return os.fsdecode(file.read())
    except FileNotFoundError:
        return ""


def _common_dir(root: str) -> str:
    repository = find_repository(root) if root else None
    return repository.common_dir if repository else ""


def _remove_file(path: str) -> None:
    with suppress(FileNotFoundError):
        os.unlink(path)


def _names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except (FileNotFoundError, NotADirectoryError):
        return []


def _checked(folder: str, told: Result) -> None:
    if not told.ok:
        lines = told.err.decode(errors="replace").strip().splitlines() or ["git did not say why"]
        raise _failed(folder, lines[-1].removeprefix("fatal: "), "make room on the disk, then try again")


def _failed(folder: str, why: str, remedy: str) -> FileError:
    return FileError(f"The work copy {folder} could not be made, {why}", remedy)
