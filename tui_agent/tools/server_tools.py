"""Tools of servers: each as a tool of its own, or all through `describe_tool` and `call_tool`."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Sequence
from functools import lru_cache, partial
from typing import Any

from tui_agent.answers.schema import check, coerced, written_out
from tui_agent.context.blocks import inert
from tui_agent.files.numbers import real_number
from tui_agent.files.text import one_line
from tui_agent.store import events as e
from tui_agent.store.conversation import ListedTool, PermissionDecision, ServerToolsSlice
from tui_agent.tools.permission import permitted
from tui_agent.tools.tool import (
    CallContext,
    Emit,
    Invocation,
    Tool,
    ToolContext,
    ToolResult,
    error,
)

#: Fields, choices, and attempts at a field.
MAX_FIELDS, MAX_CHOICES, MAX_TRIES = 30, 20, 3
DECLINE, TYPED, YES = "decline", "typed", "yes"
_REFUSE = (DECLINE, "Do not answer")


async def ask_person(
    context: ToolContext, emit: Emit, server: str, message: str, schema: dict[str, Any]
) -> tuple[str, dict[str, Any]]:
    fields = schema.get("properties")
    fields = fields if isinstance(fields, dict) else {}
    if context.ask is None or len(fields) > MAX_FIELDS:
        why = "confirmation is not possible here" if context.ask is None else "it has too many fields"
        await emit(e.NoticeGiven("warning", f"A question of the server {server} was declined: {why}"))
        return "decline", {}
    asking = _Asking(context, emit, server, message, f"The server {server} receives the answer.")
    if url := schema.get("url"):
        chosen, _ = await asking.ask(
            f"It wants you to open {url}", ((YES, "I opened it"), _REFUSE), typed=False
        )
        return ("accept" if chosen == YES else "decline"), {}
    if not fields:
        chosen, _ = await asking.ask("", ((YES, "Yes"), _REFUSE), typed=False)
        return ("accept", {}) if chosen == YES else ("decline", {})
    content: dict[str, Any] = {}
    needed = schema.get("required") or ()
    for name, part in fields.items():
        part = part if isinstance(part, dict) else {}
        for attempt in range(MAX_TRIES + 1):
            if attempt == MAX_TRIES:
                return "cancel", {}
            choices = [
                (f"choice {at}", one_line(shown)[:100]) for at, (_, shown) in enumerate(_choices(part))
            ]
            answers = (*(choices or [(TYPED, "Answer")]), _REFUSE)
            chosen, text = await asking.ask(_title(name, part, attempt), answers, typed=not choices)
            if chosen == DECLINE:
                return "decline", {}
            if chosen == TYPED and not text and "default" in part:
                content[name] = part["default"]
                break
            if chosen == TYPED and not text and name not in needed:
                break
            value = _value(part, chosen, text)
            if not check(part, value, name):
                content[name] = value
                break
    return "accept", content


async def ask_permission(
    context: ToolContext, emit: Emit, agent: str, what: str, answers: Sequence[tuple[str, str]]
) -> str:
    asking = _Asking(context, emit, agent, what, f"{agent} works in a view: no file changes until you apply.")
    offered = tuple((key, one_line(name)[:100]) for key, name in answers[:MAX_CHOICES])
    chosen, _ = await asking.ask(what, offered, typed=False)
    return chosen if chosen in dict(offered) else ""


class _Asking:
    def __init__(self, context: ToolContext, emit: Emit, server: str, message: str, about: str) -> None:
        self._context, self._emit, self._server, self._message = context, emit, server, message
        self._about = about
        self._number = 0

    async def ask(self, title: str, answers: tuple[tuple[str, str], ...], *, typed: bool) -> tuple[str, str]:
        self._number += 1
        what = f"{self._server} asks: {one_line(self._message)[:300]}"
        call = f"server_{self._server}_{self._context.turn}_{id(self)}_{self._number}"
        shown = f"{title}\n\n{self._about}" if title else self._message
        digest = hashlib.sha256(call.encode()).hexdigest()
        async with self._context.progress.asking:
            await self._emit(e.PermissionAsked(call, "", what, shown, digest, answers, typed))
            offered = [key for key, _ in answers]
            answer = await self._context.answer(call, offered)
            kept = "no" if answer.path in ("", "no", DECLINE) else "once"
            decision = PermissionDecision(digest, self._server, one_line(self._message)[:100], answer=kept)
            await self._emit(e.PermissionDecided(decision))
        chosen = answer.path if answer.path in offered else DECLINE
        return chosen, " ".join(answer.patterns).strip()


def _title(name: str, part: dict[str, Any], attempt: int) -> str:
    words = part.get("title") or name
    about = f": {part['description']}" if part.get("description") else ""
    again = "This answer is invalid. " if attempt else ""
    several = ", ".join(name for _, name in _choices(part.get("items")))
    more = f" (some of {several}, separated by commas)" if several else ""
    if "default" in part and not _choices(part):
        value = part["default"]
        more += f" (Enter: {', '.join(map(str, value)) if isinstance(value, list) else value})"
    return f"{again}{one_line(str(words))[:100]}{one_line(str(about))[:300]}{one_line(more)[:500]}"


def _choices(part: Any) -> list[tuple[Any, str]]:
    if not isinstance(part, dict):
        return []
    if part.get("type") == "boolean":
        return [(True, "Yes"), (False, "No")]
    options = part.get("oneOf") or part.get("anyOf") or ()
    options = [one for one in options if isinstance(one, dict) and "const" in one]
    if options:
        return [(one["const"], str(one.get("title") or one["const"])) for one in options[:MAX_CHOICES]]
    values, names = part.get("enum"), part.get("enumNames")
    values = values if isinstance(values, list) else []
    names = names if isinstance(names, list) else values
    return [(value, str(name)) for value, name in zip(values[:MAX_CHOICES], names, strict=False)]


def _value(part: dict[str, Any], chosen: str, text: str) -> Any:
    for at, (value, _) in enumerate(_choices(part)):
        if chosen == f"choice {at}":
            return value
    if part.get("type") == "array":
        values = {name.lower(): value for value, name in _choices(part.get("items"))}
        return [values.get(word.lower(), word) for word in map(str.strip, text.split(",")) if word]
    if part.get("type") == "number":
        return real_number(text)
    return coerced(part, text)


DESCRIBE, CALL = "describe_tool", "call_tool"
#: Follows all other tools.
PLACE = 200
#: Tokens of the lines in the prompt; characters of a token.
LINE_TOKENS, LETTERS = 2_000, 4
#: Characters of a description in its line.
LINE = 120


def server_tools(listed: ServerToolsSlice, off: Collection[str], *, as_calls: bool) -> tuple[Tool, ...]:
    """`as_calls`: arguments can be objects, because the model calls functions."""
    return _made(_Key(listed), frozenset(off), as_calls)


class _Key:
    """Compares by identity: schemas cannot be hashed."""

    def __init__(self, listed: ServerToolsSlice) -> None:
        self.listed = listed

    def __hash__(self) -> int:
        return id(self.listed)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Key) and self.listed is other.listed


@lru_cache(maxsize=8)
def _made(key: _Key, off: frozenset[str], as_calls: bool) -> tuple[Tool, ...]:
    listed = key.listed
    inline = tuple(as_tool(one, PLACE + at) for at, one in enumerate(listed.inline) if one.name not in off)
    if not listed.by_name:
        return inline
    return tuple(tool for tool in (_describe(off), _call(off, as_calls)) if tool.name not in off)


def as_tool(listed: ListedTool, place: int = PLACE) -> Tool:
    """The user is asked about each call unless a rule allows it."""
    return Tool(
        name=listed.name,
        key=listed.name,
        words=listed.description or f"A tool of the server {listed.server}.",
        entry={"type": "object", "properties": {}, **listed.schema},
        example={},
        place=place,
        run=partial(_run, listed),
        acts=True,
        verdict=lambda call, context: "ask",
        circumstances=partial(_circumstances, listed.server),
        targets=_arguments_of,
        preview=lambda call: "\n".join(
            (
                call.name,
                *(json.dumps(one, ensure_ascii=False, sort_keys=True, indent=1) for one in call.entries),
            )
        ),
        line=lambda call: _arguments_of(call)[0][:200],
    )


async def _run(listed: ListedTool, call: Invocation, context: ToolContext, emit: Emit) -> ToolResult:
    if context.calls.servers is None:
        return error("there are no servers here.")
    asking = partial(ask_person, context, emit)
    results = [await context.calls.servers.call(listed, entry, asking) for entry in call.entries]
    sections = []
    for result in results:
        text = inert(result.text) or "(an empty result)"
        if result.failed:
            text = f"Error: {listed.name} failed: {text}"
        if result.kept:
            text += f"\nThe person has all of this in {result.kept}"
        sections.append(text if call.is_wire else f"## TOOL RESULT {listed.name}\n{text}")
    return ToolResult(
        "\n\n".join(sections),
        ok=not any(result.failed for result in results),
        amount="failed" if any(result.failed for result in results) else "done",
        pictures=tuple(path for result in results for path in result.pictures),
    )


async def _circumstances(server: str, call: Invocation, context: ToolContext) -> CallContext:
    words = f"The server {server} runs outside of views, with your rights."
    return CallContext(
        words=words, covers=context.calls.servers.covers(server) if context.calls.servers else ""
    )


def _arguments_of(call: Invocation) -> tuple[str, ...]:
    return tuple(json.dumps(entry, ensure_ascii=False, sort_keys=True) for entry in call.entries) or ("",)


def _describe(off: frozenset[str]) -> Tool:
    async def run(call: Invocation, context: ToolContext, emit: Emit) -> ToolResult:
        if context.calls.servers is None:
            return error("there are no servers here.")
        sections = []
        for entry in call.entries:
            name = str(entry["name"])
            if "__" not in name:
                lines = [
                    line(*one) for one in await context.calls.servers.tools_of(name) if one[0] not in off
                ]
                sections.append("\n".join([f"Tools of the server {name}:", *lines]))
                continue
            if name in off:
                sections.append(f"Error: {name} is switched off.")
                continue
            found = await context.calls.servers.find(name)
            shown = json.dumps(found.schema, ensure_ascii=False)
            sections.append(inert(f"{found.name}: {found.description}\nArguments: {shown}"))
        return ToolResult("\n\n".join(sections), amount="read")

    return Tool(
        name=DESCRIBE,
        key="describeTools",
        words="The purpose and schema of a server's tool; or, for the name of a server, the names of its tools.",
        entry={
            "type": "object",
            "properties": {
                "name": {"type": "string", "minLength": 1, "description": "SERVER__TOOL or SERVER."}
            },
            "required": ["name"],
            "additionalProperties": False,
        },
        example={"name": "SERVER__TOOL"},
        place=PLACE,
        run=run,
        targets=_names,
    )


def _call(off: frozenset[str], as_calls: bool) -> Tool:
    async def run(call: Invocation, context: ToolContext, emit: Emit) -> ToolResult:
        results = [await _one(entry, call, context, emit) for entry in call.entries]
        if len(results) == 1:
            return results[0]
        return ToolResult(
            "\n\n".join(result.text for result in results),
            ok=all(result.ok for result in results),
            amount="done",
            denied=any(result.denied for result in results),
            pictures=tuple(path for result in results for path in result.pictures),
        )

    async def _one(entry: Any, call: Invocation, context: ToolContext, emit: Emit) -> ToolResult:
        name = str(entry["name"])
        if context.calls.servers is None or name in off:
            return error(f"{name} is switched off.")
        found = await context.calls.servers.find(name)
        schema = {"type": "object", "properties": {}, **found.schema}
        arguments = coerced(schema, written_out(entry.get("arguments") or {}))
        if not isinstance(arguments, dict):
            return error(f"{name}: its arguments are an object. Its schema: {json.dumps(found.schema)}")
        if faults := check(schema, arguments, name):
            return error(f"{' '.join(faults)[:2_000]} Its schema: {json.dumps(found.schema)}")
        tool = as_tool(found)
        inner = Invocation(
            call.id, name, (arguments,), json.dumps(arguments, ensure_ascii=False), is_wire=call.is_wire
        )
        refused = await permitted(context, tool, inner, emit)
        return refused if refused is not None else await tool.run(inner, context, emit)

    arguments: dict[str, Any] = {"type": "object", "description": "As its schema has them."}
    if not as_calls:
        arguments = {"type": "string", "description": "A JSON object that matches the schema of the tool."}
    return Tool(
        name=CALL,
        key="callTools",
        words="Call a tool of a server. Read its schema with describe_tool first.",
        entry={
            "type": "object",
            "properties": {
                "name": {"type": "string", "minLength": 1, "description": "SERVER__TOOL."},
                "arguments": arguments,
            },
            "required": ["name", "arguments"],
            "additionalProperties": False,
        },
        example={"name": "SERVER__TOOL", "arguments": {} if as_calls else "{}"},
        place=PLACE + 1,
        run=run,
        acts=True,
        targets=_names,
    )


def _names(call: Invocation) -> tuple[str, ...]:
    return tuple(str(entry.get("name", "")) for entry in call.entries)


def line(name: str, description: str) -> str:
    first = " ".join(inert(description).split())
    short = first if len(first) <= LINE else f"{first[:LINE].rstrip()} …"
    return f"- {name}: {short}" if short else f"- {name}"


def prompt_section(listed: ServerToolsSlice, off: Collection[str]) -> tuple[str, int]:
    if not listed.by_name:
        return "", 0
    room = LINE_TOKENS * LETTERS
    lines: list[str] = []
    names = [one for one in listed.named if one[0] not in off]
    for name, description in names:
        made = line(name, description)
        if len(made) > room:
            break
        room -= len(made) + 1
        lines.append(made)
    left_out = len(names) - len(lines)
    if left_out:
        servers = sorted({name.partition("__")[0] for name, _ in names[len(lines) :]})
        lines.append(f"- and {left_out:,} more: describe_tool names the tools of {', '.join(servers)}")
    lines += [f"- {name}: a server whose tools describe_tool names" for name in listed.unknown]
    return "\n".join(
        ["# Tools of servers", "Read a schema with describe_tool, then call the tool with call_tool.", *lines]
    ), left_out
