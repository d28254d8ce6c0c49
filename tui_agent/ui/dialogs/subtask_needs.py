"""What a sub-task waits for, to be ticked in a list of the others, over the screen."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.widget import Widget
from textual.widgets import Static

from tui_agent.errors import TuiAgentError
from tui_agent.store.graph import SubTask
from tui_agent.ui.dialogs.dialog import Dialog
from tui_agent.ui.sink import label, plain
from tui_agent.ui.widgets.lined import Lined
from tui_agent.ui.widgets.lines import Line, Piece
from tui_agent.ui.widgets.marks import DONE, OPEN
from tui_agent.ui.widgets.rows import Row, Rows


class NeedsForm(Dialog[None], inherit_bindings=False):
    """Hands the ticked ids to `keep`, and stays with the error's sentence where that was refused."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss(None)", show=False),
        Binding("enter,f2", "keep", show=False),
        Binding("space", "tick", show=False),
    ]
    DEFAULT_CSS = """
    NeedsForm {
        align: center top; background: $background 40%;
        & > Vertical {
            width: 84; max-width: 94%; height: auto; max-height: 80%;
            margin-top: 2; background: $overlay; padding: 1 2;
        }
        & Static { height: 1; color: $muted; }
        & .title { color: $accent; text-style: bold; margin-bottom: 1; }
        & .fault { height: auto; color: $error; }
        & Rows { height: auto; max-height: 20; margin-bottom: 1; }
    }
    """

    def __init__(
        self,
        task: SubTask,
        others: Sequence[SubTask],
        keep: Callable[[tuple[str, ...]], Awaitable[None]],
    ) -> None:
        super().__init__()
        self._about = task
        self._others = others
        self._keep = keep
        self._ticked = set(task.dependencies)

    def compose(self) -> Iterable[Widget]:
        with Vertical():
            yield Static(label(f"What {self._about.id} waits for"), classes="title", markup=False)
            yield Rows()
            yield Static("", classes="fault", markup=False)
            yield Static(label("Space tick   Enter keep   Esc leave it as it was"), markup=False)

    def on_mount(self) -> None:
        self._draw()
        self.query_one(Rows).focus()

    def on_lined_chosen(self, event: Lined.Chosen) -> None:
        event.stop()
        self.action_tick()

    def on_lined_marked(self, event: Lined.Marked) -> None:
        event.stop()
        self.query_one(Rows).move_to(event.key)
        self.action_tick()

    def action_tick(self) -> None:
        self._ticked ^= {self.query_one(Rows).cursor}
        self._draw()

    async def action_keep(self) -> None:
        try:
            await self._keep(tuple(other.id for other in self._others if other.id in self._ticked))
        except TuiAgentError as error:
            self.query_one(".fault", Static).update(plain(str(error)))
        else:
            self.dismiss(None)

    def _draw(self) -> None:
        self.query_one(Rows).set_rows([self._row(other) for other in self._others])

    def _row(self, other: SubTask) -> Row:
        mark = DONE if other.id in self._ticked else OPEN
        name = Piece(other.id, "", "end")
        return Row(other.id, Line((mark, Piece(" "), name), (Piece(other.goal[:50], "muted"),)), marked=True)
