"""Versions of a file side by side: against the last commit or any apply, and what undoing an apply would change."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.widget import Widget
from textual.widgets import Static

from tui_agent.edits.change import Checkpoint, Diff
from tui_agent.errors import TuiAgentError
from tui_agent.review.undo import Preview
from tui_agent.review.versions import Version
from tui_agent.session.session import Session
from tui_agent.ui.dialogs.dialog import Dialog
from tui_agent.ui.diff.diff_sides import DiffSides
from tui_agent.ui.diff.diff_view import DiffView
from tui_agent.ui.sink import label
from tui_agent.ui.widgets.lines import Line, Lined, Piece
from tui_agent.ui.widgets.rows import Row, Rows


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
        self._versions: Sequence[Version] = session.review.versions()
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
            self._diff = diff = await self._session.review.version_diff(self._path, version)
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
        else:
            view.show_undecided(self._diff, self._hunk)


class History(Dialog[str | None], inherit_bindings=False):
    """Gives the id of the apply to go back over (or to do again, where it is undone), or None."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss(None)", show=False),
        Binding("enter", "choose", show=False, priority=True),
        Binding("right,]", "next_file(1)", show=False),
        Binding("left,[", "next_file(-1)", show=False),
    ]
    DEFAULT_CSS = """
    History {
        align: center top; background: $background 40%;
        & > Vertical { width: 120; max-width: 96%; height: 80%; margin-top: 1; background: $overlay; padding: 1 2; }
        & Static { height: 1; color: $accent; text-style: bold; }
        & .said { color: $muted; text-style: none; }
        & Rows { height: auto; max-height: 9; margin-bottom: 1; }
        & DiffView { height: 1fr; }
    }
    """

    def __init__(self, session: Session) -> None:
        super().__init__()
        self._session = session
        self._previews: dict[str, Sequence[Preview] | str] = {}
        self._file = 0

    def compose(self) -> Iterable[Widget]:
        with Vertical():
            yield Static(label("Applied changes: undo or redo any of them"), markup=False)
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
        """Only the files of an apply are got; the list has the applies from the start."""
        return isinstance(event, events.Key) and event.key in ("left", "right")

    def on_lined_moved(self, event: Lined.Moved) -> None:
        event.stop()
        self._file = 0
        self._show()

    def on_lined_chosen(self, event: Lined.Chosen) -> None:
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
        view = self.query_one(DiffView)
        if not name:
            view.show_words("")
        elif found is None:
            self.fill(self._fetch(name))
        elif isinstance(found, str):
            self.query_one(".said", Static).update(label(found))
            view.show_words("")
        else:
            self._show_preview(view, found)

    def _show_preview(self, view: DiffView, found: Sequence[Preview]) -> None:
        if not found:
            self.query_one(".said", Static).update("Nothing would change.")
            view.show_words("")
            return
        preview = found[self._file]
        count = f"{self._file + 1} of {len(found)} (← →)  " if len(found) > 1 else ""
        self.query_one(".said", Static).update(label(f"{count}{preview.diff.path}: {_said(preview)}"))
        if preview.diff.hunks:
            view.show_diff(preview.diff)
        else:
            view.show_words("")

    async def _fetch(self, name: str) -> None:
        try:
            self._previews[name] = await self._session.review.preview(name)
        except TuiAgentError as error:
            self._previews[name] = str(error)
        self._show()


def _said(preview: Preview) -> str:
    if preview.conflict:
        return f"conflicts, {preview.conflict}"
    if preview.goes:
        return "the file is deleted"
    if not preview.diff.hunks:
        return "nothing changes"
    return "merged with what changed since" if preview.merged else "what changes"


def _row(point: Checkpoint) -> Row:
    word = "undo" if not point.undone else "redo"
    paths = ", ".join(step.path for step in point.files) or "no file"
    what = "took back" if point.takes_back else "applied"
    state = "undone" if point.undone else what
    left = (Piece(f"{point.id:4}"), Piece(f"turn {point.turn}  ", "muted"), Piece(paths, "", "end"))
    return Row(point.id, Line(left, (Piece(f"{state} · Enter: {word}", "muted"), Piece(state, "muted"))))
