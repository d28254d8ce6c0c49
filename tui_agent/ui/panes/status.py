"""The status line: model, usage and keys of the focused pane."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from rich.cells import cell_len
from textual.content import Content
from textual.css.query import NoMatches
from textual.notifications import SeverityLevel
from textual.widget import Widget
from textual.widgets import Static

from tui_agent.edits.change import Checkpoint
from tui_agent.store import commands
from tui_agent.store.state import State
from tui_agent.turn.model_choice import in_short
from tui_agent.ui.actions import ACTIONS, ANYWHERE, actions_of, why_not
from tui_agent.ui.graph.facts import dollars, short_count
from tui_agent.ui.keys.keymap import Keys
from tui_agent.ui.safe_text import CHECK_INKS, clean, counted, parts
from tui_agent.ui.widgets.line_view import Hint, HintLine
from tui_agent.ui.widgets.pane import Pane, Ticker
from tui_agent.ui.widgets.prompt_lines import stalled

if TYPE_CHECKING:
    from tui_agent.session.session import Session

#: Toast severity and seconds by notice level.
_SEVERITY: dict[str, SeverityLevel] = {"info": "information", "warning": "warning", "error": "error"}
_STAYS = {"info": 5, "warning": 8, "error": 12}

#: Maximum characters of a command and of a toast.
SHOWN, TOAST = 16, 240

Piece = tuple[str, str]


class StatusPane(Pane):
    ID = "status"
    SLICES = (
        "session",
        "model",
        "turn",
        "usage",
        "workspace",
        "known",
        "review",
        "layout",
        "notices",
        "commands",
        *("buffers.tabs", "plan", "todos", "subtasks"),
        *("checks", "checked_buffers", "others"),
    )

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._told: int | None = None
        self._keys_of = ""
        self._facts = Content()
        self._counting = Ticker(self, lambda: self.show(self.session.state))
        self._applies: tuple[Checkpoint, ...] | None = None

    def compose(self) -> Iterable[Widget]:
        yield Static("", id="facts", markup=False)
        yield HintLine(id="hints")

    def on_mount(self) -> None:
        self.screen.screen_layout_refresh_signal.subscribe(self, lambda _: self._follow())

    def _follow(self) -> None:
        """A pane's layout decides whether it shows its own keys."""
        state = self.session.state
        if self._keys_of != self._told_here(state.layout.focus):
            self.show(state)

    def show(self, state: State) -> None:
        self._keys_of = self._told_here(state.layout.focus)
        hints = hint_words(
            self.keys,
            self._keys_of,
            self.app.size.width // 2,
            pending=bool(state.review.open),
            can=lambda action: not why_not(action, state),
        )
        line = self.query_one(HintLine)
        line.set_words(hints)
        line.styles.width = width = words_width(self.keys, hints)
        quiet = len(stalled(state, time.time(), self.session.loaded.settings.subtasks.silent_after))
        models = self.session.models
        now = models.effort()
        effort = in_short(now, models.level(now)) if now != "auto" else ""
        facts = facts_line(state, self.app.size.width - width - 4, models.name, quiet, effort)
        if not facts.is_same(self._facts):  # each update lays out the whole screen
            self._facts = facts
            self.query_one("#facts", Static).update(facts)
        notices = state.notices
        told = notices.total if self._told is None else self._told  # none of earlier runs
        self._told = notices.total
        for notice in notices.items:
            if notice.number > told:
                text = clean(notice.text)
                if len(text) > TOAST:
                    begun = text[:TOAST].rpartition(" ")[0] or text[:TOAST]
                    text = f"{begun} … · {self.keys.shown('app.notices')} shows all"
                severity, stays = _SEVERITY[notice.level], _STAYS[notice.level]
                self.app.notify(text, severity=severity, timeout=stays, markup=False)
        before, self._applies = self._applies, state.review.checkpoints
        known = {point.id for point in before or ()}
        new = [point for point in self._applies if point.id not in known and not point.undone]
        if before is not None and new:
            place = "review.undo" if state.layout.focus == "review" else "changes.undo"
            count = counted(len({step.path for point in new for step in point.files}), "file")
            self.app.notify(f"{count} written · {self.keys.shown(place)} undoes", timeout=5, markup=False)
        counts = any(not one.background for one in state.commands.running)
        self._counting.run(not self.plain and (counts or bool(state.subtasks.running)))

    async def on_hint_line_pressed(self, event: HintLine.Pressed) -> None:
        event.stop()
        event.prevent_default()  # the action can belong to another pane
        self.post_message(self.ActionAsked(event.action))

    def _told_here(self, name: str) -> str:
        """Returns "" if the pane shows its own keys."""
        try:
            # An id is found faster than a path.
            pane = self.screen.query_one(f"#pane-{name}", Pane)
        except NoMatches:
            return name
        # A query would visit each line of a long conversation.
        lines = (
            one for child in pane.children for one in (child, *child.children) if isinstance(one, HintLine)
        )
        return "" if any(line.display and line.region for line in lines) else name

    def on_resize(self) -> None:
        self.show(self.session.state)


def facts_line(state: State, width: int, model: str = "", quiet: int = 0, effort: str = "") -> Content:
    """`model` is used until the state has one; `quiet` counts silent sub-tasks."""
    line = Content()
    for piece in _facts(state, model, quiet, effort):
        more = parts(piece) if not line else parts((" · ", "$faint"), piece)
        if line.cell_length + more.cell_length <= width:
            line += more
        elif piece[0] != state.session.not_kept:
            break
    return line


def hint_words(
    keys: Keys, pane: str, width: int, pending: bool = False, can: Callable[[str], bool] = lambda action: True
) -> list[Hint]:
    """As many as fit; `pending` puts the apply key first."""
    last = [ACTIONS["app.palette"], ACTIONS["app.help"]]
    wanted = [
        it
        for it in dict.fromkeys((*actions_of(pane), *actions_of(ANYWHERE)))
        if it.hint and it not in last and can(it.id)
    ]
    if pending:
        wanted.sort(key=lambda action: action.id != "changes.apply_all")
    tail = [Hint(action.id, action.hint) for action in last]
    words: list[Hint] = []
    for action in wanted:
        more = [*words, Hint(action.id, action.hint)]
        if keys.shown(action.id) and words_width(keys, [*more, *tail]) > width:
            break
        words = more if keys.shown(action.id) else words
    return [*words, *tail]


def words_width(keys: Keys, words: Sequence[Hint]) -> int:
    return 1 + sum(cell_len(f"{keys.shown(word.action)} {word.text}") + 2 for word in words)


def _marks(state: State, quiet: int) -> Iterable[Piece]:
    if state.turn.phase == "waiting" or state.asked is not None:
        yield ("? 1 question", "$warning")
    if stuck := [change.state for change in state.review.changes].count("conflict"):
        yield (f"⚠ {counted(stuck, 'conflict')}", "$warning")
    failed = sum(it.state == "failed" and it.turn == state.turn.number for it in state.review.changes)
    if failed:
        yield (f"✗ {failed} failed", "$failed")
    if quiet:
        yield (f"◌ {counted(quiet, 'sub-task')} silent", "$warning")
    if waits := state.review.undecided:
        yield (f"● {counted(waits, 'change')}", "$accent")
    if others := [other for other in state.others if other.waits_for_user]:
        asks = any(other.asks for other in others)
        yield (f"inbox {len(others)}", "$warning" if asks else "$accent")


def _facts(state: State, model: str, quiet: int, effort: str) -> Iterable[Piece]:
    if state.session.rehearsal:
        yield ("Rehearsal", "$warning")
    elif state.session.replay:
        yield (f"replies are recorded: {state.session.replay}", "$warning")
    if state.session.not_kept:
        yield ("nothing is saved", "$error")
        yield (state.session.not_kept, "$error")
    if state.session.waits_for:
        yield (state.session.waits_for, "$warning")
    for mark in commands.in_short(state.check_marks):
        yield (mark.words, CHECK_INKS[mark.look])
    yield from _marks(state, quiet)
    name = state.model.name or model
    if not state.session.rehearsal:
        yield (f"{name} {effort}".rstrip() or "no model", "$text" if name else "$warning")
    if state.model.status in ("starting", "failed"):
        yield (state.model.status, "$error" if state.model.status == "failed" else "$muted")
    if state.turn.number:
        yield (f"turn {state.turn.number}", "$running" if state.turn.running else "$muted")
    running = [one for one in state.commands.running if not one.background]
    if running:
        more = f" +{len(running) - 1}" if len(running) > 1 else ""
        seconds = max(0, int(time.time() - running[-1].since))
        yield (f"● {_cut(running[-1].command)}{more} {seconds} s", "$running")
    for server in state.commands.running:
        if server.background:
            yield (f"◆ {_cut(server.command)}", "$success")
    usage, total = state.usage, state.usage.session
    if usage.context:
        about = "~" if usage.context_estimated else ""
        window = f" of {window_in_short(state.model.window)}" if state.model.window_known else ""
        yield (f"{about}{short_count(usage.context)}{window or ' tokens'}", "$muted")
    if total.input and total.cached:
        yield (f"cache {round(100 * total.cached / total.input)}%", "$muted")
    if (total.input or total.output) and total.cost is not None:
        yield (dollars(total.cost) or "$0.00", "$muted")
    where = state.workspace
    if where.is_repository:
        moved = "".join(f" {sign}{n}" for sign, n in (("↑", where.ahead), ("↓", where.behind)) if n)
        changed = f" ±{len(where.marks)}" if where.marks else ""
        yield (f"{where.branch or 'no branch'}{moved}{changed}", "$muted")
    if stale := len(state.known.stale):
        yield (f"⚠ {stale} stale", "$stale")
    if where.indexing:
        yield ("indexing …", "$muted")
    if where.watching == "failed":
        yield ("not watching", "$warning")


def _cut(command: str) -> str:
    return command if len(command) <= SHOWN else f"{command[: SHOWN - 1]}…"


def window_in_short(tokens: int) -> str:
    return f"{tokens // 1024}k" if tokens % 1000 and not tokens % 1024 else short_count(tokens)
