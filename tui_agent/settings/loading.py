"""The configuration in force, from its layers; the nearest wins.

Shipped, the user's, the trusted workspace's, the environment's, `--set`: in this order, each over the one before.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from tui_agent.errors import SettingsError
from tui_agent.files.visible import escaped
from tui_agent.settings.catalog import Value, build, default_values
from tui_agent.settings.faults import ConfigFault
from tui_agent.settings.files import WORKSPACE_FOLDER, read_beneath, reason_of
from tui_agent.settings.folders import Folders, config_folder, user_folders
from tui_agent.settings.layers import Layer, environment_layer, file_layer, override_layer, text_layer
from tui_agent.settings.narrowing import narrowed
from tui_agent.settings.schema import Settings

FILE = "settings.toml"
SHIPPED = "shipped"


class LoadedSettings(Struct, frozen=True):
    """`sources` says of each key that is not as shipped where it comes from; `faults` are for the screen."""

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
    """Read every layer. `overrides` are `KEY=VALUE`; a fault in one raises UsageError, any other is a value.

    The workspace's own settings are read only where the workspace is `trusted`.
    """
    environ = os.environ if environ is None else environ
    folders = folders or user_folders(environ)
    merged = _Merged()
    merged.add(shipped_layer(), SHIPPED)
    merged.add(file_layer(folders.config / FILE))
    if workspace is not None and trusted:
        merged.add(narrowed(workspace_layer(workspace), merged.values))
    merged.add(environment_layer(environ))
    merged.add(override_layer(overrides))
    return merged.loaded()


def shipped_layer() -> Layer:
    """`config/settings.toml` as it ships; the schema's defaults apply to what it does not say."""
    try:
        return file_layer(config_folder() / FILE)
    except SettingsError as error:
        return Layer(FILE, faults=(ConfigFault("the installation", error.what, error.remedy),))


def workspace_layer(workspace: Path) -> Layer:
    """The settings that a workspace brings, as they are there: see `narrowing` for what it may set."""
    where = escaped(str(workspace / WORKSPACE_FOLDER / FILE))
    try:
        content = read_beneath(workspace, WORKSPACE_FOLDER, FILE)
    except (FileNotFoundError, NotADirectoryError):
        return Layer(where)
    except OSError as error:
        what = f"the file cannot be read ({reason_of(error)})"
        return Layer(where, faults=(ConfigFault(where, what, "it must be a plain file, not a link"),))
    return text_layer(where, content, lined=True)


class _Merged:
    """The layers so far, the nearest last."""

    def __init__(self) -> None:
        self.values: dict[str, Value] = default_values()
        self.sources: dict[str, str] = {}
        self.faults: list[ConfigFault] = []

    def add(self, layer: Layer, source: str = "") -> None:
        self.values.update(layer.values)
        self.faults.extend(layer.faults)
        if source != SHIPPED:
            self.sources.update(dict.fromkeys(layer.values, layer.where))

    def loaded(self) -> LoadedSettings:
        context = build(self.values).context
        if context.reset_to >= context.reset_at:
            self._put_back("context.reset_to", "context.reset_at")
        return LoadedSettings(build(self.values), self.sources, tuple(self.faults))

    def _put_back(self, low: str, high: str) -> None:
        """Take what ships for two settings of which the first is not below the second."""
        where = self.sources.get(low) or self.sources.get(high) or SHIPPED
        what = f"`{low}` ({self.values[low]}) must be below `{high}` ({self.values[high]})"
        self.faults.append(ConfigFault(where, what, "the shipped values of both are used", key=low))
        for key in (low, high):
            self.values[key] = default_values()[key]
            self.sources.pop(key, None)
