"""What is said in the rehearsal: each request of the person, and what the recorded model answers."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

#: Two of the paths are remembered wrongly, so that finding the files is worth watching: one is found by its
#: name, the other by a part of it.
FIRST_REQUEST = (
    "Use the timeout from shop/settings.py for both API calls, "
    "in shop/api/orders.py and shop/api/payments.py."
)
SECOND_REQUEST = "What happens now when a service is too slow? Explain it from shop/retry.py."


class Scene(Struct, frozen=True):
    """One exchange: `answer` in the `structured` dialect, and the tokens as a provider would count them."""

    request: str
    answer: dict[str, Any]
    tokens_in: int
    tokens_out: int
    cached: int = 0


TIMEOUTS = Scene(
    request=FIRST_REQUEST,
    answer={
        "summary": "Both API calls now give up after REQUEST_TIMEOUT.",
        "message": (
            "Until now both clients called the service **without** a timeout, so one that never answers "
            "would have kept the program waiting for ever. Each call now passes `REQUEST_TIMEOUT` (10 s) "
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
        "nextSteps": [],
    },
    tokens_in=4361,
    tokens_out=241,
    cached=3200,
)

SCENES = (TIMEOUTS, SLOW_SERVICE)
