"""The size of a request: when files give way, when older messages do, and when a limit is reached.

All sizes are in tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import Struct

Message = dict[str, Any]
#: Of the room that condensing makes, how much the newest messages may keep as they are.
KEPT_SHARE = 0.3


class Shares(Struct, frozen=True):
    """The settings `context.*` and the window they are shares of."""

    window: int
    reset_at: float = 0.8
    reset_to: float = 0.5
    condense_at: float = 0.9
    keep_on_failure: float = 0.75


def filling(costs: Sequence[int], room: int, near: int, far: int, firm: int = 0) -> list[int]:
    """The places of what to take of things that matter less and less, so that `room` is full to within `near`.

    The first `firm` are taken wherever they fit. Of the others an earlier one gives way to a later one only where
    else the room would not be full. Where it cannot be, they come as near to it as they can, and no more than `far`
    above it.
    """
    taken = []
    for place, cost in enumerate(costs[:firm]):
        if cost <= room + near:
            taken.append(place)
            room -= cost
    if room + far < 0:
        return taken
    rest = costs[firm:]
    within = (1 << room + far + 1) - 1
    reached = [1]  # bit n: there are some among the last ones that make n together
    for cost in reversed(rest):
        reached.append((reached[-1] | reached[-1] << cost) & within)
    goal = _nearest(reached.pop(), room, near)
    spent = 0
    for place, cost in enumerate(rest, firm):
        if reached.pop() << spent + cost & goal:
            taken.append(place)
            spent += cost
    return taken


def _nearest(sums: int, room: int, near: int) -> int:
    """The sums (bit n: n can be had) that are within `near` of `room`, or the one that is nearest."""
    lowest = max(0, room - near)
    if full := sums >> lowest << lowest & (1 << max(0, room + near + 1)) - 1:
        return full
    below = (sums & (1 << lowest) - 1).bit_length() - 1
    above = sums >> lowest << lowest
    over = (above & -above).bit_length() - 1
    return 1 << (over if above and (below < 0 or over - room < room - below) else below)


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
    """Where the newest `share` of the messages begins; one goes at least, and a call and its result stay together."""
    wanted = max(1, len(messages) - round(len(messages) * share))
    starts = [place for place, message in enumerate(messages) if place and message["role"] != "tool"]
    return min(starts, key=lambda place: (abs(place - wanted), place), default=len(messages))


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
    0 means no limit.
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
