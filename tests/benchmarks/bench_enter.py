"""From Enter to the request's arrival at a server on loopback, with the model process warm."""

from __future__ import annotations

import statistics
import time

from figures import Figure, show
from programs import OUR_MARK, TUI_AGENT, home, small_workspace
from support.provider import Answer, Provider
from terminal import Terminal

TURNS = 9
LIMIT = 100.0
REPLY = '{"summary": "Seen."}'


def main() -> None:
    with Provider() as provider, small_workspace() as workspace, home(provider.url) as env:
        provider.otherwise = Answer(REPLY)
        with Terminal([*TUI_AGENT, "--set", "protocol=structured", "."], workspace, env) as terminal:
            terminal.wait_for(OUR_MARK)
            warm = enter(terminal, provider, "hello")
            terminal.settle(quiet=3)
            plain = [enter(terminal, provider, "hello again") for _ in range(TURNS)]
            planned = [enter(terminal, provider, "look at shop/retry.py again") for _ in range(TURNS)]
        show(
            [
                median("Enter to the request at the server", plain),
                median("the same, with a file to find", planned),
                Figure("the first, sent before the model process is warm", warm, None, " ms"),
            ]
        )


def enter(terminal: Terminal, provider: Provider, words: str) -> float:
    """Milliseconds from the Enter key to the request; returns when the turn is over and drawn."""
    before = len(provider.requests)
    terminal.press(words)
    terminal.read(0.3)
    terminal.forget()
    begin = time.monotonic()
    terminal.press("\r")
    request = provider.wait_for(before + 1)[before]
    terminal.wait_for("Seen.")
    terminal.settle(quiet=0.5)
    return (request.at - begin) * 1000


def median(name: str, times: list[float]) -> Figure:
    return Figure(
        name, statistics.median(times), LIMIT, " ms", f"of {len(times)}, slowest {max(times):.0f} ms"
    )


if __name__ == "__main__":
    main()
