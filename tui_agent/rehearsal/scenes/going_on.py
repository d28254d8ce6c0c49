"""One word goes on where the work stands: the memory comes along, and the open todo is done."""

from __future__ import annotations

from tui_agent.rehearsal.requests import CONFLICT_REQUEST, GOING_ON_REQUEST
from tui_agent.rehearsal.scenes.scene import Scene
from tui_agent.rehearsal.scenes.stale import OPEN_TODO

NEXT_TEST = "    def test_other_errors_are_not_tried_again(self):\n"
NEW_TEST = """\
    def test_the_error_says_how_often_it_was_tried(self):
        with self.assertRaisesRegex(Unavailable, "no answer after 3 attempts"):
            with_retries(Flaky(3), sleep=lambda seconds: None)

"""

GOING_ON = Scene(
    request=GOING_ON_REQUEST,
    answer={
        "summary": "The open todo is done: a test checks what the error says.",
        "message": (
            "Your one word brought `## AI Memory (Continuation Context)` along: your last request word for word, "
            "my last summary, the todos, and which files changed at which turn.\n"
            "\n"
            "Where the work stands:\n"
            "\n"
            "- **timeouts, pages, the error's words**: done as far as their todos are ticked, and not begun anew\n"
            f"- **{OPEN_TODO}**: was open, and is this change to `tests/test_retry.py`\n"
            "\n"
            "It passes with the old words of the error as well as with the new ones.\n"
        ),
        "todos": [
            {
                "text": OPEN_TODO,
                "aiText": "In tests/test_retry.py check that the error names the number of attempts.",
                "done": False,
            }
        ],
        "fileChanges": [
            {
                "path": "tests/test_retry.py",
                "todoIndex": 0,
                "edits": [{"search": NEXT_TEST, "replace": NEW_TEST + NEXT_TEST}],
            }
        ],
        "nextSteps": [{"html": "See what a conflict looks like", "inputText": CONFLICT_REQUEST}],
    },
    tokens_in=7240,
    tokens_out=287,
    cached=6000,
)
