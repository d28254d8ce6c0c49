"""Tool that suggests next steps."""

from __future__ import annotations

from tui_agent.tools.tool import Emit, Invocation, Tool, ToolContext, ToolResult, counted


async def run(call: Invocation, context: ToolContext, emit: Emit) -> ToolResult:
    return ToolResult("Offered to the person.", amount=counted(len(call.entries), "choice"))


TOOL = Tool(
    name="suggest_next",
    key="nextSteps",
    parameter="steps",
    words="At most three choices offered to the person.",
    entry={
        "type": "object",
        "properties": {
            "html": {"type": "string", "minLength": 1, "description": "The label, plain text."},
            "inputText": {"type": "string", "description": "The message that choosing it types."},
        },
        "required": ["html", "inputText"],
    },
    example={"html": "Run the tests", "inputText": "continue"},
    place=70,
    run=run,
    answers=False,
    parallel=False,
)
