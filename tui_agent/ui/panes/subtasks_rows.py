"""View options, visible tasks, and texts of the sub-tasks pane."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from tui_agent.edits.change import Change, proposing_tasks
from tui_agent.settings.schema import Settings
from tui_agent.store.conversation import Usage
from tui_agent.store.graph import DONE_STATES, OPEN_STATES, SubTask, layers
from tui_agent.store.state import SubTaskProgress
from tui_agent.ui.graph.facts import PHASES, Fact, clock, dollars, short_count, waits_for_user
from tui_agent.ui.widgets.line_view import Hint, Line, Piece, Row, note


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
    running, failed, hidden = states.count("running"), states.count("failed"), len(tasks) - shown
    counts = [
        f"{name} {sum(state in DONE_STATES for state in states)}/{len(tasks)}",
        f"?{asking}" if (asking := sum(map(waits_for_user, tasks))) else "",
        f"●{running}" if running else "",
        f"✗{failed}" if failed else "",
        f"⚠{len(disputed)}" if (disputed := _disputed(tasks, changes)) else "",
        f"◌{silent}" if silent else "",
        f"· {stalled} stalled" if (stalled := _stalled(tasks)) else "",
    ]
    return " ".join(count for count in counts if count) + (f" · {hidden} hidden" if hidden else "")


def _disputed(tasks: Sequence[SubTask], changes: Sequence[Change]) -> set[str]:
    names = {
        name
        for one in changes
        if one.state == "conflict"
        for side in proposing_tasks(one, changes)
        for name in side
    }
    return names & {task.id for task in tasks}


def _stalled(tasks: Sequence[SubTask]) -> int:
    """Pending tasks with a failed or cancelled transitive dependency."""
    broken = {task.id for task in tasks if task.state in ("failed", "cancelled")}
    stalled: set[str] = set()
    while more := {
        task.id
        for task in tasks
        if task.state == "pending" and task.id not in stalled and (broken | stalled) & set(task.dependencies)
    }:
        stalled |= more
    return len(stalled)


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
    """A clickable mark, the goal if it fits, and the blocker or duration."""
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
    said = [*_detail_lines(task, fact, progress, blocked), *_around(task, states)]
    told = Piece(f"  {_state_line(task, fact)}", "warning" if fact.silent else "muted", "end")
    head = Row("", Line((fact.mark, Piece(" "), Piece(task.id, "strong", "end"), told)))
    return [head, *(note(f"  {text}", ink, 2) for text, ink in said)]


def words_for(task: SubTask | None, tasks: Sequence[SubTask], look: ViewOptions) -> list[Hint]:
    """Available actions, those that await the user first."""
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


def _state_line(task: SubTask, fact: Fact) -> str:
    if task.state in ("running", "completed"):
        return " · ".join(part for part in ("" if fact.silent else task.state, fact.full) if part)
    if task.state in OPEN_STATES:
        ticked = " · ticked" if task.auto_execute and not task.wanted else ""
        state = "waits for you" if waits_for_user(task) else task.state
        return f"{state}{ticked}{' · starts automatically' if task.wanted else ''}"
    again = f" · run {task.runs} times" if task.runs > 1 else ""
    return f"{task.state}{again}"


def _detail_lines(
    task: SubTask, fact: Fact, progress: SubTaskProgress | None, blocked: str
) -> Iterator[tuple[str, str]]:
    if task.reason:
        yield task.reason, "failed" if task.state == "failed" else "muted"
    if progress is not None:
        phase = PHASES.get(progress.phase, "")
        if phase:
            yield f"turn {progress.turn}: {phase}" if progress.turn else phase, "running"
        if progress.line:
            yield f"› {progress.line}", ""
    if blocked:
        yield f"cannot begin: waits for {blocked}", "warning"
    if task.outside:
        yield f"⚠ changed beside its files: {', '.join(task.outside)}", "warning"
    if task.summary:
        yield task.summary, ""
    yield task.goal, "muted" if task.summary or progress else ""


def _around(task: SubTask, states: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    waits = [name for name in task.dependencies if states.get(name) not in DONE_STATES]
    after = [name for name in task.dependencies if name not in waits]
    if waits:
        yield f"waits for: {', '.join(_with_state(name, states) for name in waits)}", "muted"
    if after:
        yield f"after: {', '.join(after)}", "muted"
    if task.on_top:
        yield f"on top of: {', '.join(task.on_top)}", "muted"
    if task.changed:
        yield f"changed: {', '.join(step.path for step in task.changed)}", "muted"
    if task.agent:
        yield f"agent: {task.agent}", "muted"
    if task.files:
        yield f"files: {', '.join(task.files)}", "muted"


def _with_state(name: str, states: Mapping[str, str]) -> str:
    state = states.get(name, "")
    return f"{name} ({state})" if state in ("running", "failed", "cancelled") else name
