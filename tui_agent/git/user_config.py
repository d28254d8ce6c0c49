"""The person's own git settings, for a repository. Lives in the child.

git itself is asked, since it knows where they lie and which includes apply. It is shown an empty repository in the
place of the real one: nothing of that one's configuration is read, but for addresses that an include may depend on.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Final

from tui_agent.files.git_folder import Entries, GitFolder, format_config
from tui_agent.git.process import run_git, temporary_folder

_SECONDS: Final = 10.0
#: Where git looks for settings; which files it read it says itself.
_WHERE: Final = ("HOME", "XDG_CONFIG_HOME", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM")
#: Settings that name a file, and what that file is called where they name none.
_FILES: Final = {"core.excludesfile": "ignore", "core.attributesfile": "attributes"}
_MOST_ANSWERS: Final = 64

Stamps = dict[str, tuple[int, ...]]
#: Answers, each as good as long as no file changed that it may come from.
_answers: Final[dict[object, tuple[Stamps, Entries]]] = {}


def persons_settings(found: GitFolder) -> Entries:
    """Keys and values in the order in which they count; paths of files are absolute.

    Raises ChildFailed where git does not answer.
    """
    where = {key: os.environ[key] for key in _WHERE if key in os.environ}
    about = (found, *sorted(where.items()))
    kept = _answers.get(about)
    if kept is not None and kept[0] == _stamps(kept[0]):
        return kept[1]
    files, entries = _ask(found, where)
    if len(_answers) >= _MOST_ANSWERS:
        _answers.clear()
    _answers[about] = (_stamps((*_places(where), *files)), entries)
    return entries


def _ask(found: GitFolder, where: dict[str, str]) -> tuple[list[str], Entries]:
    """The files that were read, and what they say."""
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
    return files, (*others, *_named_files(dict(entries), where))


def _named_files(settings: dict[str, str], where: dict[str, str]) -> Entries:
    """The person's own ignore and attributes files, where git would look for them."""
    named = (
        (key, os.path.expanduser(settings.get(key) or os.path.join(_folder(where), "git", name)))
        for key, name in _FILES.items()
    )
    return tuple((key, path) for key, path in named if os.path.isabs(path) and os.path.isfile(path))


def _places(where: dict[str, str]) -> tuple[str, ...]:
    """Where a file of settings may come to be."""
    own = (os.path.expanduser("~/.gitconfig"), os.path.join(_folder(where), "git", "config"))
    named = (where.get("GIT_CONFIG_GLOBAL", ""), where.get("GIT_CONFIG_SYSTEM", "/etc/gitconfig"))
    return (*own, *filter(None, named))


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
