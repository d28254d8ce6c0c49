"""The user's folders (configuration, data, cache, state) and the folders shipped with the program."""

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
#: Bytes of disk space for a new session.
ROOM = 160 * 1024


class Folders(Struct, frozen=True):
    config: Path
    data: Path
    cache: Path
    state: Path


def user_folders(environ: Mapping[str, str] | None = None) -> Folders:
    """Returns folders under `TUI_AGENT_HOME` if set, otherwise the platform's defaults (XDG on Linux)."""
    home = (os.environ if environ is None else environ).get(HOME_VARIABLE, "")
    if home:
        root = Path(os.path.abspath(os.path.expanduser(home)))
        return Folders(root / "config", root / "data", root / "cache", root / "state")
    from platformdirs import PlatformDirs

    dirs = PlatformDirs(_NAME, appauthor=False)
    return Folders(dirs.user_config_path, dirs.user_data_path, dirs.user_cache_path, dirs.user_state_path)


def close_to_others(folders: Folders) -> None:
    """Removes access rights that older versions may have left."""
    for folder in (folders.config, folders.data, folders.cache, folders.state):
        if folder.is_dir():
            try:
                make_private(folder)
            except OSError:
                pass


def why_not_writable(folder: Path) -> str:
    """Creates `folder`. Returns the reason as a sentence, or "".

    Writes as many bytes as a new session needs, because an empty file can often be created on a full
    disk.
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
            f"{folder} cannot be written ({reason.lower()}): {room}set {HOME_VARIABLE} to a writable folder"
        )


_PACKAGE = Path(__file__).resolve().parent.parent


def config_folder() -> Path:
    """In the installed package, or at the top of a checkout."""
    return _shipped("config")


def themes_folder() -> Path:
    return _shipped("themes")


def _shipped(name: str) -> Path:
    for folder in (_PACKAGE / name, _PACKAGE.parent / name):
        if folder.is_dir():
            return folder
    raise SettingsError(f"The installation has no {name}/ folder", "install tui-agent again")
