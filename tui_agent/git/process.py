"""Runs one git process with a minimal environment and a time limit.

The workspace child starts it through GitPython (see `git.repository`), others through the standard
library: importing GitPython would block the interface.
"""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import IO, Final

from msgspec import Struct

from tui_agent.errors import ChildFailed
from tui_agent.processes.environment import search_path

NOT_FOUND: Final = 127
_KEPT: Final = frozenset({"LANG", "LANGUAGE", "TMPDIR", "TZ"})
_VARIABLES: Final = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_SYSTEM": os.devnull,
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_ALLOW_PROTOCOL": "",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ASKPASS": "",
    "GIT_EDITOR": ":",
    "GIT_TEMPLATE_DIR": "",
    "GIT_LFS_SKIP_SMUDGE": "1",
}
#: git opens these files, of any type, in any folder of a work tree.
_OPENED_BY_GIT: Final = frozenset({".gitignore", ".gitattributes", ".gitmodules"})
#: Delay before searching for pipes that block git, and the search's time limit, in seconds.
_LOOK: Final = 0.5
_LOOKING: Final = 2.0
#: Seconds to wait for output of git's children after killing git.
_PATIENCE: Final = 1.0


class Result(Struct, frozen=True):
    status: int
    out: bytes
    err: bytes

    @property
    def ok(self) -> bool:
        return self.status == 0

    @property
    def text(self) -> str:
        return self.out.decode(errors="replace").strip()

    @property
    def names(self) -> list[bytes]:
        """Of output with `-z`."""
        return [name for name in self.out.split(b"\0") if name]


def listed(paths: Iterable[str]) -> bytes:
    """Standard input for `-z --stdin`."""
    return b"".join(os.fsencode(path) + b"\0" for path in paths)


#: Starts a command with folder, environment and standard input. Raises OSError.
Start = Callable[[list[str], str, dict[str, str], IO[bytes]], "subprocess.Popen[bytes]"]


def started(
    command: list[str], folder: str, environment: dict[str, str], stdin: IO[bytes]
) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        command, cwd=folder, env=environment, stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


def run_git(
    root: str,
    arguments: Sequence[str],
    variables: Mapping[str, str | None],
    *,
    feed: bytes | None = None,
    seconds: float,
    trusted: bool = False,
    start: Start = started,
) -> Result:
    """Runs git with these variables (None unsets one). `feed` is standard input; `trusted` allows programs
    from the folder. Raises ChildFailed after `seconds`; status `NOT_FOUND` if git cannot be started.
    """
    kept = {key: value for key, value in os.environ.items() if key in _KEPT or key.startswith("LC_")}
    home = {key: os.environ[key] for key in ("HOME", "XDG_CONFIG_HOME") if trusted and key in os.environ}
    told = {**kept, **home, "PATH": search_path(trusted=trusted), **_VARIABLES, **variables}
    environment = {key: value for key, value in told.items() if value is not None}
    program = find_git()
    if not program:
        return Result(NOT_FOUND, b"", b"git is not installed")
    try:
        with tempfile.TemporaryFile() if feed else open(os.devnull, "rb") as file:
            if feed:
                file.write(feed)
                file.seek(0)
            process = start([program, "--no-pager", *arguments], root, environment, file)
    except OSError as error:
        return Result(NOT_FOUND, b"", str(error).encode(errors="replace"))
    with process:
        pipes = [folder for key in ("GIT_DIR", "GIT_OBJECT_DIRECTORY") if (folder := variables.get(key))]
        deadline, wait = time.monotonic() + seconds, _LOOK
        while (left := deadline - time.monotonic()) > 0:
            try:
                out, err = process.communicate(timeout=min(wait, left))
            except subprocess.TimeoutExpired:
                began = time.monotonic()
                _empty_pipes(root, pipes)
                wait = max(_LOOK, 4 * (time.monotonic() - began))  # limits the search in a large tree
                continue
            return Result(process.returncode, out, err)
        process.kill()
        with suppress(subprocess.TimeoutExpired):
            process.communicate(timeout=_PATIENCE)
        raise ChildFailed(
            f"git did not answer within {seconds:g} s in {root}", "look at that repository with git itself"
        )


def find_git() -> str:
    return shutil.which("git", path=search_path()) or ""


def _empty_pipes(root: str, git_folders: Sequence[str]) -> None:
    """Unblocks git if it reads a named pipe instead of a file: opening and closing the pipe ends the read."""
    deadline = time.monotonic() + _LOOKING
    for top in (root, *git_folders):
        for folder, folders, files in os.walk(top):
            if top == root and ".git" in folders:
                folders.remove(".git")
            names = files if top != root else _OPENED_BY_GIT.intersection(files)
            for name in names:
                path = os.path.join(folder, name)
                with suppress(OSError):
                    if stat.S_ISFIFO(os.lstat(path).st_mode):
                        os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC))
            if time.monotonic() > deadline:
                return
