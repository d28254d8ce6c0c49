"""Status of a sub-task: mark, duration, tokens, cost, or blocking reason."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from tui_agent.store.graph import DONE_STATES, SubTask
from tui_agent.store.state import SubTaskProgress
from tui_agent.ui.widgets.line_view import TASKS, Piece

SILENT = Piece("◌", "warning")
#: Pending tasks: selected for the batch, and queued.
TICKED, WANTED = Piece("◉", "accent"), Piece("◎", "running")
_NOT_BEGUN = frozenset({"pending", "ready"})
PHASES = {
    "starting": "preparing",
    "planning": "making a plan",
    "finding": "finding files",
    "asking": "asking the model",
    "streaming": "answering",
    "retrying": "waiting for the provider",
}


class Fact(NamedTuple):
    """`short` fits a few cells, `long` has details, `full` the usage. `silent`: seconds without output, 0
    below the limit.
    """

    mark: Piece
    long: Piece = Piece("")
    short: Piece = Piece("")
    full: str = ""
    silent: int = 0
    doing: str = ""


class Facts(Mapping[str, Fact]):
    """Facts by task id, computed on access because few tasks of a large graph are visible."""

    def __init__(
        self,
        tasks: Sequence[SubTask],
        running: Mapping[str, SubTaskProgress],
        now: float,
        silent_after: int,
        why_blocked: Callable[[SubTask], str] = lambda _: "",
    ) -> None:
        """`now` is in seconds since 1970, `silent_after` in seconds without output. `why_blocked` returns
        why a queued task without open dependencies does not start, or "".
        """
        self._tasks = {task.id: task for task in tasks}
        self._running, self._now, self._silent_after = running, now, silent_after
        self._why_blocked = why_blocked
        self._done = {task.id for task in tasks if task.state in DONE_STATES}
        self._found: dict[str, Fact] = {}

    @property
    def silent(self) -> int:
        return sum(
            bool(silence(progress, self._now, self._silent_after))
            for name, progress in self._running.items()
            if name in self._tasks and self._tasks[name].state == "running"
        )

    def __getitem__(self, name: str) -> Fact:
        if name in self._found:
            return self._found[name]
        task = self._tasks[name]
        mark = mark_of(task)
        if task.state == "running":
            fact = _running(task, self._running.get(name), self._now, self._silent_after)
        elif task.state == "pending" and (waits := waited_for(task, self._done)):
            long = Piece(f"waits for {', '.join(waits)}", "muted", "end")
            fact = Fact(mark, long, Piece(f"after {len(waits)}", "muted"))
        elif task.state == "ready" and task.wanted and (why := self._why_blocked(task)):
            fact = Fact(mark, Piece(f"waits for {why}", "warning", "end"), Piece("waits", "warning"))
        elif task.state == "failed":
            fact = Fact(mark, Piece(task.reason or "failed", "failed", "end"), Piece("failed", "failed"))
        elif task.state == "completed" and task.seconds:
            usage, full = _spent_words(task, None, self._now)
            beyond = " ⚠" if task.outside else ""
            fact = Fact(mark, Piece(usage + beyond, "muted"), Piece(beyond.strip(), "warning"), full)
        else:
            words: str = task.state
            if task.state in _NOT_BEGUN:
                waits_here = "waits for you" if task.state == "ready" else ""
                words = "starting" if task.wanted else "ticked" if task.auto_execute else waits_here
            for_you = waits_for_user(task) and not task.auto_execute
            fact = Fact(mark, Piece(words, "muted"), Piece("for you", "accent") if for_you else Piece(""))
        self._found[name] = fact
        return fact

    def __iter__(self) -> Iterator[str]:
        return iter(self._tasks)

    def __len__(self) -> int:
        return len(self._tasks)


def mark_of(task: SubTask) -> Piece:
    if task.state not in _NOT_BEGUN:
        return TASKS[task.state]
    if task.wanted:
        return WANTED
    return TICKED if task.auto_execute else TASKS[task.state]


def waits_for_user(task: SubTask) -> bool:
    return task.state == "ready" and not task.wanted


def waited_for(task: SubTask, done: set[str]) -> list[str]:
    return [name for name in task.dependencies if name not in done]


def silence(progress: SubTaskProgress, now: float, silent_after: int) -> int:
    quiet = int(now - progress.heard)
    return quiet if quiet >= silent_after else 0


def spent(task: SubTask, progress: SubTaskProgress | None, now: float) -> tuple[float, int, float | None]:
    """Seconds, tokens and dollars (`None` if unknown) of all runs."""
    if progress is None:
        return task.seconds, task.tokens, task.cost
    known = task.cost is not None and progress.cost is not None
    cost = task.cost + progress.cost if known else None  # type: ignore[operator]
    return task.seconds + max(now - progress.started, 0), task.tokens + progress.tokens, cost


def clock(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    if minutes < 1:
        return f"{rest}s"
    return f"{minutes}:{rest:02}" if minutes < 60 else f"{minutes // 60}h{minutes % 60:02}"


def short_count(count: int) -> str:
    for size, letter in ((1_000_000, "M"), (1_000, "k")):
        if count >= size:
            return f"{count / size:.1f}".removesuffix(".0") + letter
    return str(count)


def dollars(cost: float | None) -> str:
    """`$0.02`, or "" if unknown or zero."""
    if cost is None:
        return ""
    return f"${cost:.2f}" if cost >= 0.005 else "<1¢" if cost > 0 else ""


def _running(task: SubTask, progress: SubTaskProgress | None, now: float, silent_after: int) -> Fact:
    if progress is None:
        return Fact(TASKS["running"], Piece("running", "running"))
    long, full = _spent_words(task, progress, now)
    if quiet := silence(progress, now, silent_after):
        words = f"silent for {clock(quiet)}"
        return Fact(
            SILENT, Piece(words, "warning"), Piece("silent", "warning"), f"{words} · {full}", silent=quiet
        )
    doing = progress.line or PHASES.get(progress.phase, "")
    short = Piece(long.partition(" ")[0], "running")
    return Fact(TASKS["running"], Piece(long, "running"), short, full, doing=doing)


def _spent_words(task: SubTask, progress: SubTaskProgress | None, now: float) -> tuple[str, str]:
    seconds, tokens, cost = spent(task, progress, now)
    parts = [part for part in (clock(seconds), short_count(tokens) if tokens else "", dollars(cost)) if part]
    long = " ".join(parts)
    if tokens:
        parts[1] += " tokens"
    return long, " · ".join(parts)
