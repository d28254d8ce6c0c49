"""2,000 random bursts of keys, pastes and clicks, some among answers of the terminal: as if typed slowly."""

from __future__ import annotations

import asyncio
import os
import sys
import traceback
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

sys.path.insert(0, str(Path(__file__).parents[1]))

from support.bursts import burst, two_programs

from tests.proofs.sabotage import sabotaged
from tests.proofs.tally import WHOLE, Part, Tally

BURSTS = 2000
#: Bursts to one pair of programs, with a new proposal after every so many, and halfway a change behind its back.
AT_ONE = 40
EVERY = 8
#: In every so many bursts the terminal answers what nobody asked, before every second key.
ANSWERED, ANSWERS = 4, 0.5
#: What breaks the promise that these cases try; each is noticed.
SABOTAGES = ("answers of the terminal are keys", "keys wait for nothing")
#: Sizes of the screen, one for each pair in turn: in each the panes stand otherwise.
SIZES = ((160, 48), (120, 30), (100, 30), (80, 24))


def prove(tally: Tally, scale: float, part: Part = WHOLE) -> None:
    seeds = part.of(range(max(1, round(BURSTS * scale / AT_ONE))))
    with ProcessPoolExecutor(part.processes, mp_context=get_context("spawn")) as pool:
        for differences in pool.map(pair, seeds):
            for what in differences:
                tally.case("burst of keys", not what, what=what)


def pair(seed: int) -> list[str]:
    """What each burst to one pair of programs came to: empty where both are in the same state."""
    broken = os.environ.get("PROOF_SABOTAGE", "")
    with TemporaryDirectory(prefix="tui-agent-bursts-") as folder, sabotaged(broken):
        os.environ["TUI_AGENT_HOME"] = os.path.join(folder, "home")
        try:
            return asyncio.run(_differences(Path(folder), seed))
        except Exception:  # it may hold what does not pass from process to process
            return [f"seed {seed}: a program ended\n{traceback.format_exc()}"]


async def _differences(folder: Path, seed: int) -> list[str]:
    random, size = Random(seed), SIZES[seed % len(SIZES)]
    found: list[str] = []
    async with two_programs(folder, size) as both:
        for number in range(AT_ONE):
            if number % EVERY == 0:
                await both.propose()
            elif number % EVERY == EVERY // 2:
                await both.change_elsewhere(random)
            typed = burst(random, size)
            difference = await both.compare(typed, random, 0.0 if number % ANSWERED else ANSWERS)
            found.append(difference and f"seed {seed}, burst {number}: {typed!r}{difference}")
            if difference:
                break  # from here on the two would differ anyway
    return found
