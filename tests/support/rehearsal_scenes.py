"""The user's requests in the rehearsal and the recorded answers.

Each scene suggests the next, but they may be skipped or reordered: the edits fit with or without the other
scenes' changes.
"""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct

from tui_agent.rehearsal import CHECK_NAME, FIRST_REQUEST
from tui_agent.turn.continuation import repair_request

SECOND_REQUEST = "What happens now when a service is too slow? Explain it from shop/retry.py."
CHECKED_REQUEST = "Let with_retries in shop/retry.py wait at most 2 seconds between two attempts."
BATCH_REQUEST = "Say in all files in docs/ that they describe version 0.4.0."
STALE_REQUEST = "I have edited shop/retry.py. Read it again, and let its error say that one may try later."
GOING_ON_REQUEST = "continue"
CONFLICT_REQUEST = "Wait 8 seconds at most: change the timeout in shop/settings.py."
UNDO_REQUEST = "How do I undo what I have applied?"
SUB_TASKS_REQUEST = (
    "Split this into sub-tasks: an order can be cancelled from the command line. "
    "It concerns shop/models.py, shop/clients/orders_v2.py and shop/cli.py."
)
SILENT_REQUEST = "Note in README.md what a call of the network waits for at most, without a word about it."
PROSE_REQUEST = "Which module do I open first, to understand this project?"


class Scene(Struct, frozen=True):
    """One exchange: `answer` in the `structured` dialect, with token counts as reported by a provider.

    `form` is the format sent: the JSON object, its message as plain text, or its lists as calls without
    text.
    """

    request: str
    answer: dict[str, Any]
    tokens_in: int
    tokens_out: int
    cached: int = 0
    form: Literal["object", "prose", "calls"] = "object"


MODEL = "Let an order say that it is cancelled, and let nothing be due for one that is."
CLIENT = "Cancel an order at the service, once, and read the order that comes back."
WORDS = "Describe a cancelled order so that nobody takes it for an open one."
COMMAND = "Add `cancel` to the command line and to the README."

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

#: Two files, three hunks; two search patterns fall back before they match.
TIMEOUTS = Scene(
    request=FIRST_REQUEST,
    answer={
        "summary": "Both API calls now give up after REQUEST_TIMEOUT.",
        "message": (
            "Until now both clients called the service **without** a timeout, so one that never answers "
            "would have kept the program waiting forever. Each call now passes `REQUEST_TIMEOUT` (10 s) "
            "from `shop/settings.py`:\n"
            "\n"
            "- `shop/clients/orders_v2.py`: the lookup, at every attempt\n"
            "- `shop/clients/payments.py`: the charge, which is still sent only once\n"
            "\n"
            "Nothing is written before you apply it.\n"
        ),
        "todos": [
            {
                "text": "Give the order lookup a timeout",
                "aiText": "In shop/clients/orders_v2.py import REQUEST_TIMEOUT and pass it to self._send.",
                "done": False,
            },
            {
                "text": "Give the payment call a timeout",
                "aiText": "In shop/clients/payments.py pass settings.REQUEST_TIMEOUT to self._send.",
                "done": False,
            },
        ],
        "fileChanges": [
            {
                "path": "shop/clients/orders_v2.py",
                "todoIndex": 0,
                "edits": [
                    {
                        "search": "from shop.settings import ORDERS_URL\n",
                        "replace": "from shop.settings import ORDERS_URL, REQUEST_TIMEOUT\n",
                    },
                    {
                        "search": "with_retries(lambda: self._send(request))",
                        "replace": "with_retries(lambda: self._send(request, timeout=REQUEST_TIMEOUT))",
                    },
                ],
            },
            {
                "path": "shop/clients/payments.py",
                "todoIndex": 1,
                "edits": [
                    {
                        "search": "        answer = self._send(request)\n",
                        "replace": "        answer = self._send(request, timeout=settings.REQUEST_TIMEOUT)\n",
                    }
                ],
            },
        ],
        "nextSteps": [{"html": "Ask what a slow service means now", "inputText": SECOND_REQUEST}],
    },
    tokens_in=2874,
    tokens_out=402,
)

#: A question without changes.
SLOW_SERVICE = Scene(
    request=SECOND_REQUEST,
    answer={
        "summary": "A slow lookup is tried three times; a slow payment is an error at once.",
        "message": (
            "It depends on which service is slow.\n"
            "\n"
            "1. **Orders.** `fetch` goes through `with_retries`: after 10 s the call raises `TimeoutError`, "
            "then come pauses of 0.5 s and 1 s, and after the third attempt `Unavailable`. "
            "At worst that takes 31.5 s.\n"
            "2. **Payments.** `charge` is sent once. After 10 s the caller gets `TimeoutError` and does not "
            "know whether the money was taken, so it must not simply be sent again.\n"
            "\n"
            "Whoever pays should therefore treat that one error by itself:\n"
            "\n"
            "```python\n"
            "order = orders.fetch(number)  # Unavailable: nothing was charged yet\n"
            "try:\n"
            "    receipt = payments.charge(order)\n"
            "except TimeoutError:\n"
            '    print("Please check your account before you pay again.")\n'
            "```\n"
            "\n"
            "Nothing needs to change for this; it is how the code behaves with the timeouts in place.\n"
        ),
        "nextSteps": [{"html": "Change all pages in docs/ at once", "inputText": BATCH_REQUEST}],
    },
    tokens_in=4361,
    tokens_out=241,
    cached=3200,
)

TITLES = {
    "docs/configuration.md": "# Settings\n",
    "docs/errors.md": "# What can go wrong\n",
    "docs/payments.md": "# How a payment is made\n",
}
SENTENCE = "\nThis page describes version 0.4.0.\n"

#: A folder is one action; its changes form one todo and one batch.
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

#: The exact text of the todo that the next scene completes.
OPEN_TODO = "Test what the error says"

#: Reloads a file changed by the user; the proposal avoids the lines they may have edited.
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

NEXT_TEST = "    def test_other_errors_are_not_tried_again(self):\n"
NEW_TEST = """\
    def test_the_error_says_how_often_it_was_tried(self):
        with self.assertRaisesRegex(Unavailable, "no answer after 3 attempts"):
            with_retries(Flaky(3), sleep=lambda seconds: None)

"""

#: "continue" resumes the work with the memory and completes the open todo.
GOING_ON = Scene(
    request=GOING_ON_REQUEST,
    answer={
        "summary": "The open todo is done: a test checks what the error says.",
        "message": (
            "Your one word brought `## AI Memory (Continuation Context)` along: your last request word for word, "
            "my last summary, the todos, and which files changed at which turn.\n"
            "\n"
            "The state of the work:\n"
            "\n"
            "- **timeouts, pages, the error's words**: done as far as their todos are ticked, and not done twice\n"
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
        "nextSteps": [{"html": "See a mistake found before you look", "inputText": CHECKED_REQUEST}],
    },
    tokens_in=7240,
    tokens_out=287,
    cached=6000,
)

#: A one-line change that conflicts if the user edits that line before applying it.
CONFLICT = Scene(
    request=CONFLICT_REQUEST,
    answer={
        "summary": "Each call gives up after 8 seconds instead of 10.",
        "message": (
            "One line in `shop/settings.py`. Applied as it is, it just fits.\n"
            "\n"
            "For a **conflict**, disagree with me first: in the review (**F5**) press **o** and **F4** to open "
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
            {"html": "Ask how to undo what was applied", "inputText": UNDO_REQUEST},
            {"html": "Split a larger piece of work into sub-tasks", "inputText": SUB_TASKS_REQUEST},
        ],
    },
    tokens_in=7911,
    tokens_out=233,
    cached=7100,
)

#: Explains undo; no changes.
UNDO = Scene(
    request=UNDO_REQUEST,
    answer={
        "summary": "Ctrl+O u undoes what was applied last, Ctrl+O U applies it again.",
        "message": (
            "From anywhere: **Ctrl+O**, then **u** undoes what was applied last, and **Ctrl+O**, then **U** does "
            "it again. In the review (**F5**) **u** and **U** do the same, and **H** lists everything that was "
            "ever applied.\n"
            "\n"
            "1. **At any time.** Each apply is a point of its own. Any of them can be undone, in any order, "
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

#: A graph of sub-tasks: two depend on one, a fourth on both.
SUB_TASKS = Scene(
    request=SUB_TASKS_REQUEST,
    answer={
        "summary": "Cancelling an order is four sub-tasks, of which one is ready.",
        "message": (
            "The parts and what they wait for are drawn in the sub-tasks pane (**Ctrl+O s**, and **F9** for the "
            "whole screen):\n"
            "\n"
            "- `model` comes first: both others build on it\n"
            "- `client` and `words` do not touch each other's files, so they run at once\n"
            "- `command` waits for both, and begins with what they did\n"
            "\n"
            "All four are ticked: **R** in that pane runs them, each in a copy of the project of its own. **Enter** "
            "shows what one of them says, **F10** stops everything. What they change comes together in the review "
            "(**F5**), and nothing is written before you apply it.\n"
        ),
        "subTasks": [
            {
                "id": "model",
                "goal": MODEL,
                "files": ["shop/models.py", "tests/test_models.py"],
                "dependencies": [],
                "autoExecute": True,
            },
            {
                "id": "client",
                "goal": CLIENT,
                "files": ["shop/clients/orders_v2.py", "tests/test_clients.py"],
                "dependencies": ["model"],
                "autoExecute": True,
            },
            {
                "id": "words",
                "goal": WORDS,
                "files": ["shop/cli.py"],
                "dependencies": ["model"],
                "autoExecute": True,
            },
            {
                "id": "command",
                "goal": COMMAND,
                "files": ["shop/cli.py", "README.md"],
                "dependencies": ["client", "words"],
                "autoExecute": True,
            },
        ],
        "nextSteps": [{"html": "See a change without a word about it", "inputText": SILENT_REQUEST}],
    },
    tokens_in=9127,
    tokens_out=384,
    cached=8200,
)

#: Function calls without text, common between two steps.
SILENT = Scene(
    request=SILENT_REQUEST,
    answer={
        "todos": [
            {
                "text": "Say in the README how long a call waits",
                "aiText": "REQUEST_TIMEOUT of shop/settings.py, in seconds.",
                "done": False,
            }
        ],
        "fileChanges": [
            {
                "path": "README.md",
                "todoIndex": 0,
                "edits": [
                    {
                        "search": "See `docs/configuration.md` for the settings",
                        "replace": "A call gives up after `REQUEST_TIMEOUT` seconds.\n\n"
                        "See `docs/configuration.md` for the settings",
                    }
                ],
            }
        ],
        "nextSteps": [{"html": "Ask something that plain words answer", "inputText": PROSE_REQUEST}],
    },
    tokens_in=9530,
    tokens_out=141,
    cached=9100,
    form="calls",
)

#: Plain text: no object, summary or changes.
PROSE = Scene(
    request=PROSE_REQUEST,
    answer={
        "message": (
            "Begin with `shop/cli.py`: each command is a few lines there, and it shows which client does the work.\n"
            "\n"
            "Then read one client, `shop/clients/payments.py` say. Each takes the function that sends a request, so "
            "that the tests run without a network; that function is in `shop/transport.py`.\n"
            "\n"
            "`shop/models.py` and `shop/errors.py` are short. You need them once a name from them comes up, "
            "and the tests show each in use: `tests/test_clients.py` is the "
            "one to keep beside them."
        )
    },
    tokens_in=9702,
    tokens_out=118,
    cached=9500,
    form="prose",
)

#: In order of appearance.
SCENES = (TIMEOUTS, SLOW_SERVICE, BATCH, STALE, GOING_ON, CHECKED, CONFLICT, UNDO, SUB_TASKS, SILENT, PROSE)
