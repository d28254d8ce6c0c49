"""Trying again what may safely be tried again."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from shop import settings
from shop.errors import Unavailable

Answer = TypeVar("Answer")


def with_retries(call: Callable[[], Answer], *, sleep: Callable[[float], None] = time.sleep) -> Answer:
    """Make a call, and make it again when it timed out, with a longer pause each time.

    Raises `Unavailable` when the last attempt timed out too. Other errors are passed on at once.
    """
    pause = settings.PAUSE
    for attempt in range(1, settings.ATTEMPTS + 1):
        try:
            return call()
        except TimeoutError as error:
            if attempt == settings.ATTEMPTS:
                raise Unavailable(f"no answer after {attempt} attempts") from error
            sleep(pause)
            pause *= 2
    raise AssertionError("settings.ATTEMPTS must be at least 1")
