"""Keys in bursts do what the same keys do slowly."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from support.bursts import DOWN, ESC, F3, F4, F5, F7, F8, LEADER, SELDOM, burst, click, two_programs

from tui_agent.ui.layout.container import TabLine

#: Deletes up to the start of the line.
CLEAR = "\x15"
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
    F7 + CLEAR + "10 tests fail",
    F7 + "see @mod\r",
    LEADER + "oan idea\rdd",
    "\x10todos\rJJ",
)


#: Two columns: some panes lie behind others, and come to the front with the focus. No larger, since most of the time
#: of this test is drawing.
SIZE = (90, 24)


@pytest.mark.timeout(300)  # it is the longest of all, and a busy machine is not what is tried
async def test_keys_that_come_together_do_what_they_do_one_by_one(tmp_path: Path) -> None:
    """Those that went wrong once, then random ones; `make faults` sends many more."""
    random = Random(7)
    async with two_programs(tmp_path, SIZE) as both:
        await both.propose()
        for typed in TOGETHER:
            assert await both.compare([typed], random) == "", repr(typed)
        random = Random(202)
        for number in range(4):
            if number % 4 == 0:
                await both.propose()
            typed = burst(random, SIZE)
            answers = 0.5 * (number % 2)
            assert await both.compare(typed, random, answers) == "", f"burst {number}: {typed!r}"


PASTE = "\x1b[200~pasted text\x1b[201~"
LISTS = (LEADER + "o", LEADER + "p", LEADER + "k", F3, F5)


@pytest.mark.timeout(300)
async def test_keys_right_after_the_plain_screen_was_asked_for(tmp_path: Path) -> None:
    random = Random(3)
    async with two_programs(tmp_path, SIZE) as both:
        await both.propose()
        for typed in random.sample(SELDOM, 5):
            assert await both.compare([typed], random) == "", repr(typed)


@pytest.mark.timeout(300)
async def test_a_click_right_after_a_paste_into_a_list(tmp_path: Path) -> None:
    random = Random(4)
    async with two_programs(tmp_path, SIZE) as both:
        await both.propose()
        for number, pane in enumerate(LISTS):
            typed = pane + PASTE + click(random.randint(1, SIZE[0]), random.randint(2, SIZE[1])) + DOWN + "x"
            assert await both.compare([typed], random, 0.3 * (number % 2)) == "", repr(typed)


@pytest.mark.timeout(300)
async def test_a_click_on_a_tab_whose_title_changes(tmp_path: Path) -> None:
    """Its width changes with the number of changes in it, so the other titles move."""
    random = Random(5)
    async with two_programs(tmp_path, SIZE) as both:
        for number in range(6):
            if number % 3 == 0:
                await both.propose()
            lines = [line for line in both.slow.it.screen.query(TabLine) if len(line._tabs) > 1]
            assert lines, "no titles beside each other"
            region = random.choice(lines).region
            x = random.randint(region.x + 1, region.right)
            typed = F5 + random.choice(("s", "a", "sn", "D")) + click(x, region.y + 1) + "x"
            assert await both.compare([typed], random) == "", repr(typed)


@pytest.mark.timeout(300)
async def test_presses_outside_the_screen_change_nothing(tmp_path: Path) -> None:
    """A program before this one may have asked for pixels, and the screen may have become smaller."""
    async with two_programs(tmp_path, SIZE) as both:
        await both.propose()
        for pane in (F5, F7 + "x", LEADER + "o", LEADER + "i"):
            assert await both.compare([pane], Random(6)) == ""
            before = await both.fast.state()
            for button in (0, 2, 64, 35):
                await both.fast.types(f"\x1b[<{button};1203;845M\x1b[<{button};1203;845m")
            assert await both.fast.state() == before, pane
