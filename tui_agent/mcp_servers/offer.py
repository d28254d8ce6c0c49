"""Lists of a server, as the SDK's process sends them and as they are stored between sessions.

All text of a server is hostile: it is bounded and has no control characters here.
"""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from tui_agent.files.operating_system import read_start
from tui_agent.files.private import write_private
from tui_agent.files.text import clean, one_line

#: Tools; prompts and resources of a server.
MAX_TOOLS, MAX_OTHERS = 1_000, 200
#: Characters of a description, of a schema as JSON; depth of a schema.
MAX_WORDS, MAX_SCHEMA, MAX_DEPTH = 1_000, 16_000, 24
MAX_FILE = 32_000_000
#: Maximum characters of a function's name with all providers.
MAX_NAME = 64
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]")


class ServerTool(Struct, frozen=True):
    name: str
    description: str = ""
    schema: dict[str, Any] = {}

    @property
    def digest(self) -> str:
        shown = json.dumps([self.name, self.description, self.schema], sort_keys=True)
        return hashlib.sha256(shown.encode(errors="surrogatepass")).hexdigest()


class ServerPrompt(Struct, frozen=True):
    """A `?` follows an optional argument."""

    name: str
    description: str = ""
    arguments: tuple[str, ...] = ()


class ServerResource(Struct, frozen=True):
    uri: str
    name: str = ""


class ServerOffer(Struct, frozen=True):
    """`problems` are sentences about skipped entries."""

    tools: tuple[ServerTool, ...] = ()
    prompts: tuple[ServerPrompt, ...] = ()
    resources: tuple[ServerResource, ...] = ()
    problems: tuple[str, ...] = ()


class RawOffer(Struct):
    tools: list[dict[str, Any]] = []
    prompts: list[dict[str, Any]] = []
    resources: list[dict[str, Any]] = []
    cut: list[str] = []


def checked_offer(server: str, raw: RawOffer) -> ServerOffer:
    """Slow for thousands of schemas."""
    problems: list[str] = []
    tools: dict[str, ServerTool] = {}
    for one in raw.tools[:MAX_TOOLS]:
        name = str(one.get("name", ""))
        full = tool_name(server, name)
        fault = "" if name else "it has no name"
        fault = fault or (f"its name is that of another tool ({full})" if full in tools else "")
        schema = one.get("schema")
        if isinstance(schema, dict):
            schema = {key: part for key, part in schema.items() if key not in ("$schema", "$id")}
        fault = fault or _fault_of(schema)
        if fault:
            problems.append(f"{server}: the tool {one_line(name)[:60]} is left out: {fault}")
        else:
            assert isinstance(schema, dict)
            tools[full] = ServerTool(name, _words(one.get("description")), _cleaned(schema))
    if len(raw.tools) > MAX_TOOLS:
        problems.append(f"{server} lists more than {MAX_TOOLS:,} tools: the others are left out")
    prompts = tuple(
        ServerPrompt(
            str(one.get("name", "")),
            one_line(_words(one.get("description")))[:200],
            tuple(one_line(str(name))[:60] for name in one.get("arguments") or ()),
        )
        for one in raw.prompts[:MAX_OTHERS]
        if re.fullmatch(r"[\w.:/-]{1,80}", str(one.get("name", "")), re.ASCII)
    )
    resources = tuple(
        ServerResource(str(one.get("uri", "")), one_line(str(one.get("name") or ""))[:200])
        for one in raw.resources[:MAX_OTHERS]
        if str(one.get("uri", "")).isprintable() and len(str(one.get("uri", ""))) <= 500
    )
    problems += [f"{server}: {words}" for words in raw.cut]
    return ServerOffer(tuple(tools.values()), prompts, resources, tuple(problems[:20]))


def tool_name(server: str, tool: str) -> str:
    name = f"{server}__{_NOT_IN_NAMES.sub('_', tool)}"
    if len(name) <= MAX_NAME:
        return name
    return f"{name[: MAX_NAME - 9]}_{hashlib.sha256(tool.encode(errors='surrogatepass')).hexdigest()[:8]}"


def _words(text: Any) -> str:
    words = clean(text).strip() if isinstance(text, str) else ""
    return words if len(words) <= MAX_WORDS else f"{words[:MAX_WORDS].rstrip()} …"


def _fault_of(schema: Any) -> str:
    if not isinstance(schema, dict) or schema.get("type", "object") != "object":
        return "its schema is not that of an object"
    levels: list[list[Any]] = [[schema]]
    while len(levels) <= MAX_DEPTH and (
        parts := [
            part
            for one in levels[-1]
            for part in (one.values() if isinstance(one, dict) else one if isinstance(one, list) else ())
        ]
    ):
        levels.append(parts)
    if len(levels) > MAX_DEPTH:
        return "its schema is nested too deeply"
    size = len(json.dumps(schema))
    if size > MAX_SCHEMA:
        return f"its schema has {size:,} characters, more than {MAX_SCHEMA:,}"
    for table in (one for level in levels for one in level if isinstance(one, dict)):
        named = [table.get(key) for key in ("$ref", "$dynamicRef", "$recursiveRef", "$schema")]
        if any(isinstance(reference, str) and not reference.startswith("#") for reference in named):
            return "its schema refers to another document"
    import jsonschema_rs

    try:
        jsonschema_rs.Draft202012Validator(schema)
    except (ValueError, RecursionError) as error:
        return f"its schema is not valid ({one_line(str(error))[:120]})"
    return ""


def _cleaned(value: Any, key: str = "") -> Any:
    """Removes control characters from texts for people; values that a call repeats stay."""
    if isinstance(value, dict):
        return {name: _cleaned(part, name) for name, part in value.items()}
    if isinstance(value, list):
        return [_cleaned(part, key) for part in value]
    return clean(value) if isinstance(value, str) and key in ("description", "title", "$comment") else value


def stored_offer(cache: Path, digest: str) -> ServerOffer | None:
    """Blocking."""
    try:
        path = _path(cache, digest)
        return msgspec.json.decode(
            read_start(path) if path.stat().st_size <= MAX_FILE else b"", type=ServerOffer
        )
    except (OSError, msgspec.DecodeError, RecursionError):
        return None


def store_offer(cache: Path, digest: str, offer: ServerOffer) -> None:
    """Raises OSError. Blocking."""
    write_private(_path(cache, digest), msgspec.json.encode(offer), sync=False)


def _path(cache: Path, digest: str) -> Path:
    return cache / "mcp" / f"{digest}.json"
