"""200 sessions with strict servers over all providers and transports, each of up to nine steps: broken rules, failed
turns, counts that differ from the server's. The table is written into docs/notes/providers.md."""

from __future__ import annotations

import asyncio
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # `support`, as in the tests

from support.journeys import KINDS, travel

from tests.proofs.tally import WHOLE, Part, Tally

LOOPS = 200
STEPS = 9
PATIENCE_SECONDS = 240.0


def prove(tally: Tally, scale: float, part: Part = WHOLE) -> None:
    count = max(len(KINDS), round(LOOPS * scale))
    jobs = [(KINDS[number % len(KINDS)], number) for number in range(count)]
    requests = 0
    for kind, seed in part.of(jobs):
        provider, model, transport = kind
        faults, sent = asyncio.run(_tried(kind, seed))
        requests += sent
        column = "direct" if transport == "auto" else "through litellm"
        tally.case(f"{provider}, {model}", not faults, column=column, what=f"seed {seed}: {faults[:1]}")
    tally.figures([("figure", "value"), ("requests", f"{requests:,}")])


async def _tried(kind: tuple[str, str, str], seed: int) -> tuple[list[str], int]:
    with tempfile.TemporaryDirectory() as folder:
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                outcome = await travel(Path(folder), kind, seed, STEPS)
        except Exception as error:
            return [repr(error)], 0
    return outcome.faults, outcome.requests
