"""The program that reads one layer and ends, started by `changed.py`: what a command left costs it, and not the screen.

Python's own library alone, and of that little, since it is started for each view. Over the socket (Unix, packets) it
gets two descriptors: a file that holds what to compare with, as `marshal` has it, and the folder of the layer. Into the
file, behind that, it writes the contents that it keeps, and then what it found; it answers with the place and the size
of that.
"""

from __future__ import annotations

import _signal as signal  # ty: ignore[import-not-found]
import _socket
import marshal
import os
import resource
import sys

from tui_agent.trial.beneath import Beneath
from tui_agent.trial.inside.kernel import received
from tui_agent.trial.reading import Before, Budget, Comparison, put

#: Bytes of memory and seconds of the processor that reading may take.
MEMORY, SECONDS = 1 << 30, 60


def main(descriptor: int) -> None:
    """Read one layer; `descriptor` is the socket."""
    line = _socket.socket(fileno=descriptor)
    if sys.platform.startswith("linux"):
        from tui_agent.trial.inside.kernel import DEATH_SIGNAL, prctl

        prctl(DEATH_SIGNAL, signal.SIGKILL)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    text, descriptors = received(line, 1 << 16, 2)
    if not text:
        return
    contents, layer = descriptors
    size = os.fstat(contents).st_size
    asked = marshal.loads(os.pread(contents, size, 0))
    seeds = {path: Before(*seed) for path, seed in asked["seeds"].items()}
    with Beneath(layer, own=True) as there, Beneath(asked["root"]) as real:
        budget = Budget(*asked["budget"])
        compared = Comparison(
            *(there, real, seeds, asked["since"], budget, contents, size, asked["apart"], asked["beside"])
        )
        files = asked["files"]
        found = compared.of_layer() if files is None else compared.of_copy(files)
    told = marshal.dumps({"found": [tuple(one) for one in found], "left": compared.left})
    put(contents, told, compared.end)
    line.send(ascii([compared.end, len(told)]).encode())
