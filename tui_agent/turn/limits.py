"""Limits on tokens and money, kept before a request goes out (C11)."""

from __future__ import annotations

from tui_agent.context.budget import Spent, limit_reached
from tui_agent.errors import LimitReached
from tui_agent.store.state import State, Usage
from tui_agent.turn.desk import Desk


def check_limits(desk: Desk, tokens: int) -> None:
    """Raises `LimitReached` where a request of so many tokens would pass a limit of the turn or the session."""
    limits, usage = desk.settings.limits, desk.state().usage
    price = price_of_a_token(usage.session)
    caps = (
        ("turn", usage.turn, limits.turn_tokens, limits.turn_cost),
        ("session", usage.session, limits.session_tokens, limits.session_cost),
    )
    for what, spent, most_tokens, most_cost in caps:
        sentence = limit_reached(
            what, Spent(spent.input + spent.output, spent.cost), tokens, price, most_tokens, most_cost
        )
        if sentence:
            raise LimitReached(
                sentence,
                f"raise the limit in settings.toml or with --set limits.{what}_…, or go on in a new {what}",
            )


def price_of_a_token(usage: Usage) -> float | None:
    """What a token has cost on average, in dollars; None where that is not known."""
    tokens = usage.input + usage.output
    return usage.cost / tokens if usage.cost is not None and tokens else None


def unknown_price(desk: Desk, state: State) -> str:
    """A sentence where a limit of money is set that nobody can keep, else nothing."""
    limits = desk.settings.limits
    if state.usage.session.cost is None and (limits.turn_cost or limits.session_cost):
        return f"The price of {state.model.name} is not known: limits.turn_cost and limits.session_cost are not kept"
    return ""
