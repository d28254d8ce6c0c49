"""`tui-agent trust`: grant, list and revoke trust in a workspace."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from tui_agent.extensions import trusted
from tui_agent.extensions.markdown_files import described
from tui_agent.files.text import escaped
from tui_agent.headless import arguments
from tui_agent.headless.output import note, row
from tui_agent.mcp_servers.servers import programs_of
from tui_agent.settings import trust as trusts
from tui_agent.settings.folders import user_folders


@click.command()
@click.argument("path", default=".", shell_complete=arguments.folders)
@click.option("--list", "listed", is_flag=True, help="List trusted workspaces.")
@click.option("--revoke", is_flag=True, help="Revoke trust.")
@click.option("--yes", is_flag=True, help="Trust without confirmation.")
def trust(path: str, listed: bool, revoke: bool, yes: bool) -> int:
    """Trust a workspace's .tui-agent/ folder.

    Its settings, prompts, keys and themes are then used, in their current form. PATH defaults to the current folder.
    """
    if listed:
        folders = user_folders()
        entries = trusts.trusted(folders)
        for entry in entries:
            remark = ""
            if trusted.standing(Path(entry.path), folders) != "trusted":
                changed = os.path.isdir(entry.path)
                remark = "  (changed since: no longer trusted)" if changed else "  (gone)"
            row(escaped(entry.path) + remark)
        if not entries:
            note("No workspace is trusted.")
        return 0
    if revoke:
        workspace = Path(os.path.realpath(os.path.expanduser(path)))
        gone = trusts.revoke(workspace, user_folders())
        row(f"{'No longer trusted' if gone else 'It was not trusted'}: {escaped(str(workspace))}")
        return 0
    workspace = arguments.workspace_folder(path)
    _, filters = trusts.trust_scope(workspace)
    entry = trusted.brought(workspace, user_folders())
    asked = yes or (sys.stdin.isatty() and sys.stdout.isatty())
    if asked:
        trusts.trust(workspace, user_folders(), entry)
    row(f"{'Trusted' if asked else 'Would trust'} {escaped(entry.path)}")
    about = described(workspace, user_folders())
    for name in (*entry.files, *entry.extensions):
        row(f"  {escaped(name)}  {escaped(about.get(name, ''))}".rstrip())
    programs = programs_of(workspace)
    for kind, text in programs:
        row(f"  {kind} {escaped(text)}")
    if asked and any(kind != "place" for kind, _ in programs):
        note(
            "Each hook and server is off until you switch it on: `tui-agent hooks on NAME`, `tui-agent mcp on NAME`."
        )
    for key, value in filters:
        row(f"  {escaped(key)} = {escaped(value)}")
    if not asked:
        note("Nothing was trusted, because there is no terminal: --yes trusts exactly these files.")
    elif not entry.files and not entry.extensions:
        row("  It contains nothing yet; a .tui-agent/ folder that is added later needs to be trusted again.")
    return 0
