"""Prepares a turn: starts the model process, imports modules, compiles path tables."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from tui_agent.errors import TuiAgentError
from tui_agent.files.lazy_regex import compile_in
from tui_agent.files.sensitive_paths import governs, is_secret
from tui_agent.log.core import Core
from tui_agent.processes.background import in_background, pause
from tui_agent.session.models import ModelAccess
from tui_agent.store.event import Event
from tui_agent.store.events import LASTING, DraftChanged
from tui_agent.store.state import State

if TYPE_CHECKING:
    from tui_agent.turn.context import TurnContext

#: Imported in a thread, because an import on the loop would block the keyboard at the first Enter.
MODULES: Final = ("tui_agent.turn.turn",)
SOME_NEED: Final = ("tui_agent.subtasks.scheduler", "tui_agent.model.login.access")

#: Packages with regular expressions for requests and replies.
READING: Final = tuple(f"tui_agent.{name}." for name in ("context", "files", "planning", "answers", "edits"))

#: Seconds between connection attempts while the user types.
WARM_SECONDS = 10.0


class Preparation:
    def __init__(self, core: Core, models: ModelAccess, context: Callable[[], TurnContext]) -> None:
        self._store = core.journal.store
        self._models = models
        self._workspace = core.workspace
        self._context = context
        self._work: asyncio.Task[None] | None = None
        self._index: asyncio.Task[None] | None = None
        self._warming: asyncio.Task[None] | None = None
        self._view: asyncio.Task[None] | None = None
        self._warmed = -WARM_SECONDS
        self._open = True
        self._interactive = True

    def start(self, *, interactive: bool) -> None:
        """Starts with the first message, or at once in headless mode."""
        self._interactive = interactive
        if not interactive:
            self._begin()
            self._warm()
            return
        self._store.subscribe(self._on_state)
        self._on_state(None, self._store.state)

    async def end(self) -> None:
        self._begin()
        assert self._work is not None
        await asyncio.shield(self._work)
        await self._models.get_ready()

    async def close(self) -> None:
        self._open = False
        for task in filter(None, (self._work, self._index, self._warming, self._view)):
            task.cancel()
            await asyncio.wait([task])

    def _on_state(self, event: Event | None, state: State) -> None:
        if self._index is None and state.turn_expected:
            self._begin()
            self._index = asyncio.create_task(self._warm_index(), name="preparation: index")
        if self._view is None and state.turn.phase == "streaming":
            # Prepares a view for the model's proposal.
            self._view = asyncio.create_task(
                in_background(partial(_plan_view, self._workspace.root), self._is_open, can_wait=True),
                name="preparation: view",
            )
        if isinstance(event, DraftChanged) and len(event.text) > 1:
            self._warm()

    def _warm(self) -> None:
        now = time.monotonic()
        if now - self._warmed > WARM_SECONDS and (self._warming is None or self._warming.done()):
            self._warmed = now
            self._warming = asyncio.create_task(self._models.warm(), name="preparation: connection")

    def _begin(self) -> None:
        if self._work is None:
            self._work = asyncio.create_task(self._prepare(), name="preparation")

    async def _prepare(self) -> None:
        await self._models.start()
        for module in MODULES:
            # Without a screen, no keys need priority.
            await (in_background if self._interactive else asyncio.to_thread)(partial(import_module, module))
        if self._interactive:
            for module in SOME_NEED:
                await in_background(partial(import_module, module))
            await in_background(_import_tools)
            await in_background(partial(compile_in, *READING, between=pause))
            await in_background(_learn_events)

    async def _warm_index(self) -> None:
        await self._workspace.ready()
        await in_background(self._workspace.index.warm)
        await in_background(lambda: (is_secret("a"), governs("a")))  # compiles their expressions
        assert self._work is not None, "it begins with this"
        await asyncio.wait([self._work])
        await in_background(partial(_look_ahead, self._context()), self._is_open)

    def _is_open(self) -> bool:
        return self._open


def _plan_view(root: Path) -> None:
    from tui_agent.sandbox.view_plan import NoView, plan

    with suppress(NoView, OSError):
        plan(root)


def _look_ahead(context: TurnContext) -> None:
    from tui_agent.turn.instructions import look_ahead

    with suppress(TuiAgentError, OSError):  # reported by the request
        look_ahead(context)
        pause()
        context.secrets.look(context.core.state.secrets, pause)
        context.sent.read_ahead(context.core.blobs, context.core.state.conversation.messages, pause)


def prepare_process() -> None:
    """Imports and compiles all that its forks need for a turn. Blocking."""
    for module in (*MODULES, *SOME_NEED):
        import_module(module)
    _import_tools()
    compile_in(*READING)
    _learn_events()


def _learn_events() -> None:
    for event in LASTING.values():
        pause()
        with suppress(msgspec.ValidationError):
            msgspec.json.decode(b"{}", type=event)


def _import_tools() -> None:
    from tui_agent.tools.tool import all_tools

    all_tools()
