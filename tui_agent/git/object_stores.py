"""Object stores of repositories, and the messages of the search for secrets in them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from tui_agent.files.git_folder import GitFolder, find_git_folder, parse_config, read_regular
from tui_agent.processes.environment import for_any, for_workspace

#: Answers one request on standard input.
SEARCH: Final = (sys.executable, "-P", "-m", "tui_agent.git.without_secrets")
KEPT: Final = "git"
#: Time limit; 50,000 commits take some seconds.
SECONDS: Final = 600.0
_MODULES: Final = 200


class HistoryRequest(Struct):
    """top: of a work tree, or a folder with repositories. nested: their work trees. cache: our folder.
    hidden: hidden paths below the top. reveal: the user's globs, relative to the top and to `prefix`.
    sent: SHA-256 hashes of revealed contents. values: only collect secrets.
    """

    top: str
    cache: str
    hidden: list[bytes]
    reveal: list[str] = []
    prefix: str = ""
    nested: list[str] = []
    sent: list[str] = []
    values: bool = False


class WithoutSecrets(Struct):
    """Differences to show for one repository (absolute paths).

    gone: hidden files and folders. emptied: files shown empty. stores: object folders to borrow from. refs:
    `packed-refs` with replacement refs for secrets. index: its content. Both are None if unchanged. tracked:
    secret paths that are or were in the index.
    """

    git_dir: bytes
    common_dir: bytes
    gone: list[bytes] = []
    emptied: list[bytes] = []
    stores: list[bytes] = []
    refs: bytes | None = None
    index: bytes | None = None
    tracked: list[bytes] = []


class HistoryAnswer(Struct):
    """repositories: those with differences. why: a sentence if git must be hidden. secrets: contents and
    paths, limited in number and size."""

    repositories: list[WithoutSecrets] = []
    secrets: list[tuple[bytes, bytes]] = []
    gone: list[bytes] = []
    why: str = ""


def secrets_in_history(folder: str, cache: Path) -> list[tuple[bytes, bytes]]:
    """Returns `HistoryAnswer.secrets` of a folder's repository; none if the search fails. `cache`: our
    folder. Blocks.
    """
    found = find_git_folder(folder)
    if found is None:
        return []
    asked = msgspec.msgpack.encode(HistoryRequest(found.work_tree, str(cache), [], values=True))
    environment = {**for_any(), **for_workspace()}
    try:
        told = subprocess.run(
            SEARCH, input=asked, env=environment, capture_output=True, timeout=SECONDS, check=True
        ).stdout
        return msgspec.msgpack.decode(told, type=HistoryAnswer).secrets
    except (OSError, subprocess.SubprocessError, msgspec.MsgspecError):
        return []


def all_repositories(top: str, nested: Iterable[str]) -> tuple[list[GitFolder], list[str]]:
    """Also of nested folders with a `.git`."""
    folders, others = repositories(top)
    for place in nested:
        inner, more = repositories(place)
        known = {folder.git_dir for folder in folders}
        folders += [folder for folder in inner if folder.git_dir not in known]
        others += more
        objects = os.path.join(place, ".git", "objects")
        if not inner and os.path.isdir(objects):
            others.append(objects)  # rejected by us, but possibly not by git
    return folders, others


def repositories(top: str) -> tuple[list[GitFolder], list[str]]:
    """Returns the repository with the work tree `top` and its submodules, and object stores without a work
    tree.
    """
    found = find_git_folder(top)
    if found is None or found.work_tree != top:
        return [], []
    folders, others = [found], []
    waiting = [os.path.join(found.common_dir, "modules"), os.path.join(found.git_dir, "modules")]
    seen: set[str] = set()
    while waiting and len(seen) < _MODULES:
        folder = waiting.pop()
        if folder in seen or os.path.islink(folder):
            continue
        seen.add(folder)
        names = names_in_git(folder)
        if "HEAD" in names and "objects" in names:
            inner = None
            with suppress(OSError, ValueError):
                config = read_regular(os.path.join(folder, "config"), 1 << 20).decode(errors="replace")
                named = dict(parse_config(config)).get("core.worktree", "/nonexistent")
                work_tree = os.path.realpath(os.path.join(folder, named))
                inner = find_git_folder(work_tree) if os.path.isdir(work_tree) else None
            if inner is not None and inner.git_dir == os.path.realpath(folder):
                folders.append(inner)
            else:
                others.append(os.path.join(folder, "objects"))
            names = ["modules"] if "modules" in names else []
        waiting += [os.path.join(folder, name) for name in names if os.path.isdir(os.path.join(folder, name))]
    return folders, others


def object_stores(common_dir: str) -> list[str]:
    """Includes alternates."""
    found: list[str] = []
    waiting = [os.path.realpath(os.path.join(common_dir, "objects"))]
    while waiting and len(found) < 10:
        store = waiting.pop(0)
        if store in found or not os.path.isdir(store):
            continue
        found.append(store)
        lines = (os.fsdecode(line) for line in borrowed(store).split(b"\n") if line)
        waiting += [os.path.realpath(os.path.join(store, line)) for line in lines if line[0] not in '#"']
    return found


def borrowed(store: str) -> bytes:
    """Returns the alternates file, or b""."""
    try:
        return read_regular(os.path.join(store, "info/alternates"), 1 << 16)
    except OSError:
        return b""


def stamp(folder: GitFolder) -> tuple[object, ...]:
    """Changes with objects, packs and the index; costs about 300 stat calls."""
    told: list[object] = []
    files = [os.path.join(folder.git_dir, "index"), os.path.join(folder.common_dir, "packed-refs")]
    for store in object_stores(folder.common_dir):
        told += [
            store,
            _changed(os.path.join(store, "pack")),
            _changed(os.path.join(store, "info/alternates")),
        ]
        told += [_changed(f"{store}/{number:02x}") for number in range(256)]
    return (
        folder.git_dir,
        folder.head,
        *told,
        *(_changed(path) for path in (*files, *in_progress(folder))),
    )


def in_progress(folder: GitFolder) -> list[str]:
    """Files of a git folder that may hold file contents: messages with a diff, patches, conflicts."""
    names = [
        "COMMIT_EDITMSG",
        "MERGE_MSG",
        "SQUASH_MSG",
        "TAG_EDITMSG",
        "ADD_EDIT.patch",
        "addp-hunk-edit.diff",
    ]
    found = [os.path.join(folder.git_dir, name) for name in names]
    for inner in ("rebase-apply", "rebase-merge"):
        found += [
            os.path.join(folder.git_dir, inner, name)
            for name in names_in_git(os.path.join(folder.git_dir, inner))
        ]
    conflicts = os.path.join(folder.common_dir, "rr-cache")
    for inner in names_in_git(conflicts):
        found += [
            os.path.join(conflicts, inner, name) for name in names_in_git(os.path.join(conflicts, inner))
        ]
    return [path for path in found if os.path.isfile(path)]


def names_in_git(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def _changed(path: str) -> tuple[int, int, int] | None:
    try:
        status = os.lstat(path)
    except OSError:
        return None
    return status.st_mtime_ns, status.st_ino, status.st_size
