"""Trust in workspaces, which allows their own settings, prompts, keys and themes.

Bound to the resolved path and to the hash of every file in `.tui-agent/`: a changed or new file revokes
it. Also covers the filters configured in the workspace's repository, until one of their commands changes.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct

from tui_agent.errors import SettingsError
from tui_agent.files.git_folder import Entries, find_git_folder
from tui_agent.files.private import write_private
from tui_agent.settings.files import MAX_BYTES, read_beneath, read_small, reason_of
from tui_agent.settings.folders import Folders, user_folders
from tui_agent.settings.loading import WORKSPACE_FOLDER, LoadedSettings, load

STORE = "trust.json"
#: A folder with more files cannot be trusted.
MAX_FILES = 1000

Standing = Literal["nothing to trust", "trusted", "changed", "not trusted"]


class TrustedWorkspace(Struct, frozen=True):
    """The resolved path and the SHA-256 of each file of `.tui-agent/`.

    `filters` is the fingerprint of the repository's filters, or ""; `extensions` are the SHA-256 of its
    skills, commands, agents and hooks (see `extensions.trusted`).
    """

    path: str
    files: dict[str, str] = {}
    filters: str = ""
    extensions: dict[str, str] = {}


class _Store(Struct, frozen=True):
    workspaces: tuple[TrustedWorkspace, ...] = ()


def trust_status(workspace: Path, folders: Folders) -> Standing:
    files = files_of(workspace)
    entry = entry_of(workspace, folders)
    if entry is not None:
        return "trusted" if entry.files == files else "changed"
    return "not trusted" if files or filters_of(workspace) else "nothing to trust"


def is_trusted(workspace: Path, folders: Folders) -> bool:
    return trust_status(workspace, folders) == "trusted"


def load_as_trusted(workspace: Path, overrides: Sequence[str] = ()) -> LoadedSettings:
    """Includes the workspace's own settings if it is trusted. Raises `UsageError` for `overrides`."""
    folders = user_folders()
    return load(folders, workspace, is_trusted(workspace, folders), overrides)


def trust_scope(workspace: Path) -> tuple[TrustedWorkspace, Entries]:
    found = find_git_folder(str(workspace))
    files, fingerprint = files_of(workspace), found.fingerprint if found else ""
    return TrustedWorkspace(_resolved(workspace), files, fingerprint), found.filters if found else ()


def trust(workspace: Path, folders: Folders, seen: TrustedWorkspace | None = None) -> TrustedWorkspace:
    """Trusts the folder as it was when `seen`, or as it is; later changes are not trusted. Raises
    SettingsError if the decision cannot be stored.
    """
    entry = seen or trust_scope(workspace)[0]
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
    entry = entry_of(workspace, folders) if is_trusted(workspace, folders) else None
    return entry.filters if entry else ""


def fingerprint(workspace: Path) -> str:
    """Of the repository's current filters; "" without a repository."""
    found = find_git_folder(str(workspace))
    return found.fingerprint if found else ""


def filters_of(workspace: Path) -> Entries:
    found = find_git_folder(str(workspace))
    return found.filters if found else ()


def revoke(workspace: Path, folders: Folders) -> bool:
    """Returns False if there was none. Raises SettingsError if the decision cannot be stored."""
    path = _resolved(workspace)
    entries = trusted(folders)
    left = tuple(entry for entry in entries if entry.path != path)
    if len(left) == len(entries):
        return False
    _write(folders, left)
    return True


def trusted(folders: Folders) -> tuple[TrustedWorkspace, ...]:
    """Oldest first; none if the store is unreadable."""
    try:
        return msgspec.json.decode(read_small(folders.data / STORE), type=_Store).workspaces
    except (OSError, msgspec.DecodeError, RecursionError):
        return ()


def files_of(workspace: Path) -> dict[str, str]:
    """SHA-256 by path; empty if the folder holds links or devices, which cannot be trusted."""
    found: dict[str, str] = {}
    for path in _walk(workspace / WORKSPACE_FOLDER):
        name = path.relative_to(workspace).as_posix()
        try:
            digest = hashlib.sha256(read_beneath(workspace, *path.relative_to(workspace).parts)).hexdigest()
        except OSError:
            digest = ""
        found[name] = digest
        if len(found) > MAX_FILES:
            break
    return dict(sorted(found.items()))


def _walk(folder: Path) -> Iterator[Path]:
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


def entry_of(workspace: Path, folders: Folders) -> TrustedWorkspace | None:
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
            "set TUI_AGENT_HOME to a writable folder",
        ) from None
