"""`tui-agent mcp list|test|login|logout|on|off|import`: servers of the Model Context Protocol without a screen."""

from __future__ import annotations

import asyncio
import sys
from contextlib import aclosing
from pathlib import Path

import click
from msgspec import Struct

from tui_agent.errors import ServerFailed, UsageError
from tui_agent.files.text import escaped
from tui_agent.headless import arguments
from tui_agent.headless.arguments import CommandGroup
from tui_agent.headless.login_command import forget_login, read_pasted
from tui_agent.headless.output import error, json_line, note, row, write_text
from tui_agent.mcp_servers.servers import (
    ConfiguredServers,
    ToolServer,
    as_toml,
    configured,
    login_name,
    servers_of_other_agents,
    switch,
)
from tui_agent.settings.files import append
from tui_agent.settings.folders import user_folders
from tui_agent.settings.loading import load
from tui_agent.settings.trust import load_as_trusted


class ServerLine(Struct, frozen=True):
    """A line of `mcp list --json`: the origin is user or project."""

    name: str
    shown: str
    origin: str
    on: bool


@click.group(cls=CommandGroup)
def mcp() -> None:
    """List, test, enable, log in to and import MCP servers."""


@mcp.command("list")
@arguments.workspace_option
@arguments.json_option
def list_(workspace: str, as_json: bool) -> int:
    """List the servers in your settings and in a trusted .mcp.json."""
    found = _configured(arguments.workspace_folder(workspace))
    for server in found.servers:
        if as_json:
            json_line(ServerLine(server.name, server.shown, server.origin, server.on))
        else:
            theirs = " (of this workspace)" if server.origin == "project" else ""
            row(f"{server.name:<16} {'on ' if server.on else 'off'}  {escaped(server.shown)}{theirs}")
    for problem in found.problems:
        note(problem)
    if not found.servers and not as_json:
        note(
            "No server is configured: write [mcp.servers.NAME] in your settings, or run `tui-agent mcp import`."
        )
    return 0


@mcp.command()
@click.argument("name", required=False)
@arguments.workspace_option
def test(name: str | None, workspace: str) -> int:
    """Start the enabled servers, or NAME, and list their tools, prompts and resources."""
    folder = arguments.workspace_folder(workspace)
    servers = [_named(folder, name)] if name else list(_configured(folder).on)
    if not servers:
        note("No server is enabled: `tui-agent mcp list` lists the servers.")
    return asyncio.run(_test(folder, servers))


@mcp.command()
@click.argument("name")
@arguments.workspace_option
def login(name: str, workspace: str) -> int:
    """Log in to a server with a browser."""
    folder = arguments.workspace_folder(workspace)
    server = _at_address(folder, name)
    pages = asyncio.run(_log_in(folder, server))
    row(f"Logged in at {name}." if pages else f"{name} needs no login.")
    return 0


@mcp.command()
@click.argument("name")
@arguments.workspace_option
def logout(name: str, workspace: str) -> int:
    """Log out of a server."""
    server = _at_address(arguments.workspace_folder(workspace), name)
    was_there = forget_login(login_name(server))
    row(f"Logged out of {name}." if was_there else f"You were not logged in to {name}.")
    return 0


@mcp.command()
@click.argument("name")
@arguments.workspace_option
def on(name: str, workspace: str) -> int:
    """Enable a server of a trusted workspace."""
    folder = arguments.workspace_folder(workspace)
    switch(folder, user_folders(), name, True)
    server = next((one for one in _configured(folder).servers if one.name == name), None)
    row(f"{name} is on: {escaped(server.shown)}" if server else f"{name} is on.")
    return 0


@mcp.command()
@click.argument("name")
@arguments.workspace_option
def off(name: str, workspace: str) -> int:
    """Disable a server of a workspace."""
    switch(arguments.workspace_folder(workspace), user_folders(), name, False)
    row(f"{name} is off.")
    return 0


@mcp.command("import")
@click.argument("names", nargs=-1)
@arguments.workspace_option
@click.option("--yes", is_flag=True, help="Add them to your settings; otherwise only list them.")
def import_(names: tuple[str, ...], workspace: str, yes: bool) -> int:
    """Import MCP servers from the settings of other agents."""
    folders = user_folders()
    found, problems = servers_of_other_agents(Path.home(), arguments.workspace_folder(workspace))
    own = load(folders, None).settings.mcp.servers
    for problem in problems:
        note(problem)
    if missing := [name for name in names if name not in found]:
        raise UsageError(
            f"no other agent has a server {escaped(missing[0])}", f"they have: {', '.join(found) or 'none'}"
        )
    tables = []
    for name, (settings, where) in found.items():
        if names and name not in names:
            continue
        if name in own:
            row(f"{name:<16} skipped: it already exists")
            continue
        row(f"{name:<16} from {where}: {escaped(ToolServer(name, settings).shown)}")
        tables.append(as_toml(name, settings))
    if not tables:
        note("There is nothing to import.")
    elif yes:
        path = append(folders.config, "\n".join(tables))
        row(f"Written to {escaped(str(path))}.")
    else:
        note("Nothing was written: --yes adds these to your settings.")
    return 0


def _configured(folder: Path) -> ConfiguredServers:
    loaded = load_as_trusted(folder)
    for fault in loaded.faults:
        if fault.key.startswith("mcp"):
            error(str(fault))
    return configured(loaded.settings.mcp.servers, folder, user_folders())


def _named(folder: Path, name: str) -> ToolServer:
    found = _configured(folder)
    for server in found.servers:
        if server.name == name and server.on:
            return server
    if any(server.name == name for server in found.servers):
        raise UsageError(f"the server {name} is off", f"`tui-agent mcp on {name}` enables it")
    for problem in found.problems:
        note(problem)
    names = ", ".join(server.name for server in found.servers) or "none"
    raise UsageError(f"there is no server {escaped(name)}", f"the servers are: {names}")


def _at_address(folder: Path, name: str) -> ToolServer:
    server = _named(folder, name)
    if not server.settings.url:
        raise UsageError(f"{name} is a program without a login", "give it a key in its `env`")
    return server


async def _test(folder: Path, servers: list[ToolServer]) -> int:
    from tui_agent.mcp_servers.client import ServerProcess
    from tui_agent.mcp_servers.offer import store_offer, tool_name

    process, failed = ServerProcess(folder, folder), 0
    try:
        for server in servers:
            try:
                offer = await process.offer(server)
            except ServerFailed as failure:
                failed = 1
                error(str(failure))
                continue
            counts = (
                f"{len(offer.tools)} tools, {len(offer.prompts)} prompts, {len(offer.resources)} resources"
            )
            row(f"{server.name}: {counts}")
            for tool in offer.tools:
                first = tool.description.partition("\n")[0][:100]
                row(f"  {tool_name(server.name, tool.name)}  {first}")
            for prompt in offer.prompts:
                row(f"  /{server.name}:{prompt.name} {' '.join(prompt.arguments)}")
            for resource in offer.resources:
                row(f"  @{server.name}:{resource.uri}")
            for problem in offer.problems:
                note(problem)
            try:
                store_offer(user_folders().cache, server.digest, offer)
            except OSError:
                pass  # The next session lists them again.
    finally:
        await process.close()
    return failed


async def _log_in(folder: Path, server: ToolServer) -> int:
    from tui_agent.mcp_servers.client import ServerProcess, need_sdk

    need_sdk()
    process, pages = ServerProcess(folder, folder), 0
    pasted: asyncio.Queue[str] = asyncio.Queue()
    try:
        async with aclosing(process.login(server, pasted)) as opened:
            async for url in opened:
                pages += 1
                write_text(f"Open {url}")
                note("If the browser is on another machine, paste the final address here and press Enter.")
                sys.stdout.flush()
                read_pasted(pasted)
    finally:
        await process.close()
    return pages
