"""Removing a folder with all that is in it, and nothing that a link in it points at."""

from __future__ import annotations

import os
import shutil


def remove_folder(folder: str) -> None:
    """Remove it, also where folders in it are closed to us; a link is removed itself. Nothing there is no error.

    Raises OSError for what cannot be removed.
    """
    if os.path.islink(folder) or os.path.isfile(folder):
        os.unlink(folder)
        return
    try:
        shutil.rmtree(folder)
    except FileNotFoundError:
        return
    except PermissionError:
        _open_up(folder)
        shutil.rmtree(folder)


def _open_up(folder: str) -> None:
    """Give ourselves the right to every folder in it, each before it is looked into."""
    os.chmod(folder, 0o700)
    for inner, names, _ in os.walk(folder):
        for name in names:
            path = os.path.join(inner, name)
            if not os.path.islink(path):
                os.chmod(path, 0o700)
