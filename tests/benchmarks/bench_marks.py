"""From a write on disk to the mark on the screen: the whole program on a terminal, its watcher, what is drawn."""

from __future__ import annotations

import statistics
import time
from pathlib import Path

from figures import Figure, show
from programs import OUR_MARK, TUI_AGENT, home, small_workspace
from support.provider import Answer, Provider
from terminal import Terminal

MARKS = 15
LIMIT = 150.0
FILE = "shop/retry.py"
STALE = r"⚠ 1 stale"


def main() -> None:
    with Provider() as provider, small_workspace() as workspace, home(provider.url) as env:
        provider.otherwise = Answer('{"summary": "Seen."}')
        with Terminal([*TUI_AGENT, "--set", "protocol=structured", "."], workspace, env) as terminal:
            terminal.wait_for(OUR_MARK)
            terminal.press(f"look at {FILE}\r")
            terminal.wait_for(r"Seen\.")
            terminal.settle(quiet=3)
            times = [marked(terminal, workspace / FILE) for _ in range(MARKS)]
    note = f"of {len(times)}, slowest {max(times):.0f} ms"
    show([Figure("a change on disk to its mark on the screen", statistics.median(times), LIMIT, " ms", note)])


def marked(terminal: Terminal, file: Path) -> float:
    """Milliseconds from a change until it is drawn; returns when it was taken back and that is drawn too."""
    seen = file.read_text()
    terminal.forget()
    begin = time.monotonic()
    file.write_text(seen + "# more\n")
    drawn = terminal.wait_for(STALE)
    terminal.settle(quiet=0.3)
    file.write_text(seen)
    terminal.settle(quiet=1)
    return (drawn - begin) * 1000


if __name__ == "__main__":
    main()
