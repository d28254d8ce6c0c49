"""Writes to the user's `settings.toml` and leaves every other line unchanged."""

from __future__ import annotations

import json
import re
from pathlib import Path

from tui_agent.errors import FileError
from tui_agent.files.private import write_private
from tui_agent.settings.files import read_small, reason_of


def save(folder: Path, name: str, value: str) -> Path:
    """Sets a top-level string in `settings.toml`, creating `folder` if necessary. Returns the path of the
    file.

    Raises `FileError`.
    """
    path = folder / "settings.toml"
    try:
        try:
            text = read_small(path).decode("utf-8")
        except FileNotFoundError:
            text = ""
        write_private(path, _with(text, f"{name} = {json.dumps(value, ensure_ascii=False)}", name).encode())
    except (OSError, UnicodeDecodeError) as error:
        why = reason_of(error) if isinstance(error, OSError) else "not UTF-8"
        raise FileError(f"{path} cannot be written ({why})", f"put {name} into it yourself") from error
    return path


def append(folder: Path, text: str) -> Path:
    """Appends tables to `settings.toml`, creating it if necessary. Returns its path. Raises `FileError`."""
    path = folder / "settings.toml"
    try:
        try:
            before = read_small(path).decode("utf-8")
        except FileNotFoundError:
            before = ""
        write_private(path, f"{before.rstrip()}\n\n{text}".lstrip().encode())
    except (OSError, UnicodeDecodeError) as error:
        why = reason_of(error) if isinstance(error, OSError) else "not UTF-8"
        raise FileError(f"{path} cannot be written ({why})", "put the tables into it yourself") from error
    return path


def _with(text: str, line: str, name: str) -> str:
    """Replaces the line that sets `name`, or inserts it before the first table."""
    head = re.search(r"^\s*\[", text, re.MULTILINE)
    top = text[: head.start()] if head else text
    there = re.search(rf"^[ \t]*{re.escape(name)}[ \t]*=[^\n]*$", top, re.MULTILINE)
    if there:
        return text[: there.start()] + line + text[there.end() :]
    return f"{line}\n{text}"
