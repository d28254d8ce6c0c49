"""The size of a request: when files give way (C4), when older messages do (C5), and when a limit is reached.

All sizes are in tokens.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal

from msgspec import Struct

Message = dict[str, Any]
#: Emptying files must free at least this share of the window, or the cache is broken for too little.
WORTHWHILE = 0.1
#: Of the room that condensing makes, how much the newest messages may keep as they are.
KEPT_SHARE = 0.3


class Shares(Struct, frozen=True):
    """The settings `context.*` and the window they are shares of."""

    window: int
    reset_at: float = 0.8
    reset_to: float = 0.5
    condense_at: float = 0.9
    keep_on_failure: float = 0.75


def next_step(size: int, files: int, shares: Shares) -> Literal["send", "empty", "condense"]:
    """What to do before a request of `size`, of which `files` are contents that could give way."""
    if size > shares.window * shares.reset_at and files >= shares.window * WORTHWHILE:
        return "empty"
    return "condense" if size > shares.window * shares.condense_at else "send"


def that_fit(sizes: Iterable[tuple[str, int]], room: int) -> list[str]:
    """The names whose sizes fit into `room`, in the order that is given: one that is too large is passed over."""
    kept = []
    for name, size in sizes:
        if size <= room:
            kept.append(name)
            room -= size
    return kept


def newest(messages: Sequence[Message], sizes: Sequence[int], room: int) -> int:
    """Where the newest messages that fit into `room` begin; the last exchange is kept whatever its size.

    They begin with a message of the person, so that a function call and its result are never parted.
    """
    starts = _starts(messages)
    if not starts:
        return len(messages)
    fitting = [start for start in starts if sum(sizes[start:]) <= room]
    return fitting[0] if fitting else starts[-1]


def newest_share(messages: Sequence[Message], share: float) -> int:
    """Where the newest `share` of the messages begins, moved forward to a message of the person."""
    starts = _starts(messages)
    wanted = len(messages) - round(len(messages) * share)
    later = [start for start in starts if start >= max(1, wanted)]
    return later[0] if later else (starts[-1] if starts else len(messages))


def _starts(messages: Sequence[Message]) -> list[int]:
    return [place for place, message in enumerate(messages) if message["role"] == "user"]


class Spent(Struct, frozen=True):
    """What a turn or a session has used so far; `cost` in dollars, None where a price is not known."""

    tokens: int
    cost: float | None


def limit_reached(
    what: str, spent: Spent, request: int, price: float | None, most_tokens: int, most_cost: float
) -> str:
    """Why the next request may not be sent, or nothing.

    `what` is `turn` or `session`, `request` the size of the request, `price` what a token has cost on average.
    0 is no limit.
    """
    if most_tokens and spent.tokens + request > most_tokens:
        used = f"{spent.tokens:,} tokens used, {request:,} in the next request"
        return f"The next request would pass limits.{what}_tokens ({most_tokens:,}): {used}"
    if most_cost and spent.cost is not None:
        more = (price or 0.0) * request
        if spent.cost >= most_cost or spent.cost + more > most_cost:
            used = f"${spent.cost:.4f} spent, about ${more:.4f} for the next request"
            return f"The next request would pass limits.{what}_cost (${most_cost:g}): {used}"
    return ""
