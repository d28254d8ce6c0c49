"""Settings by dotted key: validation and parsing of values."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cache
from typing import Any, Literal

import msgspec

from tui_agent.settings.schema import CheckCommand, HookSettings, ModelOptions, ServerSettings, Settings

Tables = dict[str, ServerSettings] | dict[str, HookSettings]
Value = str | int | float | bool | tuple[str | CheckCommand | ModelOptions, ...] | Tables


class SettingEntry(msgspec.Struct, frozen=True):
    """A setting: its dotted key, its msgspec type and its default."""

    key: str
    type: Any
    default: Value


@cache
def entries() -> Mapping[str, SettingEntry]:
    """All settings by dotted key, in schema order."""
    found: dict[str, SettingEntry] = {}
    for field in msgspec.structs.fields(Settings):
        if isinstance(field.default, msgspec.Struct):
            for inner in msgspec.structs.fields(field.default):
                key = f"{field.name}.{inner.name}"
                found[key] = SettingEntry(key, inner.type, _default(inner))
        else:
            found[field.name] = SettingEntry(field.name, field.type, _default(field))
    return found


#: Settings of earlier versions and their types; `replaced` translates them.
RETIRED: Mapping[str, Any] = {"autonomy": Literal["manual", "assisted", "auto"], "auto_apply": bool}


def replaced(values: Mapping[str, Value]) -> dict[str, Value]:
    """The values of one layer, with today's settings for those of earlier versions. Nothing is written that was not
    before: the mode is `auto` only if both old settings allowed it."""
    found = {key: value for key, value in values.items() if key not in RETIRED}
    if len(found) < len(values):
        both = values.get("autonomy") == "auto" and values.get("auto_apply") is True
        found.setdefault("mode", "auto" if both else "edit")
    if autonomy := values.get("autonomy"):
        found.setdefault("subtasks.begin", "ticked" if autonomy == "assisted" else autonomy)
    return found


def _type(key: str) -> Any:
    return RETIRED[key] if key in RETIRED else entries()[key].type


def _default(field: Any) -> Value:
    return field.default if field.default is not msgspec.NODEFAULT else field.default_factory()


@cache
def groups() -> frozenset[str]:
    """Names of the groups: `files`, `context`, …"""
    return frozenset(key.partition(".")[0] for key in entries() if "." in key)


def checked(key: str, value: object) -> Value:
    """Returns the value converted to the setting's type. Raises ValueError with the expected type as its
    message."""
    try:
        found = msgspec.convert(value, _type(key))
    except msgspec.ValidationError:
        raise ValueError(wanted(key)) from None
    if isinstance(found, float) and not math.isfinite(found):
        raise ValueError(wanted(key))
    return found


def from_words(key: str, words: str) -> Value:
    """Parses a typed value: `8`, `true`, `dark`, `a.md,b.md` or `["a.md", "b.md"]`. Raises ValueError."""
    kind = msgspec.inspect.type_info(_type(key))
    match kind:
        case msgspec.inspect.VarTupleType():
            return checked(key, _list(key, words))
        case msgspec.inspect.BoolType():
            return checked(key, {"true": True, "false": False}.get(words.strip().lower()))
        case msgspec.inspect.IntType() | msgspec.inspect.FloatType():
            return checked(key, _number(words))
        case msgspec.inspect.DictType():
            return checked(key, _json(key, words))
        case _:
            return checked(key, words)


def wanted(key: str) -> str:
    """The expected type as the end of a sentence: `a whole number from 1 to 100`."""
    match msgspec.inspect.type_info(_type(key)):
        case msgspec.inspect.BoolType():
            return "true or false"
        case msgspec.inspect.IntType(ge=low, le=high):
            return f"a whole number {_range(low, high)}"
        case msgspec.inspect.FloatType(ge=low, le=high):
            return f"a number {_range(low, high)}"
        case msgspec.inspect.LiteralType(values=values):
            return "one of " + ", ".join(f'"{value}"' for value in values)
        case msgspec.inspect.VarTupleType(item_type=msgspec.inspect.StructType(cls=cls)) if (
            cls is ModelOptions
        ):
            return 'tables with name and options, such as [{name = "openai/*", effort = "high"}]'
        case msgspec.inspect.VarTupleType(item_type=msgspec.inspect.StructType()):
            return 'tables with name and command, such as [{name = "tests", command = "pytest -q"}]'
        case msgspec.inspect.VarTupleType(item_type=item):
            return f'a list of {_kind_of(item)}, such as ["a.md", "b.md"]'
        case msgspec.inspect.DictType(value_type=msgspec.inspect.StructType(cls=cls)) if cls is HookSettings:
            return 'tables by name with event and command, such as {lint = {event = "Applied", command = "make lint"}}'
        case msgspec.inspect.DictType():
            return 'tables by name with command or url, such as {time = {command = "uvx", args = ["mcp-server-time"]}}'
        case msgspec.inspect.StrType(pattern=str()):
            return "the name of a file, without a folder"
        case _:
            return "words in quotes"


def _kind_of(item: msgspec.inspect.Type) -> str:
    match item:
        case msgspec.inspect.StrType(max_length=None, pattern=str() as pattern):
            return "patterns inside the workspace" if "*/" in pattern else "file names without folders"
    return "words in quotes"


def default_values() -> dict[str, Value]:
    return {key: entry.default for key, entry in entries().items()}


def build(values: Mapping[str, Value]) -> Settings:
    """Builds `Settings` from validated values; missing keys get their defaults."""
    top: dict[str, Any] = {}
    inner: dict[str, dict[str, Value]] = {}
    for key, value in values.items():
        group, _, name = key.rpartition(".")
        if group:
            inner.setdefault(group, {})[name] = value
        else:
            top[key] = value
    plain = Settings()
    for group, changed in inner.items():
        top[group] = msgspec.structs.replace(getattr(plain, group), **changed)
    return msgspec.structs.replace(plain, **top)


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


def _list(key: str, words: str) -> object:
    text = words.strip()
    if not text.startswith("["):
        return [part.strip() for part in text.split(",") if part.strip()]
    return _json(key, text)


def _json(key: str, text: str) -> object:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        raise ValueError(wanted(key)) from None
