"""System calls that fail, or at which the process dies: every one that changes the disk, counted."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

CHANGING = (
    "open",
    "write",
    "fsync",
    "rename",
    "replace",
    "link",
    "unlink",
    "mkdir",
    "rmdir",
    "fchmod",
    "fchown",
)


@contextmanager
def before_each_call(
    act: Callable[[int, str], None], calls: tuple[str, ...] = CHANGING
) -> Generator[list[str]]:
    """Call `act(number, name)` before each system call that may change the disk; gives the names so far."""
    made: list[str] = []

    def watched(name: str, real: Callable) -> Callable:
        def call(*args: object, **named: object) -> object:
            made.append(name)
            act(len(made), name)
            # A killed process needs no disk that was really flushed, and the suite no waiting for it.
            return None if name == "fsync" else real(*args, **named)

        return call

    patches = [patch.object(os, name, watched(name, getattr(os, name))) for name in calls]
    for each in patches:
        each.start()
    try:
        yield made
    finally:
        for each in patches:
            each.stop()


def killed_at(number: int, work: Callable[[], object]) -> bool:
    """Do the work in a child that is killed before its system call number `number`; False if it got through."""
    child = os.fork()
    if child == 0:
        try:
            with before_each_call(
                lambda at, _: os.kill(os.getpid(), signal.SIGKILL) if at == number else None
            ):
                work()
        except BaseException:
            os._exit(1)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return True
    assert os.WEXITSTATUS(status) == 0, "the work failed by itself"
    return False


def failing_at(number: int, error: int) -> Callable[[int, str], None]:
    """An `act` that makes call `number` fail with an error code."""

    def act(at: int, name: str) -> None:
        if at == number:
            raise OSError(error, os.strerror(error))

    return act


def failing_on(failing: str, error: int) -> Callable[[int, str], None]:
    """An `act` that makes every call of a name fail with an error code."""

    def act(at: int, name: str) -> None:
        if name == failing:
            raise OSError(error, os.strerror(error))

    return act


def tree(folder: Path) -> dict[str, bytes | str | None]:
    """Everything below a folder: contents of files, targets of links, None for folders."""
    found: dict[str, bytes | str | None] = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.is_symlink():
            found[name] = os.readlink(path)
        else:
            found[name] = None if path.is_dir() else path.read_bytes()
    return found
