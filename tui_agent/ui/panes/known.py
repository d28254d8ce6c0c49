"""The known files: all that the model has seen, and whether it still holds."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.widget import Widget

from tui_agent.session.session import Session
from tui_agent.store.state import KnownSlice, State
from tui_agent.ui.panes.known_rows import heading, known_rows
from tui_agent.ui.sink import label
from tui_agent.ui.widgets.lines import Line, Piece
from tui_agent.ui.widgets.pane import Pane
from tui_agent.ui.widgets.rows import Row, Rows

_EMPTY = "Files that the model has seen are listed here, and what has changed since."


class KnownPane(Pane):
    """A table with its headings; files that changed since they were seen stand first."""

    ID = "known"
    TITLE = "Known"
    SLICES: ClassVar[tuple[str, ...]] = ("known",)

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._known = KnownSlice()
        self._stale_only = False

    def compose(self) -> ComposeResult:
        head = Rows(id="headings")
        head.can_focus = False
        yield head
        yield Rows(id="files")

    @property
    def entry(self) -> Widget:
        return self._files

    def show(self, state: State) -> None:
        self._known = state.known
        self._draw()

    def action_open(self) -> None:
        if self._files.cursor:
            self.ask(self.session.open_file(self._files.cursor))

    def action_toggle_stale(self) -> None:
        """Show all files, or only those that are not what the model saw."""
        self._stale_only = not self._stale_only
        self._draw()

    def on_rows_chosen(self, event: Rows.Chosen) -> None:
        event.stop()
        self.action_open()

    def on_rows_moved(self, event: Rows.Moved) -> None:
        event.stop()

    def on_resize(self) -> None:
        self._draw()

    @property
    def _files(self) -> Rows:
        return self.query_one("#files", Rows)

    def _draw(self) -> None:
        files = list(self._known.files.values())
        stale = sum(file.stale for file in files)
        count = f" {len(files)}" if files else ""
        warning = f" · ⚠ {stale}" if stale else ""
        self.title_text = label(f"{self.TITLE}{count}{warning}")
        # one cell for the cursor's bar, one for the scrollbar
        width = max(self.size.width - 2, 1)
        rows = known_rows([file for file in files if file.stale or not self._stale_only], width)
        empty = Row("", Line((Piece(_EMPTY, "muted"),)), wraps=True)
        self._files.set_rows(rows or [empty])
        self.query_one("#headings", Rows).set_rows([Row("", heading(width))] if files else [])
