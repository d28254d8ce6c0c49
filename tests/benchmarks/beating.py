"""Runs tui-agent as it is, with a pulse on its event loop: `python beating.py FILE [ARGUMENT …]`.

FILE gets, about twice a second, the gaps between two beats that were too long, each as its end (by
`time.monotonic()`), its length in seconds, and the processor time that this process used in it: what is
missing there went to other processes.
"""

from __future__ import annotations

import asyncio
import json
import runpy
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from unittest import mock

BEAT = 0.005
WORTH_TELLING = 0.015


class Pulse:
    """Beats every five milliseconds for as long as the loop runs."""

    def __init__(self, loop: asyncio.AbstractEventLoop, file: Path) -> None:
        self._loop, self._file = loop, file
        self._gaps: list[tuple[float, float, float]] = []
        self._last = self._written = time.monotonic()
        self._worked = time.process_time()
        self._beat()

    def _beat(self) -> None:
        now = time.monotonic()
        if (late := now - self._last - BEAT) > WORTH_TELLING:
            self._gaps.append((now, late, time.process_time() - self._worked))
        if now - self._written > 0.5:
            self._file.write_text(json.dumps(self._gaps))
            self._written = now
        self._last, self._worked = time.monotonic(), time.process_time()
        self._loop.call_later(BEAT, self._beat)


def with_a_pulse(make: Callable[[], asyncio.AbstractEventLoop], file: Path) -> asyncio.AbstractEventLoop:
    loop = make()
    loop.call_soon(Pulse, loop, file)
    return loop


if __name__ == "__main__":
    beats, sys.argv = Path(sys.argv[1]), ["tui-agent", *sys.argv[2:]]
    # `asyncio.run` looks the function up where it is replaced.
    beating = partial(with_a_pulse, asyncio.events.new_event_loop, beats)
    with mock.patch.object(asyncio.events, "new_event_loop", beating):
        runpy.run_module("tui_agent", run_name="__main__", alter_sys=True)
