"""The review pane: proposed changes as diffs, decided by hunk, file, todo or all."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from functools import cached_property, partial
from typing import Any, ClassVar, Literal, cast

from msgspec.structs import replace
from textual import events, on
from textual.app import ComposeResult
from textual.widget import Widget

from tui_agent.edits.change import Change, Pick
from tui_agent.edits.merge import Side
from tui_agent.errors import TuiAgentError
from tui_agent.session.session import Session
from tui_agent.store.commands import CheckMark, Content, content_of, in_short
from tui_agent.store.state import ReviewSlice, State
from tui_agent.ui.actions import why_not
from tui_agent.ui.dialogs.dialog import TextDialog
from tui_agent.ui.diff.diff_view import ConflictLines, DiffView
from tui_agent.ui.editor.writing_area import KeptInput
from tui_agent.ui.panes.review_body import ConflictChoices, ReviewBody
from tui_agent.ui.panes.review_rows import (
    BROKEN,
    ReviewPosition,
    change_at,
    change_rows,
    conflict_hints,
    decision_counts,
    entry,
    hints,
    next_waiting,
    of_todo,
    pick,
    place_of,
    place_rows,
    progress,
    restored_position,
    shown_changes,
    step_file,
    step_hunk,
    title,
    waiting,
    whole,
)
from tui_agent.ui.safe_text import check_pieces, parts
from tui_agent.ui.widgets.line_view import HintLine, LineView, Rows
from tui_agent.ui.widgets.list_pane import ListPane
from tui_agent.ui.widgets.pane import Pane, compare, noticed, open_file, save_place
from tui_agent.ui.widgets.prompt_lines import broken_now

_EMPTY = "Changes that the model proposes. Nothing is written until you apply it."


class ReviewPane(ListPane):
    ID = "review"
    SLICES: ClassVar[tuple[str, ...]] = ("review", "layout", "checks", "checked_buffers", "conversation")

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self.body = ReviewBody(session, self.act)
        self.changes: tuple[Change, ...] = ()
        self.position: ReviewPosition | None = None
        self._turn = 0
        self._drawn: tuple[ReviewSlice, object, list[CheckMark], Sequence[str]] | None = None
        self._decisions = ReviewDecisions(self)
        self._looked_at: set[str] = set()
        self._commented: Pick | None = None

    def compose(self) -> ComposeResult:
        yield Rows()
        yield self.body
        yield KeptInput(compact=True, placeholder="a comment for the model, sent with your next message")
        yield HintLine()

    @on(events.Mount)
    def _mounted(self) -> None:
        self.line.display = False

    @property
    def entry(self) -> Widget:
        return self.body.active

    @cached_property
    def commands(self) -> Mapping[str, Callable[[], object]]:
        return {
            **self._decisions.commands,
            "open": self._open,
            "diff": lambda: compare(self, it.path if (it := change_at(self.changes, self.position)) else ""),
            "comment": self._begin_comment,
            "columns": self.body.toggle_columns,
            "next_hunk": partial(self._step, 1),
            "previous_hunk": partial(self._step, -1),
            "next_file": lambda: self.go(step_file(self.changes, self.position, 1)),
            "previous_file": lambda: self.go(step_file(self.changes, self.position, -1)),
        }

    # ── drawing ──────────────────────────────────────────────────────────────────────────────────────────

    def show(self, state: State) -> None:
        saved = state.layout.place.get(self.ID)
        drawn = (state.review, saved, state.check_marks, state.conversation.untold)
        if self._drawn is not None and self._drawn[0] is state.review and self._drawn[1:] == drawn[1:]:
            return
        self._drawn = drawn
        self.changes = shown_changes(state.review)
        self.position = restored_position(self.changes, saved)
        newest = max((change.turn for change in self.changes), default=0)
        if 0 < self._turn < newest and not self.has_focus_within:
            self.position = entry(next(change for change in self.changes if change.turn == newest))
            save_place(self.session, self.ID, self.position.saved())
        self._turn = newest
        self.draw()

    def draw(self) -> None:
        change, position = change_at(self.changes, self.position), self.position
        state = self.session.state
        marks = check_pieces(in_short(state.check_marks))
        place = title(self.changes, position)
        again = self._decisions.confirm_hint
        self.title_text = parts(
            self.TITLE + decision_counts(self.changes),
            (f" · {again}" if again else "", "$warning"),
            *marks,
            place,
        )
        rows = self.query_one(Rows)
        found = place_rows(state)
        untold = state.conversation.untold
        rows.set_rows([*change_rows(self.changes, untold), *found], cursor=change.id if change else "")
        told = change and (
            change.reason or change.comments or change.checks or change.tasks or progress(change)
        )
        rows.display = len(self.changes) > 1 or bool(told or found)
        if change is None or position is None:
            self.body.show_words(_EMPTY)
        else:
            self.body.show_change(change, position, self.changes)
        if change is not None and change.state in BROKEN and self.has_focus_within:
            self._looked_at.add(change.id)
        if change is not None and change.state == "conflict":
            words = conflict_hints(change)
        else:
            words = hints(self.changes, position)
        self.query_one(HintLine).set_words(
            [it for it in words if not it.action or not why_not(it.action, state)]
        )

    # ── moving ───────────────────────────────────────────────────────────────────────────────────────────

    def go(self, position: ReviewPosition | None) -> None:
        if position is None or position == self.position:
            return
        save_place(self.session, self.ID, position.saved())
        self.show(self.session.state)

    def lead(self) -> None:
        named = broken_now(self.session.state)
        new = [it for it in named if it.id not in self._looked_at and change_at(self.changes, entry(it))]
        current = self.position.change if self.position else ""
        if new and not self.has_focus_within:
            first = new[0]
            if all(it.id != current for it in named if it.state == first.state):
                self._looked_at.add(first.id)
                self.go(entry(first))

    def _step(self, step: int) -> None:
        choosing = self.body.choosing
        if choosing is not None and choosing.step(step):
            self.draw()
        else:
            self.go(step_hunk(self.changes, self.position, step, by_change=choosing is not None))

    def _open(self) -> None:
        if change := change_at(self.changes, self.position):
            diff, hunk = self.body.diff(change), self.position.hunk if self.position else 0
            line = diff.hunks[hunk].start + 1 if diff and hunk < len(diff.hunks) else 1
            open_file(self, change.path, line)

    # ── mouse ──────────────────────────────────────────────────────────────────────────────────────────────

    def on_line_view_moved(self, event: LineView.Moved) -> None:
        event.stop()
        if place := place_of(event.key):
            self.draw()
            open_file(self, *place)
            return
        change = next((change for change in self.changes if change.id == event.key), None)
        if change is not None and (self.position is None or self.position.change != change.id):
            self.go(entry(change))

    @on(LineView.Chosen)
    def _row_chosen(self, event: LineView.Chosen) -> None:
        event.stop()
        self.entry.focus()

    @on(DiffView.HunkClicked)
    def _hunk_clicked(self, event: DiffView.HunkClicked) -> None:
        event.stop()
        if self.position is not None:
            self.go(ReviewPosition(self.position.change, event.hunk))

    @on(ConflictLines.SidePressed)
    def _side_pressed(self, event: ConflictLines.SidePressed) -> None:
        event.stop()
        if choosing := self.body.choosing:
            choosing.place = event.place
            if event.side:
                self._decisions.take(cast("Side", event.side))
            self.body.draw()

    # ── comments ─────────────────────────────────────────────────────────────────────────────────────────

    def _begin_comment(self) -> None:
        change = change_at(self.changes, self.position)
        if change is not None and self.position is not None:
            self._commented = about = pick(change, self.position)
            kept = self.query_one(KeptInput).keep_at(self.session, f"comment:{about.change}:{about.hunk}")
            self.write(self.line.value or kept)

    def take(self, text: str) -> None:
        about = self._commented

        async def comment(about: Pick) -> None:
            try:
                await self.session.review.comment(about, text)
            except TuiAgentError:
                self.line.value = text
                raise

        if about is not None and text.strip():
            self.act(comment(about), changes=("buffers",))


_Call = Callable[[Sequence[Pick]], Awaitable[None]]


class ReviewDecisions:
    """Decisions in order, each about the changes on the screen at its key press."""

    def __init__(self, pane: ReviewPane) -> None:
        self._pane = pane
        self._session = pane.session
        self._deciding = asyncio.Lock()
        #: The last warning before apply-all, and its content.
        self._doubted: tuple[str, Content] | None = None

    @property
    def commands(self) -> Mapping[str, Callable[[], object]]:
        apply, skip = self._session.review.apply, self._session.review.skip
        return {
            "apply": lambda: self._act(self._decide(apply, self._pane.changes, file=False)),
            "skip": lambda: self._act(self._decide(skip, self._pane.changes, file=False)),
            "apply_file": lambda: self._act(self._decide(apply, self._pane.changes, file=True)),
            "skip_file": lambda: self._act(self._decide(skip, self._pane.changes, file=True)),
            "apply_todo": lambda: self._act(self._decide_todo(apply, self._pane.changes)),
            "skip_todo": lambda: self._act(self._decide_todo(skip, self._pane.changes)),
            "apply_all": lambda: self._act(self._apply_all()),
            "skip_all": lambda: self._act(self._decide_all(skip)),
            "undo": lambda: self._act(self._undo()),
            "redo": lambda: self._act(self._session.review.redo()),
            "take_back": partial(self._take_back, "hunk"),
            "take_back_file": partial(self._take_back, "file"),
            "take_back_todo": partial(self._take_back, "todo"),
            "history": self._show_history,
            "allow_host": lambda: self._pane.post_message(Pane.ActionAsked("session.allow_host")),
            "edit": partial(self._when_fetched, self._edit),
            "yours": partial(self._when_fetched, partial(self.take, "yours")),
            "theirs": partial(self._when_fetched, partial(self.take, "theirs")),
            "both": partial(self._when_fetched, partial(self.take, "both")),
            "give_back": self._give_back,
        }

    def take(self, side: Side) -> None:
        if choosing := self._pane.body.choosing:
            choosing.take(side)
            self._chosen()

    @property
    def _change(self) -> Change | None:
        return change_at(self._pane.changes, self._pane.position)

    def _act(self, call: Coroutine[Any, Any, object]) -> None:
        self._pane.act(call, changes=("buffers",))

    def _show(self) -> None:
        self._pane.show(self._session.state)

    def _when_fetched(self, call: Callable[[], object]) -> None:
        """Does nothing if another change is current by then."""
        change, position = self._change, self._pane.position
        if change is None or self._pane.body.has(change):
            call()
            return

        async def fetched() -> None:
            await self._pane.body.fetch(change)
            if (self._change, self._pane.position) == (change, position):
                call()

        self._pane.act(fetched(), opens=True)

    # ── decisions ──────────────────────────────────────────────────────────────────────────────────────────

    async def _decide(self, call: _Call, seen: Sequence[Change], *, file: bool) -> None:
        async with self._deciding:
            self._show()
            change, position = self._change, self._pane.position
            then = next((before for before in seen if change and before.id == change.id), None)
            if change is None or position is None or then is None:
                return
            due = waiting([change])
            if position in due or (file and due):
                await call([replace(whole(change) if file else pick(change, position), seen=then.version)])
                self._show()
            self._pane.go(next_waiting(self._pane.changes, position))

    async def _decide_todo(self, call: _Call, seen: Sequence[Change]) -> None:
        async with self._deciding:
            change, position = self._change, self._pane.position
            due = [other for other in of_todo(seen, change) if waiting([other])]
            if due:
                await call([whole(other) for other in due])
                self._show()
                self._pane.go(next_waiting(self._pane.changes, position))

    async def _apply_all(self) -> None:
        """Unverified checks or large deletions require a second key press."""
        dropping = [change for change in self._session.state.review.open if change.drops]
        doubt = self._doubt()
        if doubt[0] and doubt != self._doubted:
            self._doubted = doubt
            self._pane.draw()
            await self._session.notice(f"{doubt[0]}. {self.confirm_hint}", "warning")
            return
        self._doubted = None
        self._pane.draw()
        apply = self._session.review.apply
        if dropping:
            async with self._deciding:
                await apply([whole(change) for change in dropping])
                self._show()
        await self._decide_all(apply)

    @property
    def confirm_hint(self) -> str:
        """`F8 again applies anyway` if a warning awaits confirmation, otherwise ""."""
        again = self._doubted is not None and self._doubt() == self._doubted
        return f"{self._pane.keys.shown('changes.apply_all')} again applies anyway" if again else ""

    def _doubt(self) -> tuple[str, Content]:
        """The reason ("" if none), and its content."""
        state = self._session.state
        says = [f"{change.path} loses {change.drops} lines" for change in state.review.open if change.drops]
        words = ". ".join(filter(None, (state.check_doubt, *says)))
        return words, content_of(state.review.changes, state.buffers.open)

    async def _decide_all(self, call: _Call) -> None:
        async with self._deciding:
            state = self._session.state
            if (
                waiting(shown_changes(state.review)) or state.turn.running
            ):  # a streaming response can propose more
                await call(())
                self._show()

    # ── undo ───────────────────────────────────────────────────────────────────────────────────────────────

    async def _undo(self) -> None:
        async with self._deciding:
            points = [point for point in self._session.state.review.checkpoints if not point.undone]
            await self._session.review.undo()
            self._show()
            if points and points[-1].picks:
                first = points[-1].picks[0]
                there = ReviewPosition(first.change, first.hunk or 0)
                self._pane.go(restored_position(self._pane.changes, there.saved()))

    def _take_back(self, extent: Literal["hunk", "file", "todo"]) -> None:
        change, position = self._change, self._pane.position
        if change is None or position is None:
            return
        if extent == "hunk":
            picks = [Pick(change.id, position.hunk if change.hunks else None, change.version)]
        elif extent == "file":
            picks = [whole(change)]
        else:
            found = of_todo(self._pane.changes, change)
            picks = [whole(one) for one in found if {"applied", "skipped"}.intersection(one.hunks)]
        if picks:
            self._act(self._session.review.revert(picks))

    def _show_history(self) -> None:
        from tui_agent.ui.dialogs.preview import History

        def chosen(checkpoint: str | None) -> None:
            points = {point.id: point for point in self._session.state.review.checkpoints}
            if checkpoint in points:
                go_back = (
                    self._session.review.redo if points[checkpoint].undone else self._session.review.undo
                )
                self._act(go_back(checkpoint))

        self._pane.app.push_screen(History(self._session), chosen)

    # ── editing ────────────────────────────────────────────────────────────────────────────────────────────

    def _edit(self) -> None:
        change, position, app = self._change, self._pane.position, self._pane.app
        if change is None:
            return
        if choosing := self._pane.body.choosing:
            choosing.edit(app, self._session, self._chosen)
            return
        diff = self._pane.body.diff(change)
        if diff is None or position is None or position not in waiting([change]):
            return
        if position.hunk >= len(diff.hunks):
            return
        text = "".join(diff.hunks[position.hunk].added)
        about, which = f"Edit change {position.hunk + 1} of {change.path}", pick(change, position)
        kept = (self._session, f"hunk:{change.id}:{position.hunk}")

        async def keep(new: str) -> None:
            try:
                await self._session.review.edit_hunk(which, new)
            except TuiAgentError:
                app.push_screen(TextDialog(about, new, kept=kept), edited)
                raise

        def edited(new: str | None) -> None:
            if new is not None and new != text:
                self._act(keep(new))

        app.push_screen(TextDialog(about, text, kept=kept), edited)

    def _chosen(self) -> None:
        choosing, change = self._pane.body.choosing, self._change

        async def settle(made: ConflictChoices, name: str) -> None:
            await self._session.review.resolve(name, made.sides, made.by_hand, made.view.now)
            made.drop_drafts(self._session)

        if choosing is not None and change is not None and choosing.decided:
            self._pane.body.forget_conflict(change)
            self._act(settle(choosing, change.id))
        self._pane.draw()

    def _give_back(self) -> None:
        from tui_agent.ui.dialogs.questions import return_conflict

        if change := self._change:
            call = noticed(self._session, return_conflict(self._pane.app, self._session, change))
            self._pane.run_worker(call, group="give-back", exclusive=True)
