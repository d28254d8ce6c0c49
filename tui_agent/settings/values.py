"""Values of settings: checked, read from words, and described."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import msgspec

from tui_agent.settings.schema import (
    RETIRED,
    CheckCommand,
    HookSettings,
    ModelOptions,
    PlaceSettings,
    Value,
    entries,
)


def _type(key: str) -> Any:
    return RETIRED[key] if key in RETIRED else entries()[key].type


def checked(key: str, value: object) -> Value:
    """Raises ValueError with the expected type as its message."""
    try:
        found = msgspec.convert(value, _type(key))
    except msgspec.ValidationError:
        raise ValueError(wanted(key)) from None
    if isinstance(found, float) and not math.isfinite(found):
        raise ValueError(wanted(key))
    return found


def from_words(key: str, words: str) -> Value:
    """Parses `8`, `true`, `dark`, `a.md,b.md` or `["a.md", "b.md"]`. Raises ValueError."""
    kind = msgspec.inspect.type_info(_type(key))
    match kind:
        case msgspec.inspect.VarTupleType():
            text = words.strip()
            if text.startswith("["):
                return checked(key, _json(key, text))
            return checked(key, [part.strip() for part in text.split(",") if part.strip()])
        case msgspec.inspect.BoolType():
            return checked(key, {"true": True, "false": False}.get(words.strip().lower()))
        case msgspec.inspect.IntType() | msgspec.inspect.FloatType():
            return checked(key, _number(words))
        case msgspec.inspect.DictType():
            return checked(key, _json(key, words))
        case _:
            return checked(key, words)


_TABLES: Mapping[type, str] = {
    ModelOptions: 'name and options, such as [{name = "openai/*", effort = "high"}]',
    PlaceSettings: 'name and run, such as [{name = "gpu", run = "ssh gpu {command}", copy = "rsync"}]',
    CheckCommand: 'name and command, such as [{name = "tests", command = "pytest -q"}]',
}


def wanted(key: str) -> str:
    """Returns the end of a sentence: `a whole number from 1 to 100`."""
    match msgspec.inspect.type_info(_type(key)):
        case msgspec.inspect.BoolType():
            return "true or false"
        case msgspec.inspect.IntType(ge=low, le=high):
            return f"a whole number {_range(low, high)}"
        case msgspec.inspect.FloatType(ge=low, le=high):
            return f"a number {_range(low, high)}"
        case msgspec.inspect.LiteralType(values=values):
            return "one of " + ", ".join(f'"{value}"' for value in values)
        case msgspec.inspect.VarTupleType(item_type=msgspec.inspect.StructType(cls=cls)):
            return f"tables with {_TABLES[cls]}"
        case msgspec.inspect.VarTupleType(
            item_type=msgspec.inspect.StrType(max_length=None, pattern=str() as pattern)
        ):
            kind = "patterns inside the workspace" if "*/" in pattern else "file names without folders"
            return f'a list of {kind}, such as ["a.md", "b.md"]'
        case msgspec.inspect.VarTupleType():
            return 'a list of text in quotes, such as ["a.md", "b.md"]'
        case msgspec.inspect.DictType(value_type=msgspec.inspect.StructType(cls=cls)) if cls is HookSettings:
            return 'tables by name with event and command, such as {lint = {event = "Applied", command = "make lint"}}'
        case msgspec.inspect.DictType():
            return 'tables by name with command or url, such as {time = {command = "uvx", args = ["mcp-server-time"]}}'
        case msgspec.inspect.StrType(pattern=str()):
            return "the name of a file, without a folder"
        case _:
            return "text in quotes"


def _range(low: float | None, high: float | None) -> str:
    if high is None:
        return f"from {low:g}"
    return f"from {low} to {high}"


def _number(words: str) -> object:
    text = words.strip().replace("_", "")
    for read in (int, float):
        try:
            return read(text)
        except ValueError:
            continue
    return words


def _json(key: str, text: str) -> object:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        raise ValueError(wanted(key)) from None
