"""The configuration layers, validated and merged: shipped, user, trusted workspace, environment, `--set`.

The priority increases in this order. A workspace, trusted or not, may adapt tui-agent to the project and narrow its
permissions: `ALLOWED` lists its settings. By default a setting is reserved for the user: permissions, costs, commands,
questions, and data that leaves the machine.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from operator import attrgetter
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct

from tui_agent.errors import SettingsError, UsageError
from tui_agent.files.numbers import LARGEST, amount, whole_number
from tui_agent.files.text import escaped, json_escaped
from tui_agent.settings.files import (
    WORKSPACE_FOLDER,
    ConfigFault,
    Unreadable,
    line_of,
    nearest,
    read_beneath,
    read_own,
    read_small,
    read_toml,
    reason_of,
)
from tui_agent.settings.folders import HOME_VARIABLE, Folders, config_folder, user_folders
from tui_agent.settings.schema import (
    RETIRED,
    PlaceSettings,
    Settings,
    Value,
    build,
    default_values,
    entries,
    groups,
    replaced,
)
from tui_agent.settings.values import checked, from_words, wanted

_PREFIX = "TUI_AGENT_"
#: Variables with the prefix of settings: folders, playback speed, parent process id, login servers in tests.
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
    """Values and lines by dotted key; errors for invalid values."""

    where: str
    values: dict[str, Value] = {}
    faults: tuple[ConfigFault, ...] = ()
    lines: dict[str, int] = {}


def file_layer(path: Path) -> Layer:
    try:
        content = read_small(path)
    except FileNotFoundError:
        return Layer(str(path))
    except OSError as error:
        return Layer(str(path), faults=(_unreadable(str(path), error, "its settings keep their defaults"),))
    return text_layer(str(path), content)


def _unreadable(where: str, error: OSError, remedy: str) -> ConfigFault:
    return ConfigFault(where, f"the file cannot be read ({reason_of(error)})", remedy)


def broken_file(path: Path) -> ConfigFault | None:
    try:
        found = _parsed(str(path), read_small(path))
    except FileNotFoundError:
        return None
    except OSError as error:
        return _unreadable(str(path), error, "make it readable")
    return found if isinstance(found, ConfigFault) else None


def text_layer(where: str, content: bytes, *, lined: bool = False) -> Layer:
    """`where` names the file; with `lined`, includes line numbers."""
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
    """Such as `TUI_AGENT_BUNDLING__MAX_FILES`."""
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
    """`KEY=VALUE`. Raises UsageError at the first invalid one."""
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
    return _PREFIX + key.upper().replace(".", "__")


def checked_key(key: str, value: object) -> Value:
    """Raises ValueError(description, remedy)."""
    _refuse_unknown(key, str)
    try:
        return checked(key, value)
    except ValueError:
        raise ValueError(f"`{key}` cannot be {_shown(value)}", f"write {wanted(key)}") from None


def checked_typed_value(key: str, words: str, spell: Any = str) -> Value:
    """`spell` formats keys in error messages."""
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
    remedy = f"did you mean `{spell(near)}`?" if near else "`tui-agent config show` lists all settings"
    raise ValueError(f"there is no setting `{shown}`", remedy)


def _flat(table: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, object]]:
    for name, value in table.items():
        key = f"{prefix}{name}"
        if isinstance(value, dict) and value and key not in entries():
            yield from _flat(value, f"{key}.")
        elif not (value == {} and key in groups()):
            yield key, value


def _parsed(where: str, content: bytes) -> tuple[str, dict[str, Any]] | ConfigFault:
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
        return ConfigFault(where, what, "correct it; until then its settings are ignored", line)


def _shown(value: object) -> str:
    words = escaped(repr(value) if not isinstance(value, str) else f'"{value}"')
    return words if len(words) <= 60 else f"{words[:57]}…"


Rule = Literal["free", "lower", "higher", "off", "more"]

#: `free`: any value. `lower`: may only decrease; 0 means unlimited for limits. `higher`: may only increase.
#: `off`: may only be disabled. `more`: entries are appended.
ALLOWED: Mapping[str, Rule] = {
    "theme": "free",
    "keys": "free",
    "base_files": "free",
    "instructions.names": "free",
    "instructions.exclude": "free",
    "instructions.max_bytes": "lower",
    "outline_tokens": "lower",
    "max_steps": "lower",
    "request_timeout": "lower",
    "files.max_per_action": "lower",
    "files.pattern_timeout": "lower",
    "known.max_files": "lower",
    "bundling.enabled": "off",
    "bundling.imports": "off",
    "bundling.tests": "off",
    "bundling.max_files": "lower",
    "bundling.depth": "lower",
    "review.near_threshold": "higher",
    "subtasks.max_parallel": "lower",
    "subtasks.max_depth": "lower",
    "subtasks.max_seconds": "lower",
    "subtasks.max_tokens": "lower",
    "subtasks.max_cost": "lower",
    "subtasks.max_per_turn": "lower",
    "commands.timeout": "lower",
    "commands.output_tokens": "lower",
    "checks.repairs": "lower",
    "limits.turn_tokens": "lower",
    "limits.session_tokens": "lower",
    "limits.turn_cost": "lower",
    "limits.session_cost": "lower",
    "limits.turns": "lower",
    "limits.requests": "lower",
    "limits.ask_at_cost": "lower",
    "places": "more",
    "tools.off": "more",
    "permissions.deny": "more",
    "permissions.ask": "more",
}
#: 0 means unlimited.
_LIMITS = frozenset(
    key
    for key in ALLOWED
    if key.startswith(("limits.", "subtasks.max_"))
    and key not in ("subtasks.max_depth", "subtasks.max_parallel")
)


def narrowed(layer: Layer, below: Mapping[str, Value]) -> Layer:
    """Keeps only permitted settings; `below` holds the effective values without the workspace."""
    refused = {key: why for key, value in layer.values.items() if (why := _why_not(key, value, below[key]))}
    faults = tuple(
        ConfigFault(
            layer.where,
            f"a workspace may not {why} `{key}`",
            "set it in your own settings if you want it",
            layer.lines.get(key, 0),
            key,
        )
        for key, why in refused.items()
    )
    kept = {key: value for key, value in layer.values.items() if key not in refused}
    for key, value in kept.items():
        under = below[key]
        if ALLOWED.get(key) == "more" and isinstance(value, tuple) and isinstance(under, tuple):
            added = value
            if key == "places":  # none for the model, and none with a name of the user's
                taken = {one.name for one in under if isinstance(one, PlaceSettings)}
                theirs = (one for one in value if isinstance(one, PlaceSettings) and one.name not in taken)
                added = tuple(msgspec.structs.replace(one, model=False) for one in theirs)
            kept[key] = tuple(dict.fromkeys((*under, *added)))
    return Layer(layer.where, kept, layer.faults + faults)


def _why_not(key: str, value: Value, below: Value) -> str:
    if value == below:
        return ""
    match ALLOWED.get(key):
        case None:
            return "set"
        case "off" if value:
            return "turn on"
        case "lower" if _amount(key, value) > _amount(key, below):
            return "raise"
        case "higher" if _amount(key, value) < _amount(key, below):
            return "lower"
    return ""


def _amount(key: str, value: Value) -> float:
    assert isinstance(value, int | float)
    return float("inf") if key in _LIMITS and value == 0 else amount(value, 0.0, least=-LARGEST)


FILE = "settings.toml"
SHIPPED = "shipped"


class LoadedSettings(Struct, frozen=True):
    """`sources` maps each non-default key to its layer; `faults` are shown on the screen."""

    settings: Settings
    sources: dict[str, str] = {}
    faults: tuple[ConfigFault, ...] = ()


def load(
    folders: Folders | None = None,
    workspace: Path | None = None,
    trusted: bool = False,
    overrides: Sequence[str] = (),
    environ: Mapping[str, str] | None = None,
) -> LoadedSettings:
    """Errors in `overrides` (`KEY=VALUE`) raise UsageError; other errors are returned as values. Reads the
    workspace's own settings only if it is `trusted`.
    """
    environ = os.environ if environ is None else environ
    folders = folders or user_folders(environ)
    values, sources, faults = default_values(), dict[str, str](), list[ConfigFault]()

    def add(layer: Layer) -> None:
        values.update(layer.values)
        sources.update(dict.fromkeys(layer.values, layer.where))
        faults.extend(layer.faults)

    add(shipped_layer())
    sources.clear()
    add(file_layer(folders.config / FILE))
    if workspace is not None and trusted:
        add(narrowed(workspace_layer(workspace), values))
    add(environment_layer(environ))
    add(override_layer(overrides))
    low, high = "context.reset_to", "context.reset_at"
    if build(values).context.reset_to >= build(values).context.reset_at:
        where = sources.get(low) or sources.get(high) or SHIPPED
        what = f"`{low}` ({values[low]}) must be below `{high}` ({values[high]})"
        faults.append(ConfigFault(where, what, "the shipped values of both are used", key=low))
        for key in (low, high):
            values[key] = default_values()[key]
            sources.pop(key, None)
    return LoadedSettings(build(values), sources, tuple(faults))


def shipped_layer() -> Layer:
    try:
        return file_layer(config_folder() / FILE)
    except SettingsError as error:
        return Layer(FILE, faults=(ConfigFault("the installation", error.what, error.remedy),))


def workspace_layer(workspace: Path) -> Layer:
    """Unfiltered; `narrowed` removes the settings that are not permitted."""
    where = escaped(str(workspace / WORKSPACE_FOLDER / FILE))
    try:
        content = read_beneath(workspace, WORKSPACE_FOLDER, FILE)
    except (FileNotFoundError, NotADirectoryError):
        return Layer(where)
    except OSError as error:
        return Layer(where, faults=(_unreadable(where, error, "it must be a plain file, not a link"),))
    return text_layer(where, content, lined=True)


def setting_lines(loaded: LoadedSettings) -> Iterator[str]:
    for key in entries():
        found = msgspec.to_builtins(attrgetter(key)(loaded.settings))
        for server in found.values() if isinstance(found, dict) else ():
            for part in ("env", "headers"):
                server[part] = {name: text if "${" in text else "…" for name, text in server[part].items()}
        value = json_escaped(_as_toml(found))
        source = loaded.sources.get(key)
        yield f"{key} = {value}" + (f"  # from {escaped(source)}" if source else "")


def _as_toml(value: Any) -> str:
    if not isinstance(value, dict):
        return msgspec.json.encode(value).decode()
    inner = (f"{msgspec.json.encode(name).decode()} = {_as_toml(part)}" for name, part in value.items())
    return f"{{{', '.join(inner)}}}"


SYSTEM, PLANNING = "system-prompt.json", "planning-prompt.json"
RESPONSE_SCHEMA, PLANNING_SCHEMA = "response-schema.json", "planning-schema.json"
FILES = (SYSTEM, PLANNING, RESPONSE_SCHEMA, PLANNING_SCHEMA)
_PARTS = {
    SYSTEM: "sections",
    PLANNING: "sections",
    RESPONSE_SCHEMA: "properties",
    PLANNING_SCHEMA: "properties",
}

Words = dict[str, Any]


class Prompts(Struct, frozen=True):
    """By file name; `faults` concern ignored files."""

    words: dict[str, Words]
    faults: tuple[ConfigFault, ...] = ()


def read_prompts(own: Path, workspace: Path | None = None) -> Prompts:
    """Returns the shipped files with the user's changes in `own`. A trusted `workspace` may add sections to
    prompts but not change any. Ignores invalid files.
    """
    words: dict[str, Words] = {}
    faults: list[ConfigFault] = []
    for name in FILES:
        found = msgspec.json.decode((config_folder() / name).read_bytes())
        folders = [own, *([workspace / WORKSPACE_FOLDER] if workspace and _PARTS[name] == "sections" else [])]
        for folder in folders:
            value, why = _read(folder, name)
            why = why or _fault(value, found, name)
            if why:
                faults.append(ConfigFault(str(folder / name), why, "correct it or remove it"))
            else:
                found = _changed(found, value, _PARTS[name], only_adds=folder is not own)
        words[name] = found
    return Prompts(words, tuple(faults))


def _read(folder: Path, name: str) -> tuple[Any, str]:
    try:
        return msgspec.json.decode(read_own(folder, name)), ""
    except (FileNotFoundError, NotADirectoryError):
        return {}, ""
    except OSError as error:
        return None, f"the file cannot be read ({reason_of(error)})"
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        return None, f"it is not valid JSON ({error})"
    except RecursionError:
        return None, "its brackets are nested too deeply"


def _fault(value: Any, shipped: Words, name: str) -> str:
    if not isinstance(value, dict):
        return "it is not a JSON object"
    for key, part in value.items():
        if key not in shipped and _PARTS[name] == "sections":
            return f"there is no `{key}` in it; there are {', '.join(shipped)}"
        if key in shipped and type(part) is not type(shipped[key]):
            kind = {dict: "an object", list: "a list", str: "text", bool: "true or false"}
            return f"`{key}` is not {kind.get(type(shipped[key]), 'of the right type')}"
    sections = value.get("sections", [])
    for section in sections if isinstance(sections, list) else ():
        if not (isinstance(section, dict) and all(isinstance(section.get(it), str) for it in ("id", "text"))):
            return "a section needs `id` and `text`"
    properties = value.get("properties", {})
    if any(not isinstance(part, dict) for part in properties.values()):
        return "a property is not a schema"
    if value and _PARTS[name] == "properties":
        import jsonschema_rs

        try:
            jsonschema_rs.meta.validate(value)
        except (jsonschema_rs.ValidationError, ValueError) as error:
            place = ".".join(map(str, getattr(error, "instance_path", ()))) or name
            return f"`{place}` is not valid in a JSON schema"
    return ""


def _changed(shipped: Words, value: Words, parts: str, *, only_adds: bool) -> Words:
    rest = {} if only_adds else {key: part for key, part in value.items() if key != parts}
    if parts == "properties":
        return {**shipped, **rest, parts: {**shipped[parts], **value.get(parts, {})}}
    given: Sequence[Words] = value.get(parts, ())
    named = {section["id"]: section for section in given}
    there = {section.get("id") for section in shipped[parts]}
    kept = [
        section if only_adds else {**section, **named.get(section.get("id", ""), {})}
        for section in shipped[parts]
    ]
    return {**shipped, **rest, parts: [*kept, *(section for section in given if section["id"] not in there)]}
