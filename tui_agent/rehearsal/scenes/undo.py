"""How what was applied is taken back; nothing changes."""

from __future__ import annotations

from tui_agent.rehearsal.requests import SUB_TASKS_REQUEST, UNDO_REQUEST
from tui_agent.rehearsal.scenes.scene import Scene

UNDO = Scene(
    request=UNDO_REQUEST,
    answer={
        "summary": "Ctrl+O u takes back what was applied last, Ctrl+O U applies it again.",
        "message": (
            "From anywhere: **Ctrl+O**, then **u** undoes what was applied last, and **Ctrl+O**, then **U** does "
            "it again. In the review (**F5**) **u** and **U** do the same, and **H** lists everything that was "
            "ever applied.\n"
            "\n"
            "1. **For ever.** Each apply is a point of its own. Any of them can be taken back, in any order, "
            "tomorrow and in a later session too.\n"
            "2. **Nothing of yours goes with it.** What you wrote since is kept: it is merged, and where that "
            "cannot be done it is shown as a conflict.\n"
            "3. **Your repository stays yours.** No commit of yours, no branch and no stash is touched.\n"
        ),
        "nextSteps": [
            {"html": "Split a larger piece of work into sub-tasks", "inputText": SUB_TASKS_REQUEST}
        ],
    },
    tokens_in=8204,
    tokens_out=229,
    cached=7800,
)
