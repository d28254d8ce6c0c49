"""The dependencies of a turn, for its tools and its requests."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tui_agent.model.local import ProviderFiles
from tui_agent.model.rate_limit import Allowance
from tui_agent.tools.context import ToolContext
from tui_agent.turn.caches import ConversationCache, Texts

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from tui_agent.answers.schema import Function, Schema
    from tui_agent.store.commands import CheckResult
    from tui_agent.tools.tool import Tool


@dataclass(frozen=True, kw_only=True)
class TurnContext(ToolContext):
    """The collaborators of a turn.

    `texts` caches instruction files, `sent` the sent messages. `user_folder` holds the user's own
    instructions.
    """

    prompt_words: dict[str, Any]
    reply_schema: dict[str, Any]
    start_folder: str
    #: The remaining requests of the prompt this turn belongs to.
    requests: Allowance = field(default_factory=Allowance)
    texts: Texts = field(default_factory=Texts)
    sent: ConversationCache = field(default_factory=ConversationCache)
    user_folder: Path | None = None
    #: The planner's prompt and the schema of its response. An empty prompt selects the built-in planner.
    planning_words: dict[str, Any] = field(default_factory=dict)
    planning_schema: dict[str, Any] = field(default_factory=dict)
    #: Uploaded files; None sends files as text.
    provider_files: ProviderFiles | None = None

    #: Runs the checks on the proposed changes; the argument is the number of earlier repair requests. None if
    #: no checks are configured.
    run_checks: Callable[[int], Awaitable[tuple[CheckResult, ...]]] | None = None

    #: Replaces resources of servers that a message names; returns the message and the text of the resources.
    #: Raises a `TuiAgentError`.
    resources: Callable[[str], Awaitable[tuple[str, str]]] | None = None

    @property
    def tools(self) -> tuple[Tool, ...]:
        """The enabled tools; a subset if the model's window is small."""
        from tui_agent.tools.permission import has_tool
        from tui_agent.tools.registry import switched_on

        model, off = self.state().model, self.settings.tools.off
        on = tuple(tool for tool in switched_on(off, few=model.small) if tool.offered(self))
        if self.state().agents:
            from tui_agent.tools.spawn_subtasks import TOOL, with_agents

            on = tuple(with_agents(tool) if tool is TOOL else tool for tool in on)
        listed = self.state().server_tools
        if not model.small and (listed.inline or listed.by_name):
            from tui_agent.tools.server_tools import server_tools

            on = (*on, *server_tools(listed, off, as_calls=model.protocol == "tools"))
        return tuple(tool for tool in on if has_tool(self.only, tool.name)) if self.only else on

    @property
    def functions(self) -> tuple[Function, ...]:
        return tuple(tool.function for tool in self.tools)

    @property
    def schema(self) -> Schema:
        from tui_agent.tools.registry import reply_schema

        return reply_schema(self.reply_schema, self.tools)
