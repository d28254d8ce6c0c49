"""A question is answered; nothing changes."""

from __future__ import annotations

from tui_agent.rehearsal.requests import BATCH_REQUEST, SECOND_REQUEST
from tui_agent.rehearsal.scenes.scene import Scene

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
