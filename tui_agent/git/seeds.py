"""The seed tree to which a session's work copies are hard-linked. Runs in the child, one call at a time.

Writing ten thousand files takes seconds, linking them a fifth of one. A commit is therefore checked out
once, and each copy is a tree of hard links to it, never to the user's folder. tui-agent replaces files
instead of writing into them; a seed modified through a copy is repaired before it is linked again.

    <folder of the session>/.seed/  .seed.index  <copy>/  <copy>/  …
"""

from __future__ import annotations

import errno
import os
import shutil
import time
from contextlib import suppress
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from tui_agent.files.operating_system import remove_folder
from tui_agent.git.process import Result
from tui_agent.git.repository import LONG_SECONDS, Repository, find_repository, git

_NAME: Final = ".seed"
_INDEX: Final = ".seed.index"
NAMES: Final = frozenset((_NAME, _INDEX, _INDEX + ".lock"))
_NO_LINKS: Final = (errno.EPERM, errno.EMLINK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EXDEV)


#: Seconds for which a linked seed is assumed to be unmodified.
WHOLE_FOR: Final = 10.0


class _VerifiedSeed(Struct, frozen=True):
    """A verified seed: its tree, the monotonic time of the check, and whether copies were linked since."""

    tree: str
    at: float
    linked: bool = False

    @property
    def is_whole(self) -> bool:
        return not self.linked or time.monotonic() - self.at < WHOLE_FOR


_looked: Final[dict[str, _VerifiedSeed]] = {}


def update_seed(repository: Repository, commit: str, parent: str) -> Result:
    """Updates the seed of a session's folder to a commit, writing only differences. Raises OSError."""
    seed, index = os.path.join(parent, _NAME), os.path.join(parent, _INDEX)
    tree = git(repository.root, "rev-parse", "--verify", "--quiet", f"{commit}^{{tree}}")
    looked = _looked.pop(parent, None)
    if looked and looked.tree == tree.text and looked.is_whole and not os.path.exists(index + ".lock"):
        _looked[parent] = looked
        return tree
    if os.path.exists(index + ".lock") or not os.path.exists(index):
        _remove(parent)  # git was killed, so the content is unknown
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
    """Fills an empty worktree with links to the seed at that commit, or with copies if hard links are
    unsupported. Raises OSError."""
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
    """Removes the seed and the session's folder, unless it contains a copy. Raises OSError."""
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
    """Ignores ctime, which changes with every link to a file."""
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
