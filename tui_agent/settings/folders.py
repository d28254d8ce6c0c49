"""The folders that belong to the user: configuration, data (sessions, trust) and cache."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

#: Puts `config/`, `data/` and `cache/` under one folder.
HOME_VARIABLE = "TUI_AGENT_HOME"
_NAME = "tui-agent"


class Folders(Struct, frozen=True):
    """Absolute paths; none of them need exist."""

    config: Path
    data: Path
    cache: Path


def user_folders(environ: Mapping[str, str] | None = None) -> Folders:
    """The user's folders: under `TUI_AGENT_HOME`, else the platform's own (XDG on Linux)."""
    home = (os.environ if environ is None else environ).get(HOME_VARIABLE, "")
    if home:
        root = Path(os.path.abspath(os.path.expanduser(home)))
        return Folders(root / "config", root / "data", root / "cache")
    from platformdirs import PlatformDirs

    dirs = PlatformDirs(_NAME, appauthor=False)
    return Folders(dirs.user_config_path, dirs.user_data_path, dirs.user_cache_path)


def make_private(folder: Path) -> None:
    """Make the folder, and those above it that are missing, for this user alone (0700). Raises OSError."""
    missing = [folder, *folder.parents]
    for path in reversed([path for path in missing if not path.exists()]):
        path.mkdir(mode=0o700, exist_ok=True)


def why_not_writable(folder: Path) -> str:
    """Why nothing can be kept in this folder, as one sentence; empty where it can. Makes the folder."""
    try:
        make_private(folder)
        with tempfile.NamedTemporaryFile(dir=folder, prefix=".writable-"):
            return ""
    except OSError as error:
        reason = error.strerror or str(error)
        return f"{folder} cannot be written ({reason.lower()}): set {HOME_VARIABLE} to a folder that can"
