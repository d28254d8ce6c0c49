"""What the terminal is told besides the picture: its title, and that a long turn has ended while nobody looked."""

from __future__ import annotations

import asyncio
import os
from asyncio.subprocess import DEVNULL, PIPE
from time import monotonic
from typing import TYPE_CHECKING, ClassVar

from textual.app import App

from tui_agent.ui.keys.keyboard import Keyboard
from tui_agent.ui.sink import one_line
from tui_agent.ui.textual_patches.driver import driver_of

if TYPE_CHECKING:
    from tui_agent.store.state import State

#: Seconds without a key after which nobody looks.
AWAY = 20.0
#: Seconds in which tmux takes a text that is copied.
TMUX_WITHIN = 3.0


class Signals:
    """Shown the state like a pane. A terminal that has the focus, and was typed into, needs no bell."""

    SLICES: ClassVar[tuple[str, ...]] = ("turn", "asked", "session")

    def __init__(self, app: App[int], keyboard: Keyboard, workspace: str, long: float) -> None:
        """A turn of so many seconds is worth a bell; with 0 none is."""
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
    """Whether tmux, in which the program runs, took the text: into its buffer, and for the terminal around it."""
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
    """A sequence for the terminal that tmux or screen runs in, as they pass it on; itself where there is neither."""
    if os.environ.get("TMUX"):
        return "\x1bPtmux;" + sequence.replace("\x1b", "\x1b\x1b") + "\x1b\\"
    return f"\x1bP{sequence}\x1b\\" if os.environ.get("STY") else sequence
