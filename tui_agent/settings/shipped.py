"""Where the files lie that ship with the program: `config/` and `themes/`."""

from __future__ import annotations

from pathlib import Path

from tui_agent.errors import SettingsError

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
