"""Linked worktrees of the folder's current state, for sub-tasks, and the seed to which their files are
linked.

Runs in the child, the functions of seeds one call at a time.

Linking files is faster than writing them, so a commit is checked out once, and each copy is a tree
of hard links to it, never to the user's folder. tui-agent replaces files instead of writing into them; a
seed modified through a copy is repaired before it is linked again.

    <folder of the session>/.seed/  .seed.index  <copy>/  <copy>/  …

A small file beside each worktree names its repository, to find it after a crash: `<folder of the
session>/.<name>.repository`.
"""

from __future__ import annotations

import errno
import os
import re
import secrets
import shutil
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from tui_agent.errors import FileError
from tui_agent.files.operating_system import read_start, remove_folder, sentence
from tui_agent.files.private import make_private, replace_private
from tui_agent.git.commits import commit_of, tree_on_disk
from tui_agent.git.process import Result
from tui_agent.git.repository import LONG_SECONDS, Repository, find_repository, git, submodules

_NAME: Final = ".seed"
_INDEX: Final = ".seed.index"
NAMES: Final = frozenset((_NAME, _INDEX, _INDEX + ".lock"))
_NO_LINKS: Final = (errno.EPERM, errno.EMLINK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EXDEV)


#: Seconds for which a linked seed counts as unmodified.
WHOLE_FOR: Final = 10.0


class _VerifiedSeed(Struct, frozen=True):
    """The seed's tree, the monotonic time of the check, and whether copies were linked since."""

    tree: str
    at: float
    linked: bool = False

    @property
    def is_whole(self) -> bool:
        return not self.linked or time.monotonic() - self.at < WHOLE_FOR


_looked: Final[dict[str, _VerifiedSeed]] = {}


def update_seed(repository: Repository, commit: str, parent: str) -> Result:
    """Writes only differences. Raises OSError."""
    seed, index = os.path.join(parent, _NAME), os.path.join(parent, _INDEX)
    tree = git(repository.root, "rev-parse", "--verify", "--quiet", f"{commit}^{{tree}}")
    looked = _looked.pop(parent, None)
    if looked and looked.tree == tree.text and looked.is_whole and not os.path.exists(index + ".lock"):
        _looked[parent] = looked
        return tree
    if os.path.exists(index + ".lock") or not os.path.exists(index):
        _remove(parent)
    command = ("--work-tree", seed, *_checkout(commit))
    for _ in range(2):
        os.makedirs(seed, exist_ok=True)
        told = git(repository.root, *command, index=index, seconds=LONG_SECONDS)
        if told.ok:
            _looked[parent] = _VerifiedSeed(tree.text, time.monotonic())
            break
        _remove(parent)
    return told


def fill(parent: str, commit: str, folder: str) -> Result:
    """Fills a worktree with links to the seed at that commit, or with copies if hard links are unsupported.
    Raises OSError.
    """
    if looked := _looked.get(parent):
        _looked[parent] = replace(looked, linked=True)
    try:
        _link(os.path.join(parent, _NAME), folder)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        return git(folder, *_checkout(commit), seconds=LONG_SECONDS)
    made = find_repository(folder)
    if made is None:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), folder)
    shutil.copy2(os.path.join(parent, _INDEX), os.path.join(made.git_dir, "index"))
    return Result(0, b"", b"")


def remove_seed(parent: str) -> None:
    """Removes the seed, and the session's folder if it contains no copy. Raises OSError."""
    if set(names_in(parent)) - NAMES:
        return
    _remove(parent)
    with suppress(OSError):
        os.rmdir(parent)


def names_in(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except (FileNotFoundError, NotADirectoryError):
        return []


def _remove(parent: str) -> None:
    _looked.pop(parent, None)
    for name in NAMES:
        remove_folder(os.path.join(parent, name))


def _checkout(commit: str) -> tuple[str, ...]:
    return ("-c", "core.trustctime=false", "read-tree", "--reset", "-u", commit)


def _link(source: str, target: str) -> None:
    with os.scandir(source) as entries:
        for entry in entries:
            path = os.path.join(target, entry.name)
            if entry.is_dir(follow_symlinks=False):
                os.mkdir(path)
                _link(entry.path, path)
            else:
                os.link(entry.path, path, follow_symlinks=False)


_MARK: Final = ".repository"
_ASIDE: Final = ".gone-"


def take_snapshot(root: str) -> str:
    """Commits the folder as on disk without a ref; "" if there is no suitable repository."""
    repository = find_repository(root)
    tree = tree_on_disk(repository, untracked=True) if repository else ""
    return commit_of(root, tree, "tui-agent snapshot") if tree else ""


def prepare(root: str, parent: str) -> None:
    """Prepares the shared files of copies, so that the first copy is as fast as later ones.

    No effect without a repository. One call at a time. Raises FileError.
    """
    repository, commit = find_repository(root), take_snapshot(root)
    if repository is None or not commit:
        return
    try:
        make_private(parent)
        _check(parent, update_seed(repository, commit, parent))
    except OSError as error:
        raise _failed(parent, *sentence(error)) from error


def add_worktree(root: str, commit: str, folder: str) -> dict[str, Any]:
    """Creates a worktree of a commit in a new folder → {root, submodules}. One call at a time.

    `root` is the workspace within it, `submodules` are empty. Raises FileError after cleaning up.
    """
    repository = find_repository(root)
    if repository is None or not re.fullmatch("[0-9a-f]{40,64}", commit):
        raise _failed(folder, f"{root} is in no git repository", "copy the folder instead")
    if os.path.lexists(folder):
        raise _failed(folder, "it already exists", "remove it first")
    try:
        parent, entries = os.path.dirname(folder), os.path.join(repository.common_dir, "worktrees")
        make_private(parent)
        replace_private(Path(_mark(folder)), os.fsencode(repository.common_dir))
        _check(folder, update_seed(repository, commit, parent))
        os.makedirs(entries, exist_ok=True)
        adding = ("worktree", "add", "--detach", "--no-checkout", "--force", "--quiet", "--", folder, commit)
        _check(folder, git(repository.root, "-c", "core.logAllRefUpdates=false", *adding))
        # The repository's own common folder instead of the temporary one
        pointer = os.path.join(folder, ".git")
        with open(pointer, "rb") as file:
            entry = os.path.basename(os.fsdecode(file.read()).strip())
        with open(pointer, "wb") as file:
            file.write(b"gitdir: " + os.fsencode(os.path.join(entries, entry)) + b"\n")
        _check(folder, fill(parent, commit, folder))
        root = os.path.join(folder, repository.prefix).rstrip("/")
        os.makedirs(root, exist_ok=True)
        return {"root": root, "submodules": submodules(root)}
    except OSError as error:
        remove_worktree(root, folder)
        raise _failed(folder, *sentence(error)) from error
    except FileError:
        remove_worktree(root, folder)
        raise


def remove_worktree(root: str, folder: str) -> None:
    """Removes a complete, partial or missing copy, from the disk and its repository. Raises FileError."""
    aside = detach_worktree(root, folder)
    try:
        remove_folder(aside)
    except OSError as error:
        raise _stays(folder, error) from error


def detach_worktree(root: str, folder: str) -> str:
    """The fast part of a removal: renames the folder, unregisters it, and returns the new location. Raises
    FileError.
    """
    parent = os.path.dirname(folder)
    aside = os.path.join(parent, f"{_ASIDE}{secrets.token_hex(4)}")
    try:
        common = _marked(folder) or _common_dir(root)
        with suppress(FileNotFoundError):
            os.rename(folder, aside)
        if common:
            # git's own command requires an intact worktree
            known = os.path.join(common, "worktrees")
            for name in names_in(known):
                entry = os.path.join(known, name)
                if _is_of(entry, folder):
                    remove_folder(entry)
        with suppress(FileNotFoundError):
            os.unlink(_mark(folder))
    except OSError as error:
        raise _stays(folder, error) from error
    return aside


def tidy(root: str, parent: str) -> None:
    """Removes the shared files of a session's folder, and the folder, unless a copy remains."""
    try:
        remove_seed(parent)
    except OSError as error:
        raise _stays(parent, error) from error
    common = _common_dir(root)
    if common:
        _remove_empty(os.path.join(common, "worktrees"))


def remove_worktrees(parent: str) -> None:
    """Removes a session's folder with all copies. Raises FileError."""
    names = set(names_in(parent)) - NAMES
    copies = {
        os.path.join(
            parent, name[1:].removesuffix(_MARK) if (name.startswith(".") and name.endswith(_MARK)) else name
        )
        for name in names
    }
    known = {_marked(folder) for folder in copies} - {""}
    for folder in copies:
        remove_worktree("", folder)
    tidy("", parent)
    for common in known:
        _remove_empty(os.path.join(common, "worktrees"))


def _is_of(entry: str, folder: str) -> bool:
    try:
        told = os.path.join(entry, os.fsdecode(read_start(os.path.join(entry, "gitdir"), 4096)).strip())
    except OSError:
        named = re.fullmatch(re.escape(os.path.basename(folder)) + r"\d*", os.path.basename(entry))
        return named is not None and set(names_in(entry)) <= {"locked"}
    return os.path.realpath(os.path.dirname(told)) == os.path.realpath(folder)


def _remove_empty(folder: str) -> None:
    with suppress(OSError):
        os.rmdir(folder)


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


def _check(folder: str, told: Result) -> None:
    if told.ok:
        return
    said = told.err.decode(errors="replace").strip() or "git gave no reason"
    why = re.sub("^(fatal|error): ", "", said.splitlines()[-1])
    raise _failed(folder, why, "free some space or correct that, then try again")


def _failed(folder: str, why: str, remedy: str) -> FileError:
    return FileError(f"The work copy {folder} could not be made, {why}", remedy)


def _stays(folder: str, error: OSError) -> FileError:
    why, remedy = sentence(error)
    return FileError(f"The work copy {folder} could not be removed, {why}", remedy)
