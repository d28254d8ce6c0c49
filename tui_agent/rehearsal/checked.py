"""A scene whose first proposal breaks a test, and the correction."""

from __future__ import annotations

from typing import Any

from tui_agent.rehearsal.requests import CHECK_NAME, CHECKED_REQUEST, CONFLICT_REQUEST, Scene
from tui_agent.turn.continuation import repair_request

#: The repair request after the failed check.
REPAIR_REQUEST = repair_request([CHECK_NAME], ["shop/retry.py", "shop/settings.py"])


def _longest_pause(mistaken: str) -> list[dict[str, Any]]:
    """Changes of two files; `mistaken` is the incorrect function."""
    return [
        {
            "path": "shop/settings.py",
            "todoIndex": 0,
            "edits": [{"search": "PAUSE = 0.5\n", "replace": "PAUSE = 0.5\nLONGEST_PAUSE = 2.0\n"}],
        },
        {
            "path": "shop/retry.py",
            "todoIndex": 0,
            "edits": [
                {
                    "search": "            pause *= 2\n",
                    "replace": f"            pause = {mistaken}(2 * pause, settings.LONGEST_PAUSE)\n",
                }
            ],
        },
    ]


_LONGEST_PAUSE_TODO = {
    "text": "Wait at most 2 seconds between two attempts",
    "aiText": "Add LONGEST_PAUSE to shop/settings.py and keep to it in shop/retry.py.",
    "done": False,
}

#: The first proposal breaks a test, which the trial view detects.
CHECKED = Scene(
    request=CHECKED_REQUEST,
    answer={
        "summary": "No pause between two attempts is longer than LONGEST_PAUSE.",
        "message": (
            "`shop/settings.py` gets `LONGEST_PAUSE`, and `with_retries` keeps to it: of the doubled pause and the "
            "longest one it takes the one that fits, so that an attempt is never put off for long.\n"
            "\n"
            "The project's tests run on this now, in a **view** of the folder with the change in place: at its own "
            "path, without a network, and what they write is thrown away. The folder itself is as it was.\n"
        ),
        "todos": [_LONGEST_PAUSE_TODO],
        "fileChanges": _longest_pause("max"),
        "nextSteps": [{"html": "See what a conflict looks like", "inputText": CONFLICT_REQUEST}],
    },
    tokens_in=4702,
    tokens_out=189,
    cached=4100,
)

#: The correction precedes the review.
CORRECTED = Scene(
    request=REPAIR_REQUEST,
    answer={
        "summary": "It has to be min and not max: the pauses are 0.5 s and 1 s again, as the test says.",
        "message": (
            "I took the longer of two pauses where it has to be the shorter one, and a test said so: "
            "`[0.5, 2.0] != [0.5, 1.0]`. You see the change as it is **after** that, with **✓** beside it in the "
            "review and below. Nothing is written before **F8**.\n"
        ),
        "todos": [_LONGEST_PAUSE_TODO],
        "fileChanges": _longest_pause("min"),
        "nextSteps": [{"html": "See what a conflict looks like", "inputText": CONFLICT_REQUEST}],
    },
    tokens_in=5011,
    tokens_out=176,
    cached=4700,
)

#: Requests sent automatically.
REPAIRS = (CORRECTED,)
