"""Sessions with strict servers of every provider: broken rules, and tokens that differ from the servers' counts."""

from __future__ import annotations

import asyncio
from pathlib import Path
from tempfile import TemporaryDirectory

from figures import Figure, show
from support.journeys import KINDS, travel


def main() -> None:
    broken = requests = failed = 0
    worst = 0.0
    for seed, kind in enumerate(KINDS):
        with TemporaryDirectory(prefix="tui-agent-bench-") as folder:
            outcome = asyncio.run(travel(Path(folder), kind, seed))
        broken += len(outcome.violations)
        failed += len(outcome.failures)
        requests += outcome.requests
        for ours, theirs in zip(outcome.usage, outcome.counted, strict=True):
            worst = max(worst, abs(ours - theirs) / max(1, theirs))
    rules = Figure(f"broken rules in {len(KINDS)} sessions", broken, 0, note=f"{requests} requests")
    counts = Figure("largest difference of a token count", worst * 100, 1.0, " %")
    show([rules, Figure("turns that failed", failed, 0), counts])


if __name__ == "__main__":
    main()
