"""File versions side by side, and the effect of undoing an apply."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from textual import events
from textual.widget import Widget
from textual.widgets import Static

from tui_agent.edits.change import Checkpoint
from tui_agent.errors import TuiAgentError
from tui_agent.review.undo import Preview as Undoing
from tui_agent.review.versions import Version
from tui_agent.session.session import Session
from tui_agent.ui.dialogs.preview import DiffPreview
from tui_agent.ui.diff.diff_sides import DiffSides
from tui_agent.ui.diff.diff_view import DiffView
from tui_agent.ui.safe_text import label
from tui_agent.ui.widgets.line_view import Line, LineView, Piece
from tui_agent.ui.widgets.rows import Row, Rows


class FileDiff(DiffPreview[None]):
    """Keys select versions, hunks, and one or two columns."""

    ID = "versions"
    DEFAULT_CSS = "FileDiff > Vertical { width: 96%; }"
    told = (
        ("versions.earlier versions.later", "another version"),
        ("preview.next_hunk preview.previous_hunk", "change"),
        ("versions.columns", "columns"),
        ("dialog.close", "close"),
    )

    def __init__(self, session: Session, path: str) -> None:
        super().__init__("")
        self._session = session
        self._path = path
        self._versions: Sequence[Version] = session.review.versions()
        self._at = 0
        self._in_two = False

    def body(self) -> Iterable[Widget]:
        yield DiffView(id="one")
        yield DiffSides(id="two")

    def on_mount(self) -> None:
        self._load()

    @property
    def view(self) -> DiffView:
        return self.query_one("#two" if self._in_two else "#one", DiffView)

    def action_version(self, step: int) -> None:
        self._at = max(0, min(self._at + step, len(self._versions) - 1))
        self._load()

    def action_columns(self) -> None:
        self._in_two = not self._in_two
        self.draw()

    def _load(self) -> None:
        self.fill(self._fetch(self._versions[self._at].name))

    async def _fetch(self, version: str) -> None:
        try:
            await self.show_diff(await self._session.review.version_diff(self._path, version))
        except TuiAgentError as error:
            await self.show_diff(str(error))

    def draw(self) -> None:
        version = self._versions[self._at]
        self.retitle(f"{self._path} against {version.words} ({self._at + 1} of {len(self._versions)})")
        for view in self.query(DiffView):
            view.display = view is self.view
        self.view.focus()
        super().draw()


class History(DiffPreview[str | None]):
    """Returns the id of the apply to undo up to (or to redo), or `None`."""

    ID = "history"
    told = (
        ("history.choose", "undo or redo"),
        ("history.previous_file history.next_file", "file"),
        ("preview.next_hunk preview.previous_hunk", "change"),
        ("dialog.close", "close"),
    )
    DEFAULT_CSS = """
    History {
        & > Vertical { height: 80%; }
        & .said { height: 1; color: $muted; }
        & Rows { height: auto; max-height: 9; margin-bottom: 1; }
    }
    """

    def __init__(self, session: Session) -> None:
        super().__init__("Applied changes")
        self._session = session
        self._previews: dict[str, Sequence[Undoing] | str] = {}
        self._file = 0

    def body(self) -> Iterable[Widget]:
        yield Rows()
        yield Static("", classes="said", markup=False)
        yield DiffView()

    def on_mount(self) -> None:
        points = self._session.state.review.checkpoints
        rows = [_row(point) for point in reversed(points)]
        self.query_one(Rows).set_rows(rows or [Row("", Line((Piece("Nothing was applied yet.", "muted"),)))])
        self.query_one(Rows).focus()
        self._show()

    def needs_content(self, event: events.Event) -> bool:
        return self.matches(event, "history.next_file", "history.previous_file")

    def on_line_view_moved(self, event: LineView.Moved) -> None:
        event.stop()
        self._file = 0
        self._show()

    def on_line_view_chosen(self, event: LineView.Chosen) -> None:
        event.stop()
        self.action_choose()

    def action_choose(self) -> None:
        self.dismiss(self.query_one(Rows).cursor or None)

    def action_next_file(self, step: int) -> None:
        found = self._previews.get(self.query_one(Rows).cursor)
        if found and not isinstance(found, str):
            self._file = (self._file + step) % len(found)
            self._show()

    def _show(self) -> None:
        name = self.query_one(Rows).cursor
        found = self._previews.get(name)
        if name and found is None:
            self.fill(self._fetch(name))
            return
        words, self.diff = found if isinstance(found, str) else "", ""
        if name and not found:
            words = words or "Nothing would change."
        elif found and not isinstance(found, str):
            preview = found[self._file]
            count = f"{self._file + 1} of {len(found)}  " if len(found) > 1 else ""
            words = f"{count}{preview.diff.path}: {_preview_text(preview)}"
            self.diff = preview.diff if preview.diff.hunks else ""
        self.query_one(".said", Static).update(label(words))
        self._hunk = -1  # everything is undone
        self.draw()

    async def _fetch(self, name: str) -> None:
        try:
            self._previews[name] = await self._session.review.preview(name)
        except TuiAgentError as error:
            self._previews[name] = str(error)
        self._show()


def _preview_text(preview: Undoing) -> str:
    if preview.conflict:
        return f"conflicts, {preview.conflict}"
    if preview.goes:
        return "the file is deleted"
    if not preview.diff.hunks:
        return "nothing changes"
    return "merged with what changed since" if preview.merged else "changes"


def _row(point: Checkpoint) -> Row:
    word = "undo" if not point.undone else "redo"
    paths = ", ".join(step.path for step in point.files) or "no file"
    what = "undid" if point.takes_back else "applied"
    state = "undone" if point.undone else what
    left = (Piece(f"{point.id:4}"), Piece(f"turn {point.turn}  ", "muted"), Piece(paths, "", "end"))
    return Row(point.id, Line(left, (Piece(f"{state} · Enter: {word}", "muted"), Piece(state, "muted"))))
