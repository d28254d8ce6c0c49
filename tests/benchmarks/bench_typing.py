"""Typing in a file of any length, and opening a long one: from a key to the screen, and what it costs."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from bench_stalls import LETTERS
from bench_stream import Watched, middle
from figures import Figure, show
from programs import home
from terminal import Terminal

LENGTHS = (500, 5_000, 50_000)
KINDS = {"text": "txt", "Python": "py"}
#: Letters typed at the start, in the middle and at the end of a file, and lines begun and taken back there.
KEYS, LINES = 16, 4
#: Seconds from one key to the next: long enough for what waits for a pause in typing to come in between.
EVERY = 0.113
#: Seconds in which nothing happens, for what the pulse alone takes.
IDLE = 2.0
LONG, OPENINGS = 200_000, 3
PASTED = "a line that somebody pastes into a file, with 0123456789, number {}\n"
FILES, FIND, GO, SAVE = "\x1bOR", "/", "\x0c", "\x1bOQ"
ENTER, BACKSPACE, END, PAGE_DOWN = "\r", "\x7f", "\x1b[F", "\x1b[6~"


def main() -> None:
    wanted = sys.argv[1:] or ["typing", "opening", "paste"]
    with TemporaryDirectory() as folder, home() as env:
        workspace = Path(folder) / "work"
        workspace.mkdir()
        _fill(workspace)
        with Watched(workspace, env, Path(folder) / "beats.json") as watched:
            if "opening" in wanted:
                show(opening(watched))
            if "typing" in wanted:
                for kind in KINDS:
                    for length in LENGTHS:
                        show(typing(watched, kind, length))
            if "paste" in wanted:
                show(paste(watched, workspace))


def _fill(workspace: Path) -> None:
    for length in LENGTHS:
        for ending in KINDS.values():
            (workspace / f"lines{length}.{ending}").write_text(_text(length, ending))
    for number in range(OPENINGS):
        lines = (f"{line} of {LONG} lines in file {number}\n" for line in range(1, LONG + 1))
        (workspace / f"long{number}.txt").write_text("".join(lines))
    (workspace / "pasted.txt").write_text("here\n")


def _text(length: int, ending: str) -> str:
    if ending == "txt":
        return "".join(f"{number} is a line of plain text.\n" for number in range(1, length + 1))
    block = 'def call{}(url, retries=3):\n    """Ask {}."""\n    return get(url, {}, "text")\n\n\n'
    return "".join(block.format(number, number, number) for number in range(length // 5))


def typing(watched: Watched, kind: str, length: int) -> list[Figure]:
    """Keys at the start, in the middle and at the end of a file of so many lines."""
    terminal, begun = watched.terminal, time.monotonic()
    _open(terminal, f"lines{length}.{KINDS[kind]}", "is a line of" if kind == "text" else "call")
    terminal.settle(quiet=1)
    cpu = watched.cpu
    terminal.watch(IDLE)
    idle = (watched.cpu - cpu) / IDLE
    times: dict[str, list[float]] = {}
    lines: list[float] = []
    typed: list[tuple[float, float]] = []
    seconds = 0.0
    for place, line in (("start", 2), ("middle", length // 2), ("end", length - 3)):
        terminal.press(f"{GO}{line}{ENTER}")
        terminal.settle(quiet=0.5)
        terminal.press(END)
        terminal.settle(quiet=0.5)
        cpu, start = watched.cpu, time.monotonic()
        times[place] = [_key(terminal, letter, letter) for letter in LETTERS[:KEYS]]
        lines += [_key(terminal, key) for key in (ENTER, BACKSPACE) * LINES]
        typed.append((start, time.monotonic()))
        seconds += watched.cpu - cpu - idle * (typed[-1][1] - start)
    letters = sorted(one for some in times.values() for one in some)
    count = 3 * (KEYS + 2 * LINES)
    gaps = watched.gaps(begun)
    stalls: dict[bool, list[float]] = {True: [], False: []}
    for end, late in gaps:
        stalls[any(start < end <= last for start, last in typed)].append(late)
    by_place = ", ".join(f"{place} {middle(sorted(some), 0.5):.1f}" for place, some in times.items())
    note = f"without the {idle * 100:.1f} % of a core of the pulse"
    return [
        Figure(f"a letter in {length:,} lines of {kind}, median", middle(letters, 0.5), 6, " ms", by_place),
        Figure("  95 of 100", middle(letters, 0.95), None, " ms", f"slowest {letters[-1] * 1000:.0f}"),
        Figure("  Enter and Backspace, median", middle(sorted(lines), 0.5), 6, " ms"),
        Figure("  processor time of the interface for a key", seconds / count * 1000, 6, " ms", note),
        Figure("  longest stall while typing", max(stalls[True], default=0.0), 16, " ms"),
        Figure("  longest as it is opened, or a line is gone to", max(stalls[False], default=0.0), 50, " ms"),
    ]


def _key(terminal: Terminal, key: str, drawn: str = "") -> float:
    """Seconds until a key is drawn: the letter itself, or the first that is drawn after it."""
    terminal.forget()
    begin = time.monotonic()
    terminal.press(key)
    took = terminal.wait_for(drawn or ".") - begin
    while (left := begin + EVERY - time.monotonic()) > 0:
        terminal.read(left)
    return took


def _open(terminal: Terminal, name: str, mark: str) -> float:
    """Seconds from Enter in the list of files until the text is drawn."""
    terminal.press(f"{FILES}{FIND}{name}")
    terminal.settle(quiet=0.5)
    terminal.forget()
    begin = time.monotonic()
    terminal.press(ENTER)
    return terminal.wait_for(mark) - begin


def opening(watched: Watched) -> list[Figure]:
    """A long file opened, and its second page."""
    opened, down = [], []
    terminal = watched.terminal
    begun = time.monotonic()
    for number in range(OPENINGS):
        opened.append(_open(terminal, f"long{number}.txt", f"of {LONG} lines in file {number}"))
        terminal.settle(quiet=0.5)
        terminal.forget()
        begin = time.monotonic()
        terminal.press(PAGE_DOWN)
        down.append(terminal.wait_for(f"of {LONG} lines in file {number}") - begin)
        terminal.settle(quiet=1)
    stalls = watched.stalls(begun)
    opened, down = sorted(opened), sorted(down)
    return [
        _median(f"a file of {LONG:,} lines opened", opened, 300),
        _median("  first page down", down, 30),
        Figure("  longest stall of the loop", max(stalls, default=0.0), 50, " ms"),
    ]


def _median(name: str, ordered: Sequence[float], limit: float) -> Figure:
    note = ", ".join(f"{one * 1000:.0f}" for one in ordered)
    return Figure(name, middle(ordered, 0.5), limit, " ms", note)


def paste(watched: Watched, workspace: Path) -> list[Figure]:
    """Ten megabytes pasted into a file and saved."""
    terminal = watched.terminal
    text = "".join(PASTED.format(number) for number in range(160_000))[: 10 * 1024 * 1024]
    _open(terminal, "pasted.txt", "here")
    terminal.settle(quiet=1)
    begun = time.monotonic()
    terminal.paste(text)
    sent = time.monotonic()
    terminal.settle(quiet=1.5)
    stalls = watched.stalls(begun)
    terminal.press(SAVE)
    terminal.wait_for("Saved pasted.txt")
    lost = len(text) + len("here\n") - len((workspace / "pasted.txt").read_text())
    return [
        Figure(
            "10 MB pasted into a file: longest stall of the loop",
            max(stalls, default=0.0),
            50,
            " ms",
            f"{sum(stalls):.0f} ms in {len(stalls)}, {sent - begun:.1f} s to send",
        ),
        Figure("  characters lost", lost, 0),
    ]


if __name__ == "__main__":
    main()
