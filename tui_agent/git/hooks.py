"""Commit hooks of a repository, run only at the user's request. Runs in the child."""

from __future__ import annotations

import hashlib
import os
from typing import Final

from tui_agent.files.git_folder import read_regular
from tui_agent.git.repository import opened
from tui_agent.git.user_config import persons_settings

_AROUND_A_COMMIT: Final = (
    *("pre-commit", "prepare-commit-msg", "commit-msg", "post-commit"),
    *("reference-transaction", "post-index-change"),
)
#: Larger hooks, in bytes, are identified by size and time.
_MOST: Final = 8 << 20


def hooks_folder(root: str) -> str:
    """The configured hooks folder of the repository, otherwise the user's; "" without a repository."""
    found = opened(root)
    if found is None:
        return ""
    settings = dict((*persons_settings(found), *found.entries))
    named = os.path.expanduser(settings.get("core.hookspath", ""))
    return os.path.join(found.work_tree, named) if named else os.path.join(found.common_dir, "hooks")


def find_hooks(root: str) -> dict[str, str]:
    folder = hooks_folder(root)
    places = {name: os.path.join(folder, name) for name in _AROUND_A_COMMIT} if folder else {}
    return {
        name: _content(place)
        for name, place in places.items()
        if os.path.isfile(place) and os.access(place, os.X_OK)
    }


def _content(place: str) -> str:
    try:
        return hashlib.md5(read_regular(place, _MOST), usedforsecurity=False).hexdigest()
    except OSError:
        status = os.stat(place)
        return f"{status.st_size} {status.st_mtime_ns}"
