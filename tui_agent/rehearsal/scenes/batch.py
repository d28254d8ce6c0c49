"""A folder is one action, and what changes in it is one todo and one set of changes."""

from __future__ import annotations

from tui_agent.rehearsal.requests import BATCH_REQUEST, STALE_REQUEST
from tui_agent.rehearsal.scenes.scene import Scene

TITLES = {
    "docs/configuration.md": "# Settings\n",
    "docs/errors.md": "# What can go wrong\n",
    "docs/payments.md": "# How a payment is made\n",
}
SENTENCE = "\nThis page describes version 0.4.0.\n"

BATCH = Scene(
    request=BATCH_REQUEST,
    answer={
        "summary": "All three pages in docs/ say which version they describe.",
        "message": (
            "“All files in docs/” was **one** action of the plan. What it found is one todo and one set of "
            "changes, a sentence below each title: **F8** applies all of it, or nothing if one file cannot be "
            "written.\n"
            "\n"
            "Next you can see what happens when a file changes under my hands. Open `shop/retry.py` "
            "(**F3**, then **/**), write a comment at its top, save it with **F2**, and only then send the "
            "next step.\n"
        ),
        "todos": [
            {
                "text": "Name the version on every page in docs/",
                "aiText": "Below the title of each page in docs/ say that it describes version 0.4.0.",
                "done": False,
            }
        ],
        "fileChanges": [
            {"path": path, "todoIndex": 0, "edits": [{"search": title, "replace": title + SENTENCE}]}
            for path, title in TITLES.items()
        ],
        "nextSteps": [
            {"html": "Save a change to shop/retry.py first, then this", "inputText": STALE_REQUEST}
        ],
    },
    tokens_in=5102,
    tokens_out=298,
    cached=4300,
)
