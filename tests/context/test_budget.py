"""What fills the room that is left: what matters most, and no gap that something else would fill."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui_agent.context.budget import Spending, filling, limit_reached, newest, newest_share, newest_within

COSTS = st.lists(st.integers(1, 60), max_size=9)


@given(COSTS, st.integers(0, 150), st.integers(0, 10))
def test_the_room_is_full_wherever_it_can_be(costs: list[int], room: int, near: int) -> None:
    taken = filling(costs, room, near, 2 * near)
    sums = {sum(some) for count in range(len(costs) + 1) for some in combinations(costs, count)}
    spent = sum(costs[place] for place in taken)
    if any(abs(each - room) <= near for each in sums):
        assert abs(spent - room) <= near
    else:
        nearest = min(abs(each - room) for each in sums if each <= room + 2 * near)
        assert abs(spent - room) == nearest
    assert taken == sorted(set(taken))


def test_what_matters_more_gives_way_only_where_the_room_would_stay_empty() -> None:
    assert filling([10, 10, 10, 10], 20, 0, 0) == [0, 1]
    assert filling([30, 50, 40], 80, 5, 10) == [0, 1]
    assert filling([70, 50, 30], 80, 5, 10) == [1, 2]  # the first alone would leave a gap
    assert filling([70, 50, 30], 80, 5, 10, firm=1) == [0]
    assert filling([90, 50, 30], 80, 5, 10, firm=1) == [1, 2]
    assert filling([12, 8], 10, 0, 4) == [1]  # of two as near, the one below
    assert filling([11], 8, 2, 4) == [0]  # three over is nearer than eight below
    assert filling([13], 8, 2, 4) == filling([5], -1, 0, 0) == []


@pytest.mark.parametrize(
    ("sizes", "room", "begin"),
    [
        ((1, 1, 1, 1), 9, 0),
        ((1, 1, 1, 1), 2, 2),
        ((1, 1, 1, 1), 1, 2),
        ((5, 1, 1, 1), 7, 2),
        ((2, 2, 3, 3), 10, 0),
    ],
)
def test_the_newest_messages_fit_and_begin_with_a_request(
    sizes: tuple[int, ...], room: int, begin: int
) -> None:
    messages = [{"role": role, "content": ""} for role in ("user", "assistant", "user", "assistant")]
    assert newest(messages, sizes, room) == begin
    assert newest(messages[1:2], sizes, room) == 1


ROLES = {"u": "user", "a": "assistant", "t": "tool"}


@pytest.mark.parametrize(
    ("roles", "share", "begin"),
    [
        ("uaua", 0.5, 2),
        ("uaua", 0.75, 1),
        ("uaua", 1.0, 1),
        ("uaua", 0.0, 3),
        ("uatttua", 0.5, 1),
        ("uattttua", 0.75, 1),
        ("utttt", 0.5, 5),
        ("uatua", 0.6, 1),
    ],
)
def test_a_share_of_the_messages_keeps_calls_with_their_results(roles: str, share: float, begin: int) -> None:
    assert newest_share([{"role": ROLES[role]} for role in roles], share) == begin


@pytest.mark.parametrize(
    ("roles", "most", "start", "begin"),
    [
        ("uaua", 4, 0, 0),
        ("uaua", 3, 0, 1),
        ("uata", 2, 0, 3),
        ("uata", 2, 2, 2),
        ("uaua", 0, 0, 4),
        ("uaua", 9, 2, 2),
        ("", 9, 0, 0),
    ],
)
def test_messages_of_some_tokens_begin_with_no_result(roles: str, most: int, start: int, begin: int) -> None:
    messages = [{"role": ROLES[role]} for role in roles]
    assert newest_within(messages, [1] * len(roles), most, start) == begin


@pytest.mark.parametrize(
    ("spent", "price", "most_tokens", "most_cost", "reached"),
    [
        (Spending(90, 0.0), None, 100, 0, ""),
        (Spending(91, 0.0), None, 100, 0, "turn_tokens (100): 91 tokens used, 10 in the next request"),
        (Spending(91, None), None, 0, 0, ""),
        (Spending(0, 0.5), 0.05, 0, 1.0, ""),
        (
            Spending(0, 0.5),
            0.0501,
            0,
            1.0,
            "turn_cost ($1): $0.5000 spent, about $0.5010 for the next request",
        ),
        (Spending(0, 1.0), None, 0, 1.0, "turn_cost ($1): $1.0000 spent, about $0.0000 for the next request"),
        (Spending(0, 0.99), None, 0, 1.0, ""),
        (Spending(0, None), 1.0, 0, 1.0, ""),
    ],
)
def test_a_limit_is_reached_by_what_the_next_request_would_take(
    spent: Spending, price: float | None, most_tokens: int, most_cost: float, reached: str
) -> None:
    told = limit_reached("turn", spent, 10, price, most_tokens, most_cost)
    assert told == (f"The next request would exceed limits.{reached}" if reached else "")
