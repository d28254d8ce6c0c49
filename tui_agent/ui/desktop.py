"""Desktop programs: the text editor and the reader of the clipboard's picture."""

from __future__ import annotations

import asyncio
import os
import shlex
import shutil
import signal
import sys
import tempfile
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from tui_agent.errors import FileError, UsageError
from tui_agent.files.private import make_private, open_private, write_private
from tui_agent.processes.ending import end
from tui_agent.processes.environment import search_path
from tui_agent.settings.files import reason_of
from tui_agent.ui.host import Host

#: Editors that accept `+LINE` before the file name.
_BY_PLUS = frozenset(
    ("vi", "vim", "nvim", "nano", "emacs", "emacsclient", "micro", "kak", "joe", "ne", "mg", "ed")
)
_USUAL = ("vi", "nano")


def editor() -> list[str]:
    """Raises `UsageError` if none is configured or installed."""
    for name in ("VISUAL", "EDITOR"):
        try:
            if words := shlex.split(os.environ.get(name, "")):
                return words
        except ValueError as error:
            raise UsageError(f"{name} cannot be read ({error})", "correct its quotes") from error
    found = next((name for name in _USUAL if shutil.which(name)), "")
    if not found:
        raise UsageError("No editor is set", "set EDITOR in your environment")
    return [found]


def opening(words: Sequence[str], path: Path, line: int = 0) -> list[str]:
    """Opens the file at `line` (from 1) if the editor supports it."""
    at = [f"+{line}"] if line and Path(words[0]).name in _BY_PLUS else []
    return [*words, *at, str(path)]


async def edited_text(app: Host, text: str) -> str | None:
    """`None` if the editor exits with an error. Raises `UsageError` and `FileError`."""
    words = editor()
    folder = Path(await asyncio.to_thread(lambda: tempfile.mkdtemp(prefix="tui-agent-")))
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


#: Limits of a picture: bytes, and seconds to read it.
MOST_BYTES, WITHIN = 50 << 20, 5.0
_PNG = b"\x89PNG\r\n\x1a\n"


def readers() -> list[list[str]]:
    """Returns command lines that write the clipboard's picture as PNG."""
    found = []
    if os.environ.get("WAYLAND_DISPLAY"):
        found.append(["wl-paste", "--no-newline", "--type", "image/png"])
    if os.environ.get("DISPLAY"):
        found.append(["xclip", "-selection", "clipboard", "-target", "image/png", "-out"])
    if sys.platform == "darwin":
        found.append(["pngpaste", "-"])
    return found


async def keep_picture(folder: Path) -> Path:
    """Creates a file. Raises `FileError` without a picture."""
    commands = readers()
    programs = [(shutil.which(words[0], path=search_path()), words[1:]) for words in commands]
    installed = [[program, *words] for program, words in programs if program]
    if not installed:
        names = " or ".join(words[0] for words in commands) or "wl-paste, xclip or pngpaste, and a desktop"
        raise FileError("The clipboard cannot be read for pictures", f"install {names}, or name a file")
    for words in installed:
        if (data := await _output(words)).startswith(_PNG):
            return await asyncio.to_thread(_write, folder, data)
    raise FileError("The clipboard holds no picture", "copy one, or name a file")


async def _output(words: list[str]) -> bytes:
    """Returns b"" if the program fails, takes too long or prints too much."""
    try:
        process = await asyncio.create_subprocess_exec(
            *words, stdin=DEVNULL, stdout=PIPE, stderr=DEVNULL, start_new_session=True
        )
    except OSError:
        return b""
    assert process.stdout is not None
    data = bytearray()
    try:
        async with asyncio.timeout(WITHIN):
            while chunk := await process.stdout.read(1 << 16):
                data += chunk
                if len(data) > MOST_BYTES:
                    return b""
    except TimeoutError:
        return b""
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await end(process)
    return bytes(data)


def _write(folder: Path, data: bytes) -> Path:
    """Blocking."""
    try:
        make_private(folder)
        number = 1
        while (path := folder / f"clipboard-{number}.png").exists():
            number += 1
        with os.fdopen(open_private(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL), "wb") as file:
            file.write(data)
    except OSError as error:
        raise FileError(
            f"The picture of the clipboard cannot be kept ({reason_of(error)})", "free some space"
        ) from error
    return path
