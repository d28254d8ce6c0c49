"""The one way by which a command writes: nothing in a name, a reply or an error can act on the terminal.

What is meant to be read is cleaned, on a terminal as in a pipe, which may end at one. What is meant for programs is
JSON, whose escapes lose nothing. A document that the person asked for (`document`) keeps every character, but on a
terminal. No other module of the command line writes to the standard streams; a test holds that.
"""

from __future__ import annotations

import json
import sys
from typing import Any, Protocol

import msgspec

from tui_agent.files.visible import clean, json_escaped, one_line


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
