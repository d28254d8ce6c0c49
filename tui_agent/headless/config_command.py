"""`tui-agent config path|show|check`: locations, effective settings and faults of the configuration."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path

import click

from tui_agent import debug_log
from tui_agent.files.operating_system import read_start
from tui_agent.files.text import escaped
from tui_agent.headless import arguments
from tui_agent.headless.arguments import CommandGroup
from tui_agent.headless.output import error, row
from tui_agent.settings import trust
from tui_agent.settings.files import ConfigFault, line_of, nearest
from tui_agent.settings.folders import config_folder, themes_folder, user_folders
from tui_agent.settings.loading import (
    FILE,
    WORKSPACE_FOLDER,
    broken_file,
    read_prompts,
    setting_lines,
    workspace_layer,
)
from tui_agent.settings.schema import Settings

#: Tables of keys.toml whose keys act anywhere on the screen, and in one pane.
_ANYWHERE = frozenset({"app", "session", "turn", "changes", "commands", "checks", "pane"})
_PANES = frozenset({"files", "plan", "known", "buffers", "review", "chat", "todos", "subtasks"})


@click.group(cls=CommandGroup)
def config() -> None:
    """Show and check the configuration."""


@config.command()
def path() -> int:
    """Show the paths of the configuration files."""
    workspace = arguments.workspace_folder(".")
    folders = user_folders()
    places = {
        "shipped configuration": config_folder(),
        "shipped themes": themes_folder(),
        "your settings": folders.config / FILE,
        "your keys": folders.config / "keys.toml",
        "your themes": folders.config / "themes",
        "sessions and trust": folders.data,
        "cache": folders.cache,
        "debug log": folders.state / debug_log.NAME,
        "this workspace's settings": workspace / WORKSPACE_FOLDER / FILE,
    }
    width = max(map(len, places))
    for name, place in places.items():
        if not place.exists():
            remark = "  (does not exist)"
        elif place.parent != workspace / WORKSPACE_FOLDER:
            remark = ""
        else:
            remark = {"trusted": "", "changed": "  (changed since it was trusted: ignored)"}.get(
                trust.trust_status(workspace, user_folders()), "  (not trusted: ignored)"
            )
        row(f"{name:<{width}}  {escaped(str(place))}{remark}")
    return 0


@config.command()
@arguments.set_option
def show(settings: tuple[str, ...]) -> int:
    """Show each setting with its value and source."""
    loaded = trust.load_as_trusted(arguments.workspace_folder("."), settings)
    for line in setting_lines(loaded):
        row(line)
    for fault in loaded.faults:
        error(str(fault))
    return 0


@config.command()
def check() -> int:
    """List all errors; exits with 2 if there are any."""
    workspace = arguments.workspace_folder(".")
    loaded = trust.load_as_trusted(workspace)
    faults = [*loaded.faults, *_other_faults(workspace, loaded.settings)]
    for fault in faults:
        error(str(fault))
    if faults:
        return 2
    row("The configuration is valid.")
    return 0


def _other_faults(workspace: Path, settings: Settings) -> Iterator[ConfigFault]:
    folders = user_folders()
    if not trust.is_trusted(workspace, folders):
        yield from workspace_layer(workspace).faults
    for path in (folders.config / "keys.toml", *sorted((folders.config / "themes").glob("*.toml"))):
        fault = broken_file(path)
        if fault is not None:
            yield fault
    yield from read_prompts(folders.config, workspace).faults
    yield from _keys_faults(folders.config / "keys.toml")
    places = (themes_folder(), folders.config / "themes", workspace / WORKSPACE_FOLDER / "themes")
    names = sorted({file.stem for place in places for file in place.glob("*.toml")})
    if settings.theme not in names:
        near = nearest(settings.theme, names)
        remedy = f"did you mean {near}?" if near else f"choose one of {', '.join(names)}"
        yield ConfigFault("theme", f"there is no theme {escaped(settings.theme)}", remedy)
    shares = settings.context
    for name, share in (("reset_at", shares.reset_at), ("condense_at", shares.condense_at)):
        if shares.reset_to >= share:
            yield ConfigFault(
                f"context.{name}",
                f"it is {share:g}, and context.reset_to is {shares.reset_to:g}: nothing would be freed",
                "make reset_to the smaller one",
            )


def _keys_faults(keys: Path) -> Iterator[ConfigFault]:
    try:
        text = read_start(keys).decode()
        own = tomllib.loads(text)
    except (OSError, ValueError):
        return
    shipped = tomllib.loads((config_folder() / "keys.toml").read_text(encoding="utf-8"))
    tables = {group: actions for group, actions in shipped.items() if isinstance(actions, dict)}
    known = {f"{group}.{name}" for group, actions in tables.items() for name in actions}
    bound = {}
    for group, shipped_keys in tables.items():
        mine = own.get(group)
        for name, value in (shipped_keys | (mine if isinstance(mine, dict) else {})).items():
            values = value if isinstance(value, list) else [value]
            bound[f"{group}.{name}"] = {key for key in values if isinstance(key, str) and key}

    def fault(name: str, what: str, remedy: str) -> ConfigFault:
        return ConfigFault(str(keys), what, remedy, line_of(text, name))

    for group, actions in own.items():
        if not isinstance(actions, dict):
            yield fault(group, f"{escaped(group)} is outside a table", "write it under [pane]")
            continue
        for name, value in actions.items():
            action = f"{group}.{name}"
            values = value if isinstance(value, list) else [value]
            if action not in known:
                near = nearest(action, known)
                remedy = f"did you mean {near}?" if near else "the palette (Ctrl+P) lists all actions"
                yield fault(action, f"there is no action {escaped(action)}", remedy)
            elif not all(isinstance(key, str) for key in values):
                yield fault(action, f"the keys of {action} are not text", "write a key or a list of keys")
            else:
                for other in sorted(bound.keys() - {action}):
                    for key in sorted(bound[other].intersection(values)):
                        if _meet(group, other.partition(".")[0], key):
                            what = f"the key {escaped(key)} is bound to {other} and to {action}"
                            yield fault(action, what, "change one")


def _meet(group: str, other: str, key: str) -> bool:
    """Whether a key has two meanings at one place. Keys after the leader are not those of a pane."""
    groups, leads = {group, other}, key.startswith("leader ")
    return group == other or (groups <= _ANYWHERE | _PANES and (leads or not groups <= _PANES))
