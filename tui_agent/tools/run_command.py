"""Tool that runs a command in a trial view with the proposed changes."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from tui_agent.context.blocks import head_and_tail, inert, name
from tui_agent.errors import TuiAgentError
from tui_agent.files.masking import masked
from tui_agent.files.numbers import amount
from tui_agent.store.commands import FULL_VIEWS, CommandResult
from tui_agent.tools.tool import CallContext, Emit, Invocation, Tool, ToolContext, ToolResult, Verdict, error

#: Minimum characters per token of code and messages.
LETTERS = 3
MOST_NAMES = 50
_ENDINGS = {
    "time-out": "stopped: it exceeded its time limit",
    "stopped": "stopped by the person",
    "memory": "ended: it exceeded its memory limit",
    "processes": "ended: it exceeded its process limit",
    "keyboard": "ended: it waited for keyboard input",
    "output": "ended: it exceeded its output limit",
    "proposal": "stopped: the proposed changes are different now",
    "place": "not run: the place could not be reached, or was lost",
    "background": (
        "runs in the background, with a loopback of its own; your next commands run beside it, until what is proposed "
        "changes"
    ),
}


async def run(call: Invocation, context: ToolContext, emit: Emit) -> ToolResult:
    if context.calls.run_command is None:
        return error("commands cannot be run here")
    sections: list[str] = []
    results: list[CommandResult] = []
    for entry in call.entries:
        command, most = str(entry["command"]), context.core.settings.commands.timeout
        timeout = amount(entry.get("timeout"), most, most=most) or most
        try:
            background, place = entry.get("background") is True, str(entry.get("place") or "")
            result = await context.calls.run_command(command, timeout, background, place)
        except TuiAgentError as refused:
            return error(str(refused))
        results.append(result)
        sections.append(
            await asyncio.to_thread(section, result, context.core.settings.commands.output_tokens)
        )
    return ToolResult(
        "\n\n".join(sections),
        ok=all(result.ok for result in results),
        amount=", ".join(_ending(result) for result in results),
        details="\n\n".join(result.output for result in results),
    )


def section(result: CommandResult, tokens: int) -> str:
    shown, left = head_and_tail(masked(result.output), tokens * LETTERS)
    cut = f"\n{left + result.cut:,} lines are skipped." if left + result.cut else ""
    changed = f"\nIt changed, and that was thrown away: {_names(result.changed)}" if result.changed else ""
    left_running = f"\nIt left running, and that was ended: {_names(result.left)}" if result.left else ""
    where = f"\nIt ran in the place {inert(result.place)}." if result.place else ""
    if result.where == "workspace":
        where = "\nIt ran in the real folder, without what is proposed; what it wrote is there."
    head = f"## COMMAND RESULT\n{inert(result.command)}\n{_ending(result)}, {result.seconds:.1f} s{where}"
    return f"{head}{cut}{changed}{left_running}{about_view(result)}\n\n{inert(shown)}"


def about_view(result: CommandResult) -> str:
    lines = [f"Why, as it seems: {result.cause}"] if result.cause else []
    if result.report:
        lines.append(f"Its view: {'; '.join(result.report)}")
    return "".join(f"\n{inert(line)}" for line in lines)


def _names(names: Sequence[str]) -> str:
    return ", ".join(name(one) for one in names[:MOST_NAMES])


def _ending(result: CommandResult) -> str:
    return _ENDINGS.get(result.how, f"exit {result.status}")


async def _circumstances(call: Invocation, context: ToolContext) -> CallContext:
    """A full view discards all effects and needs no approval; a copy needs one per session, the real folder
    one per run.
    """
    always: Verdict = "ask" if context.core.settings.commands.ask == "always" else "allow"
    if context.calls.isolation is None or (call.entries and all(map(_place, call.entries))):
        return CallContext(always)
    isolated, words = await context.calls.isolation()
    if isolated in FULL_VIEWS:
        return CallContext(always, covers=isolated)
    if isolated == "none":
        return CallContext("ask", f"It would run {words}.", isolated, "never")
    remembered = "exactly" if always == "ask" else "session"
    return CallContext("ask", f"It would run {words}.", isolated, remembered)


def _place(entry: Any) -> str:
    return str(entry.get("place") or "") if isinstance(entry, dict) else ""


def _commands(call: Invocation) -> tuple[str, ...]:
    return tuple(str(entry.get("command", "")) for entry in call.entries if isinstance(entry, dict))


def _exactly(call: Invocation) -> str:
    return "\n".join(
        str(entry.get("command", ""))
        + (f"\n  at most {entry['timeout']} s" if entry.get("timeout") else "")
        + ("\n  in the background" if entry.get("background") is True else "")
        + (f"\n  in the place {_place(entry)}" if _place(entry) else "")
        for entry in call.entries
        if isinstance(entry, dict)
    )


_ENTRY: dict[str, Any] = {
    "type": "object",
    "properties": {
        "command": {"type": "string", "minLength": 1},
        "why": {"type": "string", "description": "In a few words, for the person."},
        "timeout": {"type": "number", "minimum": 1, "description": "Seconds."},
        "background": {"type": "boolean", "description": "For a server: your next commands run beside it."},
        "place": {
            "type": "string",
            "description": "A container or host; only one that the system prompt names.",
        },
    },
    "required": ["command"],
    "additionalProperties": False,
}

TOOL = Tool(
    name="run_command",
    key="commands",
    words=(
        "Run a shell command on the workspace with your proposed changes in place. What it writes is thrown away; it "
        "has no network, no terminal, and keeps no state (`cd`, `export`) between runs."
    ),
    entry=_ENTRY,
    example={"command": "pytest -q tests/test_api.py", "why": "test the change"},
    place=55,
    run=run,
    parallel=False,
    acts=True,
    # Includes `@place`, so that no rule for commands here allows one there.
    targets=lambda call: (
        *_commands(call),
        *(f"@{_place(one)} {one.get('command', '')}" for one in call.entries if _place(one)),
    ),
    circumstances=_circumstances,
    exact=True,
    preview=_exactly,
    line=lambda call: "; ".join(_commands(call)),
)
