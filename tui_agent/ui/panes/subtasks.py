"""The sub-tasks pane: a dependency graph, or a list by layer if space is short; its rows and texts."""

from __future__ import annotations

import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from functools import cached_property, partial
from typing import Any, ClassVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace
from textual import events, on
from textual.app import App, ComposeResult
from textual.widget import Widget
from textual.widgets import Input

from tui_agent.edits.change import Change, proposing_tasks
from tui_agent.session.session import Session
from tui_agent.settings.schema import Settings
from tui_agent.store.conversation import Usage
from tui_agent.store.graph import DONE_STATES, OPEN_STATES, SubTask, layers
from tui_agent.store.state import State, SubTaskProgress, SubTasksSlice
from tui_agent.subtasks.copies import why_blocked
from tui_agent.ui.graph.facts import PHASES, Fact, Facts, clock, dollars, short_count, waits_for_user
from tui_agent.ui.graph.graph_view import GraphView
from tui_agent.ui.panes.review_rows import ReviewPosition, shown_changes, waiting
from tui_agent.ui.safe_text import label
from tui_agent.ui.widgets.line_view import Hint, HintLine, Line, LineView, Piece, Row, Rows, note
from tui_agent.ui.widgets.list_pane import ListPane
from tui_agent.ui.widgets.pane import Ticker, noticed, save_place


class ViewOptions(Struct, frozen=True):
    cursor: str = ""
    folded: bool = False
    words: str = ""
    follows: bool = False

    def saved(self) -> dict[str, object]:
        return msgspec.structs.asdict(self)


def read_look(saved: object) -> ViewOptions:
    try:
        return msgspec.convert(saved, ViewOptions)
    except msgspec.ValidationError:
        return ViewOptions()


def visible_tasks(tasks: Sequence[SubTask], look: ViewOptions) -> tuple[SubTask, ...]:
    wanted = look.words.lower().split()
    left = [
        task
        for task in tasks
        if not (look.folded and task.state in DONE_STATES)
        and all(word in f"{task.id} {task.goal} {task.state}".lower() for word in wanted)
    ]
    if len(left) == len(tasks):
        return tuple(tasks)
    by_id = {task.id: task for task in tasks}
    names = {task.id for task in left}
    reached: dict[str, tuple[str, ...]] = {}
    return tuple(replace(task, dependencies=_seen_before(task, by_id, names, reached)) for task in left)


def moved_to(look: ViewOptions, tasks: Sequence[SubTask]) -> ViewOptions:
    running = [task.id for task in tasks if task.state == "running"]
    if look.follows and running and look.cursor not in running:
        return replace(look, cursor=running[0])
    if any(task.id == look.cursor for task in tasks):
        return look
    first = sorted(tasks, key=lambda task: (not waits_for_user(task), task.state != "running"))
    return replace(look, cursor=first[0].id if first else "")


def _seen_before(
    task: SubTask, by_id: Mapping[str, SubTask], names: set[str], reached: dict[str, tuple[str, ...]]
) -> tuple[str, ...]:
    """Nearest visible ancestors of a task, memoized in `reached`."""
    if task.id not in reached:
        reached[task.id] = ()  # terminates dependency cycles
        found: dict[str, None] = {}
        for name in task.dependencies:
            if name in names:
                found[name] = None
            elif name in by_id:
                found |= dict.fromkeys(_seen_before(by_id[name], by_id, names, reached))
        reached[task.id] = tuple(found)
    return reached[task.id]


_BY_ITSELF = {
    "manual": "starts nothing automatically",
    "ticked": "starts only what you tick",
    "auto": "starts automatically",
}
#: Share of a limit from which the warning colour applies.
_NEAR = 0.9


def title(
    name: str, tasks: Sequence[SubTask], shown: int, silent: int = 0, changes: Sequence[Change] = ()
) -> str:
    """Returns words such as `Sub-tasks 12/60 ?2 ●3 ✗1 ⚠2 ◌1 · 4 stalled · 9 hidden`: ? wait for the user, ⚠
    have conflicting `changes`, ◌ are silent; without zeros.
    """
    if not tasks:
        return name
    states = [task.state for task in tasks]
    conflicts = [one for one in changes if one.state == "conflict"]
    proposing = {name for one in conflicts for side in proposing_tasks(one, changes) for name in side}
    disputed = proposing & {task.id for task in tasks}
    broken = {task.id for task in tasks if task.state in ("failed", "cancelled")}
    stalled: set[str] = set()  # those that wait for a broken one, also through others
    while more := {
        task.id
        for task in tasks
        if task.state == "pending" and task.id not in stalled and (broken | stalled) & set(task.dependencies)
    }:
        stalled |= more
    running, failed, hidden = states.count("running"), states.count("failed"), len(tasks) - shown
    counts = [
        f"{name} {sum(state in DONE_STATES for state in states)}/{len(tasks)}",
        f"?{asking}" if (asking := sum(map(waits_for_user, tasks))) else "",
        f"●{running}" if running else "",
        f"✗{failed}" if failed else "",
        f"⚠{len(disputed)}" if disputed else "",
        f"◌{silent}" if silent else "",
        f"· {len(stalled)} stalled" if stalled else "",
    ]
    return " ".join(count for count in counts if count) + (f" · {hidden} hidden" if hidden else "")


def unapproved(tasks: Sequence[SubTask]) -> list[str]:
    return [
        task.id
        for task in tasks
        if task.auto_execute and not task.wanted and task.state in ("pending", "ready")
    ]


def limits_row(settings: Settings, tasks: Sequence[SubTask], used: Usage) -> Row:
    running = sum(task.state == "running" for task in tasks)
    most = settings.subtasks.max_parallel
    runs = f"{running} of {most} run" if running else f"none runs, at most {most}"
    asking = sum(map(waits_for_user, tasks))
    asks = (Piece(f"{asking} {'waits' if asking == 1 else 'wait'} for you · ", "accent"),) if asking else ()
    left = Piece(f"{runs} · {_BY_ITSELF[settings.subtasks.begin]}", "muted", "end")
    tokens, limits, each = used.input + used.output, settings.limits, settings.subtasks
    most_tokens, most_cost = limits.session_tokens, limits.session_cost
    near = (most_tokens and tokens >= most_tokens * _NEAR) or (
        most_cost and (used.cost or 0) >= most_cost * _NEAR
    )
    ink = "warning" if near else "muted"
    of_tokens = f" of {short_count(most_tokens)}" if most_tokens else ""
    of_cost = f" of ${most_cost:g}" if most_cost else ""
    cost = "" if used.cost is None else dollars(used.cost) or "$0"
    said = f"{short_count(tokens)}{of_tokens} tokens" + (f", {cost}{of_cost}" if cost else "")
    seconds = each.max_seconds
    longest = clock(seconds) if seconds % 60 else f"{seconds // 60} min"
    caps = [
        f"{short_count(each.max_tokens)} tokens" if each.max_tokens else "",
        f"${each.max_cost:g}" if each.max_cost else "",
        longest if seconds else "",
    ]
    capped = ", ".join(cap for cap in caps if cap)
    long = f"{said} · {capped} each" if capped else said
    paid = f"{cost}{of_cost.replace(' of ', '/')}" if cost else ""
    count = f"{short_count(tokens)}{of_tokens.replace(' of ', '/')}"
    short = f"{count} {paid}".rstrip()
    right = (long, said, short if near else f"{count} tokens", short, paid or short)
    return Row("", Line((*asks, left), tuple(Piece(words, ink) for words in right)))


def list_rows(tasks: Sequence[SubTask], facts: Mapping[str, Fact]) -> list[Row]:
    rows = []
    for depth, layer in enumerate(layers(tasks)):
        for task in layer:
            fact = facts[task.id]
            name, goal = Piece(task.id, "", "end"), Piece(f"  {task.goal}", "muted", "all")
            pieces = (fact.mark, Piece(" "), Piece("  " * min(depth, 3)), name, goal)
            right = tuple(piece for piece in (fact.long, fact.short) if piece.text)
            rows.append(Row(task.id, Line(pieces, right), marked=True))
    return rows


def detail_rows(
    task: SubTask, fact: Fact, progress: SubTaskProgress | None, states: Mapping[str, str], blocked: str
) -> list[Row]:
    if task.state in ("running", "completed"):
        said = " · ".join(part for part in ("" if fact.silent else task.state, fact.full) if part)
    elif task.state in OPEN_STATES:
        ticked = " · ticked" if task.auto_execute and not task.wanted else ""
        state = "waits for you" if waits_for_user(task) else task.state
        said = f"{state}{ticked}{' · starts automatically' if task.wanted else ''}"
    else:
        said = f"{task.state} · run {task.runs} times" if task.runs > 1 else task.state
    told = Piece(f"  {said}", "warning" if fact.silent else "muted", "end")
    head = Row("", Line((fact.mark, Piece(" "), Piece(task.id, "strong", "end"), told)))
    lines: list[tuple[str, str]] = []
    if task.reason:
        lines.append((task.reason, "failed" if task.state == "failed" else "muted"))
    if progress is not None:
        if phase := PHASES.get(progress.phase, ""):
            lines.append((f"turn {progress.turn}: {phase}" if progress.turn else phase, "running"))
        if progress.line:
            lines.append((f"› {progress.line}", ""))
    if blocked:
        lines.append((f"cannot begin: waits for {blocked}", "warning"))
    if task.outside:
        lines.append((f"⚠ changed beside its files: {', '.join(task.outside)}", "warning"))
    if task.summary:
        lines.append((task.summary, ""))
    lines.append((task.goal, "muted" if task.summary or progress else ""))
    left = {name: states.get(name, "") for name in task.dependencies}
    waits = [
        f"{name} ({state})" if state in ("running", "failed", "cancelled") else name
        for name, state in left.items()
        if state not in DONE_STATES
    ]
    facts = (
        ("waits for", waits),
        ("after", [name for name, state in left.items() if state in DONE_STATES]),
        ("on top of", task.on_top),
        ("changed", [step.path for step in task.changed]),
        ("agent", [task.agent] if task.agent else []),
        ("files", task.files),
    )
    lines += [(f"{words}: {', '.join(names)}", "muted") for words, names in facts if names]
    return [head, *(note(f"  {text}", ink, 2) for text, ink in lines)]


def words_for(task: SubTask | None, tasks: Sequence[SubTask], look: ViewOptions) -> list[Hint]:
    due = len(unapproved(tasks))
    names = [("run_ticked", f"run the {due} ticked")] if due else []
    names += _FOR_STATE.get(task.state, ()) if task else ()
    if any(task.state == "running" or task.wanted for task in tasks):
        names.append(("stop_all", "stop all"))
    names += [
        ("follow", "follows" if look.follows else "follow"),
        ("fold", "show done" if look.folded else "hide done"),
        ("filter", f"filter: {look.words}" if look.words else "filter"),
        ("add", "add"),
    ]
    return [Hint(f"subtasks.{name}", text) for name, text in names]


_OPEN = (("run", "run"), ("tick", "tick"), ("skip", "skip"), ("edit", "edit"), ("connect", "connect"))
_ENDED = (("retry", "retry"), ("skip", "skip"), ("chat", "chat"))
_FOR_STATE: Mapping[str, Sequence[tuple[str, str]]] = {
    "pending": _OPEN,
    "ready": _OPEN,
    "running": (("chat", "chat"), ("stop", "stop")),
    "completed": (("changes", "changes"), ("chat", "chat"), ("retry", "retry")),
    "failed": _ENDED,
    "cancelled": _ENDED,
    "skipped": (("retry", "resume"),),
}


_Call = Coroutine[Any, Any, object]
_NONE_SEEN = "The filter hides all sub-tasks."
#: Minimum rows for the limits, the actions and the details.
_LIMITS_FROM, _WORDS_FROM, _DETAILS_FROM = 6, 16, 9
#: Minimum cells for the graph; wider graphs scroll.
_LIST_BELOW = 40


class SubTasksPane(ListPane):
    EMPTY = "Sub-tasks of the model and your own."
    ID = "subtasks"
    SLICES: ClassVar[tuple[str, ...]] = ("subtasks", "usage", "review")

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._slice = SubTasksSlice()
        self._used = Usage()
        self._look: ViewOptions | None = None
        self.shown: tuple[SubTask, ...] = ()
        self._facts = Facts((), {}, 0.0, 0)
        self.ticker = Ticker(self, lambda: self.display and self._draw())

    @cached_property
    def commands(self) -> Mapping[str, Callable[[], object]]:
        from tui_agent.ui.dialogs import subtasks

        tasks = self.session.subtasks
        return {
            "next": partial(self._step, 1),
            "previous": partial(self._step, -1),
            "run": partial(self._do, tasks.run),
            "run_ticked": lambda: self.act(tasks.run_ticked()),
            "tick": partial(self._do, tasks.tick),
            "skip": partial(self._do, tasks.skip),
            "retry": partial(self._do, tasks.retry),
            "stop": partial(self._do, tasks.stop),
            "stop_all": lambda: self.ask(tasks.stop_all()),
            "chat": partial(self._open, subtasks.open_chat),
            "changes": self._show_changes,
            "add": lambda: self._work(subtasks.add(self.app, self.session)),
            "edit": partial(self._open, subtasks.edit),
            "connect": partial(self._open, subtasks.connect),
            "remove": partial(self._open, subtasks.remove),
            "fold": lambda: self.set_view(replace(self.look, folded=not self.look.folded)),
            "follow": lambda: self.set_view(replace(self.look, follows=not self.look.follows)),
            "filter": lambda: self.write(self.look.words),
        }

    def compose(self) -> ComposeResult:
        limits = Rows(id="limits")
        limits.can_focus = False
        yield limits
        yield GraphView()
        yield Rows(id="layers")
        yield Rows(id="details")
        words = Input(compact=True, select_on_focus=False, placeholder="id, goal or state")
        words.display = False
        yield words
        yield HintLine()

    @property
    def entry(self) -> Widget:
        if not self.is_mounted:
            return self
        return self._graph if self._graph.display else self.rows

    def show(self, state: State) -> None:
        if self._look is None:
            self._look = read_look(state.layout.place.get(self.ID))
        self._slice, self._used = state.subtasks, state.usage.session
        self.ticker.run(bool(self._slice.running) and not self.plain)
        self._draw()

    @on(events.Resize)
    def _resized(self) -> None:
        self._choose_view()

    @property
    def look(self) -> ViewOptions:
        return self._look or ViewOptions()

    @property
    def _current(self) -> SubTask | None:
        return self._slice.get(self.look.cursor)

    def set_view(self, look: ViewOptions) -> None:
        if look == self._look:
            return
        self._look = look
        self._draw()
        save_place(self.session, self.ID, self.look.saved())

    def _draw(self) -> None:
        tasks = self._slice.tasks
        silent_after = self.session.loaded.settings.subtasks.silent_after
        self.shown = visible_tasks(tasks, self.look)
        self._look = moved_to(self.look, self.shown)
        self._facts = Facts(tasks, self._slice.running, time.time(), silent_after, self._why_blocked)
        changes = self.session.state.review.changes
        self.title_text = label(title(self.TITLE, tasks, len(self.shown), self._facts.silent, changes))
        self._graph.show_tasks(self.shown, self.look.cursor, self._facts)
        self._choose_view()

    def _choose_view(self) -> None:
        width, height = self.size
        graph = bool(self.shown) and not self.plain and (self._graph.needs <= width or width >= _LIST_BELOW)
        had_focus = self.screen.focused in (self._graph, self.rows)
        self._graph.display, self.rows.display = graph, not graph
        if not graph:
            none = _NONE_SEEN if self._slice.tasks else ""
            self.set_rows(list_rows(self.shown, self._facts), self.look.cursor, empty=none)
        limits = self.query_one("#limits", Rows)
        limits.display = bool(self._slice.tasks) and height >= _LIMITS_FROM
        if limits.display:
            _set(limits, [limits_row(self.session.loaded.settings, self._slice.tasks, self._used)])
        details, task = self.query_one("#details", Rows), self._current
        details.display = task is not None and height >= _DETAILS_FROM
        if task is not None and details.display:
            states = {other.id: other.state for other in self._slice.tasks}
            running = self._slice.running.get(task.id)
            blocked = self._why_blocked(task)
            _set(details, detail_rows(task, self._facts[task.id], running, states, blocked))
        words = self.query_one(HintLine)
        due = unapproved(self._slice.tasks)
        words.display = height >= _WORDS_FROM or (bool(due) and height >= _LIMITS_FROM)
        if words.display:
            words.set_words(words_for(self._current, self._slice.tasks, self.look))
        if had_focus and self.screen.focused is not self.entry:
            self.entry.focus()

    def _why_blocked(self, task: SubTask) -> str:
        if not (task.wanted and task.state == "ready"):
            return ""

        most, run = self.session.loaded.settings.subtasks.max_parallel, len(self._slice.running)
        places = f"queued: {run} of {most} run" if run >= most else ""
        return why_blocked(self.session.state, task) or places

    @property
    def _graph(self) -> GraphView:
        return self.query_one(GraphView)

    @property
    def rows(self) -> Rows:
        return self.query_one("#layers", Rows)

    def _go(self, task: str) -> None:
        if task and task != self.look.cursor:
            self.set_view(replace(self.look, cursor=task, follows=False))

    def _step(self, step: int) -> None:
        order = [task.id for layer in layers(self.shown) for task in layer]
        if (cursor := self.look.cursor) in order:
            self._go(order[max(0, min(order.index(cursor) + step, len(order) - 1))])

    def _do(self, call: Callable[[str], _Call]) -> None:
        if task := self._current:
            self.act(call(task.id))

    def _open(self, dialog: Callable[[App[object], Session, SubTask], _Call]) -> None:
        if task := self._current:
            self._work(dialog(self.app, self.session, task))

    def _work(self, call: _Call) -> None:
        self.run_worker(noticed(self.session, call), group="subtask", exclusive=True)

    def _show_changes(self) -> None:
        task = self._current
        if task is None:
            return
        review = self.session.state.review
        shown = [change for change in shown_changes(review) if task.id in change.tasks]
        if not shown:
            said = f"No change of the sub-task {task.id} is pending"
            decided = any(task.id in change.tasks for change in review.changes)
            more = ": all were decided" if decided else ": it has changed nothing yet"
            self.ask(self.session.notice(said + more))
            return
        place = next(iter([*waiting(shown), ReviewPosition(shown[0].id)]))
        save_place(self.session, "review", place.saved())
        self.go_to("review")

    def on_line_view_moved(self, event: LineView.Moved) -> None:
        event.stop()
        self._go(event.key)

    @on(LineView.Chosen)
    def _row_chosen(self, event: LineView.Chosen) -> None:
        event.stop()
        if self._current is not None and self._current.runs:
            self.commands["chat"]()

    @on(LineView.Marked)
    def _row_marked(self, event: LineView.Marked) -> None:
        event.stop()
        self.act(self.session.subtasks.tick(event.key))

    @on(Input.Changed)
    def _input_changed(self, event: Input.Changed) -> None:
        event.stop()
        if self.line.display:
            self.take(event.value)

    def take(self, text: str) -> None:
        self.set_view(replace(self.look, words=text))


def _set(view: Rows, rows: list[Row]) -> None:
    if tuple(rows) != view.rows:
        view.set_rows(rows)
