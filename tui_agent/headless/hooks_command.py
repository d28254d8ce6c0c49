"""`tui-agent hooks list|on|off`: commands that run at events, without a screen."""

from __future__ import annotations

from pathlib import Path

import click
from msgspec import Struct

from tui_agent.extensions.hooks import configured, switch
from tui_agent.files.text import escaped
from tui_agent.headless import arguments
from tui_agent.headless.arguments import CommandGroup
from tui_agent.headless.output import error, json_line, note, row
from tui_agent.settings.folders import user_folders
from tui_agent.settings.trust import load_as_trusted


class HookLine(Struct, frozen=True):
    """A line of `hooks list --json`: the origin is user, home or project; `off` is why it does not run."""

    name: str
    event: str
    matcher: str
    command: str
    timeout: float
    origin: str
    off: str


@click.group(cls=CommandGroup)
def hooks() -> None:
    """List hooks, and enable those of a Claude Code settings.json."""


@hooks.command("list")
@arguments.workspace_option
@arguments.json_option
def list_(workspace: str, as_json: bool) -> int:
    """List the hooks of your settings, ~/.claude and a trusted workspace."""
    folder, folders = arguments.workspace_folder(workspace), user_folders()
    loaded = load_as_trusted(folder)
    for fault in loaded.faults:
        if fault.key.startswith("hooks"):
            error(str(fault))
    found = configured(loaded.settings.hooks, folder, folders)
    for hook in found.hooks:
        own = hook.settings
        if as_json:
            line = (hook.name, own.event, own.matcher, own.command, own.timeout, hook.origin, hook.off)
            json_line(HookLine(*line))
        else:
            row(f"{hook.name:<24} {hook.off or 'on'}  {escaped(hook.shown)}")
    for problem in found.problems:
        note(problem)
    if not found.hooks and not as_json:
        note("No hooks are configured: add [hooks.NAME] to your settings.")
    return 0


@hooks.command()
@click.argument("name")
@arguments.workspace_option
def on(name: str, workspace: str) -> int:
    """Enable a hook of a settings.json in its present form.


    A later change to it, or to a file that its command names, disables it.
    """
    return _switch(arguments.workspace_folder(workspace), name, True)


@hooks.command()
@click.argument("name")
@arguments.workspace_option
def off(name: str, workspace: str) -> int:
    """Disable a hook of a settings.json."""
    return _switch(arguments.workspace_folder(workspace), name, False)


def _switch(folder: Path, name: str, on: bool) -> int:
    hook = switch(folder, user_folders(), name, on)
    row(f"{hook.name} is {'on' if on else 'off'}: {escaped(hook.shown)}")
    return 0
