"""A long import that leaves room for others while nobody waits for it.

A lower priority would do that too, but an ordinary user cannot raise one again: on a busy machine the import, and
then every answer, would be starved for good.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Generator

#: The longest pause, in seconds: whoever then begins to wait waits so much longer at most.
LONGEST_PAUSE = 0.05


class Politely:
    """Pauses between two modules for as long as the last one took, until `hurry` is called."""

    def __init__(self, sleep: Callable[[float], Any] | None = None) -> None:
        self._wanted = threading.Event()
        self._sleep = sleep or self._wanted.wait
        self._thread = 0
        self._since = 0.0

    def hurry(self) -> None:
        """Somebody waits now. May be called from any thread, also before and after the import."""
        self._wanted.set()

    @contextmanager
    def importing(self) -> Generator[None, None, None]:
        """While this lasts the imports of this thread are polite."""
        self._thread, self._since = threading.get_ident(), time.monotonic()
        sys.meta_path.insert(0, self)
        try:
            yield
        finally:
            sys.meta_path.remove(self)

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        """Asked for each module before anybody else; finds none, and takes its pause here."""
        if threading.get_ident() != self._thread or self._wanted.is_set():
            return
        self._sleep(min(time.monotonic() - self._since, LONGEST_PAUSE))
        self._since = time.monotonic()
