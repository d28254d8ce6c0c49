"""Several agents' attempts at one goal, whose results wait until one is taken into the review."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from tui_agent.edits.change import hunks, text_under
from tui_agent.errors import SessionError
from tui_agent.files.blobs import Blobs
from tui_agent.store.graph import OPEN_STATES, SubTask
from tui_agent.subtasks.run import RunOutcome

#: Attempts at one goal.
MOST = 8


def attempts(agents: Sequence[str], goal: str, graph: Sequence[SubTask]) -> tuple[SubTask, ...]:
    """A sub-task for each agent, "" for the model; with a new group, and new ids. Raises `SessionError`."""
    if not goal.strip() or not 2 <= len(agents) <= MOST:
        raise SessionError(
            f"/best needs a goal and 2 to {MOST} attempts", "write /best claude codex GOAL, or /best 3 GOAL"
        )
    groups = {task.attempt for task in graph}
    group = next(name for n in itertools.count(1) if (name := f"best {n}") not in groups)
    found = []
    for number, agent in enumerate(agents, 1):
        name = f"{group}.{number} {agent}".rstrip()
        found.append(SubTask(name, goal.strip(), agent=agent, attempt=group))
    return tuple(found)


def report(ended: RunOutcome, blobs: Blobs) -> str:
    """Checks, size of the change and summary. Blocking."""
    added = removed = 0
    for step in ended.changed:
        before, after = (text_under(blobs, key) or "" for key in (step.before, step.after))
        for hunk in hunks(before, after):
            added, removed = added + len(hunk.added), removed + len(hunk.removed)
    count = len(ended.changed)
    size = f"{count} file{'' if count == 1 else 's'}, +{added} -{removed}" if count else "no change"
    checks = f"{', '.join(ended.checks)} failed" if ended.checks else ended.passed
    return ", ".join(filter(None, (checks, size))) + (f": {ended.summary}" if ended.summary else "")


def comparison(group: str, graph: Sequence[SubTask]) -> str:
    """ "" if one has not ended."""
    ours = [task for task in graph if task.attempt == group]
    if any(task.state in OPEN_STATES for task in ours):
        return ""
    lines = []
    for task in ours:
        cost = f", ${task.cost:.2f}" if task.cost else ""
        said = task.summary if task.state == "completed" else f"{task.state}: {task.reason}"
        lines.append(f"{task.id} ({task.seconds:.0f} s{cost}): {said}")
    return "\n".join([*lines, "/take and a name puts one into the review"])
