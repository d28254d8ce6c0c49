"""A file that the person changed is read again; what is proposed stands away from what they may have written."""

from __future__ import annotations

from tui_agent.rehearsal.requests import GOING_ON_REQUEST, STALE_REQUEST
from tui_agent.rehearsal.scenes.scene import Scene

#: The todo that is left for the next scene, word for word, so that it is the same todo there.
OPEN_TODO = "Test what the error says"

STALE = Scene(
    request=STALE_REQUEST,
    answer={
        "summary": "The error of with_retries now says that one may try again later.",
        "message": (
            "If you saved a change to `shop/retry.py`, it is marked `Yes (on disk), read again below` in the "
            "`## KNOWN FILES` table of this request, and the newest text came with it, without your help. If you "
            "saved none, what I had seen still holds and was not sent twice.\n"
            "\n"
            "My change is one line at the end of `with_retries`. What you wrote elsewhere stays as it is.\n"
            "\n"
            "A second todo is left open on purpose: say `continue`.\n"
        ),
        "todos": [
            {
                "text": "Let the error say that one may try again later",
                "aiText": "In shop/retry.py end the message of Unavailable with a hint to try again later.",
                "done": False,
            },
            {
                "text": OPEN_TODO,
                "aiText": "In tests/test_retry.py check that the error names the number of attempts.",
                "done": False,
            },
        ],
        "fileChanges": [
            {
                "path": "shop/retry.py",
                "todoIndex": 0,
                "edits": [
                    {
                        "search": 'Unavailable(f"no answer after {attempt} attempts")',
                        "replace": 'Unavailable(f"no answer after {attempt} attempts, try again later")',
                    }
                ],
            }
        ],
        "nextSteps": [{"html": "Go on with the todo that is open", "inputText": GOING_ON_REQUEST}],
    },
    tokens_in=6033,
    tokens_out=311,
    cached=5100,
)
