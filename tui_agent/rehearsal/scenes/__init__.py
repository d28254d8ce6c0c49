"""What is said in the rehearsal: each request of the person, and what the recorded model answers.

The scenes stand in the order in which each offers the next. Any of them may be left out or come earlier: an
edit has its place whether or not the changes of the others were applied.
"""

from __future__ import annotations

from tui_agent.rehearsal.scenes.batch import BATCH
from tui_agent.rehearsal.scenes.conflict import CONFLICT
from tui_agent.rehearsal.scenes.going_on import GOING_ON
from tui_agent.rehearsal.scenes.parts import PARTS
from tui_agent.rehearsal.scenes.scene import Scene
from tui_agent.rehearsal.scenes.slow_service import SLOW_SERVICE
from tui_agent.rehearsal.scenes.stale import STALE
from tui_agent.rehearsal.scenes.sub_tasks import SUB_TASKS
from tui_agent.rehearsal.scenes.timeouts import TIMEOUTS
from tui_agent.rehearsal.scenes.undo import UNDO

__all__ = [
    "BATCH",
    "CONFLICT",
    "GOING_ON",
    "PARTS",
    "SCENES",
    "SLOW_SERVICE",
    "STALE",
    "SUB_TASKS",
    "TIMEOUTS",
    "UNDO",
    "Scene",
]

SCENES = (TIMEOUTS, SLOW_SERVICE, BATCH, STALE, GOING_ON, CONFLICT, UNDO, SUB_TASKS)
