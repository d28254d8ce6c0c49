"""Standard output that may stop taking text: a full disk, a reader that went away, a stream that was never open."""

from __future__ import annotations

import io
import os
import sys
from typing import Any, TextIO

from tui_agent.errors import TuiAgentError


class OutputLost(TuiAgentError):
    """What was to be read could not be written."""

    def __init__(self, why: str, remedy: str = "") -> None:
        self.why = why
        elsewhere = "send it to a place that takes it, and run the command again"
        super().__init__(f"standard output cannot be written ({why})", remedy or elsewhere)


class _Output(io.FileIO):
    """Standard output, whose errors say that it is standard output; a reader that went away is told as it is."""

    def write(self, data: Any) -> int:
        try:
            return super().write(data)
        except BrokenPipeError:
            raise
        except OSError as error:
            raise OutputLost(error.strerror or str(error)) from error


class Telling:
    """A stream for what is told while work goes on: an error is kept in `failed` instead of ending the work."""

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


def open_streams() -> None:
    """Make the standard streams usable: where one is closed, the next file that is opened would take its number.

    Writing to what takes the place of a closed standard output fails, as it should: nobody reads it.
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
    """Let the interpreter write what waits for standard output to nowhere when it ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
