"""Which workspaces may bring settings, prompts, keys and themes of their own.

Trust is tied to the resolved path of the workspace and to the hash of every file in its `.tui-agent/`: what was
looked at is what is trusted, and a file that changes or comes along takes the trust away. The filters that the
workspace's repository configures are trusted with it, and lose that when one of their commands changes.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct

from tui_agent.errors import SettingsError
from tui_agent.files.git_folder import Entries, find_git_folder
from tui_agent.files.private import write_private
from tui_agent.settings.files import MAX_BYTES, read_beneath, read_small, reason_of
from tui_agent.settings.folders import Folders
from tui_agent.settings.loading import WORKSPACE_FOLDER

STORE = "trust.json"
#: A workspace that brings more files than this is never trusted.
MAX_FILES = 1000

Standing = Literal["nothing to trust", "trusted", "changed", "not trusted"]


class TrustedWorkspace(Struct, frozen=True):
    """A workspace that was trusted: its resolved path, and the SHA-256 of each file of its `.tui-agent/`.

    `filters` is the fingerprint of the filters of its repository, "" where it was in none.
    """

    path: str
    files: dict[str, str] = {}
    filters: str = ""


class _Store(Struct, frozen=True):
    workspaces: tuple[TrustedWorkspace, ...] = ()


def standing(workspace: Path, folders: Folders) -> Standing:
    """Whether the workspace is trusted as it is now, was trusted before it changed, or never was."""
    files = files_of(workspace)
    entry = _entry(workspace, folders)
    if entry is not None:
        return "trusted" if entry.files == files else "changed"
    return "not trusted" if files or filters_of(workspace) else "nothing to trust"


def is_trusted(workspace: Path, folders: Folders) -> bool:
    return standing(workspace, folders) == "trusted"


def brought(workspace: Path) -> tuple[TrustedWorkspace, Entries]:
    """What trust in the workspace as it is now would cover, and its filters in full, as settings of git."""
    found = find_git_folder(str(workspace))
    files, fingerprint = files_of(workspace), found.fingerprint if found else ""
    return TrustedWorkspace(_resolved(workspace), files, fingerprint), found.filters if found else ()


def trust(workspace: Path, folders: Folders, seen: TrustedWorkspace | None = None) -> TrustedWorkspace:
    """Trust the workspace as it was `seen`, or else as it is now. Raises SettingsError where that cannot be kept.

    What has changed since it was seen is not trusted.
    """
    entry = seen or brought(workspace)[0]
    files = entry.files
    if any(not digest for digest in files.values()) or len(files) > MAX_FILES:
        raise SettingsError(
            f"{workspace / WORKSPACE_FOLDER} cannot be trusted",
            f"it must hold plain files only, at most {MAX_FILES}, each up to {MAX_BYTES} bytes",
        )
    others = tuple(other for other in trusted(folders) if other.path != entry.path)
    _write(folders, (*others, entry))
    return entry


def trusted_filters(workspace: Path, folders: Folders) -> str:
    """The fingerprint of the filters that may run in a workspace; "" where none may."""
    entry = _entry(workspace, folders) if is_trusted(workspace, folders) else None
    return entry.filters if entry else ""


def fingerprint(workspace: Path) -> str:
    """The fingerprint of the filters of the workspace's repository as they are now; "" where there is no repository."""
    found = find_git_folder(str(workspace))
    return found.fingerprint if found else ""


def filters_of(workspace: Path) -> Entries:
    """The filters that the workspace's repository configures itself: settings of git and their values."""
    found = find_git_folder(str(workspace))
    return found.filters if found else ()


def revoke(workspace: Path, folders: Folders) -> bool:
    """Revoke the trust; False where there was none. Raises SettingsError where that cannot be kept."""
    path = _resolved(workspace)
    entries = trusted(folders)
    left = tuple(entry for entry in entries if entry.path != path)
    if len(left) == len(entries):
        return False
    _write(folders, left)
    return True


def trusted(folders: Folders) -> tuple[TrustedWorkspace, ...]:
    """Every workspace that was trusted, in the order of trusting. A store that cannot be read trusts nothing."""
    try:
        return msgspec.json.decode(read_small(folders.data / STORE), type=_Store).workspaces
    except (OSError, msgspec.DecodeError):
        return ()


def files_of(workspace: Path) -> dict[str, str]:
    """The SHA-256 of each file below `.tui-agent/`, by path; empty for what cannot be trusted (links, devices)."""
    found: dict[str, str] = {}
    for path in _walk(workspace / WORKSPACE_FOLDER):
        name = path.relative_to(workspace).as_posix()
        found[name] = _digest(workspace, path)
        if len(found) > MAX_FILES:
            break
    return dict(sorted(found.items()))


def _walk(folder: Path) -> Iterator[Path]:
    """Every file below a folder; a link counts as itself."""
    try:
        entries = list(os.scandir(folder)) if not folder.is_symlink() else [folder]
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError:
        yield folder
        return
    for entry in entries:
        path = Path(entry)
        if stat.S_ISDIR(path.lstat().st_mode):
            yield from _walk(path)
        else:
            yield path


def _digest(workspace: Path, path: Path) -> str:
    try:
        return hashlib.sha256(read_beneath(workspace, *path.relative_to(workspace).parts)).hexdigest()
    except OSError:
        return ""


def _entry(workspace: Path, folders: Folders) -> TrustedWorkspace | None:
    path = _resolved(workspace)
    return next((entry for entry in trusted(folders) if entry.path == path), None)


def _resolved(workspace: Path) -> str:
    return os.path.realpath(workspace)


def _write(folders: Folders, entries: tuple[TrustedWorkspace, ...]) -> None:
    try:
        write_private(folders.data / STORE, msgspec.json.format(msgspec.json.encode(_Store(entries))))
    except OSError as error:
        raise SettingsError(
            f"{folders.data / STORE} cannot be written ({reason_of(error)})",
            "set TUI_AGENT_HOME to a folder that can",
        ) from None
