"""The sub-tasks: a graph from left to right where there is room for it, a list by layer where there is not."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, ClassVar

from msgspec.structs import replace
from textual import events, work
from textual.widgets import Input

from tui_agent.ui.panes.review_place import ReviewPosition, shown_changes, waiting
from tui_agent.ui.panes.subtasks_drawing import Drawing
from tui_agent.ui.widgets.hints import HintLine
from tui_agent.ui.widgets.lines import Lined
from tui_agent.ui.widgets.session_calls import writes

_Call = Callable[[str], Coroutine[Any, Any, object]]


class SubTasksPane(Drawing):
    """Runs, stops and changes what the cursor is on, and looks into it."""

    ID = "subtasks"
    TITLE = "Sub-tasks"
    SLICES: ClassVar[tuple[str, ...]] = ("subtasks", "usage")

    # ── running ──────────────────────────────────────────────────────────────────────────────────────────

    def action_run(self) -> None:
        self._do(self.session.subtasks.run)

    def action_run_ticked(self) -> None:
        self.act(self.session.subtasks.run_ticked())

    def action_tick(self) -> None:
        self._do(self.session.subtasks.tick)

    def action_skip(self) -> None:
        self._do(self.session.subtasks.skip)

    def action_retry(self) -> None:
        self._do(self.session.subtasks.retry)

    def action_stop(self) -> None:
        self._do(self.session.subtasks.stop)

    def action_stop_all(self) -> None:
        self.ask(self.session.subtasks.stop_all())

    # ── looking ──────────────────────────────────────────────────────────────────────────────────────────

    def action_next(self) -> None:
        self.step(1)

    def action_previous(self) -> None:
        self.step(-1)

    @work(exclusive=True, group="subtask")
    async def action_chat(self) -> None:
        from tui_agent.ui.dialogs.subtask_chat import open_chat

        if self.current is not None:
            await open_chat(self.app, self.session, self.current)

    def action_changes(self) -> None:
        """Go to the review, to the first change of this task that waits, or was decided last."""
        task = self.current
        if task is None:
            return
        shown = [change for change in shown_changes(self.session.state.review) if task.id in change.tasks]
        if not shown:
            said = f"No change of the sub-task {task.id} waits for review"
            decided = any(task.id in change.tasks for change in self.session.state.review.changes)
            more = ": all of them were decided" if decided else ": it has changed nothing so far"
            self.ask(self.session.notice(said + more))
            return
        place = next(iter([*waiting(shown), ReviewPosition(shown[0].id)]))
        layout = self.session.state.layout
        self.session.set_layout(replace(layout, place={**layout.place, "review": place.saved()}))
        self.go_to("review")

    def action_fold(self) -> None:
        """Hide what is done, or show it again."""
        self.look_as(replace(self.look, folded=not self.look.folded))

    def action_follow(self) -> None:
        """Let the cursor keep to what runs, or stay where it is."""
        self.look_as(replace(self.look, follows=not self.look.follows))

    def action_filter(self) -> None:
        self._input.value = self.look.words
        self._input.cursor_position = len(self.look.words)
        self._input.display = True
        self._input.focus()

    # ── the graph by hand ────────────────────────────────────────────────────────────────────────────────

    @writes
    @work(exclusive=True, group="subtask")
    async def action_add(self) -> None:
        from tui_agent.ui.dialogs.subtask_forms import add

        await add(self.app, self.session)

    @writes
    @work(exclusive=True, group="subtask")
    async def action_edit(self) -> None:
        from tui_agent.ui.dialogs.subtask_forms import edit

        if self.current is not None:
            await edit(self.app, self.session, self.current)

    @writes
    @work(exclusive=True, group="subtask")
    async def action_connect(self) -> None:
        from tui_agent.ui.dialogs.subtask_forms import connect

        if self.current is not None:
            await connect(self.app, self.session, self.current)

    @writes
    @work(exclusive=True, group="subtask")
    async def action_remove(self) -> None:
        from tui_agent.ui.dialogs.subtask_forms import remove

        if self.current is not None:
            await remove(self.app, self.session, self.current)

    # ── the mouse, and what is written ───────────────────────────────────────────────────────────────────

    def on_lined_moved(self, event: Lined.Moved) -> None:
        event.stop()
        self.go(event.key)

    def on_lined_chosen(self, event: Lined.Chosen) -> None:
        event.stop()
        self._look_into()

    def on_lined_marked(self, event: Lined.Marked) -> None:
        event.stop()
        self.act(self.session.subtasks.tick(event.key))

    async def on_hint_line_pressed(self, event: HintLine.Pressed) -> None:
        event.stop()
        await self.run_action(event.action.removeprefix("subtasks."))

    def on_input_changed(self, event: Input.Changed) -> None:
        event.stop()
        if self._input.display:
            self.look_as(replace(self.look, words=event.value))

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self._stop_writing()

    def on_key(self, event: events.Key) -> None:
        if event.key == "escape" and self._input.has_focus:
            event.stop()
            self.look_as(replace(self.look, words=""))
            self._stop_writing()

    def _stop_writing(self) -> None:
        self._input.display = False
        self.entry.focus()

    def _look_into(self) -> None:
        """What a click on the task under the cursor means: its chat, where it has one."""
        if self.current is not None and self.current.runs:
            self.action_chat()

    def _do(self, call: _Call) -> None:
        if self.current is not None:
            self.act(call(self.current.id))
