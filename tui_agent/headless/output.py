"""Standard output and error of all commands.

Names, replies and errors cannot control the terminal: text is cleaned on terminals and in pipes, which
may end at a terminal. JSON escapes control characters without loss. A `document` keeps every character
unless it is shown on a terminal. No other command-line module writes to the standard streams.
"""

from __future__ import annotations

import io
import json
import os
import sys
from typing import Any, Protocol, TextIO

import msgspec

from tui_agent.errors import TuiAgentError
from tui_agent.files.text import clean, json_escaped, one_line


class OutputLost(TuiAgentError):
    def __init__(self, why: str, remedy: str = "") -> None:
        self.why = why
        elsewhere = "redirect it to a writable place and run the command again"
        super().__init__(f"standard output cannot be written ({why})", remedy or elsewhere)


class _Output(io.FileIO):
    """Errors name standard output; a closed pipe raises the original error."""

    def write(self, data: Any) -> int:
        try:
            return super().write(data)
        except BrokenPipeError:
            raise
        except OSError as error:
            raise OutputLost(error.strerror or str(error)) from error


class ProgressStream:
    """Stores an error in `failed` instead of aborting the work."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self.failed: Exception | None = None

    def write(self, text: str) -> None:
        if self.failed is not None:
            return
        try:
            self._stream.write(text)
            self._stream.flush()
        except (OSError, OutputLost) as error:
            self.failed = error
            if self._stream is sys.stdout:
                silence()  # Buffered text would fail again at the exit, which Python 3.13 reports.


def open_streams() -> None:
    """Prevents newly opened files from getting their descriptors. Writes to the replacement of standard
    output fail.
    """
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDONLY if descriptor < 2 else os.O_WRONLY)
    if sys.stdin is None:
        sys.stdin = io.TextIOWrapper(io.FileIO(0, closefd=False))
    if sys.stderr is None:
        sys.stderr = io.TextIOWrapper(io.FileIO(2, "w", closefd=False))
    if sys.stdout is None or sys.stdout is sys.__stdout__:
        encoding = sys.stdout.encoding if sys.stdout else "utf-8"
        buffer = io.BufferedWriter(_Output(1, "w", closefd=False))
        sys.stdout = io.TextIOWrapper(buffer, encoding, line_buffering=os.isatty(1))


def silence() -> None:
    """Discards further output, so that a flush at the exit cannot fail."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


class SupportsWrite(Protocol):
    def write(self, text: str, /) -> object: ...


def write_text(text: str, out: SupportsWrite | None = None) -> None:
    (out or sys.stdout).write(clean(text) + "\n")


def row(text: str) -> None:
    sys.stdout.write(one_line(text) + "\n")


def json_line(value: Any, out: SupportsWrite | None = None) -> None:
    (out or sys.stdout).write(json_escaped(json.dumps(msgspec.to_builtins(value))) + "\n")


def document(text: str, *, is_json: bool = False) -> None:
    """Unchanged in a file or pipe, cleaned on a terminal."""
    if is_json:
        text = json_escaped(text)
    elif sys.stdout.isatty():
        text = clean(text)
    sys.stdout.write(text)


def note(text: str, err: SupportsWrite | None = None) -> None:
    (err or sys.stderr).write(one_line(text) + "\n")


def error(text: str, err: SupportsWrite | None = None) -> None:
    """Prints `tui-agent: what happened: what to do`."""
    note(f"tui-agent: {text}", err)


def record(text: str) -> None:
    sys.stderr.write(clean(text) + "\n")
