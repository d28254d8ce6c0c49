"""The folders that belong to the user (configuration, data, cache, state), and those that ship with the program."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from tui_agent.errors import SettingsError
from tui_agent.files.private import make_private

#: Puts `config/`, `data/`, `cache/` and `state/` under one folder.
HOME_VARIABLE = "TUI_AGENT_HOME"
_NAME = "tui-agent"
#: What a new session takes at least, in bytes.
ROOM = 160 * 1024


class Folders(Struct, frozen=True):
    """Absolute paths; none of them need exist."""

    config: Path
    data: Path
    cache: Path
    state: Path


def user_folders(environ: Mapping[str, str] | None = None) -> Folders:
    """The user's folders: under `TUI_AGENT_HOME`, else the platform's own (XDG on Linux)."""
    home = (os.environ if environ is None else environ).get(HOME_VARIABLE, "")
    if home:
        root = Path(os.path.abspath(os.path.expanduser(home)))
        return Folders(root / "config", root / "data", root / "cache", root / "state")
    from platformdirs import PlatformDirs

    dirs = PlatformDirs(_NAME, appauthor=False)
    return Folders(dirs.user_config_path, dirs.user_data_path, dirs.user_cache_path, dirs.user_state_path)


def close_to_others(folders: Folders) -> None:
    """Take the rights that others have to these folders, where an older version left them any."""
    for folder in (folders.config, folders.data, folders.cache, folders.state):
        if folder.is_dir():
            try:
                make_private(folder)
            except OSError:
                pass  # another user's, or on a file system without rights


def why_not_writable(folder: Path) -> str:
    """Why nothing can be kept in this folder, as one sentence; empty where it can. Makes the folder.

    A name can often be made on a full disk: what is tried is as much as a new session needs.
    """
    try:
        make_private(folder)
        with tempfile.TemporaryFile(dir=folder, prefix=".writable-") as file:
            file.write(bytes(ROOM))
            file.flush()
            return ""
    except OSError as error:
        reason = error.strerror or str(error)
        room = "free some space, or " if error.errno in (errno.ENOSPC, errno.EDQUOT) else ""
        return (
            f"{folder} cannot be written ({reason.lower()}): {room}set {HOME_VARIABLE} to a folder that can"
        )


_PACKAGE = Path(__file__).resolve().parent.parent


def config_folder() -> Path:
    """The shipped `config/`: in the package when installed, at the top of the repository in a checkout."""
    return _shipped("config")


def themes_folder() -> Path:
    """The shipped `themes/`."""
    return _shipped("themes")


def _shipped(name: str) -> Path:
    for folder in (_PACKAGE / name, _PACKAGE.parent / name):
        if folder.is_dir():
            return folder
    raise SettingsError(f"The installation has no {name}/ folder", "install tui-agent again")
