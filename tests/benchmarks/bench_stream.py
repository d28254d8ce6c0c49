"""A reply as it streams: from its last byte to the screen, what it costs, and how keys are echoed and the transcript is
scrolled, alone and meanwhile; on terminals of every size, and on one that is resized."""

from __future__ import annotations

import itertools
import json
import os
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from bench_stalls import echo_for
from figures import Figure, show
from programs import ECHO, HERE, KEY, OUR_MARK, home, small_workspace
from support.provider import Answer, Provider, Request
from terminal import Terminal

#: Replies in a row; the first is not counted, since the model's client loads what it needs with it.
REPLIES = 4
#: So that no reply is too long for the next request.
ROOMY = {"TUI_AGENT_CONTEXT__WINDOW": "20000000"}
#: Tokens a second while keys are pressed, and for how many seconds.
RATE, SECONDS = 100, 15.0
#: Seconds in which keys are pressed and nothing else happens.
IDLE_SECONDS = 8.0
TICK = os.sysconf("SC_CLK_TCK")


def main() -> None:
    wanted = sys.argv[1:] or ["idle", "full", "keys", "scroll", "bad", "sizes"]
    with (
        Provider() as provider,
        small_workspace() as workspace,
        home(provider.url) as env,
        TemporaryDirectory() as folder,
        Watched(workspace, env | ROOMY, Path(folder) / "beats.json") as watched,
    ):
        if "idle" in wanted:
            show(keys_alone(watched))
        if "full" in wanted:
            show(full_speed(watched, provider))
        if "keys" in wanted:
            show(keys_meanwhile(watched, provider))
        if "scroll" in wanted:
            show(scrolled(watched, provider))
        if "bad" in wanted:
            show(bad_input(watched, provider, kind) for kind in BAD)
        for part in wanted:  # one of them alone, again and again: `bad=pieces`
            if part.startswith("bad="):
                kinds = [kind for kind in BAD if part.removeprefix("bad=") in kind]
                show(bad_input(watched, provider, kind, run) for kind in kinds for run in range(AGAIN))
        if "sizes" in wanted:
            show(sizes(watched, provider))


STEP = (
    "## Step {number}: the store keeps what it was given\n\n"
    "The **store** reads a value, writes it to the `journal` and only then tells its listeners, so that "
    "nothing is lost where the machine stops in between; see [the notes](https://example.org/notes).\n\n"
    "- it opens the file once\n- it keeps the *offset* of each record\n- it closes it at the end\n\n"
    "```python\n"
    "def step_{number}(store: Store, value: int) -> Record:\n"
    '    """Write one record and give it back."""\n'
    "    with store.lock:\n"
    "        record = Record(value + {number}, written=time.time())\n"
    "        store.journal.append(record)\n"
    "    return record\n"
    "```\n"
)


def long_reply(mark: str) -> str:
    """About 4,000 tokens of Markdown with 26 fences, and a mark at its end."""
    return "\n".join([*(STEP.format(number=number) for number in range(1, 27)), f"That is all. {mark}"])


def tokens(text: str) -> tuple[str, ...]:
    """Pieces of about a token: five letters."""
    return tuple(text[at : at + 5] for at in range(0, len(text), 5))


class Watched:
    """tui-agent on a terminal, with a pulse on its loop."""

    def __init__(self, workspace: Path, env: dict[str, str], beats: Path, *options: str) -> None:
        self._beats = beats
        command = [sys.executable, str(HERE / "beating.py"), str(beats), *options, "."]
        self.terminal = Terminal(command, workspace, env)

    def __enter__(self) -> Watched:
        self.terminal.wait_for(OUR_MARK)
        self.terminal.press(KEY)
        self.terminal.wait_for(ECHO)
        self.terminal.press("\x7f")
        self.terminal.settle(quiet=2)
        return self

    def __exit__(self, *_: object) -> None:
        self.terminal.end()

    @property
    def cpu(self) -> float:
        """Seconds of processor that the interface has used."""
        fields = Path(f"/proc/{self.terminal.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICK

    @property
    def resident(self) -> float:
        """Megabytes of the interface."""
        lines = Path(f"/proc/{self.terminal.process.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:")) / 1024

    def stalls(self, since: float) -> list[float]:
        """Milliseconds of each gap between two beats of the loop that was too long."""
        return [late for _, late in self.gaps(since)]

    def gaps(self, since: float) -> list[tuple[float, float]]:
        """The same, each with the moment at which it ended, by `time.monotonic()`."""
        time.sleep(1)  # the last beats are written within half a second
        gaps = json.loads(self._beats.read_text()) if self._beats.exists() else []
        return [(end, late * 1000) for end, late, _ in gaps if end > since]

    def ask(self, words: str) -> None:
        self.terminal.press(words)
        self.terminal.read(0.3)
        self.terminal.forget()
        self.terminal.press("\r")


@dataclass(frozen=True)
class Streamed:
    painted: float
    cpu: float
    stalls: Sequence[float]


def stream(
    watched: Watched, provider: Provider, answer: Answer, mark: str, timeout: float = 60.0
) -> Streamed:
    """Ask for this answer; seconds from its last byte to the mark on the screen."""
    before, cpu, begun = len(provider.requests), watched.cpu, time.monotonic()
    provider.otherwise = answer
    watched.ask("go on")
    request = provider.wait_for(before + 1)[-1]
    painted = watched.terminal.wait_for(mark, timeout)
    sent = ended(request)
    watched.terminal.settle(quiet=0.5)
    return Streamed(painted - sent, watched.cpu - cpu, watched.stalls(begun))


def ended(request: Request) -> float:
    """The moment at which the last byte of the answer was sent."""
    return request.ended


def full_speed(watched: Watched, provider: Provider) -> list[Figure]:
    runs = []
    for number in range(REPLIES):
        mark = f"END{number}END"
        answer = Answer(chunks=tokens(long_reply(mark)))
        runs.append(stream(watched, provider, answer, mark))
    counted = runs[1:]
    longest = [max(run.stalls, default=0.0) for run in counted]
    return [
        Figure(
            "a reply of 4,000 tokens at full speed: last byte to painted",
            statistics.median(run.painted for run in counted),
            0.2,
            " s",
            ", ".join(f"{run.painted:.2f}" for run in runs),
        ),
        Figure(
            "  processor time of the interface",
            statistics.median(run.cpu for run in counted),
            0.8,
            " s",
            ", ".join(f"{run.cpu:.2f}" for run in runs),
        ),
        Figure(
            "  longest stall of the loop",
            statistics.median(longest),
            16,
            " ms",
            ", ".join(f"{stall:.0f}" for stall in longest),
        ),
        Figure(f"  memory of the interface after {REPLIES}", watched.resident, None, " MB"),
    ]


#: How often one that is named is asked for.
AGAIN = 5
#: Replies that are hard to draw, before their last words.
BAD = {
    "one letter a chunk": "".join(f"All is well with number {n}, and on it goes. " for n in range(150)),
    "one line of 1 MB": "".join(f"word{n} " for n in range(100_000)),
    "10,000 list items": "".join(f"- item *{number}*\n" for number in range(10_000)),
    "a table of 2,000 rows": "| a | b |\n|---|---|\n"
    + "".join(f"| {n} | {'word ' * (n % 9)}|\n" for n in range(2_000)),
    "code that never ends": "```python\n" + "".join(f"x = {n}  # one\n" for n in range(3_000)),
    "50 pieces of code": "".join(f"```python\nx = {n}\n```\n\nnext\n\n" for n in range(50)),
}


def bad_input(watched: Watched, provider: Provider, kind: str, run: int = 0) -> Figure:
    mark = f"END{list(BAD).index(kind)}BAD{run}"
    text, size = f"{BAD[kind]}\n\n{mark}", 1 if kind.startswith("one letter") else 2_000
    chunks = tuple(text[at : at + size] for at in range(0, len(text), size))
    seen = stream(watched, provider, Answer(chunks=chunks), mark)
    note = f"{seen.painted:.2f} s after the last byte, {seen.cpu:.2f} s of processor"
    return Figure(f"{kind}: longest stall of the loop", max(seen.stalls, default=0.0), 50, " ms", note)


def keys_alone(watched: Watched) -> list[Figure]:
    echoes = sorted(echo_for(watched.terminal, IDLE_SECONDS, every=0.113))
    watched.terminal.press("\x1b[H\x0b")
    watched.terminal.settle(quiet=1)
    note = f"of {len(echoes)}, slowest {echoes[-1] * 1000:.0f} ms"
    return [
        Figure("echo of a key while nothing else happens, median", middle(echoes, 0.5), 5, " ms", note),
        Figure("  95 of 100", middle(echoes, 0.95), 6, " ms"),
    ]


def keys_meanwhile(watched: Watched, provider: Provider) -> list[Figure]:
    text = long_reply("ENDKEYS")
    before = len(provider.requests)
    provider.otherwise = Answer(chunks=tokens(text)[: int(RATE * (SECONDS + 3))], pause=1 / RATE)
    watched.ask("slowly")
    provider.wait_for(before + 1)
    watched.terminal.wait_for("Step 1")
    cpu, begun = watched.cpu, time.monotonic()
    echoes = sorted(echo_for(watched.terminal, SECONDS, every=0.113))
    share = (watched.cpu - cpu) / (time.monotonic() - begun)
    watched.terminal.press("\x1b[H\x0b")
    watched.terminal.settle(quiet=2)
    stalls = watched.stalls(begun)
    note = f"of {len(echoes)}, slowest {echoes[-1] * 1000:.0f} ms"
    return [
        Figure(f"echo of a key while {RATE} tokens/s stream, median", middle(echoes, 0.5), 5, " ms", note),
        Figure("  95 of 100", middle(echoes, 0.95), 12, " ms"),
        Figure("  share of a core, interface", share * 100, 18, " %"),
        Figure("  longest stall of the loop", max(stalls, default=0.0), 16, " ms", f"{len(stalls)} over 15"),
    ]


#: The wheel over the transcript, a step up and one down, as terminals tell it.
WHEEL = ("\x1b[<64;100;20M", "\x1b[<65;100;20M")
PAGES = ("\x1b[5~", "\x1b[5~", "\x1b[6~", "\x1b[6~")


def scrolled(watched: Watched, provider: Provider) -> list[Figure]:
    """Each key after a letter; both are drawn while a reply grows below."""
    old = "".join(f"- item old{number:04}\n" for number in range(800))
    stream(watched, provider, Answer(chunks=(f"{old}\n\nENDOLD",)), "ENDOLD")
    terminal, before = watched.terminal, len(provider.requests)
    text = long_reply("ENDSCROLL")
    provider.otherwise = Answer(chunks=tokens(text)[: int(RATE * (SECONDS + 5))], pause=1 / RATE)
    watched.ask("slowly")
    provider.wait_for(before + 1)
    terminal.wait_for("Step 1")
    for _ in range(4):
        terminal.press(PAGES[0])
        terminal.watch(0.3)
    begun = time.monotonic()
    letters, echoes = [], []
    for keys in itertools.cycle((*PAGES, *WHEEL)):
        if time.monotonic() > begun + SECONDS:
            break
        letters += echo_for(terminal, 0.1, every=0.113)
        terminal.forget()
        pressed = time.monotonic()
        terminal.press(keys)
        echoes.append(terminal.wait_for(r"old\d{4}") - pressed)
        terminal.watch(0.1)
    stalls = watched.stalls(begun)
    terminal.press("\x1b[H\x0b")
    provider.requests[-1].done.wait(30)
    terminal.settle(quiet=2)
    letters.sort()
    echoes.sort()
    note = f"of {len(echoes)}, slowest {echoes[-1] * 1000:.0f} ms"
    return [
        Figure(
            f"echo of scrolling while {RATE} tokens/s stream, median", middle(echoes, 0.5), 5, " ms", note
        ),
        Figure("  95 of 100", middle(echoes, 0.95), 12, " ms"),
        Figure("  echo of letters between, median", middle(letters, 0.5), 5, " ms", f"of {len(letters)}"),
        Figure("  95 of 100", middle(letters, 0.95), 12, " ms"),
        Figure("  longest stall of the loop", max(stalls, default=0.0), 16, " ms", f"{len(stalls)} over 15"),
    ]


#: Terminals on which a reply streams, and what one is made while it does.
SIZES = ((300, 100), (40, 10))
RESIZED = ((120, 40), (300, 100), (40, 10), (160, 48))


def sizes(watched: Watched, provider: Provider) -> Iterator[Figure]:
    for width, height in SIZES:
        watched.terminal.resize(width, height)
        watched.terminal.settle(quiet=1)
        mark = f"END{width}END"
        run = stream(watched, provider, Answer(chunks=tokens(long_reply(mark))), mark)
        note = f"{run.painted:.2f} s after the last byte, {run.cpu:.2f} s of processor"
        name = f"{width}x{height}, 4,000 tokens at full speed: longest stall of the loop"
        yield Figure(name, max(run.stalls, default=0.0), 50, " ms", note)
    watched.terminal.resize(*RESIZED[-1])
    watched.terminal.settle(quiet=1)
    before, begun = len(provider.requests), time.monotonic()
    provider.otherwise = Answer(chunks=tokens(long_reply("ENDSIZE")), pause=0.002)
    watched.ask("go on")
    request = provider.wait_for(before + 1)[-1]
    resized = []
    for size in itertools.cycle(RESIZED):
        if request.done.is_set() and size == RESIZED[0]:
            break
        resized.append(time.monotonic())
        watched.terminal.resize(*size)
        watched.terminal.watch(0.3)
    watched.terminal.settle(quiet=1)
    longest = max(watched.stalls(begun), default=0.0)
    yield Figure(f"resized {len(resized)} times while it streams: longest stall", longest, 50, " ms")


def middle(ordered: Sequence[float], share: float) -> float:
    return ordered[min(int(len(ordered) * share), len(ordered) - 1)] * 1000


if __name__ == "__main__":
    main()
