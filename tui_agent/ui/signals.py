"""Terminal title, and a bell at the end of a long turn if the user is away."""

from __future__ import annotations

import asyncio
import os
from asyncio.subprocess import DEVNULL, PIPE
from time import monotonic
from typing import TYPE_CHECKING, ClassVar

from textual.app import App

from tui_agent.ui.keys.keyboard import Keyboard
from tui_agent.ui.safe_text import one_line
from tui_agent.ui.textual_patches.driver import driver_of

if TYPE_CHECKING:
    from tui_agent.store.state import State

#: Seconds without input after which the user counts as away.
AWAY = 20.0
#: Timeout in seconds for copying text through tmux.
TMUX_WITHIN = 3.0


class Signals:
    """State listener. No bell is needed if the terminal has the focus and received recent input."""

    SLICES: ClassVar[tuple[str, ...]] = ("turn", "asked", "session")

    def __init__(self, app: App[int], keyboard: Keyboard, workspace: str, long: float) -> None:
        """Turns of at least `long` seconds ring the bell; 0 disables it."""
        self._app = app
        self._keyboard = keyboard
        self._workspace = one_line(workspace)
        self._long = long
        self._title = ""
        self._since: float | None = None

    def show(self, state: State) -> None:
        asks = state.asked is not None or state.turn.phase == "waiting"
        asking, running = ("asks: ", "runs: ") if getattr(self._app, "plain", False) else ("? ", "● ")
        mark = asking if asks else running if state.turn.running else ""
        title = f"{mark}{self._workspace} · tui-agent"
        if title != self._title:
            self._title = title
            self._write(f"\x1b]2;{title}\x07")
        if state.turn.running:
            self._since = self._since or monotonic()
        elif self._since is not None:
            took, self._since = monotonic() - self._since, None
            if 0 < self._long <= took and self._is_unseen():
                self._write("\a")
                self._write(passed_on(f"\x1b]9;{self._workspace}: turn {state.turn.number} has ended\x07"))

    def _is_unseen(self) -> bool:
        return not self._app.app_focus or self._keyboard.idle >= AWAY

    def _write(self, sequence: str) -> None:
        if (driver := driver_of(self._app)) is not None:
            driver.write(sequence)


async def given_to_tmux(text: str) -> bool:
    """Copy through the surrounding tmux, into its buffer and its terminal's clipboard. Returns whether it
    succeeded."""
    try:
        process = await asyncio.create_subprocess_exec(
            "tmux", "load-buffer", "-w", "-", stdin=PIPE, stdout=DEVNULL, stderr=DEVNULL
        )
    except OSError:
        return False
    try:
        async with asyncio.timeout(TMUX_WITHIN):
            await process.communicate(text.encode(errors="replace"))
    except TimeoutError:
        process.kill()
    return await process.wait() == 0


def passed_on(sequence: str) -> str:
    """Wraps a sequence for the terminal outside tmux or screen. Returns it unchanged without them."""
    if os.environ.get("TMUX"):
        return "\x1bPtmux;" + sequence.replace("\x1b", "\x1b\x1b") + "\x1b\\"
    return f"\x1bP{sequence}\x1b\\" if os.environ.get("STY") else sequence
