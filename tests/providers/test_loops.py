"""Sessions with strict servers break no rule of a provider and count as the servers do; `make providers` runs 200.

A journey is decided by its seed: turns with parallel calls and errors, a planner, sub-tasks, a resume, a fork, a
summary, a change of the model and back, a commit message, a picture.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from support.journeys import KINDS, travel

#: Seeds that take every other kind of journey through a different order of steps; litellm takes seconds to import.
DIRECT = [(kind, number) for number, kind in enumerate(KINDS) if kind[2] == "auto"][::2]
#: Its history is rewritten between thinking that is bound to it.
REWRITTEN = [(("anthropic", "claude-opus-5-5", "auto"), 30)]
THROUGH_LITELLM = [(kind, 1) for kind in KINDS if kind[1:] == ("claude-sonnet-4-6", "litellm")]
STEPS, LITELLM_STEPS = 5, 2


@pytest.mark.parametrize(("kind", "seed"), [*DIRECT, *REWRITTEN, *THROUGH_LITELLM], ids=str)
async def test_no_rule_is_broken(kind: tuple[str, str, str], seed: int, tmp_path: Path) -> None:
    outcome = await travel(tmp_path, kind, seed, STEPS if kind[2] == "auto" else LITELLM_STEPS)
    assert outcome.faults == []
    assert outcome.requests > 1
