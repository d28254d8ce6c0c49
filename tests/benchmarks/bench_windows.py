"""Requests against the model's window: none is over it, and a content reset lands where the settings say.

python tests/benchmarks/bench_windows.py [SESSIONS]
"""

from __future__ import annotations

import asyncio
import os
import random
import sys
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from bench_context import CountingModel, tokens
from figures import Figure, show
from support.sessions import model_of, open_session, reply

from tui_agent.store import events as e
from tui_agent.store.state import State
from tui_agent.turn.composing import AROUND_A_MESSAGE

SESSIONS = 25
WINDOWS = (12_000, 20_000, 32_000)
WORDS = ("alpha", "beta", "gamma", "return", "import", "value", "self", "config", "handler", "request")
#: What the registry says of a file's tokens is an estimate; it is off by no more than this.
MOST_OFF = 1.6


@dataclass
class Seen:
    """What was measured over all sessions: shares of the window."""

    requests: int = 0
    over: int = 0
    largest: float = 0.0
    #: Resets after which what must stay was more than the target.
    full: int = 0
    landed: list[float] = field(default_factory=list)


def text(chance: random.Random, size: int) -> str:
    lines = []
    while sum(map(len, lines)) < size:
        lines.append("    " * chance.randrange(3) + " ".join(chance.choices(WORDS, k=chance.randrange(2, 9))))
    return "\n".join(lines) + "\n"


async def one(seed: int, seen: Seen) -> None:
    chance = random.Random(seed)
    window = chance.choice(WINDOWS)
    paths = [f"src/m{number}.py" for number in range(24)]
    with TemporaryDirectory(prefix="tui-agent-bench-") as folder:
        root = Path(folder)
        (root / "src").mkdir()
        for path in paths:
            (root / path).write_text(text(chance, int(chance.lognormvariate(8.0, 0.9))))

        def prepare(session) -> None:
            words = [text(chance, chance.randrange(60, 1500)) for _ in range(40)]
            session.model = CountingModel(
                [reply(f"Answer {n}.", message=word) for n, word in enumerate(words)]
            )
            session.model.plans = []

        settings = (f"context.window={window}", "planner_model=none")
        async with open_session(root, [], prepare=prepare, overrides=settings) as session:
            sizes: list[float] = []

            def watch(event: e.Event, state: State) -> None:
                if not (isinstance(event, e.RequestSent) and event.purpose == "main" and event.reset):
                    return
                bare = event.tokens - state.conversation.messages[0].files
                if state.conversation.why != "files":
                    return
                if bare > window / 2:
                    seen.full += 1  # this turn's files and the words alone are more
                elif event.tokens > window / 2 or _could_fill(state, window / 2 - event.tokens):
                    sizes.append(event.tokens / window)

            session.subscribe(watch)
            for turn in range(18):
                if turn % 3 == 1:
                    path = chance.choice(paths)
                    (root / path).write_text(text(chance, int(chance.lognormvariate(8.0, 0.9))))
                if turn % 7 == 3:
                    await session.open_file(chance.choice(paths))
                wanted = chance.sample(paths, chance.randrange(0, 4)) if turn % 5 else ["all files in src/"]
                await session.submit(f"Look at {', '.join(wanted)} ({turn})" if wanted else f"Why? ({turn})")
                await session.finished()
                assert session.state.turn.ok, session.state.turn.error
            for request in model_of(session).requests:
                texts = [str(message["content"]) for message in request.messages]
                size = (tokens(texts) + AROUND_A_MESSAGE * len(texts)) / window
                seen.requests += 1
                seen.over += size > 1
                seen.largest = max(seen.largest, size)
            seen.landed += sizes


def _could_fill(state: State, gap: float) -> bool:
    """Whether a whole file that the model knows was left over and would have fitted into the gap."""
    return any(
        entry.path not in state.conversation.files and entry.whole and 0 < entry.tokens * MOST_OFF <= gap
        for entry in state.known.files.values()
        if entry.freshness not in ("deleted", "renamed")
    )


async def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else SESSIONS
    seen = Seen()
    with TemporaryDirectory(prefix="tui-agent-bench-home-") as home:
        os.environ["TUI_AGENT_HOME"] = home
        for seed in range(count):
            await one(seed, seen)
    off = max((abs(share - 0.5) for share in seen.landed), default=0.0)
    ends = f"from {min(seen.landed, default=0):.2f} to {max(seen.landed, default=0):.2f} of the window"
    note = f"{len(seen.landed)} resets beside {seen.full} after which this turn alone needs more, {ends}"
    show(
        [
            Figure(
                f"requests over the window, {count} random sessions", seen.over, 0, "", f"of {seen.requests}"
            ),
            Figure("largest request, as a share of the window", seen.largest, 1.0, ""),
            Figure("a content reset misses its target by", off, 0.05, " of the window", note),
        ]
    )


if __name__ == "__main__":
    asyncio.run(main())
