"""Replies made to stop the keyboard: its longest stall while each is read and drawn, and a rewrite of 50,000 lines."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from figures import Figure, show
from programs import HERE, OUR_MARK, home
from support.recordings import recorded
from terminal import Terminal

from tui_agent.model.client import EndChunk, TextChunk, UsageChunk

STALL = 50.0
REWRITE = 1000.0
LINES = 50_000
#: Letters in a piece of a stream.
PIECE = 2000
END = "the end of it"
OLD = [f"line {number} = {number * 7}\n" for number in range(LINES)]
DRAWN = {
    "two words, for comparison": "Seen it.",
    "quotes nested 1,500 deep": ">" * 1500 + " x",
    "lists nested 1,500 deep": "".join("  " * level + "- x\n" for level in range(1500)),
    "emphasis that never closes": "*a **b " * 20_000,
    "a million letters": "word " * 200_000,
    "20,000 paragraphs": "a *b*\n\n" * 20_000,
}
REWRITES = {
    "every tenth line": "".join(f"x {n}\n" if n % 10 == 0 else line for n, line in enumerate(OLD)),
    "every line": "".join(f"other {n}\n" for n in range(LINES)),
    "indented": "".join(f"    {line}" for line in OLD),
}


def main() -> None:
    for what, text in DRAWN.items():
        # The summary is what the chat draws; a step that is offered says that all of it was read.
        wall, stall, work = measure({"summary": text})
        note = f"{work:.0f} ms of processor; {wall:.0f} ms to the end"
        show([Figure(f"stall of the loop: {what}", stall, STALL, " ms", note)])
    for what, new in REWRITES.items():
        wall, stall, work = measure({"summary": "S", "fileChanges": [{"path": "big.txt", "content": new}]})
        show(
            [
                Figure(f"50,000 lines rewritten, {what}: Enter to the review", wall, REWRITE, " ms"),
                Figure("  stall of the loop", stall, STALL, " ms", f"{work:.0f} ms of processor"),
            ]
        )


def measure(reply: dict[str, object]) -> tuple[float, float, float]:
    """Milliseconds from Enter until the end is drawn, the longest gap between two beats, and the work done in it."""
    # A next step is offered when all of the reply was read, and its changes were proposed.
    answer = json.dumps(reply | {"nextSteps": [{"html": END, "inputText": END}]})
    with TemporaryDirectory() as folder, home() as env:
        place = Path(folder)
        workspace = place / "work"
        workspace.mkdir()
        (workspace / "big.txt").write_text("".join(OLD))
        pieces = [TextChunk(answer[at : at + PIECE]) for at in range(0, len(answer), PIECE)]
        replay = recorded(
            place / "replay.jsonl", ("rewrite big.txt", [*pieces, UsageChunk(1, 1), EndChunk("stop")])
        )
        beats = place / "beats.json"
        options = ["--set", "context.window=4000000", "--replay", str(replay)]
        with Terminal(
            [sys.executable, str(HERE / "beating.py"), str(beats), *options, "."], workspace, env
        ) as terminal:
            terminal.wait_for(OUR_MARK)
            terminal.press("rewrite big.txt")
            terminal.wait_for("rewrite big.txt")
            terminal.settle(quiet=3)
            terminal.forget()
            begun = time.monotonic()
            terminal.press("\r")
            wall = (terminal.wait_for(END, timeout=90) - begun) * 1000
            terminal.settle(quiet=2)
        gaps = json.loads(beats.read_text()) if beats.exists() else []
    _, late, work = max(
        (gap for gap in gaps if gap[0] > begun), key=lambda gap: gap[1], default=(0.0, 0.0, 0.0)
    )
    return wall, late * 1000, work * 1000


if __name__ == "__main__":
    main()
