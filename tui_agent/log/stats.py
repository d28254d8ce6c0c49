"""Quality figures of sessions, counted from their logs."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any, Literal, NamedTuple

from msgspec import Struct

from tui_agent.context.blocks import without_code
from tui_agent.files.lazy_regex import late
from tui_agent.store import events as e
from tui_agent.store.conversation import Usage

WORST_SHOWN = 5
SPENT_SHOWN = 10
#: A local day (`2026-11-23`), a model, a workspace's folder, or a session id.
By = Literal["day", "model", "workspace", "session"]
Where = tuple[By, str]


class Goal(NamedTuple):
    words: str
    value: float | None
    most: float | None = None
    least: float | None = None

    @property
    def bound(self) -> str:
        return f"≤ {self.most:g}" if self.most is not None else f"≥ {self.least:g}"

    @property
    def met(self) -> bool:
        if self.value is None:
            return True
        return (self.most is None or self.value <= self.most) and (
            self.least is None or self.value >= self.least
        )


class Figures(Struct, frozen=True):
    """Counts over one or more sessions.

    - `questions` are about files.
    - `failed_loads`: required actions whose chain ended without a needed file.
    - `changes`: requested changes; repeated proposals for one path in a turn count once.
    - `mismatches`: changes that failed or conflicted and reached the user.
    - `tasks`: runs of turns that end with an apply; `task_turns` is their number of turns.
    - `unchanged`: sum over `appended` requests of the share of the previous request that is their prefix.
    - `hits`: successful chains by the position (from 1) of the model's matching pattern.
    - `built_in`: those matched only by the program's own patterns.
    - `failing`: attempts without a result, by pattern.
    - `tokens_in`, `tokens_out`, `cost` (dollars): sums by day, model, workspace and session.
    """

    sessions: int = 0
    turns: int = 0
    questions: int = 0
    required: int = 0
    failed_loads: int = 0
    changes: int = 0
    mismatches: int = 0
    tasks: int = 0
    task_turns: int = 0
    appended: int = 0
    unchanged: float = 0.0
    resets: int = 0
    attempts: int = 0
    milliseconds: float = 0.0
    built_in: int = 0
    hits: dict[int, int] = {}
    outcomes: dict[str, int] = {}
    failing: dict[str, int] = {}
    tokens_in: dict[Where, int] = {}
    tokens_out: dict[Where, int] = {}
    cost: dict[Where, float] = {}
    unpriced: dict[Where, int] = {}

    def plus(self, other: Figures) -> Figures:
        sums: dict[str, Any] = {}
        for name in self.__struct_fields__:
            ours, theirs = getattr(self, name), getattr(other, name)
            sums[name] = dict(Counter(ours) + Counter(theirs)) if isinstance(ours, dict) else ours + theirs
        return Figures(**sums)

    def goals(self) -> tuple[Goal, ...]:
        return (
            Goal("questions about files per session", _ratio(self.questions, self.sessions), most=2),
            Goal("failed automatic loads, %", _percent(self.failed_loads, self.required), most=2),
            Goal("failed or conflicting changes, %", _percent(self.mismatches, self.changes), most=5),
            Goal("turns per task", _ratio(self.task_turns, self.tasks), most=4),
            Goal("unchanged start of requests, %", _percent(self.unchanged, self.appended), least=99),
        )

    def values(self) -> dict[str, Any]:
        return {
            "sessions": self.sessions,
            "turns": self.turns,
            "file_questions": self.questions,
            "file_questions_per_session": _ratio(self.questions, self.sessions),
            "required_actions": self.required,
            "failed_loads": self.failed_loads,
            "failed_load_share": _ratio(self.failed_loads, self.required),
            "changes": self.changes,
            "mismatches": self.mismatches,
            "mismatch_share": _ratio(self.mismatches, self.changes),
            "tasks": self.tasks,
            "turns_per_task": _ratio(self.task_turns, self.tasks),
            "unchanged_beginning": _ratio(self.unchanged, self.appended),
            "goals": [{**goal._asdict(), "met": goal.met} for goal in self.goals()],
            "resets": self.resets,
            "attempts": self.attempts,
            "attempt_ms": round(self.milliseconds / self.attempts, 2) if self.attempts else None,
            "hits_by_pattern": {str(place): count for place, count in sorted(self.hits.items())},
            "hits_built_in": self.built_in,
            "attempts_by_outcome": dict(sorted(self.outcomes.items())),
            "failing_patterns": dict(self._worst()),
            "spent_by_day": self.spent("day"),
            "spent_by_model": self.spent("model"),
            "spent_by_workspace": self.spent("workspace"),
            "spent_by_session": self.spent("session"),
        }

    def spent(self, by: By) -> dict[str, dict[str, float | None]]:
        """The cost is null if any part is unknown."""
        return {
            name: {
                "input": self.tokens_in.get(where, 0),
                "output": self.tokens_out.get(where, 0),
                "cost": None if where in self.unpriced else round(self.cost.get(where, 0.0), 6),
            }
            for where in sorted(self.tokens_in.keys() | self.tokens_out.keys())
            if (name := where[1]) and where[0] == by
        }

    def in_words(self) -> Iterator[tuple[str, str]]:
        yield "sessions", str(self.sessions)
        yield "turns", str(self.turns)
        yield "questions about files", str(self.questions)
        yield "failed automatic loads", _of(self.failed_loads, self.required)
        yield "failed or conflicting changes", _of(self.mismatches, self.changes)
        yield (
            "turns per task",
            f"{self.task_turns / self.tasks:.1f}" if self.tasks else "nothing applied yet",
        )
        if self.appended:
            yield "unchanged start of requests", f"{self.unchanged / self.appended:.1%}"
        for goal in self.goals():
            if goal.value is not None:
                yield f"goal: {goal.words}", f"{goal.value:g}, {goal.bound}{'' if goal.met else ' (missed)'}"
        yield "restarted requests", str(self.resets)
        for place, count in sorted(self.hits.items()):
            yield f"chains matched by pattern {place}", str(count)
        if self.built_in:
            yield "chains matched by a built-in pattern", str(self.built_in)
        if self.attempts:
            yield "time per pattern", f"{self.milliseconds / self.attempts:.1f} ms"
        for pattern, count in self._worst():
            yield f"found nothing: {pattern}", "once" if count == 1 else f"{count} times"
        for by in ("day", "model", "workspace", "session"):
            names = sorted(
                self.spent(by).items(),
                key=lambda item: (
                    item[0] if by == "day" else (item[1]["input"] or 0) + (item[1]["output"] or 0)
                ),
                reverse=True,
            )
            for name, spent in names[:SPENT_SHOWN]:
                price = "price unknown" if spent["cost"] is None else f"${spent['cost']:.4f}"
                yield f"{by} {name}", f"{spent['input']:,} tokens in, {spent['output']:,} out · {price}"

    def _worst(self) -> list[tuple[str, int]]:
        worst = sorted(self.failing.items(), key=lambda item: (-item[1], item[0]))
        return [(pattern, count) for pattern, count in worst[:WORST_SHOWN] if count > 1]


def figures_over_time(events: Iterable[tuple[float, e.Event]], session: str = "") -> Figures:
    """Times are Unix times. Ignores events copied from another session."""
    counts = _Counts(session)
    copied = 0
    for number, (at, event) in enumerate(events):
        counts.take(event, at)
        if isinstance(event, e.SessionStarted):
            copied = number + event.copied
        if (copied and number == copied) or isinstance(event, e.SessionForked):
            counts = counts.after_copy()
    return counts.figures()


_ASKS = late(
    r"\b(?:please|could you|can you|would you|will you|kindly|need you to)\b[^.?!\n]*?"
    r"\b(?:share|provide|paste|show|send|upload|attach|give|post|supply|copy)\b|"
    r"\bi(?:'d| would|'ll| will)? (?:need|have|like) to (?:see|look at|read|know)\b",
    re.IGNORECASE,
)
_WHERE = late(
    r"\b(?:(?:which|what) (?:file|path|module|folder)|where (?:is|are|can i find|do you keep)|"
    r"(?:what is|tell me) the (?:path|name|location) of)\b",
    re.IGNORECASE,
)
_FILE = late(
    r"\b(?:files?|contents?|source(?: code)?|code|module|paths?|script)\b|[\w-]+\.(?!\d)[A-Za-z]\w{0,5}\b",
    re.IGNORECASE,
)
_ENDS = late(r"(?<=[.?!])\s+|\n+")


def asks_for_a_file(message: str) -> bool:
    for sentence in _ENDS.split(without_code(message)):
        asks = _ASKS.search(sentence) or (sentence.rstrip().endswith("?") and _WHERE.search(sentence))
        if asks and _FILE.search(sentence):
            return True
    return False


class _Counts:
    def __init__(self, session: str = "") -> None:
        self.session = session
        self.tokens_in: Counter[Where] = Counter()
        self.tokens_out: Counter[Where] = Counter()
        self.cost: dict[Where, float] = {}
        self.unpriced: Counter[Where] = Counter()
        self._model, self._asked_model, self._workspace = "", {}, ""
        self._before = 0
        self.numbers: Counter[str] = Counter()
        self.hits: Counter[int] = Counter()
        self.outcomes: Counter[str] = Counter()
        self.failing: Counter[str] = Counter()
        self.milliseconds = self.unchanged = 0.0
        self._turn = 0
        self._required: set[str] = set()
        self._failed: set[str] = set()
        #: The (turn, path) that requested a change. The change that counts for a (turn, path), and whether it
        #: was refused.
        self._asked: dict[str, tuple[int, str]] = {}
        self._newest: dict[tuple[int, str], str] = {}
        self._refused: set[tuple[int, str]] = set()
        self._applied: set[int] = set()
        self._requests = 0

    def after_copy(self) -> _Counts:
        counts = _Counts(self.session)
        counts._model, counts._before, counts._turn = self._model, self._turn, self._turn
        counts._requests, counts._workspace = self._requests, self._workspace
        return counts

    def take(self, event: e.Event, at: float = 0.0) -> None:
        self._count_usage(event, at)
        match event:
            case e.TurnStarted(turn=turn):
                self._close_turn()
                self._turn = turn
                self.numbers["turns"] += 1
            case e.PlanMade(actions=actions) | e.ActionsAdded(actions=actions):
                self.numbers["required"] += sum(action.required for action in actions)
                self._required.update(action.name for action in actions if action.required)
            case e.FallbackTaken(action=action, kind="ask_user"):
                self.numbers["questions"] += 1
                if action in self._required:
                    self._failed.add(action)
            case e.MatchChosen(by="person"):
                self.numbers["questions"] += 1
            case e.QuestionAnswered(action=action, path=""):
                self._failed.discard(action)
            case e.AttemptEnded(attempt):
                self.numbers["attempts"] += 1
                self.milliseconds += attempt.ms
                self.outcomes[attempt.outcome] += 1
                if attempt.outcome != "hit":
                    self.failing[attempt.pattern] += 1
                elif attempt.by == "model":
                    self.hits[attempt.index] += 1
                else:
                    self.numbers["built_in"] += 1
            case e.RequestSent(purpose="main"):
                if event.reset and self._requests:
                    self.numbers["resets"] += 1
                elif self._requests:
                    self.numbers["appended"] += 1
                    self.unchanged += event.prefix_share
                self._requests += 1
            case e.ReplyRead(message=message) if asks_for_a_file(message):
                self.numbers["questions"] += 1
            case e.ChangeProposed(change) | e.ChangeReworked(change):
                asked = self._asked.setdefault(change.id, (change.turn, change.path))
                self._newest[asked] = change.id
                self._judge(change.id, change.state)
            case e.ChangeMoved(id=name, state=state):
                self._judge(name, state)

    def _count_usage(self, event: e.Event, at: float) -> None:
        match event:
            case e.SessionStarted(workspace=folder):
                self._workspace = folder
            case e.ModelChosen(name=name):
                self._model = name
            case e.RequestSent(purpose=purpose, model=name) if name:
                self._asked_model[purpose] = name
            case e.UsageCounted(usage, purpose):
                self._add(usage, ("model", self._asked_model.get(purpose) or self._model))
                self._add(usage, ("workspace", self._workspace))
                self._add(usage, ("session", self.session))
                if at:
                    self._add(usage, ("day", datetime.fromtimestamp(at).astimezone().date().isoformat()))

    def _add(self, usage: Usage, where: Where) -> None:
        self.tokens_in[where] += usage.input
        self.tokens_out[where] += usage.output
        if usage.cost is None:
            self.unpriced[where] += usage.input + usage.output
        else:
            self.cost[where] = self.cost.get(where, 0.0) + usage.cost

    def _judge(self, change: str, state: str) -> None:
        """Counts only the newest proposal for a path. Proposals corrected within the turn did not reach the
        user.
        """
        asked = self._asked.get(change)
        if asked is None or self._newest[asked] != change:
            return
        if state in ("failed", "conflict"):
            self._refused.add(asked)
        elif state in ("pending", "merged"):
            self._refused.discard(asked)
        elif state == "applied":
            self._applied.add(asked[0])

    def _close_turn(self) -> None:
        self.numbers["failed_loads"] += len(self._failed)
        self._required, self._failed = set(), set()

    def figures(self) -> Figures:
        self._close_turn()
        return Figures(
            sessions=1,
            changes=len(self._newest),
            mismatches=len(self._refused),
            tasks=len(self._applied),
            task_turns=max(max(self._applied, default=0) - self._before, 0),
            milliseconds=self.milliseconds,
            unchanged=self.unchanged,
            hits=dict(self.hits),
            outcomes=dict(self.outcomes),
            failing=dict(self.failing),
            tokens_in=dict(self.tokens_in),
            tokens_out=dict(self.tokens_out),
            cost=dict(self.cost),
            unpriced=dict(self.unpriced),
            **self.numbers,
        )


def _ratio(part: float, whole: int) -> float | None:
    return round(part / whole, 4) if whole else None


def _percent(part: float, whole: int) -> float | None:
    return round(100 * part / whole, 2) if whole else None


def _of(part: int, whole: int) -> str:
    return f"{part} of {whole}" + (f" ({part / whole:.1%})" if whole else "")
