"""Two files change in three hunks, after two plans fell back before they hit."""

from __future__ import annotations

from tui_agent.rehearsal.requests import FIRST_REQUEST, SECOND_REQUEST
from tui_agent.rehearsal.scenes.scene import Scene

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
