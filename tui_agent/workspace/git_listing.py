"""Lists the files of a work tree that are not ignored, tracked or not. Runs in the child."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from tui_agent.files.git_folder import read_regular
from tui_agent.files.names import is_text
from tui_agent.git.repository import (
    MAX_DEPTH,
    Repository,
    find_repository,
    git,
    git_without_repository,
    withheld_filters,
)
from tui_agent.workspace.walk import CONTROL_FOLDERS, MAX_FILES, FileListing, as_texts, walk

WITHOUT_CONTROL: Final = tuple(f"--exclude={name}/" for name in sorted(CONTROL_FOLDERS))
#: Output of `ls-files -t --stage`: excluded by a sparse checkout (`S`), link (120000), submodule (160000).
_SPECIAL: Final = re.compile(rb"\0(?:(S) \d{6}|. (1[26]0000)) [0-9a-f]+ \d\t([^\0]+)")
_FILTER: Final = re.compile(rb"[ \t]filter=(\S+)")
_MOST_ATTRIBUTES: Final = 100
_MOST_BYTES: Final = 1 << 20
_SPECIAL_MARKS: Final = (b"\0S ", b" 120000 ", b" 160000 ")


class _Special(Struct, frozen=True):
    """Tracked names that are not plain files on disk: excluded by a sparse checkout, links, and
    submodules."""

    sparse: frozenset[bytes]
    links: frozenset[bytes]
    submodules: frozenset[bytes]


def list_files(repository: Repository, depth: int = 0) -> FileListing | None:
    """The sorted files below the repository's `root`; None if git fails.

    Excludes files outside a sparse checkout, but includes deleted files, which the status reports.
    Submodules and nested repositories are listed by their own rules. Links to folders are not followed.
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
    left_out = odd.sparse | odd.submodules | {name for name in odd.links if _is_folder(repository.root, name)}
    listing = as_texts(b"\0".join(name for name in names if name not in left_out and name[-1:] != b"/"))
    return replace(_with_inner(repository.root, listing, inner, depth), untracked=untracked)


def list_without_repository(root: str, depth: int = 0) -> FileListing:
    """Lists a folder without a usable repository by its ignore files."""
    told = git_without_repository(root, "ls-files", "-z", "--others", "--exclude-standard", *WITHOUT_CONTROL)
    if not told.ok:
        return walk(root)
    names = told.out.split(b"\0")
    if len(names) > MAX_FILES + 1:
        return replace(as_texts(b"\0".join(names[:MAX_FILES])), cut=True)
    inner = {name.rstrip(b"/") for name in names if name.endswith(b"/")}
    top = os.fsencode(root)
    listing = as_texts(b"\0".join(name for name in names if name[-1:] != b"/" and _is_file(top, name)))
    return _with_inner(root, listing, inner, depth)


def named_filters(repository: Repository, paths: Sequence[str]) -> list[str]:
    """Filters that attributes assign to these files and that git would run if they were trusted."""
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


def _is_folder(root: str, name: bytes) -> bool:
    return os.path.isdir(os.path.join(os.fsencode(root), name))


def _is_file(root: bytes, name: bytes) -> bool:
    path = os.path.join(root, name)
    return not os.path.islink(path) or os.path.isfile(path)
