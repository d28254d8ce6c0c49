"""Standard output and error, the one way by which a command writes: nothing in a name, a reply or an error can act on
the terminal, and a stream that takes no more (a full disk, a reader that went away) is told.

What is meant to be read is cleaned, on a terminal as in a pipe, which may end at one. What is meant for programs is
JSON, whose escapes lose nothing. A document that the person asked for (`document`) keeps every character, but on a
terminal. No other module of the command line writes to the standard streams; a test holds that.
"""

from __future__ import annotations

import io
import json
import os
import sys
from typing import Any, Protocol, TextIO

import msgspec

from tui_agent.errors import TuiAgentError
from tui_agent.files.visible import clean, json_escaped, one_line


class OutputLost(TuiAgentError):
    """What was to be read could not be written."""

    def __init__(self, why: str, remedy: str = "") -> None:
        self.why = why
        elsewhere = "send it somewhere that can be written, and run the command again"
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


class SupportsWrite(Protocol):
    """A stream, or something that writes to one."""

    def write(self, text: str, /) -> object: ...


def say(text: str, out: SupportsWrite | None = None) -> None:
    """Words of several lines."""
    (out or sys.stdout).write(clean(text) + "\n")


def row(text: str) -> None:
    """One line of a list: a line break in a name cannot begin another."""
    sys.stdout.write(one_line(text) + "\n")


def json_line(value: Any, out: SupportsWrite | None = None) -> None:
    """One JSON value on a line of its own, in ASCII."""
    (out or sys.stdout).write(json_escaped(json.dumps(msgspec.to_builtins(value))) + "\n")


def document(text: str, *, is_json: bool = False) -> None:
    """An export: exact where a file or a program takes it, cleaned where a terminal shows it."""
    if is_json:
        text = json_escaped(text)
    elif sys.stdout.isatty():
        text = clean(text)
    sys.stdout.write(text)


def note(text: str, err: SupportsWrite | None = None) -> None:
    """A line on standard error."""
    (err or sys.stderr).write(one_line(text) + "\n")


def error(text: str, err: SupportsWrite | None = None) -> None:
    """`tui-agent: what happened: what to do`, on standard error."""
    note(f"tui-agent: {text}", err)


def record(text: str) -> None:
    """A record of the debug log, for --debug."""
    sys.stderr.write(clean(text) + "\n")
