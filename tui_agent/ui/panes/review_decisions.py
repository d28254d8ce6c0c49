"""Review decisions by hunk, file, todo or all; undo; conflict resolution by place or by hand."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from functools import partial
from typing import Any, Protocol

from msgspec.structs import replace
from textual.app import App

from tui_agent.edits.change import Change, Pick
from tui_agent.edits.merge import Side
from tui_agent.errors import TuiAgentError
from tui_agent.session.session import Session
from tui_agent.store.commands import Content, content_of
from tui_agent.store.state import State
from tui_agent.ui.dialogs.form import TextDialog
from tui_agent.ui.keys.keymap import Keys
from tui_agent.ui.panes.review_body import ConflictChoices, ReviewBody
from tui_agent.ui.panes.review_place import (
    ReviewPosition,
    change_at,
    next_waiting,
    of_todo,
    pick,
    restored_position,
    shown_changes,
    waiting,
    whole,
)

_Call = Callable[[Sequence[Pick]], Awaitable[None]]


class ReviewHost(Protocol):
    """The part of the review pane used here."""

    session: Session
    body: ReviewBody
    changes: tuple[Change, ...]
    position: ReviewPosition | None

    @property
    def app(self) -> App[object]: ...
    @property
    def keys(self) -> Keys: ...

    def show(self, state: State) -> None: ...
    def draw(self) -> None: ...
    def go(self, position: ReviewPosition | None) -> None: ...
    def act(
        self, call: Coroutine[Any, Any, object], *, changes: tuple[str, ...] = (), opens: bool = False
    ) -> None: ...
    def run_worker(self, work: Coroutine[Any, Any, None], *, group: str, exclusive: bool) -> object: ...


class ReviewDecisions:
    """Serializes decisions; each applies to the screen content at the time of its key press."""

    def __init__(self, pane: ReviewHost) -> None:
        self._pane = pane
        self._session = pane.session
        self._deciding = asyncio.Lock()
        #: The last warning before apply-all, and the content it applied to.
        self._doubted: tuple[str, Content] | None = None

    @property
    def commands(self) -> Mapping[str, Callable[[], object]]:
        """Handlers of the decision actions, by action id."""
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
            "take_back": self._take_back_hunk,
            "take_back_file": self._take_back_file,
            "take_back_todo": self._take_back_todo,
            "history": self._show_history,
            "allow_host": self._allow_host,
            "edit": partial(self._when_fetched, self._edit),
            "yours": partial(self._when_fetched, partial(self.take, "yours")),
            "theirs": partial(self._when_fetched, partial(self.take, "theirs")),
            "both": partial(self._when_fetched, partial(self.take, "both")),
            "give_back": self._give_back,
        }

    def take(self, side: Side) -> None:
        """Choose a side at the current place; the last choice resolves the conflict."""
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
        """Call once the current diff or conflict is fetched, unless another change is current by then."""
        change, position = self._change, self._pane.position
        if change is None or self._pane.body.has(change):
            call()
            return

        async def fetched() -> None:
            await self._pane.body.fetch(change)
            if (self._change, self._pane.position) == (change, position):
                call()

        self._pane.act(fetched(), opens=True)

    # ── deciding ─────────────────────────────────────────────────────────────────────────────────────────

    async def _decide(self, call: _Call, seen: Sequence[Change], *, file: bool) -> None:
        """Decide the current hunk or file, then move to the next pending one. `seen` are the changes
        displayed at the key press."""
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
        """`F8 again applies anyway` if a warning awaits confirmation, else ""."""
        again = self._doubted is not None and self._doubt() == self._doubted
        return f"{self._pane.keys.shown('changes.apply_all')} again applies anyway" if again else ""

    def _doubt(self) -> tuple[str, Content]:
        """The reason to hesitate ("" if none), and the content it applies to."""
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

    # ── taking back ──────────────────────────────────────────────────────────────────────────────────────

    async def _undo(self) -> None:
        async with self._deciding:
            points = [point for point in self._session.state.review.checkpoints if not point.undone]
            await self._session.review.undo()
            self._show()
            if points and points[-1].picks:
                first = points[-1].picks[0]
                there = ReviewPosition(first.change, first.hunk or 0)
                self._pane.go(restored_position(self._pane.changes, there.saved()))

    def _take_back(self, picks: Sequence[Pick]) -> None:
        if picks:
            self._act(self._session.review.revert(picks))

    def _take_back_hunk(self) -> None:
        if (change := self._change) and self._pane.position:
            hunk = self._pane.position.hunk if change.hunks else None
            self._take_back([Pick(change.id, hunk, change.version)])

    def _take_back_file(self) -> None:
        if change := self._change:
            self._take_back([whole(change)])

    def _take_back_todo(self) -> None:
        if change := self._change:
            found = of_todo(self._pane.changes, change)
            self._take_back([whole(one) for one in found if {"applied", "skipped"}.intersection(one.hunks)])

    def _show_history(self) -> None:
        from tui_agent.ui.dialogs.preview import History

        self._pane.app.push_screen(History(self._session), self._go_back_over)

    def _allow_host(self) -> None:
        from tui_agent.ui.dialogs.questions import choose_hosts

        asking = choose_hosts(self._pane.app, self._session)
        self._pane.run_worker(asking, group="session", exclusive=True)

    def _go_back_over(self, checkpoint: str | None) -> None:
        points = {point.id: point for point in self._session.state.review.checkpoints}
        if checkpoint in points:
            undone = points[checkpoint].undone
            self._act(
                self._session.review.redo(checkpoint) if undone else self._session.review.undo(checkpoint)
            )

    # ── by hand ──────────────────────────────────────────────────────────────────────────────────────────

    def _edit(self) -> None:
        """Edit the hunk, or the current conflict place, by hand."""
        change, position, app = self._change, self._pane.position, self._pane.app
        if change is None:
            return
        if choosing := self._pane.body.choosing:
            about = f"{change.path}: conflict {choosing.place + 1} of {choosing.count}"
            place = f"place:{change.id}:{choosing.place}"
            wrote = partial(self._wrote_place, place)
            app.push_screen(TextDialog(about, choosing.draft, kept=(self._session, place)), wrote)
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
                app.push_screen(TextDialog(about, new, kept=kept), edited)  # keeps the typed text
                raise

        def edited(new: str | None) -> None:
            if new is not None and new != text:
                self._act(keep(new))

        app.push_screen(TextDialog(about, text, kept=kept), edited)

    def _wrote_place(self, place: str, text: str | None) -> None:
        choosing = self._pane.body.choosing
        if choosing is not None and text is not None:
            choosing.write(text)
            self._session.chat.set_typed(place, text)  # kept until the last place is decided
            self._chosen()

    def _chosen(self) -> None:
        choosing, change = self._pane.body.choosing, self._change
        if choosing is not None and change is not None and choosing.decided:
            self._pane.body.forget_conflict(change)
            self._act(self._settle(change.id, choosing))
        self._pane.draw()

    async def _settle(self, change: str, choosing: ConflictChoices) -> None:
        await self._session.review.resolve(change, choosing.sides, choosing.by_hand, choosing.view.now)
        for place in range(choosing.count):
            self._session.chat.set_typed(f"place:{change}:{place}", "")

    def _give_back(self) -> None:
        from tui_agent.ui.dialogs.questions import return_conflict

        if change := self._change:
            call = return_conflict(self._pane.app, self._session, change)
            self._pane.run_worker(call, group="give-back", exclusive=True)
