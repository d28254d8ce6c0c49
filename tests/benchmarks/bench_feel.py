"""What a person feels, measured from outside: the first answer, the footprint of all processes, a command without a
screen. With the settings that a user has, cold and warm, against a provider on loopback. Peers that are installed are
measured beside ours where they are asked for: `make bench ARGS=feel PEERS="codex claude"`, or `PEERS=all`."""

from __future__ import annotations

import os
import statistics
import subprocess
import time
from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from figures import Figure, show
from peers import Peer, asked_for
from programs import ECHO, KEY, OUR_MARK, TUI_AGENT, big_workspace, home, small_workspace
from support.provider import Answer, Provider, Request
from terminal import Terminal

STARTS = 5
TURNS = 7
#: From the first frame until everything has started that starts by itself.
AWHILE_SECONDS = 6.0
#: Of the small workspace: its files are listed, and git has answered.
FILLED = r"README\.md[\s\S]*· main"
PASTED = "a line of a log that somebody pastes, with 0123456789 in it, number {}\n"


def main() -> None:
    print(f"load of the machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    peers, missing = asked_for(os.environ.get("PEERS", ""))
    if missing:
        print(f"not installed, and so not measured: {', '.join(missing)}")
    with Provider() as provider:
        provider.otherwise = reply
        with small_workspace() as small:
            show(starts(provider, small))
            show(first_answer(provider, small, "small"))
            show(without_screen(provider, small))
            for peer in peers:
                show(beside(peer, provider, small))
            show(paste(provider, small))
        with big_workspace(100_000, 0) as big:
            show(first_answer(provider, big, "100,000 files", times=2))
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


def starts(provider: Provider, workspace: Path) -> list[Figure]:
    """From the start to a key in the input, and to the last pane: the files, with the marks of git below."""
    keys, panes = [], []
    for _ in range(STARTS + 1):
        with as_a_user(provider) as env, Terminal([*TUI_AGENT, "."], workspace, env) as terminal:
            terminal.wait_for(OUR_MARK)
            terminal.press(KEY)
            keys.append(terminal.wait_for(ECHO) - terminal.started)
        with as_a_user(provider) as env, Terminal([*TUI_AGENT, "."], workspace, env) as terminal:
            panes.append(terminal.wait_for(FILLED) - terminal.started)
    return [
        middle("real input takes keys", keys[1:], 0.33, " s"),
        middle("every pane filled", panes[1:], 0.45, " s"),
    ]


def first_answer(provider: Provider, workspace: Path, what: str, times: int = STARTS) -> list[Figure]:
    """The first turn of sessions that were left alone for a while first."""
    seen = []
    for _ in range(times):
        with as_a_user(provider) as env:
            seen.append(session(provider, [*TUI_AGENT, "."], OUR_MARK, ECHO, workspace, env))
    big = "100,000" in what
    return [
        middle(f"Enter to the first request of a session, {what}", [one.first for one in seen], 60, " ms"),
        middle("  to the main request", [one.main for one in seen], 90, " ms"),
        middle(
            "memory of all processes before the first answer",
            [one.before for one in seen],
            220 if big else 150,
            " MB",
        ),
        middle("  after it", [one.after for one in seen], 220 if big else 180, " MB"),
        middle("processor in the first 5 s after ready", [one.busy for one in seen], 10, " %"),
    ]


def beside(peer: Peer, provider: Provider, workspace: Path) -> list[Figure]:
    """The same of another program."""
    seen = []
    for _ in range(STARTS):
        with ExitStack() as stack:
            folder = Path(stack.enter_context(TemporaryDirectory(prefix="tui-agent-bench-peer-")))
            env = peer.prepare(provider.url, folder, workspace)
            seen.append(session(provider, peer.command(provider.url), peer.mark, KEY, workspace, env))
    return [
        middle(
            f"{peer.name}: Enter to the first request of a session", [one.first for one in seen], None, " ms"
        ),
        middle(
            "  memory of all processes before the first answer", [one.before for one in seen], None, " MB"
        ),
        middle("  after it", [one.after for one in seen], None, " MB"),
        middle("  processor in the first 5 s after ready", [one.busy for one in seen], None, " %"),
        middle("  takes keys", [one.ready for one in seen], None, " s"),
    ]


class Seen(NamedTuple):
    """Of one session: seconds to the first key, % of a core after it, MB, ms to the first and the main request, MB."""

    ready: float
    busy: float
    before: float
    first: float
    main: float
    after: float


def session(
    provider: Provider, command: Sequence[str], mark: str, echo: str, workspace: Path, env: dict[str, str]
) -> Seen:
    """`mark` is drawn with the first frame, and `echo` where the letter `KEY` is in the input."""
    with Terminal(command, workspace, env) as terminal:
        pid = terminal.process.pid
        terminal.wait_for(mark)
        terminal.press(KEY)
        ready = terminal.wait_for(echo) - terminal.started
        terminal.press("\x7f")
        worked, begin = processor(pid), time.monotonic()
        awhile(terminal, 5.0)
        busy = (processor(pid) - worked) / (time.monotonic() - begin) * 100
        awhile(terminal, AWHILE_SECONDS)
        before = memory(pid)
        moments = enter(terminal, provider, "what does this project do")
        awhile(terminal, 2.0)
        return Seen(ready, busy, before, moments[0], moments[-1], memory(pid))


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


def middle(name: str, values: list[float], limit: float | None, unit: str) -> Figure:
    note = f"{min(values):.3g} to {max(values):.3g} of {len(values)}"
    return Figure(name, statistics.median(values), limit, unit, note)


if __name__ == "__main__":
    main()
