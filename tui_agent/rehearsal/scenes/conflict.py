"""A change to one line, which conflicts where the person changes that line before they apply it."""

from __future__ import annotations

from tui_agent.rehearsal.requests import CONFLICT_REQUEST, SUB_TASKS_REQUEST, UNDO_REQUEST
from tui_agent.rehearsal.scenes.scene import Scene

CONFLICT = Scene(
    request=CONFLICT_REQUEST,
    answer={
        "summary": "Each call gives up after 8 seconds instead of 10.",
        "message": (
            "One line in `shop/settings.py`. Applied as it is, it just fits.\n"
            "\n"
            "For a **conflict**, disagree with me first: in the review (**F5**) press **o** and **F4** to stand in "
            "the file at this line, write `6.0` instead of `10.0`, save with **F2**. Then **F8** writes "
            "nothing. It shows the line as you have it and as I would have it, and in the review you choose: "
            "**1** yours, **2** theirs, **3** both. What comes out waits for **F8** again.\n"
        ),
        "todos": [
            {
                "text": "Wait 8 seconds at most",
                "aiText": "In shop/settings.py set REQUEST_TIMEOUT to 8.0.",
                "done": False,
            }
        ],
        "fileChanges": [
            {
                "path": "shop/settings.py",
                "todoIndex": 0,
                "edits": [{"search": "REQUEST_TIMEOUT = 10.0\n", "replace": "REQUEST_TIMEOUT = 8.0\n"}],
            }
        ],
        "nextSteps": [
            {"html": "Ask how to take back what was applied", "inputText": UNDO_REQUEST},
            {"html": "Split a larger piece of work into sub-tasks", "inputText": SUB_TASKS_REQUEST},
        ],
    },
    tokens_in=7911,
    tokens_out=233,
    cached=7100,
)
