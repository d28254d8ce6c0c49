"""What a person feels, measured from outside: the first answer, the footprint of all processes, a command without a
screen. With the settings that a user has, cold and warm, against a provider on loopback."""

from __future__ import annotations

import os
import statistics
import subprocess
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from figures import Figure, show
from programs import ECHO, KEY, OUR_MARK, TUI_AGENT, big_workspace, home, small_workspace
from support.provider import Answer, Provider, Request
from terminal import Terminal

STARTS = 5
TURNS = 7
#: From the first frame until everything has started that starts by itself.
AWHILE_SECONDS = 6.0
PASTED = "a line of a log that somebody pastes, with 0123456789 in it, number {}\n"


def main() -> None:
    print(f"load of the machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    with Provider() as provider:
        provider.otherwise = reply
        with small_workspace() as small:
            show(first_answer(provider, small, "small"))
            show(without_screen(provider, small))
            show(paste(provider, small))
        with big_workspace(100_000, 0) as big:
            show(first_answer(provider, big, "100,000 files", starts=2))
            show(later_turns(provider, big))


def reply(request: Request) -> Answer:
    return Answer('{"actions": []}') if is_plan(request) else Answer("Seen.")


def is_plan(request: Request) -> bool:
    return "Outline of the workspace" in request.last_text


@contextmanager
def as_a_user(provider: Provider) -> Generator[dict[str, str]]:
    """A home with nothing set but the model and the key."""
    with home(provider.url) as env:
        del env["TUI_AGENT_PLANNER_MODEL"]
        yield env


def first_answer(provider: Provider, workspace: Path, what: str, starts: int = STARTS) -> list[Figure]:
    """The first turn of sessions that were left alone for a while first."""
    first, main_, before, after, busy = [], [], [], [], []
    for _ in range(starts):
        with as_a_user(provider) as env, Terminal([*TUI_AGENT, "."], workspace, env) as terminal:
            terminal.wait_for(OUR_MARK)
            terminal.press(KEY)
            terminal.wait_for(ECHO)
            terminal.press("\x7f")
            worked, begin = processor(terminal.process.pid), time.monotonic()
            awhile(terminal, 5.0)
            busy.append((processor(terminal.process.pid) - worked) / (time.monotonic() - begin) * 100)
            awhile(terminal, AWHILE_SECONDS)
            before.append(memory(terminal.process.pid))
            moments = enter(terminal, provider, "what does this project do")
            first.append(moments[0])
            main_.append(moments[-1])
            awhile(terminal, 2.0)
            after.append(memory(terminal.process.pid))
    big = "100,000" in what
    return [
        middle(f"Enter to the first request of a session, {what}", first, 60, " ms"),
        middle("  to the main request", main_, 90, " ms"),
        middle("memory of all processes before the first answer", before, 220 if big else 150, " MB"),
        middle("  after it", after, 220 if big else 180, " MB"),
        middle("processor in the first 5 s after ready", busy, 10, " %"),
    ]


def later_turns(provider: Provider, workspace: Path) -> list[Figure]:
    times = []
    with as_a_user(provider) as env:
        env["TUI_AGENT_PLANNER_MODEL"] = "none"
        with Terminal([*TUI_AGENT, "."], workspace, env) as terminal:
            terminal.wait_for(OUR_MARK)
            terminal.press(KEY)
            terminal.wait_for(ECHO)
            terminal.press("\x7f")
            awhile(terminal, AWHILE_SECONDS)
            for number in range(TURNS + 1):
                times.append(enter(terminal, provider, f"and again, for the {number}th time")[-1])
                awhile(terminal, 1.0)
    return [middle("later turns: Enter to the main request, 100,000 files", times[1:], 60, " ms")]


def without_screen(provider: Provider, workspace: Path) -> list[Figure]:
    times = []
    with as_a_user(provider) as env:
        for _ in range(STARTS):
            begin = time.monotonic()
            command = [*TUI_AGENT, "run", "--workspace", str(workspace), "what does this project do"]
            subprocess.run(command, cwd=workspace, env=env, check=True, capture_output=True)
            times.append(time.monotonic() - begin)
    return [middle("run without a screen, an instant answer", times, 0.6, " s")]


def paste(provider: Provider, workspace: Path) -> list[Figure]:
    """Ten megabytes pasted and sent, with a window that is large enough."""
    text = "".join(PASTED.format(number) for number in range(160_000))[: 10 * 1024 * 1024]
    with as_a_user(provider) as env:
        env |= {"TUI_AGENT_CONTEXT__WINDOW": "20000000", "TUI_AGENT_PLANNER_MODEL": "none"}
        with Terminal([*TUI_AGENT, "."], workspace, env) as terminal:
            terminal.wait_for(OUR_MARK)
            terminal.press(KEY)
            terminal.wait_for(ECHO)
            awhile(terminal, AWHILE_SECONDS)
            before = len(provider.requests)
            begin = time.monotonic()
            terminal.paste(text)
            terminal.press("\r")
            request = provider.wait_for(before + 1)[before]
            seconds = request.at - begin
            awhile(terminal, 3.0)
            sent = sum(len(str(one.body)) for one in provider.requests[before:]) / 1e6
            return [
                Figure("10 MB pasted and sent: to the request", seconds, 2, " s"),
                Figure("  interface afterwards", proportional(terminal.process.pid), 150, " MB"),
                Figure("  sent for it in all", sent, 12, " MB"),
            ]


def enter(terminal: Terminal, provider: Provider, words: str) -> list[float]:
    """Milliseconds from the Enter key to each request of the turn; returns when the turn is over and drawn."""
    before = len(provider.requests)
    terminal.press(words)
    terminal.read(0.3)
    terminal.settle(quiet=0.3)
    terminal.forget()
    begin = time.monotonic()
    terminal.press("\r")
    number = before + 1
    while is_plan(provider.wait_for(number)[number - 1]):
        number += 1
    terminal.settle(quiet=0.5)
    return [(request.at - begin) * 1000 for request in provider.requests[before:]]


def awhile(terminal: Terminal, seconds: float) -> None:
    """Read what is drawn for so long."""
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        terminal.read(left)


def processes(pid: int) -> list[int]:
    """A process and all that it started, directly or not."""
    parents: dict[int, list[int]] = {}
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = status.read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it has ended meanwhile
        parents.setdefault(int(fields[1]), []).append(int(status.parent.name))
    found = [pid]
    for one in found:
        found += parents.get(one, [])
    return found


def memory(pid: int) -> float:
    return sum(map(proportional, processes(pid)))


def proportional(pid: int) -> float:
    """Megabytes of a process, what it shares counted in parts; see proc(5), smaps_rollup."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("Pss:")) * 1024 / 1e6


def processor(pid: int) -> float:
    """Seconds of processor time of all processes, those that have ended included."""
    total = 0
    for one in processes(pid):
        fields = Path(f"/proc/{one}/stat").read_text().rpartition(")")[2].split()
        total += sum(map(int, fields[11:15]))
    return total / os.sysconf("SC_CLK_TCK")


def middle(name: str, values: list[float], limit: float, unit: str) -> Figure:
    note = f"{min(values):.3g} to {max(values):.3g} of {len(values)}"
    return Figure(name, statistics.median(values), limit, unit, note)


if __name__ == "__main__":
    main()
