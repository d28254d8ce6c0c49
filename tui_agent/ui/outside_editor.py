"""Runs the user's editor (`$VISUAL` or `$EDITOR`) in the program's terminal, for a text or a file."""

from __future__ import annotations

import asyncio
import os
import shlex
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from tui_agent.errors import FileError, UsageError
from tui_agent.files.private import write_private
from tui_agent.ui.host import Host

#: Editors that accept `+LINE` before the file name.
_BY_PLUS = frozenset(
    ("vi", "vim", "nvim", "nano", "emacs", "emacsclient", "micro", "kak", "joe", "ne", "mg", "ed")
)
_USUAL = ("vi", "nano")


def editor(environment: Mapping[str, str] = os.environ) -> list[str]:
    """Its command line. Raises `UsageError` if none is configured or installed."""
    for name in ("VISUAL", "EDITOR"):
        try:
            if words := shlex.split(environment.get(name, "")):
                return words
        except ValueError as error:
            raise UsageError(f"{name} cannot be read ({error})", "correct its quotes") from error
    found = next((name for name in _USUAL if shutil.which(name)), "")
    if not found:
        raise UsageError("No editor is set", "set EDITOR in your environment")
    return [found]


def opening(words: Sequence[str], path: Path, line: int = 0) -> list[str]:
    """The command line for a file, at `line` (from 1) if the editor supports it."""
    at = [f"+{line}"] if line and Path(words[0]).name in _BY_PLUS else []
    return [*words, *at, str(path)]


def _folder() -> str:
    return tempfile.mkdtemp(prefix="tui-agent-")


async def edited_text(app: Host, text: str) -> str | None:
    """`None` if the editor exits with an error. Raises `UsageError` and `FileError`."""
    words = editor()
    folder = Path(await asyncio.to_thread(_folder))
    try:
        path = folder / "message.md"
        await asyncio.to_thread(write_private, path, text.encode("utf-8", "surrogateescape"))
        if await app.hand_over(opening(words, path)):
            return None
        try:
            left = (await asyncio.to_thread(path.read_bytes)).decode("utf-8", "replace")
        except OSError as error:
            raise FileError(
                f"The text of the editor cannot be read ({error.strerror})", "try again"
            ) from error
        return left.removesuffix("\n") if not text.endswith("\n") else left
    finally:
        await asyncio.to_thread(shutil.rmtree, folder, True)
