"""The current diff in one or two columns, or its conflict."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Coroutine
from contextlib import suppress
from typing import Any, cast

from textual.app import App, ComposeResult
from textual.containers import Vertical

from tui_agent.edits.change import Change, Diff
from tui_agent.edits.merge import ConflictView, Side
from tui_agent.errors import TuiAgentError
from tui_agent.session.session import Session
from tui_agent.ui.dialogs.dialog import TextDialog
from tui_agent.ui.diff.diff_view import ConflictLines, DiffSides, DiffView
from tui_agent.ui.panes.review_rows import ReviewPosition, hunk_states, without_diff
from tui_agent.ui.widgets.line_view import LineView

#: Minimum cells for a two-column diff.
TWO_FROM = 60


class ConflictChoices:
    """Unsaved until the last place is decided; texts are drafts of the session at `kept:PLACE`."""

    def __init__(self, view: ConflictView, kept: str) -> None:
        self.view = view
        self._kept = kept
        self.place = 0
        self.chosen: dict[int, str] = {}
        self._texts: dict[int, str] = {}

    @property
    def count(self) -> int:
        return len(self.view.conflicts)

    @property
    def decided(self) -> bool:
        return len(self.chosen) == self.count

    @property
    def sides(self) -> list[Side]:
        """One per place; irrelevant if a text replaces it."""
        return [
            cast("Side", "theirs" if self.chosen[place] == "by hand" else self.chosen[place])
            for place in range(self.count)
        ]

    @property
    def by_hand(self) -> dict[int, str]:
        return {place: text for place, text in self._texts.items() if self.chosen.get(place) == "by hand"}

    def take(self, side: Side) -> None:
        self.chosen[self.place] = side
        self._go_on()

    def write(self, text: str) -> None:
        self.chosen[self.place] = "by hand"
        self._texts[self.place] = text if not text or text.endswith("\n") else text + "\n"
        self._go_on()

    def step(self, step: int) -> bool:
        """Returns whether there is a next (1) or previous (-1) place."""
        wanted = self.place + step
        if not 0 <= wanted < self.count:
            return False
        self.place = wanted
        return True

    @property
    def draft(self) -> str:
        """Initial text for editing the place: both sides, or the previous edit."""
        if self.place in self._texts:
            return self._texts[self.place]
        region = self.view.regions[self.view.conflicts[self.place]]
        return "".join((*region.yours, *region.theirs))

    def edit(self, app: App[Any], session: Session, chosen: Callable[[], object]) -> None:
        at = self.place

        def wrote(text: str | None) -> None:
            if text is not None:
                self.write(text)
                session.chat.set_typed(self.draft_place(at), text)
                chosen()

        about = f"{self.view.path}: conflict {at + 1} of {self.count}"
        app.push_screen(TextDialog(about, self.draft, kept=(session, self.draft_place(at))), wrote)

    def draft_place(self, place: int) -> str:
        return f"{self._kept}:{place}"

    def drop_drafts(self, session: Session) -> None:
        for place in range(self.count):
            session.chat.set_typed(self.draft_place(place), "")

    def _go_on(self) -> None:
        order = [*range(self.place + 1, self.count), *range(self.place)]
        self.place = next((place for place in order if place not in self.chosen), self.place)


_Key = tuple[str, str, str]
#: Maximum cached diffs of hidden changes: each holds whole files.
MOST_KEPT = 20


class ReviewBody(Vertical):
    """Three views, one visible. Diffs and conflicts of listed changes are cached."""

    def __init__(self, session: Session, ask: Callable[[Coroutine[Any, Any, object]], None]) -> None:
        super().__init__()
        self._session = session
        self._ask = ask
        self._diffs: dict[_Key, Diff | str] = {}
        self._conflicts: dict[_Key, ConflictChoices | None] = {}
        self._fetching: dict[_Key, asyncio.Lock] = {}
        self._shown: tuple[Change, ReviewPosition] | None = None
        self._in_two = False

    def compose(self) -> ComposeResult:
        yield DiffView(id="one-column")
        yield DiffSides(id="two-columns")
        yield ConflictLines()

    def on_mount(self) -> None:
        self._bring_out(self._columns)

    @property
    def active(self) -> LineView:
        return self.query_one(ConflictLines) if self.choosing else self._columns

    @property
    def choosing(self) -> ConflictChoices | None:
        """`None` for a diff."""
        if self._shown is None or self._shown[0].state != "conflict":
            return None
        return self._conflicts.get(_key(self._shown[0]))

    def diff(self, change: Change) -> Diff | None:
        found = self._diffs.get(_key(change))
        return found if isinstance(found, Diff) else None

    def toggle_columns(self) -> None:
        self._in_two = not self._in_two
        self.draw()
        self.active.focus()

    def show_words(self, text: str) -> None:
        self._shown = None
        self._bring_out(self._columns)
        self._columns.show_words(text)

    def show_change(self, change: Change, place: ReviewPosition, others: Collection[Change]) -> None:
        """Drops all but `others` from the cache."""
        self._shown = change, place
        kept = {_key(other) for other in others}
        self._diffs = {key: diff for key, diff in self._diffs.items() if key in kept}
        self._conflicts = {key: found for key, found in self._conflicts.items() if key in kept}
        if self.has(change):
            self.draw()
        else:
            self._ask(self.fetch(change))

    def has(self, change: Change) -> bool:
        return _key(change) in (self._conflicts if change.state == "conflict" else self._diffs)

    def forget_conflict(self, change: Change) -> None:
        self._conflicts.pop(_key(change), None)

    def draw(self) -> None:
        if self._shown is None:
            return
        change, place = self._shown
        choosing = self.choosing
        if choosing is not None:
            view = self.query_one(ConflictLines)
            self._bring_out(view)
            view.show_conflict(choosing.view, choosing.chosen, choosing.place)
            return
        columns = self._columns
        self._bring_out(columns)
        diff = self._diffs.get(_key(change))
        if diff is None:
            return
        if isinstance(diff, str):
            columns.show_words(diff)
        elif not diff.hunks:
            columns.show_words(without_diff(change))
        else:
            columns.show_diff(diff, hunk_states(change, len(diff.hunks)), place.hunk)

    @property
    def _columns(self) -> DiffView:
        wide = not self.size.width or self.size.width >= TWO_FROM
        return self.query_one("#two-columns" if self._in_two and wide else "#one-column", DiffView)

    def on_resize(self) -> None:
        if self._in_two:
            self.draw()

    def _bring_out(self, view: LineView) -> None:
        others = [other for other in self.query(LineView) if other is not view]
        had_focus = self.screen.focused in others
        view.display = True
        for other in others:
            other.display = False
        if had_focus:
            view.focus()

    async def fetch(self, change: Change) -> None:
        key = _key(change)
        async with self._fetching.setdefault(key, asyncio.Lock()):
            if self.has(change):
                return
            try:
                if change.state == "conflict":
                    view = None
                    with suppress(TuiAgentError):
                        view = await self._session.review.conflict(change.id)
                    # `None` if it is already resolved or unreadable.
                    self._conflicts[key] = (
                        ConflictChoices(view, f"place:{change.id}") if view and view.conflicts else None
                    )
                if self._conflicts.get(key) is None and key not in self._diffs:
                    self._diffs[key] = diff = await self._session.review.diff(change.id)
                    await self._columns.get_ready(diff)
            except TuiAgentError as error:
                self._diffs[key] = str(error)
            finally:
                self._fetching.pop(key, None)
        shown = _key(self._shown[0]) if self._shown is not None else None
        for kept in (self._diffs, self._conflicts):
            for hidden in [hidden for hidden in kept if hidden != shown][: max(0, len(kept) - MOST_KEPT)]:
                del kept[hidden]
        if self._shown is not None and _key(self._shown[0]) == key:
            self.draw()


def _key(change: Change) -> _Key:
    return change.id, change.base, change.new
