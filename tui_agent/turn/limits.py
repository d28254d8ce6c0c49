"""Limits on tokens and money, kept before a request goes out."""

from __future__ import annotations

from tui_agent.context.budget import Spent, limit_reached
from tui_agent.errors import LimitReached
from tui_agent.model.pacing import RAISE_REQUESTS
from tui_agent.store.state import Usage
from tui_agent.turn.desk import Desk


def check_limits(desk: Desk, tokens: int, priced: bool | None = None) -> None:
    """Raises `LimitReached` where a request of so many tokens would pass a limit of the turn or the session.

    A limit of money that cannot be kept, since nobody knows the price, lets nothing through. `priced` says it of
    another model than the main one. A recording costs nothing.
    """
    if why := desk.requests.why:
        raise LimitReached(why, RAISE_REQUESTS)
    state = desk.state()
    limits, usage = desk.settings.limits, state.usage
    price = price_of_a_token(usage.session)
    known = bool(state.session.replay) or (state.model.priced if priced is None else priced)
    caps = (
        ("turn", usage.turn, limits.turn_tokens, limits.turn_cost),
        ("session", usage.session, limits.session_tokens, limits.session_cost),
    )
    for what, spent, most_tokens, most_cost in caps:
        if most_cost and not (known and (spent.cost is not None or state.session.replay)):
            raise LimitReached(
                f"What this {what} costs is not known, so that limits.{what}_cost (${most_cost:g}) cannot be kept",
                f"set limits.{what}_tokens instead and limits.{what}_cost to 0, or choose a model whose price is known",
            )
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
