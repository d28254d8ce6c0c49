"""The user's git settings that apply to a repository. Runs in the child.

git itself is queried, because it knows the locations and evaluates includes. It sees an empty repository,
so the repository's configuration is not read, except for remote addresses as conditions of includes.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Final

from tui_agent.files.git_folder import Entries, GitFolder, format_config
from tui_agent.git.process import run_git, temporary_folder

_SECONDS: Final = 10.0
#: Variables that determine the locations of settings; git reports the files it read.
_WHERE: Final = ("HOME", "XDG_CONFIG_HOME", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM")
#: Settings with a file path, and their default file names.
_FILES: Final = {"core.excludesfile": "ignore", "core.attributesfile": "attributes"}
_MOST_ANSWERS: Final = 64

Stamps = dict[str, tuple[int, ...]]
#: Cached results, valid while the possible source files are unchanged.
_answers: Final[dict[object, tuple[Stamps, Entries]]] = {}


def persons_settings(found: GitFolder) -> Entries:
    """Keys and values in order of increasing precedence; file paths are absolute.

    Raises ChildFailed if git does not respond.
    """
    where = {key: os.environ[key] for key in _WHERE if key in os.environ}
    about = (found, *sorted(where.items()))
    kept = _answers.get(about)
    if kept is not None and kept[0] == _stamps(kept[0]):
        return kept[1]
    files, entries = _ask(found, where)
    if len(_answers) >= _MOST_ANSWERS:
        _answers.clear()
    own = (os.path.expanduser("~/.gitconfig"), os.path.join(_folder(where), "git", "config"))
    named = (where.get("GIT_CONFIG_GLOBAL", ""), where.get("GIT_CONFIG_SYSTEM", "/etc/gitconfig"))
    _answers[about] = (_stamps((*((*own, *filter(None, named))), *files)), entries)
    return entries


def _ask(found: GitFolder, where: dict[str, str]) -> tuple[list[str], Entries]:
    addresses = tuple((k, v) for k, v in found.entries if k.startswith("remote.") and k.endswith(".url"))
    with temporary_folder() as shared:
        for name in ("objects", "refs"):
            os.mkdir(os.path.join(shared, name))
        with open(os.path.join(shared, "config"), "wb") as file:
            file.write(format_config((("core.bare", "false"), *addresses)))
        variables = {**dict.fromkeys(_WHERE), **where, "GIT_DIR": found.git_dir, "GIT_COMMON_DIR": shared}
        command = ("config", "--list", "--includes", "--show-scope", "--show-origin", "-z")
        told = run_git(found.work_tree, command, variables, seconds=_SECONDS)
    words = os.fsdecode(told.out).split("\0")
    files, entries = [], []
    for scope, origin, setting in zip(words[::3], words[1::3], words[2::3], strict=False):
        if scope not in ("system", "global"):
            continue
        files.append(origin.removeprefix("file:"))
        key, marker, value = setting.partition("\n")
        entries.append((key, value if marker else "true"))
    others = (entry for entry in entries if entry[0] not in _FILES)
    settings = dict(entries)
    named = (
        (key, os.path.expanduser(settings.get(key) or os.path.join(_folder(where), "git", name)))
        for key, name in _FILES.items()
    )
    named_files = tuple((key, path) for key, path in named if os.path.isabs(path) and os.path.isfile(path))
    return files, (*others, *named_files)


def _folder(where: dict[str, str]) -> str:
    return where.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")


def _stamps(paths: Iterable[str]) -> Stamps:
    return {path: _stamp(path) for path in paths}


def _stamp(path: str) -> tuple[int, ...]:
    try:
        status = os.stat(path)
    except OSError:
        return ()
    return (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)
