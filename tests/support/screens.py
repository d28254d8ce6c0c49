"""The whole screen over a real session, driven by keys; only the model answers from a script."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from support import stylesheets
from support.sessions import Reply, open_session
from textual.pilot import Pilot
from textual.widget import Widget

from tui_agent.session.session import Session
from tui_agent.ui.app import WorkspaceApp
from tui_agent.ui.screen import WorkspaceScreen
from tui_agent.ui.themes import Depth
from tui_agent.ui.widgets.pane import Pane

Found = TypeVar("Found", bound=Widget)
PATIENCE = 60.0

stylesheets.share()


class Driven(NamedTuple):
    """The running application, its session, and what presses the keys."""

    app: WorkspaceApp
    session: Session
    pilot: Pilot[int]

    @property
    def screen(self) -> WorkspaceScreen:
        return self.app.workspace_screen

    def pane(self, name: str) -> Pane:
        found = self.screen.workspace.pane(name)
        assert found is not None, f"no pane {name}"
        return found

    def one(self, kind: type[Found]) -> Found:
        return self.screen.query_one(kind)

    @property
    def text(self) -> str:
        """What is on the screen, a line for each row."""
        strips = self.app.screen._compositor.render_strips()
        return "\n".join("".join(segment.text for segment in strip) for strip in strips)

    async def press(self, *keys: str) -> None:
        await self.pilot.press(*keys)

    async def until(self, holds: Callable[[], object], what: str = "") -> None:
        """Wait for a condition; the screen is part of the message when it never comes."""
        deadline = asyncio.get_running_loop().time() + PATIENCE
        pause = 0.01
        while not holds():
            assert asyncio.get_running_loop().time() < deadline, f"never: {what}\n{self.text}"
            await self.pilot.pause(pause)
            pause = min(pause * 1.5, 0.06)  # a look at the screen draws it

    async def shows(self, words: str) -> None:
        await self.until(lambda: words in self.text, f"{words!r} on the screen")

    async def asked(self) -> None:
        """Wait until everything that a key asked of the session is done."""
        await self.pilot.pause()
        await self.app.workers.wait_for_complete([w for w in self.app.workers if w.group == "ask"])
        await self.pilot.pause()


@asynccontextmanager
async def on_screen(
    workspace: Path,
    replies: Sequence[Reply] = (),
    *,
    size: tuple[int, int] = (160, 48),
    prepare: Callable[[Session], None] | None = None,
    keys: str = "default",
    depth: Depth = "colors",
    plain: bool = False,
    **options: Any,
) -> AsyncGenerator[Driven]:
    """The application with every pane in place; `options` go to the session."""
    async with open_session(workspace, replies, services=False, prepare=prepare, **options) as session:

        async def opened() -> Session:
            return session

        app = WorkspaceApp(opened, keys=keys, depth=depth, plain=plain)
        async with app.run_test(size=size, notifications=True) as pilot:
            driven = Driven(app, session, pilot)
            await driven.until(lambda: driven.screen.ready, "the panes in place")
            await pilot.pause()
            yield driven
