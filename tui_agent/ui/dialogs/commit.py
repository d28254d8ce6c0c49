"""Commit dialog: files, their diffs, the message, and whether hooks run."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable

from textual import events, on, work
from textual.app import App
from textual.containers import Container
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Static

from tui_agent.errors import ModelError, TuiAgentError
from tui_agent.git.client import ChangedFile, CommitPlan
from tui_agent.session.session import Session
from tui_agent.ui.dialogs.dialog import Form, tick_box
from tui_agent.ui.diff.diff_view import DiffView
from tui_agent.ui.editor.writing_area import KeptArea, WritingArea
from tui_agent.ui.safe_text import counted, label, plain
from tui_agent.ui.widgets.line_view import Line, LineView, Piece, Row, Rows
from tui_agent.ui.widgets.pane import call_session

#: Minimum columns for files and diff side by side.
BESIDE = 110
PLACE = "commit"
_WORDS = {"?": "new", "A": "new", "D": "deleted"}


class CommitDialog(Form[None]):
    ID = "commit"
    HINT_ON_TOP = True
    asks_twice = True
    keeps = "commit"
    DEFAULT_CSS = """
    CommitDialog {
        & > Vertical { width: 96%; height: 94%; max-height: 94%; padding: 0 2; }
        & #what { height: 1fr; layout: vertical; margin-top: 1; }
        & Rows { height: auto; max-height: 6; min-height: 2; }
        & DiffView { height: 1fr; margin-top: 1; }
        & .hooks { height: 1; color: $muted; }
        & WritingArea { height: 4; margin-top: 1; padding: 0 1; }
        & .hint { max-height: 4; }
        &.-beside {
            & #what { layout: horizontal; }
            & WritingArea { height: 7; }
            & Rows { width: 2fr; height: 100%; max-height: 100%; margin-right: 2; }
            & DiffView { width: 3fr; height: 100%; margin-top: 0; }
        }
    }
    """

    def __init__(self, session: Session) -> None:
        super().__init__("Commit")
        self._session = session
        self._plan = CommitPlan()
        self._runs_hooks = self._committing = False

    def body(self) -> Iterable[Widget]:
        with Container(id="what"):
            yield Rows()
            yield DiffView()
        yield Static("", classes="hooks", markup=False)
        yield KeptArea("", soft_wrap=True, tab_behavior="focus", placeholder="message")

    def hint(self) -> Content:
        if not self.query(Rows) or not self.query_one(Rows).has_focus:
            what = (
                ("form.keep", "commit"),
                ("fields.next", "files, diff, message"),
                ("dialog.close", "leave"),
            )
            return label(self.keys_for(*what))
        hooks = [("commit.hooks", "hooks")] if self._plan.hooks else []
        return label(
            self.keys_for(
                *(("ticks.tick", "tick"), ("ticks.tick_all", "all"), *hooks, ("commit.draft", "draft")),
                *(("form.keep", "commit"), ("fields.next", "next"), ("dialog.close", "leave")),
                gap="  ",
            )
        )

    def say(self, words: Content | str = "") -> None:
        super().say(
            Content("\n").join([Content(words) if isinstance(words, str) else words, self.hint()])
            if words
            else ""
        )

    @on(events.Mount)
    def _mounted(self) -> None:
        self.query_one(".hooks").display = False
        area = self.query_one(KeptArea)
        area.text = area.keep_at(self._session, PLACE)
        area.focus()
        self.fill(self._load())

    @on(events.Resize)
    def _resized(self, event: events.Resize) -> None:
        self.set_class(event.size.width >= BESIDE, "-beside")

    def needs_content(self, event: events.Event) -> bool:
        """`False` without a file to commit: the dialog closes and ignores keys."""
        return self._committing or super().needs_content(event)

    async def _load(self) -> None:
        try:
            self._plan = await self._session.review.commit_plan()
        except TuiAgentError as error:
            await self._session.notice(str(error), "error")
            self.dismiss(None)
            return
        self.ticked = {file.path for file in self._plan.files if file.applied}
        self.draw()
        self._show_diff()
        if self.ticked:
            self.action_draft()
        elif not self.query_one(KeptArea).text:
            self.query_one(Rows).focus()

    @on(events.DescendantFocus)
    def _focus_moved(self) -> None:
        self.say()

    def on_line_view_moved(self, event: LineView.Moved) -> None:
        event.stop()
        self._show_diff()

    def on_click(self, event: events.Click) -> None:
        if isinstance(event.widget, Static) and event.widget.has_class("hooks"):
            self.action_hooks()

    def tickable(self) -> Collection[str]:
        return self._plan.paths

    def action_hooks(self) -> None:
        if self._plan.hooks:
            self._runs_hooks = not self._runs_hooks
            self.draw()

    def action_next_field(self, step: int) -> None:
        places: list[Widget] = [self.query_one(Rows), self.query_one(DiffView), self.query_one(WritingArea)]
        at = next((index for index, place in enumerate(places) if place is self.focused), 0)
        places[(at + step) % len(places)].focus()

    def draw(self) -> None:
        plan, rows = self._plan, list[Row]()
        if applied := [file for file in plan.files if file.applied]:
            rows += [_heading("Applied in this session"), *map(self._row, applied)]
        if others := [file for file in plan.files if not file.applied]:
            rows += [_heading("Other changed files"), *map(self._row, others)]
        if plan.more:
            rows.append(_heading(f"and {counted(plan.more, 'more file')}"))
        self.query_one(Rows).set_rows(rows)
        branch = self._session.state.workspace.branch or "HEAD"
        files = counted(len(self.ticked), "file")
        self.retitle(f"Commit {files} to {branch}")
        hooks = self.query_one(".hooks", Static)
        hooks.display = bool(plan.hooks)
        words = f"{tick_box(self._runs_hooks).text}run hooks (programs of the repository): {', '.join(plan.hooks)}"
        hooks.update(label(words, "$warning" if self._runs_hooks else ""))
        self.say()

    def _row(self, file: ChangedFile) -> Row:
        letter = file.mark.strip()[:1]
        staged = "staged" if file.mark[0] not in " ?" else ""
        words = " · ".join(filter(None, (_WORDS.get(letter, "changed"), staged)))
        left = (tick_box(file.path in self.ticked), Piece(file.path, "", "start"))
        return Row(file.path, Line(left, (Piece(words, "muted"),)), marked=True)

    @work(group="diff", exclusive=True)
    async def _show_diff(self) -> None:
        path, view = self.query_one(Rows).cursor, self.query_one(DiffView)
        if not path:
            return
        try:
            diff = await self._session.review.commit_file(path)
            await view.get_ready(diff)
        except TuiAgentError as error:
            view.show_words(str(error))
        else:
            view.show_undecided(diff)

    def action_draft(self) -> None:
        if self.ticked and self.query_one(WritingArea).text == self.before:
            self.run_worker(self._draft(self._plan.of(self.ticked)), group="draft", exclusive=True)

    async def _draft(self, plan: CommitPlan) -> None:
        self.say(label("Asking the model for a message…"))
        try:
            message = await self._session.review.draft_commit(plan)
        except ModelError as error:
            self.say(plain(f"{error.what}; write the message yourself", "$warning"))
            return
        except TuiAgentError as error:
            self.say(plain(str(error), "$warning"))
            return
        area = self.query_one(KeptArea)
        if area.text == self.before:
            self.before = message
            area.keep_at(self._session, PLACE, message)
            area.text = message
        self.say()

    async def action_keep(self) -> None:
        if self._plan.files and not self._committing:
            plan = self._plan.of(self.ticked, hooks=self._runs_hooks)
            self._committing, ended = True, asyncio.Event()
            self.say(label("Committing…"))
            call_session(self.app, self._session, self._commit(self.query_one(WritingArea).text, plan, ended))
            self.fill(ended.wait())

    async def _commit(self, message: str, plan: CommitPlan, ended: asyncio.Event) -> None:
        """Continues after closing; an error is then a notice."""
        try:
            await self._session.review.commit(message, plan)
        except TuiAgentError as error:
            if self.app.screen is not self:
                raise
            self.say(plain(str(error), "$error"))
        else:
            self._session.chat.set_typed(PLACE, "")
            self.dismiss(None)
        finally:
            self._committing = False
            ended.set()


async def commit(app: App[object], session: Session) -> None:
    await app.push_screen_wait(CommitDialog(session))


def _heading(words: str) -> Row:
    return Row("", Line((Piece(words, "muted"),)))
