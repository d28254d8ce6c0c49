"""Random keys, sizes, replies and scrolls: what was drawn piece by piece is the picture drawn as a whole."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from random import Random

import pytest
from support.screens import Driven, on_screen
from textual import events
from textual.app import App
from textual.screen import Screen
from textual.strip import Strip

from tui_agent.store import events as e
from tui_agent.ui.textual_patches.spans import PiecesUpdate

Cells = dict[tuple[int, int], object]
STEPS = 30
#: The first has a dialog on a terminal of 300x100, which is drawn in parts.
SEEDS = (18, 30)
SIZES = ((160, 48), (80, 24), (300, 100), (119, 40), (40, 10), (121, 30))
KEYS = (
    *("pageup", "pagedown", "up", "down", "home", "end", "enter", "tab", "x", "y", "backspace", "escape"),
    *("f3", "f4", "f5", "f6", "f7", "f9", "ctrl+f", "ctrl+r", "ctrl+g"),
    *("f1", "ctrl+p", "ctrl+o j", "ctrl+o p", "ctrl+o k", "ctrl+o o", "ctrl+o s", "ctrl+o h", "ctrl+o a"),
    *(
        "ctrl+o left",
        "ctrl+o right",
        "ctrl+o up",
        "ctrl+o down",
        "ctrl+o",
        "ctrl+o g",
        "f12",
        "ctrl+o shift+m",
    ),
)
WORDS = (
    "one word ",
    "a **longer** piece of a reply ",
    "\n\n",
    "- an item\n",
    "```python\nx = 1\n```\n",
    "| a | b |\n",
)


class Drawn:
    """A terminal: it shows what it was sent, and nothing after it was resized."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.cells: Cells = {}
        display = App._display

        def displayed(app: App[object], screen: Screen[object], update: object) -> None:
            if isinstance(update, PiecesUpdate) and not app._batch_count:
                for piece in update.pieces:
                    self.cells |= cells_of(piece.y, piece.x, piece.strip)
            display(app, screen, update)  # ty: ignore[invalid-argument-type]

        monkeypatch.setattr(App, "_display", displayed)

    def differs(self, it: Driven) -> list[tuple[int, int]]:
        strips = it.app.screen._compositor.render_strips()
        whole = {
            place: cell for y, strip in enumerate(strips) for place, cell in cells_of(y, 0, strip).items()
        }
        return sorted(place for place, cell in whole.items() if self.cells.get(place) != cell)


def cells_of(y: int, x: int, strip: Strip) -> Cells:
    """Each cell of a line without wide letters: its letter and how it looks."""
    found: Cells = {}
    for text, style, _ in strip:
        colours = (style.color, style.bgcolor, style.bold, style.reverse) if style else None
        found.update({(y, x + at): (letter, colours) for at, letter in enumerate(text)})
        x += len(text)
    return found


@pytest.mark.parametrize("seed", SEEDS)
async def test_what_is_drawn_in_pieces_is_the_whole_picture(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    chance = Random(seed)
    for number in range(30):
        (tmp_path / f"module_{number}.py").write_text(f"value_{number} = {number}\n" * 80)
    async with on_screen(tmp_path) as it:
        drawn = Drawn(monkeypatch)
        journal = it.session.journal
        await it.session.files.open("module_1.py")
        await journal.record(e.TurnStarted(1, "go"))

        async def press() -> str:
            key = chance.choice(KEYS)
            await it.press(*key.split())
            return key

        async def grow() -> str:
            words = "".join(chance.choice(WORDS) for _ in range(chance.randrange(1, 9)))
            journal.publish(e.ReplyStreamed("message", words))
            return f"{words!r} streamed"

        async def resize() -> str:
            size = chance.choice(SIZES)
            drawn.cells.clear()
            await it.pilot.resize_terminal(*size)
            return f"{size[0]}x{size[1]}"

        async def wheel() -> str:
            x, y = chance.randrange(it.app.size.width), chance.randrange(it.app.size.height)
            kind = chance.choice((events.MouseScrollUp, events.MouseScrollDown))
            it.app.post_message(kind(None, x, y, 0, 0, 0, False, False, False, x, y))
            return f"wheel at {x}, {y}"

        async def notice() -> str:
            it.app.notify("A notice that comes and goes", timeout=0.1)
            return "notice"

        steps: tuple[Callable[[], Awaitable[str]], ...] = (
            press,
            press,
            press,
            grow,
            grow,
            resize,
            wheel,
            notice,
        )
        done = [await resize()]
        for _ in range(STEPS):
            done.append(await chance.choice(steps)())
            if chance.random() < 0.6:
                await it.until(
                    lambda: not drawn.differs(it), f"the whole picture after {done}: {drawn.differs(it)[:9]}"
                )
