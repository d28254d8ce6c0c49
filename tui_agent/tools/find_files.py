"""Tool that finds paths by glob, newest first."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from pathlib import Path

from tui_agent.context.blocks import item, name
from tui_agent.files.numbers import amount
from tui_agent.tools.tool import Emit, Invocation, Tool, ToolContext, ToolResult, counted
from tui_agent.workspace.patterns import InvalidPattern, compile_pattern

#: Default number of listed paths, and maximum number of examined ones.
LIMIT, MOST_LOOKED_AT = 100, 10_000


async def run(call: Invocation, context: ToolContext, emit: Emit) -> ToolResult:
    index, sections, count = context.core.workspace.index, [], 0
    for entry in call.entries:
        glob = str(entry["glob"])
        title = f"## SEARCH RESULTS\nFiles that fit {name(glob)}"
        pattern = compile_pattern(glob.removeprefix("./"), ignore_case=index.ignore_case)
        if isinstance(pattern, InvalidPattern):
            sections.append(f"{title}\nnot a glob: {item(pattern.why)}")
            continue
        limit = max(1, round(amount(entry.get("limit"), LIMIT, most=LIMIT)))
        found = await asyncio.to_thread(index.match, pattern, MOST_LOOKED_AT)
        root = context.core.workspace.root
        newest = await asyncio.to_thread(sorted_by, root, found.paths, lambda status: -status.st_mtime)
        lines = [name(path) for path in newest[:limit]]
        if found.count > len(lines):
            lines.append(f"… {found.count - len(lines):,} more")
        sections.append(f"{title}\n" + ("\n".join(lines) or "none"))
        count += found.count
    return ToolResult("\n\n".join(sections), ok=bool(count), amount=counted(count, "file"))


def sorted_by(root: Path, paths: Sequence[str], key: Callable[[os.stat_result], float]) -> list[str]:
    """A missing file has the key 0. Blocking."""

    def key_of(path: str) -> float:
        try:
            return key((root / path).lstat())
        except OSError:
            return 0.0

    return [path for _, path in sorted((key_of(path), path) for path in paths)]


TOOL = Tool(
    name="find_files",
    key="findFiles",
    words="Paths that fit a glob, the newest first.",
    entry={
        "type": "object",
        "properties": {
            "glob": {"type": "string", "minLength": 1, "description": "Such as src/**/*.py."},
            "limit": {"type": "integer", "minimum": 1, "description": "At most 100."},
        },
        "required": ["glob"],
    },
    example={"glob": "**/*.sql", "limit": 20},
    place=55,
    run=run,
    seconds=30.0,
    targets=lambda call: tuple(str(entry["glob"]) for entry in call.entries),
)
