"""Keys in bursts do what the same keys do slowly."""

from __future__ import annotations

from pathlib import Path
from random import Random

from support.bursts import ESC, F3, F4, F5, F7, F8, LEADER, burst, two_programs

#: What went wrong once: each is one read.
TOGETHER = (
    F5 + F7 + "add tests",
    F5 + F7 + "aeu" + F5 + "n",
    LEADER + "s",
    LEADER + "ox" + "z",
    LEADER + "zz",
    LEADER + LEADER + "zq",
    F5 + "aa",
    F5 + "anaU",
    F5 + "aex",
    ESC + F8 + "a",
    F3 + "/models\r" + "# more",
    F4 + LEADER + "x" + "y",
    F7 + "\x7f" * 20 + "10 tests fail",
    F7 + "see @mod\r",
    LEADER + "oan idea\rdd",
    "\x10todos\rJJ",
)


#: Two columns: some panes lie behind others, and come to the front with the focus.
SIZE = (100, 30)


async def test_keys_that_come_together_do_what_they_do_one_by_one(tmp_path: Path) -> None:
    random = Random(7)
    async with two_programs(tmp_path, SIZE) as both:
        await both.propose()
        for typed in TOGETHER:
            assert await both.compare([typed], random) == "", repr(typed)


async def test_random_bursts_leave_the_state_that_slow_keys_leave(tmp_path: Path) -> None:
    random = Random(202)
    async with two_programs(tmp_path, SIZE) as both:
        for number in range(10):  # `make faults` sends many more
            if number % 8 == 0:
                await both.propose()
            typed = burst(random, SIZE)
            assert await both.compare(typed, random) == "", f"burst {number}: {typed!r}"
