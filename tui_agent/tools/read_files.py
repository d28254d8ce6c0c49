"""The tool that loads files by chains of patterns."""

from __future__ import annotations

import asyncio
from dataclasses import replace as with_fields
from functools import partial

from tui_agent.answers.plans import FileAction
from tui_agent.context.known_files import LoadedBy
from tui_agent.planning.near_names import completed
from tui_agent.store.events import ActionsAdded
from tui_agent.tools.chains import find_files, named_once, renamed
from tui_agent.tools.context import Emit, ToolContext
from tui_agent.tools.permission import refusal_of_path
from tui_agent.tools.tool import Invocation, Tool, ToolResult


async def run(call: Invocation, context: ToolContext, emit: Emit) -> ToolResult:
    """Executes the actions in order and loads the results."""
    # Before the first await, so that concurrent calls name their actions in order.
    taken = {slot.action.name for slot in context.state().plan.actions} | context.progress.names
    actions = named_once(call.entries, taken)
    context.progress.names |= taken
    actions = await asyncio.to_thread(completed, actions, context.workspace.index)
    actions = tuple(renamed(context, actions))
    await emit(ActionsAdded(actions))
    wanted: list[tuple[FileAction, LoadedBy]] = [(action, "request") for action in actions]
    refusal = partial(refusal_of_path, context.settings.permissions, call.name)
    loaded = await find_files(with_fields(context, refusal=refusal), wanted, (), emit)
    lines, count = sum(file.lines for file in loaded.files), len(loaded.files)
    files = f"{count} file{'' if count == 1 else 's'}, {lines:,} line{'' if lines == 1 else 's'}"
    names = {action.name for action in actions}
    out = sum(len(slot.left_out) for slot in context.state().plan.actions if slot.action.name in names)
    more = f"{out} without room" if out else ""
    return ToolResult(
        loaded=loaded,
        ok=bool(count) and not out,
        amount=", ".join(filter(None, (files if count else "", more))) or "nothing found",
        details="\n".join([*(f"{file.path}: {file.lines:,} lines" for file in loaded.files), *loaded.facts]),
    )


def _targets(call: Invocation) -> tuple[str, ...]:
    return tuple(pattern for action in call.entries for pattern in action.patterns)


TOOL = Tool(
    name="read_files",
    key="fileRequests",
    parameter="actions",
    words="Files you need to see before you can go on.",
    entry={
        "type": "object",
        "properties": {
            "type": {"type": "string", "enum": ["file"]},
            "name": {"type": "string", "description": "What it is, for the person."},
            "patterns": {
                "type": "array",
                "description": (
                    "1-5 patterns, tried in order: exact path, **/name, folder/*, part of the name, extension."
                ),
                "items": {"type": "string", "minLength": 1},
                "minItems": 1,
            },
            "reason": {"type": "string"},
            "required": {"type": "boolean"},
            "fallbackAction": {"type": "string", "enum": ["ask_user", "skip", "create_new"]},
            "all": {"type": "boolean", "description": "Every file that fits, not one."},
            "lines": {
                "type": "array",
                "description": "Only these lines, such as 120-180: of a file that is shown in part.",
                "items": {"type": "string"},
            },
        },
        "required": ["patterns"],
    },
    example={
        "type": "file",
        "name": "Schema",
        "patterns": ["src/schema.ts", "**/schema.ts"],
        "required": True,
        "fallbackAction": "ask_user",
    },
    section=(
        '# Batches\nA request about many files ("all files in docs/", "every test") is one piece of work: ask for them '
        "with ONE request with `all` set, make ONE todo, and propose all changes in ONE reply."
    ),
    place=30,
    run=run,
    targets=_targets,
    shown=lambda call: ", ".join(action.name or action.patterns[0] for action in call.entries),
)
