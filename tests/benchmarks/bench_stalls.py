"""The keyboard never waits: the longest stall of the interface's loop, and of an echo, while others start."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from figures import Figure, show
from programs import ECHO, HERE, KEY, OUR_MARK, big_workspace, home, small_workspace
from terminal import Terminal

#: How long it is watched after the first key: litellm's import and the index both end well before.
SECONDS = 15.0
LIMIT = 50.0
LETTERS = "αβγδεζηθικλμνξπρστυφχψω"


def main() -> None:
    with small_workspace() as small, big_workspace() as big:
        show(
            [
                *watch("while the model child starts", small),
                *watch("while 100,000 files (+50,000 ignored) are indexed", big),
            ]
        )


def watch(when: str, workspace: Path) -> list[Figure]:
    """Type for a while from the first frame on; the longest stall and the slowest echo, in milliseconds."""
    with home() as env, TemporaryDirectory() as folder:
        beats = Path(folder) / "beats.json"
        command = [sys.executable, str(HERE / "beating.py"), str(beats), "."]
        with Terminal(command, workspace, env) as terminal:
            painted = terminal.wait_for(OUR_MARK)
            terminal.press(KEY)
            ready = terminal.wait_for(ECHO)
            echoes = echo_for(terminal, SECONDS)
            time.sleep(1)  # the last beats are written within half a second
            gaps = [
                (end - ready, late, work)
                for end, late, work in json.loads(beats.read_text())
                if end > painted
            ]
    later = [gap for gap in gaps if gap[0] > 0]
    at, longest, _ = max(later, key=lambda gap: gap[1], default=(0.0, 0.0, 0.0))
    busiest = max((work for _, _, work in later), default=0.0)
    note = f"{at:.1f} s after the first key; {sum(late > LIMIT / 1000 for _, late, _ in later)} over {LIMIT:g} ms"
    first = max((late for end, late, _ in gaps if end <= 0), default=0.0)
    return [
        Figure(f"longest stall of the loop {when}", longest * 1000, LIMIT, " ms", note),
        Figure("  most work of the process in one stall", busiest * 1000, None, " ms", "processor time"),
        Figure("  before the first key is drawn", first * 1000, None, " ms"),
        Figure("  slowest echo of a key", max(echoes) * 1000, None, " ms", f"of {len(echoes)}"),
    ]


def echo_for(terminal: Terminal, seconds: float, every: float = 0.2) -> list[float]:
    """Type a letter every so many seconds; how long each took to be drawn."""
    end = time.monotonic() + seconds
    echoes: list[float] = []
    while time.monotonic() < end:
        letter = LETTERS[len(echoes) % len(LETTERS)]
        terminal.forget()
        begin = time.monotonic()
        terminal.press(letter)
        echoes.append(terminal.wait_for(letter) - begin)
        pause = begin + every
        while (left := pause - time.monotonic()) > 0:
            terminal.read(left)
    return echoes


if __name__ == "__main__":
    main()
