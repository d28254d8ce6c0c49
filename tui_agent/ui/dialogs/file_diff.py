"""A file as it is now against the last commit, or against how any apply left it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.widget import Widget
from textual.widgets import Static

from tui_agent.edits.change import Diff
from tui_agent.errors import TuiAgentError
from tui_agent.review.versions import Version
from tui_agent.session.session import Session
from tui_agent.ui.dialogs.dialog import Dialog
from tui_agent.ui.sink import label
from tui_agent.ui.widgets.diff_sides import DiffSides
from tui_agent.ui.widgets.diff_view import DiffView


class FileDiff(Dialog[None], inherit_bindings=False):
    """Keys go to an earlier or later version, from hunk to hunk, and between one column and two."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "dismiss(None)", show=False),
        Binding("left,[", "version(1)", show=False),
        Binding("right,]", "version(-1)", show=False),
        Binding("n", "hunk(1)", show=False),
        Binding("p", "hunk(-1)", show=False),
        Binding("v", "columns", show=False),
    ]
    DEFAULT_CSS = """
    FileDiff {
        align: center top; background: $background 40%;
        & > Vertical { width: 96%; height: 90%; margin-top: 1; background: $overlay; padding: 1 2; }
        & .title { height: 1; color: $accent; text-style: bold; }
        & .hint { height: 1; color: $muted; }
        & DiffView { height: 1fr; }
    }
    """

    def __init__(self, session: Session, path: str) -> None:
        super().__init__()
        self._session = session
        self._path = path
        self._versions: Sequence[Version] = session.versions()
        self._at = 0
        self._hunk = 0
        self._diff: Diff | str = ""
        self._in_two = False

    def compose(self) -> Iterable[Widget]:
        with Vertical():
            yield Static("", classes="title", markup=False)
            yield DiffView(id="one")
            yield DiffSides(id="two")
            hint = "← → another version   n p hunk   v columns   Esc close"
            yield Static(hint, classes="hint", markup=False)

    def on_mount(self) -> None:
        self._load()

    def action_version(self, step: int) -> None:
        self._at = max(0, min(self._at + step, len(self._versions) - 1))
        self._load()

    def action_hunk(self, step: int) -> None:
        if isinstance(self._diff, Diff) and self._diff.hunks:
            self._hunk = max(0, min(self._hunk + step, len(self._diff.hunks) - 1))
            self._draw()

    def action_columns(self) -> None:
        self._in_two = not self._in_two
        self._draw()

    def _load(self) -> None:
        self._hunk = 0
        self.fill(self._fetch(self._versions[self._at].name))

    async def _fetch(self, version: str) -> None:
        try:
            self._diff = diff = await self._session.version_diff(self._path, version)
            await self.query_one("#two" if self._in_two else "#one", DiffView).get_ready(diff)
        except TuiAgentError as error:
            self._diff = str(error)
        self._draw()

    def _draw(self) -> None:
        version = self._versions[self._at]
        about = f"{self._path} against {version.words} ({self._at + 1} of {len(self._versions)})"
        self.query_one(".title", Static).update(label(about))
        one, two = self.query_one("#one", DiffView), self.query_one("#two", DiffView)
        view, other = (two, one) if self._in_two else (one, two)
        view.display, other.display = True, False
        view.focus()
        if isinstance(self._diff, str):
            view.show_words(self._diff)
        elif not self._diff.hunks:
            view.show_words("No line differs.")
        else:
            view.show_diff(self._diff, (), self._hunk)
