"""Merges the configuration layers.

In increasing priority: shipped, user, trusted workspace, environment, `--set`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from operator import attrgetter
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from tui_agent.errors import SettingsError
from tui_agent.files.sanitize import escaped, json_escaped
from tui_agent.settings.catalog import build, default_values, entries
from tui_agent.settings.faults import ConfigFault
from tui_agent.settings.files import WORKSPACE_FOLDER, read_beneath, reason_of
from tui_agent.settings.folders import Folders, config_folder, user_folders
from tui_agent.settings.layers import Layer, environment_layer, file_layer, override_layer, text_layer
from tui_agent.settings.schema import Settings
from tui_agent.settings.workspace_restrictions import narrowed

FILE = "settings.toml"
SHIPPED = "shipped"


class LoadedSettings(Struct, frozen=True):
    """Merged settings. `sources` maps each non-default key to its layer; `faults` are shown on the screen."""

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
    """Reads every layer. Errors in `overrides` (`KEY=VALUE`) raise UsageError; other errors are returned as
    values.

    The workspace's own settings are read only if the workspace is `trusted`.
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
    """The shipped `config/settings.toml`, completed by the schema's defaults."""
    try:
        return file_layer(config_folder() / FILE)
    except SettingsError as error:
        return Layer(FILE, faults=(ConfigFault("the installation", error.what, error.remedy),))


def workspace_layer(workspace: Path) -> Layer:
    """The workspace's own settings, unfiltered; see `narrowing` for the permitted ones."""
    where = escaped(str(workspace / WORKSPACE_FOLDER / FILE))
    try:
        content = read_beneath(workspace, WORKSPACE_FOLDER, FILE)
    except (FileNotFoundError, NotADirectoryError):
        return Layer(where)
    except OSError as error:
        what = f"the file cannot be read ({reason_of(error)})"
        return Layer(where, faults=(ConfigFault(where, what, "it must be a plain file, not a link"),))
    return text_layer(where, content, lined=True)


def setting_lines(loaded: LoadedSettings) -> Iterator[str]:
    """Effective settings as lines of TOML."""
    for key in entries():
        found = msgspec.to_builtins(attrgetter(key)(loaded.settings))
        for server in found.values() if isinstance(found, dict) else ():
            for part in ("env", "headers"):  # May hold keys.
                server[part] = {name: text if "${" in text else "…" for name, text in server[part].items()}
        value = json_escaped(_as_toml(found))
        source = loaded.sources.get(key)
        yield f"{key} = {value}" + (f"  # from {escaped(source)}" if source else "")


def _as_toml(value: Any) -> str:
    """A value on one line; only tables differ from JSON."""
    if not isinstance(value, dict):
        return msgspec.json.encode(value).decode()
    inner = (f"{msgspec.json.encode(name).decode()} = {_as_toml(part)}" for name, part in value.items())
    return f"{{{', '.join(inner)}}}"
