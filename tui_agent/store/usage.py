"""What requests cost, in tokens and dollars, and how large they are."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct, field


class Usage(Struct, frozen=True):
    """Tokens and dollars. `cost` is None when any part of it is unknown; `estimated` marks counts of our own.

    Of `output`, `thinking` were not shown as text.
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
    """What was used between two counts of the same thing."""
    known = before.cost is not None and now.cost is not None
    return Usage(
        input=now.input - before.input,
        output=now.output - before.output,
        cached=now.cached - before.cached,
        cost=round(now.cost - before.cost, 9) if known else None,  # type: ignore[operator]
        estimated=now.estimated,
        thinking=now.thinking - before.thinking,
    )


#: A token of most texts has about so many letters.
LETTERS_A_TOKEN = 4


def estimated_tokens(letters: int) -> int:
    """The tokens of a text of so many letters."""
    return -(-letters // LETTERS_A_TOKEN)


#: What a request to a model is for.
Purpose = Literal["plan", "main", "condense", "subtask", "draft"]


class OpenRequest(Struct, frozen=True):
    """A request that has gone out and is not paid for yet: its own tokens, and what a token of input and one of
    output cost in dollars, where that is known."""

    purpose: Purpose
    tokens: int
    prices: tuple[float, float] | None = None

    def estimate(self, letters: int) -> Usage:
        """What it has cost by our own count, when so many letters of its answer have come."""
        output = estimated_tokens(letters)
        cost = None
        if self.prices is not None:
            cost = self.tokens * self.prices[0] + output * self.prices[1]
        return Usage(self.tokens, output, 0, cost, estimated=True)


class UsageSlice(Struct, frozen=True):
    """`context` is the size of the last request in tokens, `parts` the same by part.

    `counted` is that size by our own count; `scale` what the provider's count is to ours (1 until it told one).
    `last` is what the last request to the main model cost.
    """

    turn: Usage = Usage()
    session: Usage = Usage()
    context: int = 0
    context_estimated: bool = False
    parts: dict[str, int] = field(default_factory=dict)
    counted: int = 0
    scale: float = 1.0
    last: Usage = Usage()
    #: What asking a planner has cost in this turn, which is a part of `turn`.
    planning: Usage = Usage()
    #: The request that is out now, None where none is.
    open: OpenRequest | None = None
    prefix_share: float = 0.0
    resets: int = 0
