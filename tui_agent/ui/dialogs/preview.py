"""Diffs in dialogs: versions of a file, applied changes, replacements and merges."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import cast

from textual import events, on
from textual.content import Content
from textual.screen import ScreenResultType
from textual.widget import Widget
from textual.widgets import Static

from tui_agent.edits.change import Diff, diff_of
from tui_agent.edits.merge import ConflictView, Side, merged_with_choices
from tui_agent.errors import TuiAgentError
from tui_agent.review.undo import Preview as Undoing
from tui_agent.review.versions import Version
from tui_agent.session.session import Session
from tui_agent.ui.dialogs.dialog import Dialog
from tui_agent.ui.diff.diff_view import ConflictLines, DiffSides, DiffView
from tui_agent.ui.panes.review_body import ConflictChoices
from tui_agent.ui.safe_text import counted, label
from tui_agent.ui.widgets.line_view import Line, LineView, Piece, Row, Rows


class DiffPreview(Dialog[ScreenResultType]):
    DEFAULT_CSS = """
    DiffPreview {
        & > Vertical { height: 90%; }
        & DiffView { height: 1fr; }
    }
    """

    def __init__(self, heading: str) -> None:
        super().__init__(heading)
        self.diff: Diff | str = ""
        self._hunk = 0

    @property
    def view(self) -> DiffView:
        return self.query_one(DiffView)

    async def show_diff(self, diff: Diff | str) -> None:
        self.diff, self._hunk = diff, 0
        if isinstance(diff, Diff):
            await self.view.get_ready(diff)
        self.draw()

    def draw(self) -> None:
        if isinstance(self.diff, str):
            self.view.show_words(self.diff)
        else:
            self.view.show_undecided(self.diff, self._hunk)

    def action_hunk(self, step: int) -> None:
        if isinstance(self.diff, Diff) and self.diff.hunks:
            self._hunk = max(0, min(self._hunk + step, len(self.diff.hunks) - 1))
            self.draw()


class Replacements(DiffPreview[bool]):
    ID = "replacements"
    DEFAULT_CSS = "Replacements > Vertical { height: 80%; }"
    HINTS = (
        ("answer.accept", "replace all"),
        ("preview.next_hunk preview.previous_hunk", "change"),
        ("dialog.close", "cancel"),
    )

    def __init__(self, words: str, diff: Diff) -> None:
        super().__init__(f"Replace {words} of {diff.path}")
        self._replaced = diff

    def body(self) -> Iterable[Widget]:
        yield DiffView()

    def on_mount(self) -> None:
        self.view.focus()
        self.fill(self.show_diff(self._replaced))

    def action_keep(self) -> None:
        self.dismiss(True)


class FileDiff(DiffPreview[None]):
    ID = "versions"
    DEFAULT_CSS = "FileDiff > Vertical { width: 96%; }"
    HINTS = (
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

    def hint(self) -> Content:
        return label(self.keys_for(*self.HINTS[len(self._versions) == 1 :]))

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
        of = f" ({self._at + 1} of {len(self._versions)})" if len(self._versions) > 1 else ""
        self.retitle(f"{self._path} compared with {version.words}{of}")
        for view in self.query(DiffView):
            view.display = view is self.view
        self.view.focus()
        super().draw()


class History(DiffPreview[str | None]):
    """Returns the id of the apply to undo up to (or to redo), or `None`."""

    ID = "history"
    HINTS = (
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
        rows = []
        for point in reversed(self._session.state.review.checkpoints):
            done = "undone" if point.undone else "undid" if point.takes_back else "applied"
            word = "redo" if point.undone else "undo"
            paths = ", ".join(step.path for step in point.files) or "no file"
            left = (Piece(f"{point.id:4}"), Piece(f"turn {point.turn}  ", "muted"), Piece(paths, "", "end"))
            right = (Piece(f"{done} · Enter: {word}", "muted"), Piece(done, "muted"))
            rows.append(Row(point.id, Line(left, right)))
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
            what = "merged with what changed since" if preview.merged else "changes"
            if preview.conflict:
                what = f"conflicts, {preview.conflict}"
            elif preview.goes:
                what = "the file is deleted"
            elif not preview.diff.hunks:
                what = "nothing changes"
            words = f"{count}{preview.diff.path}: {what}"
            self.diff = preview.diff if preview.diff.hunks else ""
        self.query_one(".said", Static).update(label(words))
        self._hunk = -1
        self.draw()

    async def _fetch(self, name: str) -> None:
        try:
            self._previews[name] = await self._session.review.preview(name)
        except TuiAgentError as error:
            self._previews[name] = str(error)
        self._show()


class Merge(DiffPreview[ConflictChoices | None]):
    """The diff shows the merge against the unsaved text, with the disk's side at conflicts."""

    ID = "merge"
    DEFAULT_CSS = "Merge ConflictLines { height: 1fr; }"

    def __init__(self, view: ConflictView, yours: str, session: Session) -> None:
        self._choices = ConflictChoices(view, f"merge:{view.path}")
        count = self._choices.count
        about = f"{counted(count, 'conflict')} to resolve" if count else "changes on disk"
        super().__init__(f"{view.path}: {about}")
        self._session = session
        self._yours = yours
        self._in_diff = not view.conflicts
        step, cancel = "preview.next_hunk preview.previous_hunk", ("dialog.close", "cancel")
        self.HINTS = (("answer.accept", "merge"), (step, "change"), cancel)
        if count:
            sides = (("merge.yours", "yours"), ("merge.theirs", "theirs"), ("merge.both", "both"))
            self.HINTS = (
                *(*sides, ("merge.edit", "by hand"), (step, "conflict")),
                *(("merge.turn", "the difference"), cancel),
            )

    def body(self) -> Iterable[Widget]:
        yield ConflictLines()
        yield DiffView()

    @on(events.Mount)
    def _mounted(self) -> None:
        self.fill(self._show())

    async def _show(self) -> None:
        view = self._choices.view
        merged = merged_with_choices(view.regions, ["theirs"] * self._choices.count)
        await self.show_diff(await asyncio.to_thread(diff_of, view.path, self._yours, merged))
        last = next(reversed(self._session.state.input.typed), "")
        for place in range(self._choices.count):
            if last == self._choices.draft_place(place):
                self._choices.place = place
                self.action_edit()

    def draw(self) -> None:
        places = self.query_one(ConflictLines)
        self.view.display, places.display = self._in_diff, not self._in_diff
        (self.view if self._in_diff else places).focus()
        super().draw()
        if not self._in_diff:
            places.show_conflict(self._choices.view, self._choices.chosen, self._choices.place)

    def action_turn(self) -> None:
        if self._choices.count:
            self._in_diff = not self._in_diff
            self.draw()

    def action_hunk(self, step: int) -> None:
        if self._in_diff:
            super().action_hunk(step)
        elif self._choices.step(step):
            self.draw()

    def action_take(self, side: Side) -> None:
        if not self._in_diff:
            self._choices.take(side)
            self._chosen()

    def action_edit(self) -> None:
        if not self._in_diff:
            self._choices.edit(self.app, self._session, self._chosen)

    def _chosen(self) -> None:
        if self._choices.decided:
            self.dismiss(self._choices)
        else:
            self.draw()

    def action_keep(self) -> None:
        if not self._choices.count:
            self.dismiss(self._choices)

    @on(ConflictLines.SidePressed)
    def _side_pressed(self, event: ConflictLines.SidePressed) -> None:
        event.stop()
        self._choices.place = event.place
        if event.side:
            self.action_take(cast("Side", event.side))
        else:
            self.draw()
