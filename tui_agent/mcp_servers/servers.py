"""Configured servers: the user's own, and those of a trusted workspace that are switched on by name."""

from __future__ import annotations

import hashlib
import os
import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, cast

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from tui_agent.errors import SettingsError
from tui_agent.extensions import hooks
from tui_agent.extensions.trusted import Switches, TrustedFiles
from tui_agent.files.names import display_path
from tui_agent.files.text import escaped, one_line
from tui_agent.settings.files import Unreadable, read_beneath, read_json, read_small, read_toml, reason_of
from tui_agent.settings.folders import Folders
from tui_agent.settings.loading import workspace_layer
from tui_agent.settings.schema import PlaceSettings, ServerSettings

#: A workspace's servers, as other agents read them.
WORKSPACE_FILE = ".mcp.json"
#: Switched-on servers of workspaces, in the data folder.
STORE = "mcp-servers.json"
#: Excludes `__`, which separates it from the name of a tool.
NAME = re.compile(r"(?!.*__)[A-Za-z0-9](?:[A-Za-z0-9_-]{0,30}[A-Za-z0-9])?", re.ASCII)
MAX_SERVERS = 100
Origin = Literal["user", "project"]
_VARIABLE = re.compile(r"\$\{([A-Za-z_]\w*)(?::-([^}]*))?\}")


class ToolServer(Struct, frozen=True):
    """Has its variables filled in. `on` is false for a server that is not switched on."""

    name: str
    settings: ServerSettings
    origin: Origin = "user"
    on: bool = True
    #: As in its file; None if no variables were filled in.
    written: ServerSettings | None = None

    @property
    def digest(self) -> str:
        """Fingerprint of the configuration; a new one makes earlier lists and approvals invalid."""
        settings = replace(self.written or self.settings, enabled=True)
        return hashlib.sha256(msgspec.json.encode([self.name, self.origin, settings])).hexdigest()

    @property
    def shown(self) -> str:
        """Without the values of variables and headers."""
        settings = self.written or self.settings
        words = [settings.command, *settings.args] if settings.command else [settings.url]
        return one_line(" ".join(words))[:200]


def login_name(server: ToolServer) -> str:
    """Depends on the server's address, so that another address never gets its token."""
    digest = hashlib.sha256(server.settings.url.encode(errors="surrogatepass")).hexdigest()[:12]
    return f"mcp {server.name} {digest}"


class ConfiguredServers(Struct, frozen=True):
    servers: tuple[ToolServer, ...] = ()
    problems: tuple[str, ...] = ()

    @property
    def on(self) -> tuple[ToolServer, ...]:
        return tuple(server for server in self.servers if server.on)


def configured(
    own: Mapping[str, ServerSettings],
    workspace: Path,
    folders: Folders,
    environ: Mapping[str, str] | None = None,
) -> ConfiguredServers:
    """The user's servers, then those of a trusted `.mcp.json`; the user's names take precedence. Blocking."""
    environ = os.environ if environ is None else environ
    found, problems = [], []
    for name, settings in own.items():
        try:
            found.append(_server(name, settings, "user", environ))
        except ValueError as error:
            problems.append(f"The server {escaped(name)[:60]} of your settings is left out: {error}")
    theirs, more = _of_workspace(workspace, folders, environ)
    problems += more
    for server in theirs:
        if server.name in {one.name for one in found}:
            problems.append(
                f"{WORKSPACE_FILE}: the server {server.name} is skipped: your settings have one of that name"
            )
        else:
            found.append(server)
    return ConfiguredServers(tuple(found), tuple(problems))


def _of_workspace(
    workspace: Path, folders: Folders, environ: Mapping[str, str]
) -> tuple[list[ToolServer], list[str]]:
    root = Path(os.path.realpath(workspace))
    path = root / WORKSPACE_FILE
    if not os.path.lexists(path):
        return [], []
    trusted = TrustedFiles(root, folders)
    try:
        data = read_beneath(root, WORKSPACE_FILE)
    except OSError as error:
        return [], [f"{WORKSPACE_FILE} is left out: it cannot be read ({reason_of(error)})"]
    if not trusted.holds_bytes(path, hashlib.sha256(data).hexdigest()):
        return [], [f"This workspace defines untrusted MCP servers in {WORKSPACE_FILE}: /trust shows them"]
    entries, problems = read_entries(data, WORKSPACE_FILE)
    switched_on = Switches(folders, STORE).of(str(root))
    found = []
    for name, settings in entries.items():
        try:
            server = _server(name, settings, "project", environ)
        except ValueError as error:
            problems.append(f"{WORKSPACE_FILE}: the server {name} is left out: {error}")
            continue
        kept = _as_written(name, settings)
        found.append(replace(server, on=settings.enabled and switched_on.get(name) == kept))
    off = [server.name for server in found if not server.on]
    if off and not any(name in switched_on for name in off):
        problems.append(
            f"Servers of this workspace are off ({', '.join(off[:5])}): `tui-agent mcp on NAME` enables one"
        )
    for name in off:
        if name in switched_on:
            problems.append(
                f"The server {name} of this workspace has changed: `tui-agent mcp on {name}` accepts it"
            )
    return found, problems


def read_entries(data: bytes, where: str) -> tuple[dict[str, ServerSettings], list[str]]:
    """Returns the servers of a JSON file with `mcpServers` and usable names, and sentences about all others."""
    try:
        value = read_json(data.decode("utf-8-sig"))
    except UnicodeDecodeError:
        return {}, [f"{where} is left out: it is not UTF-8 text"]
    except Unreadable as error:
        return {}, [f"{where} is left out: {error}"]
    tables = value.get("mcpServers", value.get("servers")) if isinstance(value, dict) else None
    if not isinstance(tables, dict):
        return {}, [f"{where} is left out: it has no `mcpServers`"]
    return from_tables(tables, where)


def from_tables(tables: Mapping[str, Any], where: str) -> tuple[dict[str, ServerSettings], list[str]]:
    """Like `read_entries`, for tables by name, in the spellings of several agents."""
    found: dict[str, ServerSettings] = {}
    problems = []
    for name, table in list(tables.items())[:MAX_SERVERS]:
        try:
            found[usable_name(name)] = _entry(table)
        except ValueError as error:
            problems.append(f"{where}: the server {escaped(name)[:60]} is left out: {error}")
    if len(tables) > MAX_SERVERS:
        problems.append(f"{where}: only the first {MAX_SERVERS} of {len(tables):,} servers are read")
    return found, problems


def usable_name(name: str) -> str:
    """Converts the name in another agent's file. Raises ValueError."""
    plain = re.sub(r"[ _.:/@-]*[ .:/@]+[ _.:/@-]*", "-", name.strip(), flags=re.ASCII).strip("-_")
    plain = re.sub(r"__+", "_", plain)
    if not NAME.fullmatch(plain):
        raise ValueError("a name has 1 to 32 letters of a to z, digits, - and _")
    return plain


def _entry(table: Any) -> ServerSettings:
    if not isinstance(table, dict):
        raise ValueError("it is not a table")
    kind = table.get("type", table.get("transport", ""))
    if kind == "sse":
        raise ValueError(
            "it uses the old SSE transport, which is not supported: ask for its streamable HTTP address"
        )
    command, args = table.get("command", ""), table.get("args", [])
    env, headers = table.get("env", table.get("environment")), table.get("headers", table.get("http_headers"))
    if isinstance(command, list) and command:  # OpenCode's single list of words.
        command, args = command[0], [*command[1:], *args]
    elif isinstance(command, dict):  # Older settings of Zed.
        command, args, env = command.get("path", ""), command.get("args", []), command.get("env", env)
    forwarded = table.get("env_vars") if isinstance(table.get("env_vars"), list) else ()
    values = {
        "command": command,
        "args": args,
        "env": _of_variables(env, {str(name): name for name in forwarded}, "${%s:-}"),
        "url": table.get("url", table.get("httpUrl", table.get("serverUrl", ""))),
        "headers": _of_variables(
            _of_variables(headers, table.get("env_http_headers")),
            {"Authorization": table.get("bearer_token_env_var")},
            "Bearer ${%s}",
        ),
        # Not `sampling`: only the user allows it, in our settings.
        "enabled": table.get("enabled", True) is not False and table.get("disabled") is not True,
    }
    try:
        found = msgspec.convert(
            {key: value for key, value in values.items() if value is not None}, ServerSettings
        )
    except msgspec.ValidationError as error:
        raise ValueError(one_line(str(error))) from None
    if not (found.command or found.url):
        raise ValueError("it has neither a command nor a url")
    return found


def _of_variables(values: Any, named: Any, form: str = "${%s}") -> Any:
    pairs = named.items() if isinstance(named, dict) else ()
    more = {key: form % name for key, name in pairs if isinstance(name, str)}
    return {**values, **more} if isinstance(values, dict) else more or values or {}


def _server(name: str, settings: ServerSettings, origin: Origin, environ: Mapping[str, str]) -> ToolServer:
    if not NAME.fullmatch(name):
        raise ValueError("a name has 1 to 32 letters of a to z, digits, - and _, and no `__`")
    if bool(settings.command) == bool(settings.url):
        raise ValueError("it needs either a command or a url")
    if not settings.enabled:
        return ToolServer(name, settings, origin, on=False)
    filled = replace(
        settings,
        command=_filled(settings.command, environ),
        args=tuple(_filled(word, environ) for word in settings.args),
        env={key: _filled(value, environ) for key, value in settings.env.items()},
        url=_filled(settings.url, environ),
        headers={key: _filled(value, environ) for key, value in settings.headers.items()},
    )
    if any("\0" in text for text in (filled.command, *filled.args, *filled.env, *filled.env.values())):
        raise ValueError("it contains a NUL character")
    if filled.url and not re.match(r"https?://[^\s/@]+(?:/\S*)?\Z", filled.url):
        raise ValueError("its url is not an http or https address without a password")
    if any(
        not re.fullmatch(r"[!-9;-~]+", key) or not value.isprintable()
        for key, value in filled.headers.items()
    ):
        raise ValueError("it has a header that HTTP does not allow")
    return ToolServer(name, filled, origin, written=settings)


def _filled(text: str, environ: Mapping[str, str]) -> str:
    def value(found: re.Match[str]) -> str:
        known = environ.get(found[1], "") or found[2]
        if known is None:
            raise ValueError(f"the variable {found[1]} is not set")
        return known

    return _VARIABLE.sub(value, text)


def switch(workspace: Path, folders: Folders, name: str, on: bool) -> None:
    """Raises SettingsError. Blocking."""
    root = Path(os.path.realpath(workspace))
    fingerprint = ""
    if on:
        if not TrustedFiles(root, folders).holds(root / WORKSPACE_FILE):
            raise SettingsError(
                f"{WORKSPACE_FILE} of {display_path(str(root))} is not trusted",
                "review it with `tui-agent trust` first",
            )
        entries, _ = read_entries(read_beneath(root, WORKSPACE_FILE), WORKSPACE_FILE)
        if name not in entries:
            names = ", ".join(entries) or "none"
            raise SettingsError(
                f"{WORKSPACE_FILE} has no server {escaped(name)[:60]}", f"its servers are: {names}"
            )
        fingerprint = _as_written(name, entries[name])
    Switches(folders, STORE).turn(str(root), name, fingerprint)


def programs_of(workspace: Path) -> list[tuple[str, str]]:
    """Returns kind and exact text of each hook, place and server that a workspace's files name, trusted or
    not. Blocking.
    """
    root = Path(os.path.realpath(workspace))
    found = [("hook", f"{hook.name}  {hook.shown}") for hook in hooks.of_workspace(root)[0]]
    places = cast("tuple[PlaceSettings, ...]", workspace_layer(root).values.get("places", ()))
    found += [("place", one_line(f"{one.name}  {one.run}  (copy = {one.copy})")) for one in places]
    try:
        entries, _ = read_entries(read_beneath(root, WORKSPACE_FILE), WORKSPACE_FILE)
    except OSError:
        entries = {}
    for name, settings in entries.items():
        words = shlex.join([settings.command, *settings.args]) if settings.command else settings.url
        named = [f"{key}={value}" for key, value in (*settings.env.items(), *settings.headers.items())]
        found.append(("server", one_line(" ".join([f"{name}  {words}", *named]))))
    return found


def _as_written(name: str, settings: ServerSettings) -> str:
    return hashlib.sha256(msgspec.json.encode([name, settings])).hexdigest()


#: Files below the home folder, and the key of their servers.
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
#: Bytes of a file; that of Claude Code has the history of all workspaces.
MAX_BYTES = 64 << 20
_SPELLINGS = re.compile(r"\$\{env:([A-Za-z_]\w*)\}|\{env:([A-Za-z_]\w*)\}")
_BARE = re.compile(r"\$([A-Za-z_]\w*)")
_PLACES = (("${workspaceFolder}", "."), ("${userHome}", "${HOME}"))
_COMMENT = re.compile(r'"(?:\\.|[^"\\])*"|//[^\n]*|/\*.*?\*/', re.DOTALL)
_LAST_COMMA = re.compile(r'"(?:\\.|[^"\\])*"|,(?=\s*[\]}])')
_ASKED = re.compile(r"\$\{input:[^}]*\}")


def servers_of_other_agents(
    home: Path, workspace: Path
) -> tuple[dict[str, tuple[ServerSettings, str]], list[str]]:
    """Returns servers by name, each with its file, including those that Claude Code has for this workspace.
    The first file that has a name wins. Blocking.
    """
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
    """Accepts comments and commas at the end of lists. Raises Unreadable."""
    try:
        return read_json(text, MAX_BYTES)
    except Unreadable:
        for expression in (_COMMENT, _LAST_COMMA):
            text = expression.sub(lambda match: match[0] if match[0].startswith('"') else " ", text)
        return read_json(text, MAX_BYTES)


def _respelt(value: Any, bare: bool) -> Any:
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
    lines = [f"[mcp.servers.{name}]"]
    for key, value in msgspec.to_builtins(settings).items():
        if key == "enabled":
            lines += [] if value else ["enabled = false"]
        elif isinstance(value, dict) and value:
            inner = ", ".join(f"{_quoted(one)} = {_quoted(part)}" for one, part in value.items())
            lines.append(f"{key} = {{{inner}}}")
        elif isinstance(value, list | tuple) and value:
            lines.append(f"{key} = [{', '.join(map(_quoted, value))}]")
        elif isinstance(value, str) and value:
            lines.append(f"{key} = {_quoted(value)}")
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    return msgspec.json.encode(text).decode().replace("\x7f", "\\u007f")
