"""`tui-agent trust`: give, list and take back the trust in a workspace."""

from __future__ import annotations

import os
from pathlib import Path

import click

from tui_agent.settings import trust
from tui_agent.settings.faults import visible
from tui_agent.settings.folders import user_folders


def give(workspace: Path) -> int:
    """Trust the workspace with what it brings now, and say what that is."""
    entry = trust.trust(workspace, user_folders())
    click.echo(f"Trusted {visible(entry.path)}")
    for name in entry.files:
        click.echo(f"  {visible(name)}")
    if not entry.files:
        click.echo("  It brings nothing so far; a .tui-agent/ that appears later is not trusted by this.")
    return 0


def show() -> int:
    """Every workspace that is trusted, one a line, with what has become of it."""
    folders = user_folders()
    for entry in trust.trusted(folders):
        standing = trust.standing(Path(entry.path), folders)
        click.echo(
            f"{visible(entry.path)}" + (f"  ({_changed(entry.path)})" if standing != "trusted" else "")
        )
    return 0


def revoke(path: str) -> int:
    """Take the trust back; the folder need not exist any more."""
    workspace = Path(os.path.realpath(os.path.expanduser(path)))
    if trust.revoke(workspace, user_folders()):
        click.echo(f"No longer trusted: {visible(str(workspace))}")
    else:
        click.echo(f"It was not trusted: {visible(str(workspace))}")
    return 0


def _changed(path: str) -> str:
    return "changed since: no longer in force" if os.path.isdir(path) else "gone"
