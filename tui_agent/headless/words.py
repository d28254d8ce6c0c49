"""Events in words, for a person who reads a terminal without a screen."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from tui_agent.edits.change import Change
from tui_agent.store import events as e
from tui_agent.store.state import State

#: Signs that a terminal acts on instead of showing; replaced by a visible picture of themselves.
CONTROL = {code: 0x2400 + code for code in range(32) if chr(code) not in "\n\t"} | {
    127: 0x2421,
    **dict.fromkeys(range(0x80, 0xA0), 0xFFFD),
    **dict.fromkeys([*range(0x202A, 0x202F), *range(0x2066, 0x206A)], 0xFFFD),
}


def clean(text: str) -> str:
    """Text from outside, without signs that would act on the terminal."""
    return text.translate(CONTROL)


def words(event: e.Event, state: State) -> Iterator[tuple[Literal["out", "err"], str]]:
    """(stream, line) for what a reader wants to know."""
    match event:
        case e.AttemptEnded(attempt):
            mark = "found" if attempt.outcome == "hit" else attempt.outcome.replace("_", " ")
            yield (
                "err",
                clean(f"  {attempt.action}: {attempt.pattern} ({attempt.index}/{attempt.total}) {mark}"),
            )
        case e.FallbackTaken(action, kind):
            yield "err", clean(f"  {action}: not found, {kind.replace('_', ' ')}")
        case e.NoticeGiven(level, text):
            yield "err", clean(f"{level}: {text}")
        case e.RetryCounted(seconds, attempt, why):
            yield "err", clean(f"  {why}: attempt {attempt} in {seconds} s")
        case e.ReplyRead(summary=summary, message=message):
            for part in filter(None, (summary, message.strip())):
                yield "out", clean(part)
        case e.ChangeProposed(change):
            yield (
                "out",
                clean(
                    f"{change.id} {change.kind} {change.path} +{change.added} −{change.removed}{_why(change)}"
                ),
            )
        case e.ChangeMoved(id=name, state=now):
            change = state.review.change(name)
            if change is not None:
                yield "out", clean(f"{change.id} {now} {change.path}{_why(change)}")


def _why(change: Change) -> str:
    return f" ({change.state}: {change.reason})" if change.reason else ""
