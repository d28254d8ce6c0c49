"""What fills the room that is left: what matters most, and no gap that something else would fill."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui_agent.context.budget import filling, newest

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
