"""Servers in the settings of other agents, for `tui-agent mcp import`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from tui_agent.files.structures import Unreadable, read_json, read_toml
from tui_agent.mcp_servers.servers import from_tables
from tui_agent.settings.files import read_small, reason_of
from tui_agent.settings.schema import ServerSettings

#: The files below the home folder, and the key of their servers.
FILES = (
    (".claude.json", "mcpServers"),
    (".codex/config.toml", "mcp_servers"),
    (".cursor/mcp.json", "mcpServers"),
    (".gemini/settings.json", "mcpServers"),
    (".codeium/windsurf/mcp_config.json", "mcpServers"),
    (".config/Claude/claude_desktop_config.json", "mcpServers"),
    ("Library/Application Support/Claude/claude_desktop_config.json", "mcpServers"),
    (".config/Code/User/mcp.json", "servers"),
    ("Library/Application Support/Code/User/mcp.json", "servers"),
    (".copilot/mcp-config.json", "mcpServers"),
    (".config/opencode/opencode.json", "mcp"),
    (".config/opencode/opencode.jsonc", "mcp"),
    (".config/amp/settings.json", "amp.mcpServers"),
    (".config/zed/settings.json", "context_servers"),
)
#: Maximum bytes of a file; that of Claude Code has the history of all workspaces.
MAX_BYTES = 64 << 20
#: Spellings of a variable in other agents' files.
_SPELLINGS = re.compile(r"\$\{env:([A-Za-z_]\w*)\}|\{env:([A-Za-z_]\w*)\}")
_BARE = re.compile(r"\$([A-Za-z_]\w*)")
_PLACES = (("${workspaceFolder}", "."), ("${userHome}", "${HOME}"))
_COMMENT = re.compile(r'"(?:\\.|[^"\\])*"|//[^\n]*|/\*.*?\*/', re.DOTALL)
_LAST_COMMA = re.compile(r'"(?:\\.|[^"\\])*"|,(?=\s*[\]}])')
_ASKED = re.compile(r"\$\{input:[^}]*\}")


def found(home: Path, workspace: Path) -> tuple[dict[str, tuple[ServerSettings, str]], list[str]]:
    """The servers by name, each with its file, also those that Claude Code has for this workspace. The first file that
    has a name wins. Blocking."""
    servers: dict[str, tuple[ServerSettings, str]] = {}
    problems: list[str] = []
    for name, key in FILES:
        try:
            text = read_small(home / name, MAX_BYTES).decode("utf-8-sig")
        except FileNotFoundError:
            continue
        except OSError as error:
            problems.append(f"~/{name} is left out: it cannot be read ({reason_of(error)})")
            continue
        except UnicodeDecodeError:
            problems.append(f"~/{name} is left out: it is not UTF-8 text")
            continue
        try:
            value = read_toml(text) if name.endswith(".toml") else _json(text)
        except Unreadable as error:
            problems.append(f"~/{name} is left out: {error}")
            continue
        value = value if isinstance(value, dict) else {}
        projects = value.get("projects")
        project = projects.get(str(workspace)) if isinstance(projects, dict) else None
        tables = {
            one: table
            for part in (project, value)
            if isinstance(part, dict) and isinstance(part.get(key), dict)
            for one, table in part[key].items()
        }
        bare = name.startswith(".gemini/")
        entries, more = from_tables(
            {one: _respelt(table, bare) for one, table in tables.items()}, f"~/{name}"
        )
        problems += more
        for one, settings in entries.items():
            servers.setdefault(one, (settings, f"~/{name}"))
    return servers, problems


def _json(text: str) -> Any:
    """Also with comments and commas at the end of lists. Raises Unreadable."""
    try:
        return read_json(text, MAX_BYTES)
    except Unreadable:
        for expression in (_COMMENT, _LAST_COMMA):
            text = expression.sub(lambda match: match[0] if match[0].startswith('"') else " ", text)
        return read_json(text, MAX_BYTES)


def _respelt(value: Any, bare: bool) -> Any:
    """A table with variables as ours spell them; with `bare` also `$NAME`."""
    match value:
        case dict():
            return {key: _respelt(part, bare) for key, part in value.items()}
        case list():
            return [_respelt(part, bare) for part in value]
        case str():
            for place, ours in _PLACES:
                value = value.replace(place, ours)
            text = _SPELLINGS.sub(lambda match: f"${{{match[1] or match[2]}}}", value)
            text = _BARE.sub(r"${\1}", text) if bare else text
            return _ASKED.sub(lambda match: "${" + re.sub(r"\W+", "_", match[0][8:-1]).upper() + "}", text)
    return value


def as_toml(name: str, settings: ServerSettings) -> str:
    return "\n".join([f"[mcp.servers.{name}]", *_lines(settings)]) + "\n"


def _lines(settings: ServerSettings) -> Iterator[str]:
    for key, value in msgspec.to_builtins(settings).items():
        if key == "enabled":
            if not value:
                yield "enabled = false"
        elif isinstance(value, dict) and value:
            inner = ", ".join(f"{_quoted(name)} = {_quoted(part)}" for name, part in value.items())
            yield f"{key} = {{{inner}}}"
        elif isinstance(value, list | tuple) and value:
            yield f"{key} = [{', '.join(map(_quoted, value))}]"
        elif isinstance(value, str) and value:
            yield f"{key} = {_quoted(value)}"


def _quoted(text: str) -> str:
    return msgspec.json.encode(text).decode().replace("\x7f", "\\u007f")
