"""The repository that a folder is in, found and read without git, and with no trust in what it says.

What git itself would believe decides what git runs: so nothing here follows an include, opens a pipe, takes a git
folder that belongs to another work tree, or reads more of a configuration than its text.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import stat
from collections.abc import Iterable
from typing import Final

from msgspec import Struct

from tui_agent.files.late_expressions import late
from tui_agent.files.numbers import whole_number

#: The variable in which a process is told the fingerprint of the repository whose filters the person trusted.
TRUSTED_FILTERS: Final = "TUI_AGENT_TRUSTED_FILTERS"
#: A configuration of more bytes is nobody's.
MOST_CONFIG: Final = 1 << 20
_MOST_POINTER: Final = 1 << 14
#: What git reads in a git folder and in the one that work trees share; none of it may be a pipe or lead elsewhere.
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
    """A repository as seen from a folder of its work tree; every path is absolute and resolved.

    `git_dir` is the work tree's own, `common_dir` what linked work trees share. `head` is the text of its HEAD.
    `entries` are the keys and values of its own configuration, in order, includes not followed. `is_foreign` says
    that it belongs to another user.
    """

    work_tree: str
    git_dir: str
    common_dir: str
    head: str
    entries: Entries
    is_foreign: bool = False

    @property
    def branch(self) -> str:
        """The name of the branch, "" where HEAD is detached."""
        return self.head.removeprefix("ref: refs/heads/") if self.head.startswith("ref: refs/heads/") else ""

    @property
    def filters(self) -> Entries:
        """The filters that its own configuration defines."""
        return tuple((key, value) for key, value in self.entries if _FILTER.fullmatch(key))

    @property
    def fingerprint(self) -> str:
        """What a person trusts who trusts its filters: this repository with exactly these commands."""
        told = json.dumps([self.common_dir, self.filters]).encode(errors="surrogatepass")
        return hashlib.sha256(told).hexdigest()


def find_git_folder(folder: str) -> GitFolder | None:
    """The repository whose work tree `folder` is in. None where there is none, or one that git would not take.

    A nearer repository that is refused hides one further up, as it does for git.
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
    """The work tree that a folder is a part of; "" where it is its top, is in none, or that holds the home as well."""
    found = find_git_folder(folder)
    if found is None or found.work_tree in ("/", folder):
        return ""
    home = os.path.realpath(os.environ.get("HOME") or "/nonexistent")
    return "" if f"{home}/".startswith(f"{found.work_tree}/") else found.work_tree


def git_folder_elsewhere(folder: str) -> str:
    """The repository that the nearest `.git` points to, outside of its folder, if it does not name that folder as its
    work tree and so is not taken; "" for all else."""
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
    """The git folder that the `.git` of a folder is or points to; "" if it is none. Raises OSError."""
    pointer = os.path.join(work_tree, ".git")
    if not stat.S_ISREG(os.lstat(pointer).st_mode):
        return os.path.realpath(pointer)
    told = _pointer(pointer)
    begin = "gitdir: "
    return (
        os.path.realpath(os.path.join(work_tree, told.removeprefix(begin))) if told.startswith(begin) else ""
    )


def read_regular(path: str, most: int) -> bytes:
    """A regular file of at most `most` bytes. Raises OSError for anything else, and never waits."""
    data = read_start(path, most + 1)
    if len(data) > most:
        raise OSError(f"{path} is too large")
    return data


def read_start(path: str | os.PathLike[str], most: int) -> bytes:
    """The first `most` bytes of a regular file. Raises OSError for anything else, and never waits."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file", os.fspath(path))
        return file.read(most)


def parse_config(text: str) -> Entries:
    """The keys (`section.subsection.name`, the first and last in lower case) and values of git's configuration format.

    A key without a value is true. Raises ValueError where a line cannot be read.
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
            found.append((section + name[1].lower(), value))
    return tuple(found)


def is_true(value: str) -> bool:
    """Whether git takes a value for true."""
    return value.lower() in ("true", "yes", "on", "1")


def format_config(entries: Iterable[tuple[str, str]]) -> bytes:
    """A configuration of these keys and values, for git to read."""
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
    """A value and where it ends: quotes and escapes resolved, comments and spaces at its end left out."""
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
    """The repository that the `.git` of a folder names. Raises OSError or ValueError for one that is broken."""
    pointer = os.path.join(work_tree, ".git")
    git_dir = _named(work_tree)
    if not git_dir:
        return None
    common_dir = _common_dir(git_dir)
    _check_plain(git_dir, _OWN)
    _check_plain(common_dir, _SHARED)
    entries = _entries(git_dir, common_dir)
    if not _belongs(git_dir, common_dir, work_tree, dict(entries)) or not _is_known(dict(entries)):
        return None
    head = _pointer(os.path.join(git_dir, "HEAD"))
    if head.startswith("ref: "):
        _check_plain(common_dir, (head.removeprefix("ref: "),))
    if not all(os.path.isdir(os.path.join(common_dir, name)) for name in ("objects", "refs")):
        return None
    owners = {os.lstat(path).st_uid for path in (work_tree, pointer, git_dir)}
    return GitFolder(work_tree, git_dir, common_dir, head, entries, not owners <= _us())


def _common_dir(git_dir: str) -> str:
    pointer = os.path.join(git_dir, "commondir")
    if not os.path.lexists(pointer):
        return git_dir
    return os.path.realpath(os.path.join(git_dir, _pointer(pointer)))


def _check_plain(folder: str, names: tuple[str, ...]) -> None:
    """Raises OSError if one of these is neither a file nor a folder, or a link that leads out."""
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


def _entries(git_dir: str, common_dir: str) -> Entries:
    entries = _config(os.path.join(common_dir, "config"))
    if is_true(dict(entries).get("extensions.worktreeconfig", "")):
        entries += _config(os.path.join(git_dir, "config.worktree"))
    return entries


def _config(path: str) -> Entries:
    try:
        text = read_regular(path, MOST_CONFIG).decode(errors="surrogateescape")
    except FileNotFoundError:
        return ()
    return parse_config(text)


def _belongs(git_dir: str, common_dir: str, work_tree: str, settings: dict[str, str]) -> bool:
    """Whether this git folder is that of this work tree: a pointer could name any on the machine.

    It is inside, or names the work tree itself: as a linked work tree's and a submodule's do, and one that was made
    with `--separate-git-dir` if `core.worktree` is set in it.
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


def _is_known(settings: dict[str, str]) -> bool:
    """Whether the format of the repository is one that we can describe to git in our own words."""
    version = settings.get("core.repositoryformatversion", "0")
    extensions = {key.partition(".")[2] for key in settings if key.startswith("extensions.")}
    return version == "0" or (version == "1" and extensions <= _EXTENSIONS)


def _pointer(path: str) -> str:
    return os.fsdecode(read_regular(path, _MOST_POINTER)).rstrip("\r\n")


def _is_below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def _us() -> set[int]:
    """Whose repositories are ours: our own, and for a superuser by `sudo` those of who became it."""
    sudo = os.environ.get("SUDO_UID", "")
    own = os.geteuid()
    return {own, whole_number(sudo, own)} if own == 0 else {own}
