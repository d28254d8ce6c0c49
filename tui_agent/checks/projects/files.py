"""Cached, size-limited access to a project's configuration files."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path

from tui_agent.files.git_folder import read_regular
from tui_agent.settings.files import Unreadable, read_json, read_toml

#: Bytes of one file, bytes of all, characters of a line, names in a folder.
MOST_READ, MOST_TOGETHER, MOST_LETTERS, MOST_NAMES = 1 << 20, 8 << 20, 1_000, 500
MOST_FOLDERS = 400
#: Folders without the project's own files.
APART = frozenset({"node_modules", "__pycache__", "venv", "target", "build", "dist", "vendor"})
_SECTION = re.compile(r"^\[([^\]\n]+)\]\s*$")


class Project:
    """All methods block. Files that are not regular, too large, unreadable, or linked from outside count as
    empty.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self._real = os.path.realpath(root)
        self.texts: dict[str, str] = {}
        self._left = MOST_TOGETHER

    def text(self, name: str) -> str:
        if name not in self.texts:
            try:
                content = read_regular(self._at(name), min(MOST_READ, self._left))
            except (OSError, ValueError):
                content = b""
            self._left -= len(content)
            self.texts[name] = content.decode("utf-8", "replace").removeprefix("\ufeff")
        return self.texts[name]

    def lines(self, name: str) -> str:
        """Omits blank and overlong lines."""
        return written_lines(self.text(name))

    def toml(self, name: str) -> dict[str, object]:
        try:
            return read_toml(self.text(name))
        except Unreadable:
            return {}

    def json(self, name: str) -> dict[str, object]:
        try:
            return table(read_json(self.text(name)))
        except Unreadable:
            return {}

    def sections(self, name: str) -> dict[str, dict[str, str]]:
        return sections(self.text(name))

    def has(self, *names: str) -> bool:
        return any(stat.S_ISREG(self._mode(name)) for name in names)

    def has_folder(self, name: str) -> bool:
        return stat.S_ISDIR(self._mode(name))

    def _mode(self, name: str) -> int:
        try:
            return os.stat(self._at(name)).st_mode
        except (OSError, ValueError):
            return 0

    def _at(self, name: str) -> str:
        at = os.path.realpath(self.root / name)
        if at != self._real and not at.startswith(self._real.rstrip("/") + "/"):
            raise ValueError(f"{name} leads out of the folder")
        return at

    def holds(self, path: str) -> bool:
        return is_inside(path) and self._mode(path) != 0

    def matching(self, folder: str, glob: str) -> list[str]:
        try:
            with os.scandir(self._at(folder)) as entries:
                names = [entry.name for entry, _ in zip(entries, range(MOST_NAMES), strict=False)]
        except (OSError, ValueError):
            return []
        return sorted(name for name in names if fnmatchcase(name, glob))

    def below(self, folder: str, *globs: str) -> Iterator[str]:
        """Relative paths, at any depth."""
        top = self.root / folder
        if not self.has_folder(folder):
            return
        for count, (at, folders, names) in enumerate(os.walk(top)):
            if count >= MOST_FOLDERS:
                return
            folders[:] = sorted(one for one in folders if one not in APART and not one.startswith("."))
            here = os.path.relpath(at, self.root)
            for name in sorted(names)[:MOST_NAMES]:
                if any(fnmatchcase(name, glob) for glob in globs):
                    yield name if here == "." else f"{here}/{name}"


def sections(text: str) -> dict[str, dict[str, str]]:
    """Returns the keys and (multi-line) values of a text in `setup.cfg` format, by section."""
    found: dict[str, dict[str, str]] = {}
    section: dict[str, str] = {}
    key = ""
    for line in written_lines(text).splitlines():
        if head := _SECTION.match(line):
            section, key = found.setdefault(head[1].strip(), {}), ""
        elif line.lstrip()[0] in "#;":
            continue
        elif line[0] in " \t":
            if key:
                section[key] += f"\n{line.strip()}"
        else:
            key, _, value = line.partition("=")
            key = key.strip()
            section[key] = value.strip()
    return found


def written_lines(text: str) -> str:
    return "\n".join(line for line in text.splitlines() if line.strip() and len(line) <= MOST_LETTERS)


def is_inside(path: str) -> bool:
    return bool(path) and path[0] not in "/~-" and ".." not in path.split("/")


def table(value: object) -> dict[str, object]:
    return value if isinstance(value, dict) else {}


def words(value: object) -> list[str]:
    if isinstance(value, str):
        return [value]
    return [one for one in value if isinstance(one, str)] if isinstance(value, list) else []
