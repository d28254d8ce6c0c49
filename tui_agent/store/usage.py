"""Tokens and cost of requests, and their size."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct, field


class Usage(Struct, frozen=True):
    """Tokens and dollars. `cost` is None if any part is unknown; `estimated` marks local counts.

    `thinking` is the part of `output` not shown as text.
    """

    input: int = 0
    output: int = 0
    cached: int = 0
    cost: float | None = 0.0
    estimated: bool = False
    thinking: int = 0

    def plus(self, other: Usage) -> Usage:
        known = self.cost is not None and other.cost is not None
        return Usage(
            input=self.input + other.input,
            output=self.output + other.output,
            cached=self.cached + other.cached,
            cost=self.cost + other.cost if known else None,  # type: ignore[operator]
            estimated=self.estimated or other.estimated,
            thinking=self.thinking + other.thinking,
        )


def used_since(before: Usage, now: Usage) -> Usage:
    """The difference of two counts."""
    known = before.cost is not None and now.cost is not None
    return Usage(
        input=now.input - before.input,
        output=now.output - before.output,
        cached=now.cached - before.cached,
        cost=round(now.cost - before.cost, 9) if known else None,  # type: ignore[operator]
        estimated=now.estimated,
        thinking=now.thinking - before.thinking,
    )


#: Average characters per token.
LETTERS_A_TOKEN = 4


def estimated_tokens(letters: int) -> int:
    return -(-letters // LETTERS_A_TOKEN)


#: Purpose of a request to a model.
Purpose = Literal["plan", "main", "condense", "subtask", "draft"]


class OpenRequest(Struct, frozen=True):
    """A request without final usage: its own tokens, and prices per input and output token in dollars, if
    known."""

    purpose: Purpose
    tokens: int
    prices: tuple[float, float] | None = None

    def estimate(self, letters: int) -> Usage:
        """Estimated usage after `letters` characters of the response."""
        output = estimated_tokens(letters)
        cost = None
        if self.prices is not None:
            cost = self.tokens * self.prices[0] + output * self.prices[1]
        return Usage(self.tokens, output, 0, cost, estimated=True)


class UsageSlice(Struct, frozen=True):
    """`context` is the size of the last request in tokens, `parts` the same by part.

    `counted` is the estimated size; `scale` is the ratio of the provider's count to it (initially 1).
    `last` is the usage of the last request to the main model.
    """

    turn: Usage = Usage()
    session: Usage = Usage()
    context: int = 0
    context_estimated: bool = False
    parts: dict[str, int] = field(default_factory=dict)
    counted: int = 0
    scale: float = 1.0
    last: Usage = Usage()
    #: Usage of the planner in this turn, included in `turn`.
    planning: Usage = Usage()
    #: The current request, or None.
    open: OpenRequest | None = None
    prefix_share: float = 0.0
    resets: int = 0
