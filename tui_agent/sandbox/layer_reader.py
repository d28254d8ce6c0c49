"""Program that reads one layer and exits, started by `layer_changes.py`, so that hostile layers cost the
screen nothing.

Each view starts it, so it imports little. Receives two descriptors over a Unix packet socket: a file with the
data to compare (`marshal`), and the layer's folder. Appends kept contents and then the result to the file,
and responds with the result's offset and size.
"""

from __future__ import annotations

import _signal as signal  # ty: ignore[import-not-found]
import _socket
import marshal
import os
import resource
import sys

from tui_agent.sandbox.folder_access import FolderAccess
from tui_agent.sandbox.inside.kernel import received
from tui_agent.sandbox.layer_comparison import Budget, Comparison, EarlierState, write_all

#: Bytes; processor time in seconds.
MEMORY, SECONDS = 1 << 30, 60


def main(descriptor: int) -> None:
    """`descriptor`: the socket."""
    line = _socket.socket(fileno=descriptor)
    if sys.platform.startswith("linux"):
        from tui_agent.sandbox.inside.kernel import DEATH_SIGNAL, prctl

        prctl(DEATH_SIGNAL, signal.SIGKILL)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    text, descriptors = received(line, 1 << 16, 2)
    if not text:
        return
    contents, layer = descriptors
    size = os.fstat(contents).st_size
    asked = marshal.loads(os.pread(contents, size, 0))
    seeds = {path: EarlierState(*seed) for path, seed in asked["seeds"].items()}
    with FolderAccess(layer, own=True) as there, FolderAccess(asked["root"]) as real:
        budget = Budget(*asked["budget"])
        compared = Comparison(
            *(there, real, seeds, asked["since"], budget, contents, size, asked["apart"], asked["beside"])
        )
        if asked["paths"] is not None:
            found = compared.of_paths(asked["paths"])
        else:
            found = compared.of_layer() if asked["files"] is None else compared.of_copy(asked["files"])
    told = marshal.dumps({"found": [tuple(one) for one in found], "left": compared.left})
    write_all(contents, told, compared.end)
    line.send(ascii([compared.end, len(told)]).encode())
