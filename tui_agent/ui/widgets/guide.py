"""Guide of the rehearsal: the fifteen most frequent tasks with their keys."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from textual.widgets import Static

from tui_agent.ui.keys.keymap import Keys
from tui_agent.ui.safe_text import parts

if TYPE_CHECKING:
    from tui_agent.store.state import State


class GuideTask(NamedTuple):
    """`{action}` in `words` becomes the action's key; `done` tests the state and the performed actions."""

    words: str
    done: Callable[[State, frozenset[str]], bool]


def _acted(*actions: str) -> Callable[[State, frozenset[str]], bool]:
    return lambda state, acted: not acted.isdisjoint(actions)


def _hunks(state: State) -> list[str]:
    return [hunk for change in state.review.changes for hunk in change.hunks]


def _all_decided(state: State) -> bool:
    return bool(state.review.checkpoints) and not state.review.open


def _undone(state: State) -> bool:
    return any(it.undone for it in state.review.checkpoints)


JOBS = (
    GuideTask("Send the message: {chat.send}", lambda state, _: state.turn.number > 0),
    GuideTask(
        "After the answer, apply a change: {pane.review} then {review.apply}",
        lambda state, _: "applied" in _hunks(state),
    ),
    GuideTask(
        "Skip the next change: {review.skip}",
        lambda state, _: "skipped" in _hunks(state) or _all_decided(state),
    ),
    GuideTask(
        "Apply all changes: {changes.apply_all}, twice if a check failed",
        lambda state, _: _all_decided(state),
    ),
    GuideTask("Undo the apply: {changes.undo}", lambda state, _: _undone(state)),
    GuideTask(
        "Commit: {changes.commit}, write a message, {form.keep}",
        # Without a repository, an undo shows that the user has moved on.
        lambda state, acted: "committed" in acted or (_undone(state) and not state.workspace.is_repository),
    ),
    GuideTask(
        "Stop an answer: {pane.chat}, 1, {chat.send}, then {app.close} while it comes",
        lambda state, _: state.turn.kind == "Interrupted",
    ),
    GuideTask(
        "Open a file: {pane.files} {files.find}, retry, Enter",
        lambda state, _: bool(state.buffers.open),
    ),
    GuideTask("Search in it: {buffers.find}, some letters, Esc", _acted("buffers.find")),
    GuideTask(
        "Run a command: {pane.chat}, !git status, {chat.send}",
        lambda state, _: any(it.by == "person" for it in state.commands.results),
    ),
    GuideTask("Search the chat: {pane.chat} {chat.search}, some letters, Esc", _acted("chat.search")),
    GuideTask("Choose a model: {session.model}, and Esc", _acted("session.model")),
    GuideTask(
        "Get a question: {pane.chat}, Explain shop/invoices.py, {chat.send}; answer it: {pane.plan} {plan.choose}",
        _acted("plan.choose"),
    ),
    GuideTask("Begin a new session: {session.new}", _acted("a new session")),
    GuideTask("Resume the one before: {session.open}, {chat.send}", _acted("a session resumed")),
)


class Guide:
    def __init__(self) -> None:
        self.left = list(JOBS)
        self._acted: frozenset[str] = frozenset()
        self._sessions: list[str] = []

    def acted(self, action_id: str) -> None:
        self._acted |= {action_id}

    def show(self, state: State) -> None:
        name = state.session.id
        if self._sessions and name != self._sessions[-1]:
            self.acted("a session resumed" if name in self._sessions else "a new session")
        if name:
            self._sessions.append(name)
        if any(notice.text.startswith("Committed") for notice in state.notices.items):
            self.acted("committed")
        self.left = [job for job in self.left if not job.done(state, self._acted)]

    def words(self, keys: Keys) -> str:
        if not self.left:
            every, leave = keys.shown("app.help"), keys.shown("app.quit")
            return f"All {len(JOBS)} are done. {every} has every key, {leave} twice quits."
        words = self.left[0].words
        for action in keys.by_action:
            words = words.replace(f"{{{action}}}", keys.shown(action))
        return f"{len(JOBS) - len(self.left) + 1} of {len(JOBS)}  {words}"


class GuideLine(Static):
    DEFAULT_CSS = (
        "GuideLine { dock: top; height: auto; max-height: 2; background: $surface-raised; padding: 0 1; }"
    )
    SLICES: ClassVar[tuple[str, ...]] = (
        *("session", "turn", "review", "buffers.tabs", "commands", "plan", "notices", "layout", "input"),
    )

    def __init__(self, guide: Guide, keys: Keys) -> None:
        super().__init__("", id="guide", markup=False)
        self._guide = guide
        self._keys = keys

    def show(self, state: State) -> None:
        self._guide.show(state)
        self.look()

    def look(self) -> None:
        self.update(parts((self._guide.words(self._keys), "$accent")))
