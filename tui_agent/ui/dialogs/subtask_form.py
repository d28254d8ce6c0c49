"""A sub-task to be written: its id, its goal and its files, over the screen."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import ClassVar, NamedTuple

from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.widget import Widget
from textual.widgets import Input, Static

from tui_agent.errors import TuiAgentError
from tui_agent.ui.dialogs.dialog import Dialog
from tui_agent.ui.sink import label, plain
from tui_agent.ui.widgets.text_area import WritingArea


class Form(NamedTuple):
    """What was written."""

    id: str = ""
    goal: str = ""
    files: tuple[str, ...] = ()


class SubTaskForm(Dialog[None], inherit_bindings=False):
    """Hands what was written to `keep`, and stays with the error's sentence where that was refused.

    With `named` the id can be written too.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss(None)", show=False, priority=True),
        Binding("f2,ctrl+enter", "keep", show=False, priority=True),
        Binding("tab", "app.focus_next", show=False, priority=True),
        Binding("shift+tab", "app.focus_previous", show=False, priority=True),
    ]
    DEFAULT_CSS = """
    SubTaskForm {
        align: center top; background: $background 40%;
        & > Vertical {
            width: 84; max-width: 94%; height: auto; max-height: 90%;
            margin-top: 2; background: $overlay; padding: 1 2;
        }
        & Static { height: 1; color: $muted; }
        & .title { color: $accent; text-style: bold; margin-bottom: 1; }
        & .fault { height: auto; color: $error; }
        & Input { border: none; height: 1; padding: 0 1; margin-bottom: 1; background: $surface; }
        & WritingArea { height: 8; padding: 0 1; margin-bottom: 1; }
    }
    """

    def __init__(
        self, title: str, form: Form, keep: Callable[[Form], Awaitable[None]], *, named: bool = False
    ) -> None:
        super().__init__()
        self._title = title
        self._form = form
        self._keep = keep
        self._named = named

    def compose(self) -> Iterable[Widget]:
        with Vertical():
            yield Static(label(self._title), classes="title", markup=False)
            if self._named:
                yield Static(label("id, a short name"), markup=False)
                yield Input(id="name", compact=True)
            yield Static(label("goal: what is to be done, in words that need no other"), markup=False)
            yield WritingArea(self._form.goal, id="goal", soft_wrap=True, tab_behavior="focus")
            yield Static(label("files that it is about, with commas between; none for any"), markup=False)
            yield Input(", ".join(self._form.files), id="files", compact=True, select_on_focus=False)
            yield Static("", classes="fault", markup=False)
            yield Static(label("F2 keep   Tab next field   Esc leave it as it was"), markup=False)

    def on_mount(self) -> None:
        self.query_one("#name" if self._named else "#goal").focus()

    async def on_input_submitted(self) -> None:
        await self.action_keep()

    async def action_keep(self) -> None:
        try:
            await self._keep(self._written())
        except TuiAgentError as error:
            self.query_one(".fault", Static).update(plain(str(error)))
        else:
            self.dismiss(None)

    def _written(self) -> Form:
        name = self.query_one("#name", Input).value.strip() if self._named else self._form.id
        files = [part.strip() for part in self.query_one("#files", Input).value.split(",")]
        goal = self.query_one("#goal", WritingArea).text.strip()
        return Form(name, goal, tuple(dict.fromkeys(file for file in files if file)))
