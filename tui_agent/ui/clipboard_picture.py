"""The picture of the clipboard, by the programs that read it: wl-paste, xclip or pngpaste."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE
from contextlib import suppress
from pathlib import Path

from tui_agent.errors import FileError
from tui_agent.files.private import make_private, open_private
from tui_agent.processes.environment import search_path
from tui_agent.settings.files import reason_of

#: Maximum bytes of a picture, and seconds to read it.
MOST_BYTES, WITHIN = 50 << 20, 5.0
_PNG = b"\x89PNG\r\n\x1a\n"


def readers() -> list[list[str]]:
    """The command lines that write the clipboard's picture as PNG, for this desktop."""
    found = []
    if os.environ.get("WAYLAND_DISPLAY"):
        found.append(["wl-paste", "--no-newline", "--type", "image/png"])
    if os.environ.get("DISPLAY"):
        found.append(["xclip", "-selection", "clipboard", "-target", "image/png", "-out"])
    if sys.platform == "darwin":
        found.append(["pngpaste", "-"])
    return found


async def keep_picture(folder: Path) -> Path:
    """Writes the clipboard's picture into a new file of `folder`. Raises `FileError` if there is none."""
    commands = readers()
    programs = [(shutil.which(words[0], path=search_path()), words[1:]) for words in commands]
    installed = [[program, *words] for program, words in programs if program]
    if not installed:
        names = " or ".join(words[0] for words in commands) or "wl-paste, xclip or pngpaste, and a desktop"
        raise FileError("The clipboard cannot be read for pictures", f"install {names}, or name a file")
    for words in installed:
        if (data := await _read(words)).startswith(_PNG):
            return await asyncio.to_thread(_write, folder, data)
    raise FileError("The clipboard holds no picture", "copy one, or name a file")


async def _read(words: list[str]) -> bytes:
    """The output; empty if the program fails, takes too long or prints too much."""
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
        await process.wait()
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
