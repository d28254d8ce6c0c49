"""Reads and writes small configuration files without following links out of a workspace.

Errors are values: location, description, remedy. Writing a setting leaves every other line unchanged.
"""

from __future__ import annotations

import errno
import json
import os
import re
import stat
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from msgspec import Struct

from tui_agent.errors import FileError
from tui_agent.files.lazy_regex import late

_KEY = re.compile(
    r"""\s*((?:[A-Za-z0-9_-]+|"[^"\n]*"|'[^'\n]*')(?:\s*\.\s*(?:[A-Za-z0-9_-]+|"[^"\n]*"|'[^'\n]*'))*)\s*="""
)
_TABLE = re.compile(r"""\s*\[\[?\s*([^\]\n]+?)\s*\]""")
_LONG_TEXT = re.compile(r'"""(?:\\.|.)*?"""|\'\'\'.*?\'\'\'', re.DOTALL)


class ConfigFault(Struct, frozen=True):
    """`where` names a file, the environment or an option; `line` is 0 if unknown."""

    where: str
    what: str
    remedy: str
    line: int = 0
    key: str = ""

    def __str__(self) -> str:
        place = f"{self.where}, line {self.line}" if self.line else self.where
        return f"{place}: {self.what}: {self.remedy}"


def nearest(word: str, known: Iterable[str]) -> str:
    """Returns the nearest name, or "". Dotted keys also match by their last part."""
    from difflib import get_close_matches

    known = tuple(known)
    close = get_close_matches(word, known, n=1, cutoff=0.7)
    if close:
        return close[0]
    last_parts = {key.rpartition(".")[2]: key for key in known}
    close = get_close_matches(word.rpartition(".")[2], tuple(last_parts), n=1, cutoff=0.8)
    return last_parts[close[0]] if close else ""


def line_of(text: str, key: str) -> int:
    table = ""
    plain = _LONG_TEXT.sub(lambda found: '""' + "\n" * found.group().count("\n"), text)
    for number, line in enumerate(plain.splitlines(), start=1):
        if found := _TABLE.match(line):
            table = _joined(found.group(1))
            if table == key:
                return number
        elif found := _KEY.match(line):
            name = _joined(found.group(1))
            full = f"{table}.{name}" if table else name
            if full == key or key.startswith(f"{full}."):
                return number
    return 0


def _joined(name: str) -> str:
    return ".".join(part.strip().strip("\"'") for part in name.split("."))


MAX_BYTES = 1_048_576
WORKSPACE_FOLDER = ".tui-agent"


def read_small(path: Path, most: int = MAX_BYTES) -> bytes:
    """Reads a regular file of at most `most` bytes. Raises OSError."""
    return _read(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), path, most)


def read_beneath(folder: Path, *parts: str) -> bytes:
    """Rejects symbolic links at every level. Raises OSError."""
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for part in parts[:-1]:
            below = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=opened)
            os.close(opened)
            opened = below
        flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
        return _read(os.open(parts[-1], flags, dir_fd=opened), folder.joinpath(*parts))
    finally:
        os.close(opened)


def read_own(folder: Path, *parts: str) -> bytes:
    """Rejects symbolic links inside a workspace's own folder. Raises OSError."""
    if folder.name == WORKSPACE_FOLDER:
        return read_beneath(folder.parent, folder.name, *parts)
    return read_small(folder.joinpath(*parts))


def reason_of(error: OSError) -> str:
    return (error.strerror or str(error)).lower()


def _read(descriptor: int, path: Path, most: int = MAX_BYTES) -> bytes:
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise OSError(errno.EINVAL, "not a regular file", str(path))
        if found.st_size > most:
            raise OSError(errno.EFBIG, f"larger than {most} bytes", str(path))
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            return file.read(most)
    finally:
        os.close(descriptor)


def save(folder: Path, name: str, value: str) -> Path:
    """Saves a top-level string in `settings.toml`. Creates `folder`. Raises `FileError`."""

    def changed(text: str) -> str:
        line = f"{name} = {json.dumps(value, ensure_ascii=False)}"
        head = re.search(r"^\s*\[", text, re.MULTILINE)
        top = text[: head.start()] if head else text
        there = re.search(rf"^[ \t]*{re.escape(name)}[ \t]*=[^\n]*$", top, re.MULTILINE)
        return text[: there.start()] + line + text[there.end() :] if there else f"{line}\n{text}"

    return _rewrite(folder, changed, f"put {name} into it yourself")


def append(folder: Path, text: str) -> Path:
    """Appends tables to `settings.toml`. Raises `FileError`."""
    return _rewrite(
        folder, lambda before: f"{before.rstrip()}\n\n{text}".lstrip(), "put the tables into it yourself"
    )


def _rewrite(folder: Path, changed: Callable[[str], str], remedy: str) -> Path:
    from tui_agent.files.private import write_private

    path = folder / "settings.toml"
    try:
        try:
            before = read_small(path).decode("utf-8")
        except FileNotFoundError:
            before = ""
        write_private(path, changed(before).encode())
    except (OSError, UnicodeDecodeError) as error:
        why = reason_of(error) if isinstance(error, OSError) else "not UTF-8"
        raise FileError(f"{path} cannot be written ({why})", remedy) from error
    return path


#: Characters, nesting depth, and parts of a dotted key.
MOST_LETTERS, MOST_DEEP, MOST_PARTS = 1 << 20, 64, 64
_DOT = late(r"(?<!\.)\.(?!\.)")


class Unreadable(ValueError):
    """Invalid or beyond the limits; the message is the reason."""


def read_toml(text: str) -> dict[str, Any]:
    import tomllib

    _check_size(text)
    for number, line in enumerate(text.splitlines(), 1):  # Parsing is quadratic in key parts.
        if line.count(".") > MOST_PARTS and any(
            len(_DOT.findall(part)) >= MOST_PARTS for part in line.replace("]", "=").split("=")[:-1]
        ):
            raise Unreadable(f"a key has more than {MOST_PARTS} parts (at line {number}, column 1)")
    try:
        value = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise Unreadable(str(error)) from None
    except RecursionError:
        raise Unreadable("it is nested too deeply") from None
    except (ValueError, OverflowError):  # `int` refuses 4,301 digits.
        raise Unreadable("a number or a date in it is out of range") from None
    return _shallow(value)


def read_json(text: str, most: int = MOST_LETTERS) -> Any:
    _check_size(text, most)
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        raise Unreadable(str(error)) from None
    except RecursionError:
        raise Unreadable("it is nested too deeply") from None
    except ValueError:
        raise Unreadable("a number in it is out of range") from None
    return _shallow(value)


def _check_size(text: str, most: int = MOST_LETTERS) -> None:
    if len(text) > most:
        raise Unreadable(f"it has more than {most:,} letters")


def _shallow(value: Any) -> Any:
    level: list[Any] = [value] if isinstance(value, dict | list) else []
    for _ in range(MOST_DEEP):
        inside = (inner for one in level for inner in (one.values() if isinstance(one, dict) else one))
        level = [inner for inner in inside if isinstance(inner, dict | list)]
        if not level:
            return value
    raise Unreadable("it is nested too deeply")
