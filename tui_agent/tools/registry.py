"""Registry of tools, with descriptions for both dialects and the prompt."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import Any, Literal

from tui_agent import tools
from tui_agent.answers.schema import Schema
from tui_agent.tools.tool import Tool

Dialect = Literal["tools", "structured"]
#: Tools of a model with a small window.
ESSENTIAL = ("read_files", "propose_changes")
_EXAMPLE = {"summary": "Adds a timeout to both calls.", "message": "Markdown"}


@cache
def all_tools() -> tuple[Tool, ...]:
    modules = (import_module(f"{tools.__name__}.{found.name}") for found in iter_modules(tools.__path__))
    found = [module.TOOL for module in modules if hasattr(module, "TOOL")]
    return tuple(sorted(found, key=lambda tool: (tool.place, tool.name)))


def switched_on(off: Collection[str] = (), *, few: bool = False) -> tuple[Tool, ...]:
    on = [tool for tool in all_tools() if tool.name not in off]
    return tuple(tool for tool in on if tool.name in ESSENTIAL or not few)


def reply_schema(base: Schema, on: Sequence[Tool]) -> Schema:
    """`base` takes precedence."""
    lists = {tool.key: tool.schema for tool in on}
    return {**base, "properties": {**base["properties"], **lists}}


def functions(on: Sequence[Tool]) -> list[Schema]:
    """Uses the format of the OpenAI chat API."""
    found: list[Schema] = []
    for tool in on:
        parameters = tool.entry
        if tool.parameter:
            entries = {key: value for key, value in tool.schema.items() if key != "description"}
            closed = {key: value for key, value in tool.entry.items() if key == "additionalProperties"}
            shapes, needed = {tool.parameter: entries}, [tool.parameter]
            parameters = {"type": "object", "properties": shapes, "required": needed, **closed}
        function = {"name": tool.name, "description": tool.words, "parameters": parameters}
        found.append({"type": "function", "function": function})
    return found


def prompt_sections(on: Sequence[Tool], dialect: Dialect, *, example: bool = True) -> list[str]:
    """A provider that enforces the schema needs no `example`."""
    if not on:
        return []
    if dialect == "tools":
        answering = ", ".join(tool.name for tool in on if tool.answers)
        others = ", ".join(tool.name for tool in on if not tool.answers)
        how = " ".join(
            [
                "# Functions\nEverything but your message is done by functions, and each call gets its own result.",
                f"These show you more, and you go on in the same turn: {answering}." if answering else "",
                f"These are for the person, who decides: {others}." if others else "",
                "Call several in one reply where you can. Never put a change into plain text.",
            ]
        )
    else:
        lines = ["# Keys"]
        if example:
            keys: dict[str, Any] = {**_EXAMPLE, **{tool.key: [tool.example] for tool in on}}
            lines.append(f"All the keys that an answer may have:\n{json.dumps(keys, ensure_ascii=False)}")
        if answering := ", ".join(f"`{tool.key}`" for tool in on if tool.answers):
            lines.append(f"What you ask for by {answering} is answered in the same turn; then go on.")
        how = "\n".join(lines)
    return [how, *(tool.section for tool in on if tool.section)]
