"""The known files: all that the model has seen, whether it still holds, and what became of the one at the cursor."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.widget import Widget

from tui_agent.session.session import Session
from tui_agent.store.state import KnownSlice, State
from tui_agent.ui.panes.known_rows import heading, known_rows
from tui_agent.ui.panes.known_timeline import timeline_rows
from tui_agent.ui.sink import label
from tui_agent.ui.widgets.lined import Lined
from tui_agent.ui.widgets.lines import Line, Piece
from tui_agent.ui.widgets.pane import Pane
from tui_agent.ui.widgets.rows import Row, Rows

#: From so many rows on the pane has room for a timeline beside the table, which then takes a third of it.
ROOM_FROM = 12
_EMPTY = "Files that the model has seen are listed here, and what has changed since."


class KnownPane(Pane):
    """A table with its headings, files that changed since they were seen first; below it the timeline of one file."""

    ID = "known"
    TITLE = "Known"
    SLICES: ClassVar[tuple[str, ...]] = ("known",)

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._known = KnownSlice()
        self._stale_only = False
        self._at_length = False
        #: Rows that the timeline takes from the table.
        self._room = 0

    def compose(self) -> ComposeResult:
        head = Rows(id="headings")
        head.can_focus = False
        yield head
        yield Rows(id="files")
        timeline = Rows(id="timeline")
        timeline.can_focus = False
        yield timeline

    @property
    def entry(self) -> Widget:
        return self._files

    def show(self, state: State) -> None:
        self._known = state.known
        self._draw()

    def action_open(self) -> None:
        if self._files.cursor:
            self.act(self.session.open_file(self._files.cursor), changes=("buffers",))

    def action_toggle_stale(self) -> None:
        """Show all files, or only those that are not what the model saw."""
        self._stale_only = not self._stale_only
        self._draw()

    def action_timeline(self) -> None:
        """Give the timeline the room of the table, which keeps the row of the cursor; or give it back."""
        self._at_length = not self._at_length
        self._show_timeline()

    def on_lined_chosen(self, event: Lined.Chosen) -> None:
        event.stop()
        self.action_open()

    def on_lined_moved(self, event: Lined.Moved) -> None:
        event.stop()
        self._show_timeline()

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
        if gone := len(self._known.dropped):
            rows.append(Row("", Line((Piece(f"{gone} more were seen, longest ago.", "muted"),))))
        empty = Row("", Line((Piece(_EMPTY, "muted"),)), wraps=True)
        self._files.set_rows(rows or [empty])
        self.query_one("#headings", Rows).set_rows([Row("", heading(width))] if files else [])
        self._show_timeline()

    def _show_timeline(self) -> None:
        timeline = self.query_one("#timeline", Rows)
        rows = timeline_rows(self._files.cursor, self._known.touches)
        room = min(self.size.height // 3, len(rows)) if self.size.height >= ROOM_FROM else 0
        if self._at_length and rows:
            room = max(self.size.height - 2, 0)  # beside the headings and the row of the cursor
        timeline.display = room > 0
        timeline.set_rows(rows)
        if room != self._room:
            self._room = room
            timeline.styles.height = room
            self._files.keep_in_view()
