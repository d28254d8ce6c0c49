"""`kill -9` in the middle of a session that edits: nothing acknowledged is lost, and it can be gone on with."""

from __future__ import annotations

import random
from pathlib import Path

from support.killed_session import FILE, check, moment, run_and_kill

#: How many moments are tried here; the benchmark tries two hundred.
MOMENTS = 8


async def test_killed_at_random_moments_nothing_acknowledged_is_lost(tmp_path: Path) -> None:
    workspace = tmp_path / "work"
    workspace.mkdir()
    (workspace / FILE).write_text("version = 0\n")
    chance = random.Random(6)
    facts, name = [], ""
    for _ in range(MOMENTS):
        facts += run_and_kill(workspace, name, *moment(chance))
        await check(workspace, facts)
        name = facts[0]["session"]
    assert {key for fact in facts for key in fact} >= {"said", "answered", "applied", "todo"}
