"""Configuration layers (file, environment, `--set`), each as validated values and errors."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from tui_agent.errors import UsageError
from tui_agent.files.numbers import whole_number
from tui_agent.files.sanitize import escaped
from tui_agent.files.structures import Unreadable, read_toml
from tui_agent.settings.catalog import RETIRED, Value, checked, entries, from_words, groups, replaced, wanted
from tui_agent.settings.faults import ConfigFault, line_of, nearest
from tui_agent.settings.files import read_small, reason_of
from tui_agent.settings.folders import HOME_VARIABLE

_PREFIX = "TUI_AGENT_"
#: Variables with the prefix of settings that are not settings: folders, playback speed, parent process id,
#: login servers in tests.
NO_SETTINGS = frozenset(
    {
        HOME_VARIABLE,
        "TUI_AGENT_REPLAY_SPEED",
        "TUI_AGENT_PARENT",
        "TUI_AGENT_TRIAL_WITHOUT",
        "TUI_AGENT_LOGIN_GITHUB",
        "TUI_AGENT_LOGIN_OPENAI",
        "TUI_AGENT_LOGIN_OPENROUTER",
    }
)
_AT_LINE = re.compile(r"\s*\(at line (\d+), column \d+\)")


class Layer(Struct, frozen=True):
    """Valid values by dotted key, errors for the invalid ones, and the line of each key."""

    where: str
    values: dict[str, Value] = {}
    faults: tuple[ConfigFault, ...] = ()
    lines: dict[str, int] = {}


def file_layer(path: Path) -> Layer:
    """The settings of a TOML file; an empty layer if it does not exist."""
    try:
        content = read_small(path)
    except FileNotFoundError:
        return Layer(str(path))
    except OSError as error:
        what = f"the file cannot be read ({reason_of(error)})"
        return Layer(
            str(path), faults=(ConfigFault(str(path), what, "its settings are left at their defaults"),)
        )
    return text_layer(str(path), content)


def broken_file(path: Path) -> ConfigFault | None:
    """The reason a TOML file cannot be parsed; None if it can or does not exist."""
    try:
        found = _parsed(str(path), read_small(path))
    except FileNotFoundError:
        return None
    except OSError as error:
        what = f"the file cannot be read ({reason_of(error)})"
        return ConfigFault(str(path), what, "make it a file that you may read")
    return found if isinstance(found, ConfigFault) else None


def text_layer(where: str, content: bytes, *, lined: bool = False) -> Layer:
    """The settings in the bytes of a TOML file named `where`; with `lined`, includes line numbers."""
    found = _parsed(where, content)
    if isinstance(found, ConfigFault):
        return Layer(where, faults=(found,))
    text, parsed = found
    values: dict[str, Value] = {}
    faults: list[ConfigFault] = []
    for key, value in _flat(parsed):
        try:
            values[key] = checked_key(key, value)
        except ValueError as error:
            what, remedy = error.args
            faults.append(ConfigFault(where, what, remedy, line_of(text, key), key))
    lines = {key: line_of(text, key) for key in values} if lined else {}
    old = min((lines[key] for key in RETIRED if key in lines), default=0)
    values = replaced(values)
    return Layer(where, values, tuple(faults), {key: lines.get(key, old) for key in values} if lined else {})


def environment_layer(environ: Mapping[str, str]) -> Layer:
    """Settings from environment variables, such as `TUI_AGENT_BUNDLING__MAX_FILES`."""
    where = "the environment"
    values: dict[str, Value] = {}
    faults: list[ConfigFault] = []
    for name in sorted(environ):
        if not name.startswith(_PREFIX) or name in NO_SETTINGS:
            continue
        key = name.removeprefix(_PREFIX).lower().replace("__", ".")
        try:
            values[key] = checked_typed_value(key, environ[name], variable)
        except ValueError as error:
            what, remedy = error.args
            faults.append(ConfigFault(where, what, remedy, key=key))
    return Layer(where, replaced(values), tuple(faults))


def override_layer(overrides: Sequence[str]) -> Layer:
    """Settings from `KEY=VALUE` options. Raises UsageError at the first invalid one."""
    values: dict[str, Value] = {}
    for override in overrides:
        key, separator, words = override.partition("=")
        key = key.strip()
        if not separator:
            raise UsageError(f"--set {escaped(override)} has no value", "write --set KEY=VALUE")
        try:
            values[key] = checked_typed_value(key, words)
        except ValueError as error:
            what, remedy = error.args
            raise UsageError(f"--set {escaped(override)}: {what}", remedy) from None
    return Layer("--set", replaced(values))


def variable(key: str) -> str:
    """The environment variable of a setting."""
    return _PREFIX + key.upper().replace(".", "__")


def checked_key(key: str, value: object) -> Value:
    """Validates the value of a known setting. Raises ValueError(description, remedy)."""
    _refuse_unknown(key, str)
    try:
        return checked(key, value)
    except ValueError:
        raise ValueError(f"`{key}` cannot be {_shown(value)}", f"write {wanted(key)}") from None


def checked_typed_value(key: str, words: str, spell: Any = str) -> Value:
    """Like `checked_key` for a typed value; `spell` formats keys in error messages."""
    _refuse_unknown(key, spell)
    try:
        return from_words(key, words)
    except ValueError:
        raise ValueError(f"`{spell(key)}` cannot be {_shown(words)}", f"write {wanted(key)}") from None


def _refuse_unknown(key: str, spell: Any) -> None:
    if key in entries() or key in RETIRED:
        return
    shown = escaped(spell(key))
    if key in groups():
        example = next(known for known in entries() if known.startswith(f"{key}."))
        raise ValueError(f"`{shown}` is a group of settings", f"name one of them, such as `{spell(example)}`")
    near = nearest(key, entries())
    remedy = f"did you mean `{spell(near)}`?" if near else "`tui-agent config show` lists all that there are"
    raise ValueError(f"there is no setting `{shown}`", remedy)


def _flat(table: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, object]]:
    """Flattens nested tables into dotted keys. Settings have at most one level of groups."""
    for name, value in table.items():
        key = f"{prefix}{name}"
        if isinstance(value, dict) and value and key not in entries():
            yield from _flat(value, f"{key}.")
        elif not (value == {} and key in groups()):
            yield key, value


def _parsed(where: str, content: bytes) -> tuple[str, dict[str, Any]] | ConfigFault:
    """Decodes and parses a TOML file. Returns its text and tables, or the error."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        return ConfigFault(where, "the file is not UTF-8 text", "save it as UTF-8", line)
    try:
        return text, read_toml(text)
    except Unreadable as error:
        words = str(error)
        found = _AT_LINE.search(words)
        line = whole_number(found[1]) if found else text.count("\n") + 1 if "end of document" in words else 0
        what = "the file is not TOML" + (f" ({_AT_LINE.sub('', words).lower()})" if line else "")
        return ConfigFault(where, what, "correct it; until then none of its settings is used", line)


def _shown(value: object) -> str:
    words = escaped(repr(value) if not isinstance(value, str) else f'"{value}"')
    return words if len(words) <= 60 else f"{words[:57]}…"
