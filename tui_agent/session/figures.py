"""The figures a session is judged by, counted from its log (M)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from msgspec import Struct

from tui_agent.store import events as e

#: Of patterns that find nothing, so many are named.
WORST_SHOWN = 5


class Figures(Struct, frozen=True):
    """Counts over one session or several. `hits` counts chains that hit, by the place of the pattern from 1.

    `outcomes` counts attempts by how they ended, `failing` those that found nothing by their pattern.
    """

    sessions: int = 0
    turns: int = 0
    questions: int = 0
    required: int = 0
    failed_loads: int = 0
    proposed: int = 0
    conflicts: int = 0
    attempts: int = 0
    milliseconds: float = 0.0
    hits: dict[int, int] = {}
    outcomes: dict[str, int] = {}
    failing: dict[str, int] = {}

    def plus(self, other: Figures) -> Figures:
        sums: dict[str, Any] = {}
        for name in self.__struct_fields__:
            ours, theirs = getattr(self, name), getattr(other, name)
            sums[name] = dict(Counter(ours) + Counter(theirs)) if isinstance(ours, dict) else ours + theirs
        return Figures(**sums)

    def values(self) -> dict[str, Any]:
        """What `stats --json` prints; a share is null where there was nothing to count."""
        return {
            "sessions": self.sessions,
            "turns": self.turns,
            "file_questions": self.questions,
            "required_actions": self.required,
            "failed_loads": self.failed_loads,
            "failed_load_share": _share(self.failed_loads, self.required),
            "changes": self.proposed,
            "conflicts": self.conflicts,
            "conflict_share": _share(self.conflicts, self.proposed),
            "attempts": self.attempts,
            "attempt_ms": round(self.milliseconds / self.attempts, 2) if self.attempts else None,
            "hits_by_pattern": {str(place): count for place, count in sorted(self.hits.items())},
            "attempts_by_outcome": dict(sorted(self.outcomes.items())),
            "failing_patterns": dict(self._worst()),
        }

    def in_words(self) -> Iterator[tuple[str, str]]:
        yield "sessions", str(self.sessions)
        yield "turns", str(self.turns)
        yield "questions about files", str(self.questions)
        yield "failed automatic loads", _of(self.failed_loads, self.required)
        yield "changes that conflicted", _of(self.conflicts, self.proposed)
        for place, count in sorted(self.hits.items()):
            yield f"chains that hit at pattern {place}", str(count)
        if self.attempts:
            yield "time for a pattern", f"{self.milliseconds / self.attempts:.1f} ms"
        for pattern, count in self._worst():
            yield f"found nothing: {pattern}", f"{count} times"

    def _worst(self) -> list[tuple[str, int]]:
        """The patterns that failed most often, those that failed more than once."""
        worst = sorted(self.failing.items(), key=lambda item: (-item[1], item[0]))
        return [(pattern, count) for pattern, count in worst[:WORST_SHOWN] if count > 1]


def figures_of(events: Iterable[e.Event]) -> Figures:
    """Count one session's log."""
    counts = dict.fromkeys(("turns", "questions", "required", "failed_loads", "proposed", "attempts"), 0)
    conflicts: set[str] = set()
    hits: Counter[int] = Counter()
    outcomes: Counter[str] = Counter()
    failing: Counter[str] = Counter()
    milliseconds = 0.0
    for event in events:
        match event:
            case e.TurnStarted():
                counts["turns"] += 1
            case e.PlanMade(actions=actions) | e.ActionsAdded(actions=actions):
                counts["required"] += sum(action.required for action in actions)
            case e.FallbackTaken(kind="ask_user"):
                counts["questions"] += 1
                counts["failed_loads"] += 1
            case e.MatchChosen(by="person"):
                counts["questions"] += 1
            case e.QuestionAnswered(path="") if counts["failed_loads"]:
                counts["failed_loads"] -= 1  # declined: the file was not needed
            case e.AttemptEnded(attempt):
                counts["attempts"] += 1
                milliseconds += attempt.ms
                outcomes[attempt.outcome] += 1
                if attempt.outcome == "hit":
                    hits[attempt.index] += 1
                else:
                    failing[attempt.pattern] += 1
            case e.ChangeProposed():
                counts["proposed"] += 1
            case e.ChangeMoved(id=name, state="conflict"):
                conflicts.add(name)
    return Figures(
        sessions=1,
        conflicts=len(conflicts),
        milliseconds=milliseconds,
        hits=dict(hits),
        outcomes=dict(outcomes),
        failing=dict(failing),
        **counts,
    )


def _share(part: int, whole: int) -> float | None:
    return round(part / whole, 4) if whole else None


def _of(part: int, whole: int) -> str:
    return f"{part} of {whole}" + (f" ({part / whole:.1%})" if whole else "")
