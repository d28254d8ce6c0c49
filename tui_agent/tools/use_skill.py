"""Tool that reads a skill and files of its folder."""

from __future__ import annotations

from tui_agent.context.blocks import name
from tui_agent.tools.tool import Emit, Invocation, Tool, ToolContext, ToolResult, error


async def run(call: Invocation, context: ToolContext, emit: Emit) -> ToolResult:
    if context.calls.read_skill is None:
        return error("there are no skills here.")
    sections = []
    for entry in call.entries:
        skill, path = str(entry["name"]), str(entry.get("path") or "")
        title = f"## SKILL {name(skill)}" + (f", {name(path)}" if path else "")
        sections.append(f"{title}\n{await context.calls.read_skill(skill, path)}")
    return ToolResult("\n\n".join(sections), amount="read")


TOOL = Tool(
    name="use_skill",
    key="useSkills",
    parameter="skills",
    words="The instructions of a skill, or a file of its folder. Read a skill before work that it describes.",
    entry={
        "type": "object",
        "properties": {
            "name": {"type": "string", "minLength": 1, "description": "A name from the list of skills."},
            "path": {"type": "string", "description": "A file of the skill, relative to its folder."},
        },
        "required": ["name"],
    },
    example={"name": "release"},
    place=58,
    run=run,
    seconds=30.0,
    targets=lambda call: tuple(str(entry["name"]) for entry in call.entries),
    offered=lambda context: bool(context.core.state.skills),
)
