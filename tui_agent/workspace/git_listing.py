"""Files of a work tree that are not ignored, and renamed ones. Runs in the child."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from tui_agent.errors import ChildFailed
from tui_agent.files.gate import Gate
from tui_agent.files.git_folder import read_regular
from tui_agent.files.names import is_text
from tui_agent.files.text import md5
from tui_agent.git.client import MissingFile
from tui_agent.git.commits import tree_on_disk
from tui_agent.git.repository import (
    MAX_DEPTH,
    Repository,
    find_repository,
    git,
    git_without_repository,
    withheld_filters,
)
from tui_agent.workspace.listing import CONTROL_FOLDERS, MAX_FILES, FileListing, as_texts, walk

WITHOUT_CONTROL: Final = tuple(f"--exclude={name}/" for name in sorted(CONTROL_FOLDERS))
#: `ls-files -t --stage`: excluded by a sparse checkout (`S`), link (120000), submodule (160000).
_SPECIAL: Final = re.compile(rb"\0(?:(S) \d{6}|. (1[26]0000)) [0-9a-f]+ \d\t([^\0]+)")
_FILTER: Final = re.compile(rb"[ \t]filter=(\S+)")
_MOST_ATTRIBUTES: Final = 100
_MOST_BYTES: Final = 1 << 20
_SPECIAL_MARKS: Final = (b"\0S ", b" 120000 ", b" 160000 ")


class _Special(Struct, frozen=True):
    sparse: frozenset[bytes]
    links: frozenset[bytes]
    submodules: frozenset[bytes]


def list_files(repository: Repository, depth: int = 0) -> FileListing | None:
    """Returns the sorted files below `root`; None if git fails.

    Excludes files outside a sparse checkout; includes deleted files, which the status reports. Lists
    submodules and nested repositories by their own rules. Does not follow links to folders.
    """
    with ThreadPoolExecutor(1) as pool:
        special = pool.submit(_special_names, repository.root)
        told = git(repository.root, "ls-files", "-z", "-t", "--cached", "--others", "--exclude-standard")
        if not told.ok:
            return None
        odd = special.result()
    records = told.out.split(b"\0")
    names = [record[2:] for record in records]
    others = (os.fsdecode(record[2:]) for record in records if record.startswith(b"? "))
    untracked = tuple(filter(is_text, others))
    if odd == _NOTHING and b"/\0" not in told.out:
        return replace(as_texts(b"\0".join(names)), untracked=untracked)
    inner = {name.rstrip(b"/") for name in names if name.endswith(b"/")} | odd.submodules
    left_out = (
        odd.sparse
        | odd.submodules
        | {name for name in odd.links if os.path.isdir(os.path.join(os.fsencode(repository.root), name))}
    )
    listing = as_texts(b"\0".join(name for name in names if name not in left_out and name[-1:] != b"/"))
    return replace(_with_inner(repository.root, listing, inner, depth), untracked=untracked)


def list_without_repository(root: str, depth: int = 0) -> FileListing:
    """By its ignore files."""
    told = git_without_repository(root, "ls-files", "-z", "--others", "--exclude-standard", *WITHOUT_CONTROL)
    if not told.ok:
        return walk(root)
    names = told.out.split(b"\0")
    if len(names) > MAX_FILES + 1:
        return replace(as_texts(b"\0".join(names[:MAX_FILES])), cut=True)
    inner = {name.rstrip(b"/") for name in names if name.endswith(b"/")}
    places = ((name, os.path.join(os.fsencode(root), name)) for name in names if name[-1:] != b"/")
    files = (name for name, place in places if not os.path.islink(place) or os.path.isfile(place))
    listing = as_texts(b"\0".join(files))
    return _with_inner(root, listing, inner, depth)


def named_filters(repository: Repository, paths: Sequence[str]) -> list[str]:
    """Those that git would run if they were trusted."""
    withheld = withheld_filters(repository.root)
    if not withheld:
        return []
    files = [path for path in paths if path.rpartition("/")[2] == ".gitattributes"][:_MOST_ATTRIBUTES]
    places = [os.path.join(repository.root, path) for path in files]
    named: set[str] = set()
    for place in (os.path.join(repository.common_dir, "info", "attributes"), *places):
        with suppress(OSError):
            found = _FILTER.findall(read_regular(place, _MOST_BYTES))
            named.update(os.fsdecode(name) for name in found)
    return sorted(named & withheld.keys())


_NOTHING: Final = _Special(frozenset(), frozenset(), frozenset())


def _special_names(root: str) -> _Special:
    out = b"\0" + git(root, "ls-files", "-z", "-t", "--stage").out
    if not any(mark in out for mark in _SPECIAL_MARKS):
        return _NOTHING
    sparse, links, submodules = set(), set(), set()
    for found in _SPECIAL.finditer(out):
        kind = sparse if found[1] else links if found[2] == b"120000" else submodules
        kind.add(found[3])
    return _Special(frozenset(sparse), frozenset(links), frozenset(submodules))


def _with_inner(root: str, listing: FileListing, inner: set[bytes], depth: int) -> FileListing:
    paths, unreadable = list(listing.paths), listing.unnamed
    for name in sorted(inner) if depth < MAX_DEPTH else ():
        folder = os.fsdecode(name)
        if not os.path.lexists(os.path.join(root, folder, ".git")) or os.path.islink(
            os.path.join(root, folder)
        ):
            continue
        repository = find_repository(os.path.join(root, folder))
        found = list_files(repository, depth + 1) if repository else None
        if found is None:
            found = list_without_repository(os.path.join(root, folder), depth + 1)
        paths += [f"{folder}/{path}" for path in found.paths]
        unreadable += found.unnamed
    return FileListing(sorted(set(paths)), unreadable)


#: Maximum lag of the file system's clock in seconds.
TICK: Final = 0.02
#: Candidates read, and bytes of one.
MOST_READ: Final = 200
MOST_BYTES: Final = 4 << 20
#: Commits searched for a deletion, and seconds.
MOST_COMMITS: Final = 2000
SECONDS: Final = 10.0


def find_renamed(root: str, gone: Sequence[MissingFile]) -> dict[str, str]:
    """Returns new paths of missing files by old path, without deleted files.

    A file that existed together with the old one is a copy, not a rename. Among new files, the same
    content is preferred, then similarity by git to the last committed version.
    """
    repository = find_repository(root)
    listing = list_files(repository) if repository else None
    # Regular files possibly created or moved after the first missing file disappeared
    candidates: dict[str, os.stat_result] = {}
    since = min(one.there_at for one in gone) - TICK
    inodes = {one.inode for one in gone}
    for path in (listing or list_without_repository(root)).paths:
        try:
            status = os.lstat(os.path.join(root, path))
        except OSError:
            continue
        if stat.S_ISREG(status.st_mode) and (status.st_ctime > since or status.st_ino in inodes):
            candidates[path] = status
    found = _by_content(root, repository, candidates, gone)
    left = [one for one in gone if one.path not in found]
    if repository and left:
        try:
            found |= _by_git(repository, candidates, left)
        except ChildFailed:
            pass  # the rest counts as deleted
    return found


def _is_new(one: MissingFile, status: os.stat_result) -> bool:
    return status.st_ino == one.inode or status.st_ctime > one.there_at - TICK


def _by_content(
    root: str,
    repository: Repository | None,
    candidates: Mapping[str, os.stat_result],
    gone: Sequence[MissingFile],
) -> dict[str, str]:
    found: dict[str, str] = {}
    hashes: dict[str, str] = {}
    for one in gone:
        fitting = [
            path
            for path, status in candidates.items()
            if 0 < status.st_size == one.size <= MOST_BYTES and _is_new(one, status)
        ]
        name = os.path.basename(one.path)
        fitting.sort(
            key=lambda path: (candidates[path].st_ino != one.inode, os.path.basename(path) != name, path)
        )
        for path in [path for path in fitting if path not in found.values()][:MOST_READ]:
            if path not in hashes:
                hashes[path] = ""
                with suppress(OSError):
                    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
                    with open(os.open(os.path.join(root, path), flags), "rb") as file:
                        hashes[path] = md5(file.read(MOST_BYTES + 1))
            if hashes[path] not in one.hashes:
                continue
            if repository is None or len(_in_head(repository, [one.path, path])) != 2:
                found[one.path] = path
                break
    return found


def _by_git(
    repository: Repository, candidates: Mapping[str, os.stat_result], gone: Sequence[MissingFile]
) -> dict[str, str]:
    """Compares the last commit with a file and the current folder."""
    there = _in_head(repository, [one.path for one in gone])
    bases: dict[str, list[MissingFile]] = {}
    for one in gone:
        base = "HEAD" if one.path in there else _last_with(repository, one.path)
        if base:
            bases.setdefault(base, []).append(one)
    small = [path for path, status in candidates.items() if status.st_size <= MOST_BYTES]
    tree = tree_on_disk(repository, Gate(Path(repository.root)).without_secrets(small)) if bases else ""
    found: dict[str, str] = {}
    for base, files in bases.items() if tree else ():
        # Only new files, because git selects the most similar file
        added = _compared(repository, base, tree, "--no-renames", "--diff-filter=A", "--name-only")
        others = (f":(exclude,literal){path}" for path in added if path and path not in candidates)
        how = ("--find-renames", "--diff-filter=R", "--name-status")
        words = _compared(repository, base, tree, *how, only=(".", *others))
        renamed = dict(zip(words[1::3], words[2::3], strict=False))
        for one in files:
            new = renamed.get(one.path, "")
            if new in candidates and _is_new(one, candidates[new]):
                found[one.path] = new
    return found


def _compared(repository: Repository, base: str, tree: str, *how: str, only: Sequence[str] = ()) -> list[str]:
    told = git(
        repository.root, "diff-tree", "-r", "-z", "--relative", *how, base, tree, "--", *only, seconds=SECONDS
    )
    return [os.fsdecode(word) for word in told.out.split(b"\0")]


def _last_with(repository: Repository, path: str) -> str:
    """Returns the last commit with a file missing from HEAD; "" if no recent commit deleted it."""
    root = repository.root
    older = git(root, "rev-list", "--max-count=1", f"--skip={MOST_COMMITS}", "HEAD").text
    span = ("HEAD", *((f"^{older}",) if older else ()))
    told = git(
        root,
        *("log", "-1", "--format=%H", "--no-renames", "--diff-filter=D"),
        *(*span, "--", f":(literal){path}"),
        seconds=SECONDS,
    )
    return f"{told.text}^" if told.ok and told.text else ""


def _in_head(repository: Repository, paths: Sequence[str]) -> set[str]:
    told = git(repository.root, "ls-tree", "-z", "--name-only", "HEAD", "--", *paths)
    return set(map(os.fsdecode, told.names))
