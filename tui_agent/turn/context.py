"""What a turn works with: what its tools do, and how the model is spoken to."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tui_agent.model.pacing import Allowance
from tui_agent.model.provider_files import ProviderFiles
from tui_agent.tools.context import ToolContext
from tui_agent.turn.conversation_cache import ConversationCache
from tui_agent.turn.texts import Texts

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from tui_agent.answers.schema import Function, Schema
    from tui_agent.store.checks import CheckResult
    from tui_agent.tools.tool import Tool


@dataclass(frozen=True, kw_only=True)
class TurnContext(ToolContext):
    """The collaborators of a turn. `texts` are instruction files by what the disk last said of them, `sent` the
    messages that went out; `user_folder` is where the person's own instructions lie."""

    prompt_words: dict[str, Any]
    reply_schema: dict[str, Any]
    start_folder: str
    #: What the prompt that this turn belongs to may still ask for.
    requests: Allowance = field(default_factory=Allowance)
    texts: Texts = field(default_factory=Texts)
    sent: ConversationCache = field(default_factory=ConversationCache)
    user_folder: Path | None = None
    #: The planner's words and the shape of its answer; without words the built-in planner plans.
    planning_words: dict[str, Any] = field(default_factory=dict)
    planning_schema: dict[str, Any] = field(default_factory=dict)
    #: Where files are uploaded; None where they go out as text.
    provider_files: ProviderFiles | None = None

    #: Runs the checks on what is proposed, after the model was asked so many times again for what they found; None
    #: where there are no checks.
    run_checks: Callable[[int], Awaitable[tuple[CheckResult, ...]]] | None = None

    @property
    def tools(self) -> tuple[Tool, ...]:
        """The tools that are not switched off; few where the model's window is small."""
        from tui_agent.tools.registry import switched_on

        return switched_on(self.settings.tools.off, few=self.state().model.small)

    @property
    def functions(self) -> tuple[Function, ...]:
        return tuple(tool.function for tool in self.tools)

    @property
    def schema(self) -> Schema:
        """The shape of a structured reply, with the lists of the tools."""
        from tui_agent.tools.registry import reply_schema

        return reply_schema(self.reply_schema, self.tools)
