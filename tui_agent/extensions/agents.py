"""Agent prompts: Markdown files with the prompt, the model and the tools of a sub-task."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from tui_agent.extensions.front_matter import parse
from tui_agent.extensions.names import model_of, narrowing
from tui_agent.extensions.places import (
    MAX_ENTRIES,
    ExtensionFolder,
    Origin,
    Problem,
    Unusable,
    entries,
    name_of,
    read_text,
)
from tui_agent.extensions.trusted import TrustedFiles
from tui_agent.files.names import display_path

#: Maximum characters of a description.
MAX_DESCRIPTION = 1_024


class AgentPrompt(Struct, frozen=True):
    """An agent. `key` is its name, or `project:NAME` if the person has another.

    - model: a configured model; "" for the one in use.
    - tools: the tools that it has, with patterns of commands or paths (none: any); None for all.
    - off: tools that it does not have.
    """

    key: str
    description: str
    prompt: str
    origin: Origin
    path: Path
    model: str = ""
    tools: dict[str, tuple[str, ...]] | None = None
    off: tuple[str, ...] = ()


def read_agents(
    places: Sequence[ExtensionFolder], trusted: TrustedFiles, models: Sequence[str]
) -> tuple[list[AgentPrompt], list[Problem]]:
    """All agents in order of precedence, and problems: unusable files, and tools and models that are left out.

    `models` are those that the person has configured. Blocking.
    """
    found: dict[str, AgentPrompt] = {}
    problems: list[Problem] = []
    for place in places:
        for file in (path for path in entries(place.folder) if path.suffix == ".md"):
            if place.origin == "project" and not trusted.holds(file):
                continue
            if len(found) >= MAX_ENTRIES:
                return list(found.values()), [*problems, Problem(file, f"only {MAX_ENTRIES} agents are used")]
            try:
                agent, left_out = _agent(file, place, models)
            except Unusable as error:
                problems.append(Problem(file, error.why, error.line))
                continue
            before = found.get(agent.key)
            if before is not None and before.origin == agent.origin:
                problems.append(Problem(file, f"another agent has the name {agent.key}"))
                continue
            key = agent.key if before is None else f"{agent.origin}:{agent.key}"
            if key not in found:
                found[key] = replace(agent, key=key)
            problems += [Problem(file, why) for why in left_out]
    return list(found.values()), problems


def _agent(file: Path, place: ExtensionFolder, models: Sequence[str]) -> tuple[AgentPrompt, list[str]]:
    document = parse(read_text(file, place.root))
    name = name_of(document.text("name"), file.stem)
    description = document.text("description")
    if not description:
        raise Unusable("its front matter has no description")
    left_out: list[str] = []
    written = document.items("tools", "allowed-tools", "allowedTools")
    named = None if written is None or tuple(written) == ("*",) else narrowing(written)
    banned = narrowing(document.items("disallowedTools", "disallowed-tools") or ())
    if missing := [*(named.left_out if named else ()), *banned.left_out]:
        left_out.append(f"these tools do not exist here: {display_path(', '.join(missing))[:200]}")
    model = model_of(document.text("model"), models)
    if model is None:
        wanted = display_path(document.text("model"))[:80]
        left_out.append(f"the model {wanted}, which is not configured")
    tools = named.tools if named else None
    agent = AgentPrompt(
        name,
        description[:MAX_DESCRIPTION],
        document.body.strip(),
        place.origin,
        file,
        model or "",
        tools,
        tuple(banned.tools),
    )
    return agent, left_out
