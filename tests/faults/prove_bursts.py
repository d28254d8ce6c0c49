"""2,000 random bursts of keys, pastes and clicks, against the same typed slowly: the program is in the same state."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

sys.path.insert(0, str(Path(__file__).parents[1]))

from support.bursts import burst, two_programs

from tests.proofs.tally import Tally

BURSTS = 2000
SIZE = (160, 48)
#: Bursts to one pair of programs, with a new proposal after every so many.
AT_ONE = 40
EVERY = 8


def prove(tally: Tally, scale: float) -> None:
    for seed in range(max(1, round(BURSTS * scale / AT_ONE))):
        with TemporaryDirectory(prefix="tui-agent-bursts-") as folder:
            os.environ["TUI_AGENT_HOME"] = os.path.join(folder, "home")
            asyncio.run(_bursts(Path(folder), seed, tally))


async def _bursts(folder: Path, seed: int, tally: Tally) -> None:
    random = Random(seed)
    async with two_programs(folder) as both:
        for number in range(AT_ONE):
            if number % EVERY == 0:
                await both.propose()
            typed = burst(random, SIZE)
            difference = await both.compare(typed, random)
            tally.case(
                "burst of keys", not difference, what=f"seed {seed}, burst {number}: {typed!r}{difference}"
            )
            if difference:
                return  # from here on the two would differ anyway
