"""Finds and reads a folder's repository without running git and without trusting its contents.

Git's configuration decides which programs git runs, so this follows no includes, opens no pipes, rejects git
folders of other work trees, and only parses configuration as text.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
from collections.abc import Iterable
from typing import Final

from msgspec import Struct

from tui_agent.files.lazy_regex import late
from tui_agent.files.numbers import whole_number
from tui_agent.files.operating_system import home_folder, read_start

#: Fingerprint of the repository whose filters the user trusted.
TRUSTED_FILTERS: Final = "TUI_AGENT_TRUSTED_FILTERS"
MOST_CONFIG: Final = 1 << 20
_MOST_POINTER: Final = 1 << 14
_OWN: Final = ("HEAD", "index", "config.worktree")
_SHARED: Final = (
    *("config", "objects", "refs", "packed-refs", "shallow", "logs", "worktrees", "reftable", "lfs"),
    *("info", "info/exclude", "info/attributes", "objects/info", "objects/info/alternates", "objects/pack"),
)
_EXTENSIONS: Final = frozenset(
    {"noop", "preciousobjects", "partialclone", "worktreeconfig", "objectformat", "compatobjectformat"}
    | {"refstorage", "relativeworktrees"}
)
_FILTER: Final = late(r"filter\..+\.(clean|smudge|process|required)", re.DOTALL)
_SECTION: Final = late(r'\[[ \t]*([A-Za-z0-9.-]+)(?:[ \t]+"((?:[^"\\\n]|\\[^\n])*)")?[ \t]*\]')
_NAME: Final = late(r"([A-Za-z][A-Za-z0-9-]*)[ \t]*(=?)[ \t]*")
_ESCAPES: Final = {"n": "\n", "t": "\t", "b": "\b", '"': '"', "\\": "\\"}

Entries = tuple[tuple[str, str], ...]


class GitFolder(Struct, frozen=True):
    """A repository as seen from its work tree. Paths are absolute and resolved.

    `git_dir` is the work tree's own folder, `common_dir` that of all linked work trees. `head` is the
    text of HEAD. `entries` are the keys and values of its own configuration, in order, without includes.
    `is_foreign`: another user owns it.
    """

    work_tree: str
    git_dir: str
    common_dir: str
    head: str
    entries: Entries
    is_foreign: bool = False

    @property
    def branch(self) -> str:
        """ "" with a detached HEAD."""
        return self.head.removeprefix("ref: refs/heads/") if self.head.startswith("ref: refs/heads/") else ""

    @property
    def filters(self) -> Entries:
        return tuple((key, value) for key, value in self.entries if _FILTER.fullmatch(key))

    @property
    def fingerprint(self) -> str:
        """Identifies this repository with these filter commands, for the user's trust."""
        told = json.dumps([self.common_dir, self.filters]).encode(errors="surrogatepass")
        return hashlib.sha256(told).hexdigest()


def find_git_folder(folder: str) -> GitFolder | None:
    """Returns the repository whose work tree contains `folder`; None if git finds none or an invalid one. As
    in git, an invalid inner repository hides an outer one.
    """
    here = os.path.realpath(folder)
    try:
        device = os.stat(here).st_dev
        at = here
        while os.stat(at).st_dev == device:
            if os.path.lexists(os.path.join(at, ".git")):
                found = _open(at)
                return None if found is None or _is_below(here, found.git_dir) else found
            if at == os.path.dirname(at):
                break
            at = os.path.dirname(at)
    except (OSError, ValueError):
        pass
    return None


def repository_around(folder: str) -> str:
    """Returns "" if the folder is its top, if there is none, or if it also contains the home."""
    found = find_git_folder(folder)
    if found is None or found.work_tree in ("/", folder):
        return ""
    return "" if f"{home_folder()}/".startswith(f"{found.work_tree}/") else found.work_tree


def git_folder_elsewhere(folder: str) -> str:
    """Returns the outside repository that the nearest `.git` file names but that does not name this work
    tree, which is therefore rejected; otherwise "".
    """
    at = os.path.realpath(folder)
    while not os.path.lexists(os.path.join(at, ".git")):
        if at == os.path.dirname(at):
            return ""
        at = os.path.dirname(at)
    try:
        named = _named(at)
        return named if named and not _is_below(named, at) and _open(at) is None else ""
    except (OSError, ValueError):
        return ""


def _named(work_tree: str) -> str:
    pointer = os.path.join(work_tree, ".git")
    if not stat.S_ISREG(os.lstat(pointer).st_mode):
        return os.path.realpath(pointer)
    told = _pointer(pointer)
    begin = "gitdir: "
    return (
        os.path.realpath(os.path.join(work_tree, told.removeprefix(begin))) if told.startswith(begin) else ""
    )


def read_regular(path: str, most: int) -> bytes:
    """Raises OSError for other files; never blocks."""
    data = read_start(path, most + 1)
    if len(data) > most:
        raise OSError(f"{path} is too large")
    return data


def parse_config(text: str) -> Entries:
    """Returns keys (`section.subsection.name`, first and last part in lower case) and values in git's
    format.

    A key without a value is true. Raises ValueError.
    """
    found: list[tuple[str, str]] = []
    section, at = "", 1 if text.startswith("\ufeff") else 0
    while at < len(text):
        sign = text[at]
        if sign in " \t\r\n\f\v":
            at += 1
        elif sign in "#;":
            at = _line_end(text, at)
        elif sign == "[":
            head = _SECTION.match(text, at)
            if head is None:
                raise ValueError("a section that cannot be read")
            inner = re.sub(r"\\(.)", r"\1", head[2]) if head[2] is not None else None
            section = head[1].lower() + ("." + inner if inner is not None else "") + "."
            at = head.end()
        else:
            name = _NAME.match(text, at)
            if name is None or not section:
                raise ValueError("a line that cannot be read")
            value, at = _value(text, name.end()) if name[2] else ("true", _line_end(text, name.end()))
            if not name[2] and text[name.end() : at].strip():
                raise ValueError("a line that cannot be read")
            found.append((section + name[1].lower(), value))
    return tuple(found)


def is_true(value: str) -> bool:
    return value.lower() in ("true", "yes", "on", "1")


def format_config(entries: Iterable[tuple[str, str]]) -> bytes:
    lines = []
    for key, value in entries:
        section, _, rest = key.partition(".")
        inner, _, name = rest.rpartition(".")
        head = f"{section} {_quoted(inner)}" if inner else section
        lines.append(f"[{head}]\n\t{name} = {_quoted(value)}\n")
    return os.fsencode("".join(lines))


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def _value(text: str, at: int) -> tuple[str, int]:
    parts: list[str] = []
    kept, quoted = 0, False
    while at < len(text) and text[at] != "\n":
        sign = text[at]
        at += 1
        if sign == "\\":
            if text[at : at + 1] in ("\n", "") or text[at : at + 2] == "\r\n":
                at += 2 if text[at : at + 1] == "\r" else 1
                continue
            if text[at] not in _ESCAPES:
                raise ValueError("an escape that does not exist")
            parts.append(_ESCAPES[text[at]])
            at += 1
            kept = len(parts)
        elif sign == '"':
            quoted = not quoted
            kept = len(parts)
        elif sign in "#;" and not quoted:
            at = _line_end(text, at)
            break
        elif quoted or sign not in " \t\r\v\f":
            parts.append(sign)
            kept = len(parts)
        elif parts:
            parts.append(sign)
    if quoted:
        raise ValueError("a quote that does not end")
    return "".join(parts[:kept]), at


def _line_end(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end


def _open(work_tree: str) -> GitFolder | None:
    pointer = os.path.join(work_tree, ".git")
    git_dir = _named(work_tree)
    if not git_dir:
        return None
    shared = os.path.join(git_dir, "commondir")
    common_dir = git_dir
    if os.path.lexists(shared):
        common_dir = os.path.realpath(os.path.join(git_dir, _pointer(shared)))
    _check_plain(git_dir, _OWN)
    _check_plain(common_dir, _SHARED)
    entries = _config(os.path.join(common_dir, "config"))
    if is_true(dict(entries).get("extensions.worktreeconfig", "")):
        entries += _config(os.path.join(git_dir, "config.worktree"))
    settings = dict(entries)
    version = settings.get("core.repositoryformatversion", "0")
    extensions = {key.partition(".")[2] for key in settings if key.startswith("extensions.")}
    is_known = version == "0" or (version == "1" and extensions <= _EXTENSIONS)
    if not is_known or not _belongs(git_dir, common_dir, work_tree, settings):
        return None
    head = _pointer(os.path.join(git_dir, "HEAD"))
    if head.startswith("ref: "):
        _check_plain(common_dir, (head.removeprefix("ref: "),))
    if not all(os.path.isdir(os.path.join(common_dir, name)) for name in ("objects", "refs")):
        return None
    owners = {os.lstat(path).st_uid for path in (work_tree, pointer, git_dir)}
    sudo = os.environ.get("SUDO_UID", "")
    own = os.geteuid()
    us = {own, whole_number(sudo, own)} if own == 0 else {own}
    return GitFolder(work_tree, git_dir, common_dir, head, entries, not owners <= us)


def _check_plain(folder: str, names: tuple[str, ...]) -> None:
    for name in names:
        path = os.path.join(folder, name)
        try:
            status = os.lstat(path)
        except (FileNotFoundError, NotADirectoryError):
            continue
        if stat.S_ISLNK(status.st_mode):
            status = os.stat(path)
        if not _is_below(os.path.realpath(path), folder):
            raise OSError(f"{path} leads out of the repository")
        if not (stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)):
            raise OSError(f"{path} is neither a file nor a folder")


def _config(path: str) -> Entries:
    try:
        text = read_regular(path, MOST_CONFIG).decode(errors="surrogateescape")
    except FileNotFoundError:
        return ()
    return parse_config(text)


def _belongs(git_dir: str, common_dir: str, work_tree: str, settings: dict[str, str]) -> bool:
    """A pointer could name any git folder: it must be inside or name the work tree, as linked work trees,
    submodules, and `--separate-git-dir` with `core.worktree` do.
    """
    if git_dir != common_dir:
        back = os.path.join(git_dir, "gitdir")
        if os.path.dirname(git_dir) != os.path.join(common_dir, "worktrees") or not os.path.lexists(back):
            return False
        return os.path.realpath(os.path.join(git_dir, os.path.dirname(_pointer(back)))) == work_tree
    if is_true(settings.get("core.bare", "")):
        return False
    if "core.worktree" in settings:
        return os.path.realpath(os.path.join(git_dir, settings["core.worktree"])) == work_tree
    return git_dir == os.path.join(work_tree, ".git")


def _pointer(path: str) -> str:
    return os.fsdecode(read_regular(path, _MOST_POINTER)).rstrip("\r\n")


def _is_below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")
