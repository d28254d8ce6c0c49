"""The user's requests in the rehearsal; recorded replies are found by their text."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct

#: Contains two wrong paths, to demonstrate the search: one is found by name, the other by a part of it.
FIRST_REQUEST = (
    "Use the timeout from shop/settings.py for both API calls, "
    "in shop/api/orders.py and shop/api/payments.py."
)
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

#: The check of the proposed changes.
CHECK_NAME, CHECK_COMMAND = "tests", "python3 -m unittest"


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
