"""Trusted extension files of the workspace, each by the hash of its content.

Trust covers a file only while it is exactly the trusted one.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from tui_agent.errors import SettingsError
from tui_agent.extensions.files import SHARED, Unusable, digest_of, entries, places, read_text
from tui_agent.files.private import write_private
from tui_agent.settings import trust
from tui_agent.settings.files import Unreadable, read_json, read_small, reason_of
from tui_agent.settings.folders import Folders

#: Bytes of a skill's file; extension files of a workspace.
MAX_FILE, MAX_FILES = 20_000_000, 2_000
SERVER_FILES = (".mcp.json",)
#: Files that may hold hooks, and the folder of their scripts.
HOOK_FILES = tuple(f"{name}/settings{local}.json" for name in SHARED for local in ("", ".local"))
SCRIPTS = tuple(f"{name}/hooks" for name in SHARED)


def files_of(workspace: Path, folders: Folders) -> dict[str, str]:
    """Returns digests by relative path; "" for a file that cannot be trusted. Blocking."""
    root = Path(os.path.realpath(workspace))
    found: dict[str, str] = {}
    wanted = [
        *(
            place.folder
            for kind in ("skills", "commands", "agents")
            for place in places(kind, folders, workspace)
            if place.origin == "project"
        ),
        *(root / name for name in SCRIPTS if (root / name).is_dir()),
    ]
    for folder in wanted:
        for path in entries(folder):
            if len(found) >= MAX_FILES:
                break
            found[path.relative_to(root).as_posix()] = digest_of(path, root, MAX_FILE)
    for path in (*hook_files(root), *(root / name for name in SERVER_FILES)):
        if os.path.lexists(path):
            found[path.relative_to(root).as_posix()] = _digest(path, root)
    return dict(sorted(found.items()))


def hooks_of(path: Path, root: Path) -> dict[str, Any]:
    """The hooks of a file of settings by event. Raises Unreadable and Unusable. Blocking."""
    value = read_json(read_text(path, root))
    table = value.get("hooks") if isinstance(value, dict) else None
    return table if isinstance(table, dict) and value.get("disableAllHooks") is not True else {}


def hook_files(root: Path) -> list[Path]:
    """A workspace's files of settings that have hooks or cannot be read. Blocking."""
    found = [root / name for name in HOOK_FILES if os.path.lexists(root / name)]
    return [path for path in found if _digest(path, root) != _NONE]


def _digest(path: Path, root: Path) -> str:
    """Of the hooks alone for a file of settings, which other agents change often."""
    if path.relative_to(root).as_posix() in HOOK_FILES:
        with suppress(Unreadable, Unusable):
            return hashlib.sha256(json.dumps(hooks_of(path, root), sort_keys=True).encode()).hexdigest()
    return digest_of(path, root, MAX_FILE)


#: The digest of a file without hooks.
_NONE = hashlib.sha256(b"{}").hexdigest()


class TrustedFiles:
    """All of the workspace's extension files if `everything` is trusted."""

    def __init__(self, workspace: Path, folders: Folders, *, everything: bool = False) -> None:
        self.root = Path(os.path.realpath(workspace))
        self._everything = everything
        entry = trust.entry_of(self.root, folders)
        self._digests = entry.extensions if entry else {}

    def holds(self, path: Path) -> bool:
        """Blocking."""
        if self._everything:
            return True
        try:
            known = self._digests.get(path.relative_to(self.root).as_posix(), "")
        except ValueError:
            return False
        return bool(known) and _digest(path, self.root) == known

    def holds_bytes(self, path: Path, digest: str) -> bool:
        """Like `holds`, for content that was read already."""
        name = path.relative_to(self.root).as_posix()
        return self._everything or self._digests.get(name) == digest


def brought(workspace: Path, folders: Folders) -> trust.TrustedWorkspace:
    """Returns all that trust in a workspace would cover. Blocking."""
    entry, _ = trust.trust_scope(workspace)
    return replace(entry, extensions=files_of(workspace, folders))


def standing(workspace: Path, folders: Folders) -> trust.Standing:
    """Blocking."""
    own, files = trust.trust_status(workspace, folders), files_of(workspace, folders)
    entry = trust.entry_of(workspace, folders)
    if entry is None:
        return "not trusted" if files else own
    if own == "trusted" and entry.extensions != files:
        return "changed"
    return own


class Switches:
    """Switched-on entries of one kind, in a file of the data folder, by place and name. Blocking."""

    def __init__(self, folders: Folders, file: str) -> None:
        self._path = folders.data / file

    def of(self, place: str) -> Mapping[str, str]:
        """Returns fingerprints by name; none if the file is unreadable."""
        return self._read().get(place, {})

    def turn(self, place: str, name: str, fingerprint: str) -> None:
        """Switches an entry on, or off with "". Raises SettingsError if the decision cannot be stored."""
        stored = self._read()
        mine = {other: value for other, value in stored.get(place, {}).items() if other != name}
        stored[place] = {**mine, name: fingerprint} if fingerprint else mine
        try:
            write_private(self._path, msgspec.json.format(msgspec.json.encode(stored)))
        except OSError as error:
            raise SettingsError(
                f"{self._path} cannot be written ({reason_of(error)})",
                "set TUI_AGENT_HOME to a folder that can",
            ) from None

    def _read(self) -> dict[str, dict[str, str]]:
        try:
            return msgspec.json.decode(read_small(self._path), type=dict[str, dict[str, str]])
        except (OSError, msgspec.DecodeError):
            return {}
