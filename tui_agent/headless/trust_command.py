"""`tui-agent trust`: give, list and take back the trust in a workspace."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from tui_agent.files.visible import escaped
from tui_agent.headless.output import note, row
from tui_agent.settings import trust
from tui_agent.settings.folders import user_folders


def give(workspace: Path, yes: bool = False) -> int:
    """Trust the workspace with what it brings now, and say what that is; without `yes`, which a person at a terminal
    need not say, it is only printed."""
    entry, filters = trust.brought(workspace)
    asked = yes or (sys.stdin.isatty() and sys.stdout.isatty())
    if asked:
        trust.trust(workspace, user_folders(), entry)
    row(f"{'Trusted' if asked else 'Would trust'} {escaped(entry.path)}")
    for name in entry.files:
        row(f"  {escaped(name)}")
    for key, value in filters:
        row(f"  {escaped(key)} = {escaped(value)}")
    if not asked:
        note("Nothing is trusted yet: there is no terminal to read this on. --yes trusts exactly this.")
    elif not entry.files:
        row("  It brings nothing so far; a .tui-agent/ that appears later is not trusted by this.")
    return 0


def show() -> int:
    """Every workspace that is trusted, one a line, with what has become of it."""
    folders = user_folders()
    entries = trust.trusted(folders)
    for entry in entries:
        standing = trust.standing(Path(entry.path), folders)
        row(f"{escaped(entry.path)}" + (f"  ({_changed(entry.path)})" if standing != "trusted" else ""))
    if not entries:
        note("No workspace is trusted.")
    return 0


def revoke(path: str) -> int:
    """Revoke the trust; the folder need not exist any more."""
    workspace = Path(os.path.realpath(os.path.expanduser(path)))
    if trust.revoke(workspace, user_folders()):
        row(f"No longer trusted: {escaped(str(workspace))}")
    else:
        row(f"It was not trusted: {escaped(str(workspace))}")
    return 0


def _changed(path: str) -> str:
    return "changed since: no longer in force" if os.path.isdir(path) else "gone"
