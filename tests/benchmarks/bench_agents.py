"""Agents in views: start, files that follow the folder, changes in the review, the terminal, the proxy, the end."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from figures import Figure, show
from support.repositories import repository
from support.sessions import open_session

from tui_agent.sandbox.proxy import HERE, HostProxy, Target
from tui_agent.session.outside_agents import AgentRun
from tui_agent.session.session import Session
from tui_agent.ui.agents import AgentTerminal

TIMES, RENAMED, FOLDERS, KEYS = 5, 200, 1000, 50
#: Seconds for one piece of an agent's work: 100,000 files take minutes on a loaded machine.
WITHIN = 300.0
INSTALLED = Path(__file__).parents[2] / "build" / "agents"
#: Programs of the agents that `make agents` installs, below `INSTALLED`.
REAL = (
    "node_modules/.bin/claude",
    "node_modules/.bin/codex",
    "node_modules/.bin/opencode",
    "node_modules/.bin/gemini",
    "mistral-vibe/bin/vibe",
    "aider-chat/bin/aider",
)
#: One runs commands from a pipe in its home, one sends back each key.
PROGRAMS = {
    "steered": '#!/bin/sh\nwhile :; do read -r line < "$HOME/pipe" && eval "$line"; done\n',
    "echoing": "#!/bin/sh\nstty raw -echo\necho ready\nexec cat\n",
}
#: A server, and clients connected through a proxy: milliseconds to connect, seconds for 100 MB.
CLIENT = """
import json, socket, statistics, sys, threading, time
server = socket.create_server(("127.0.0.1", 0))
port = server.getsockname()[1]
print(port, flush=True)
def serve():
    while True:
        one = server.accept()[0]
        with one:
            if one.recv(1) == b"b":
                for _ in range(100):
                    one.sendall(bytes(1_000_000))
threading.Thread(target=serve, daemon=True).start()
proxy = int(sys.stdin.readline())
def connect():
    one = socket.create_connection(("127.0.0.1", proxy))
    one.sendall(f"CONNECT host.local:{port} HTTP/1.1\\r\\n\\r\\n".encode())
    assert b" 200 " in one.recv(4096)
    return one
taken = []
for _ in range(50):
    begun = time.perf_counter()
    one = connect()
    taken.append(time.perf_counter() - begun)
    one.close()
one = connect()
begun = time.perf_counter()
one.sendall(b"b")
left = 100_000_000
while left:
    left -= len(one.recv(1 << 18))
print(json.dumps([statistics.median(taken) * 1000, time.perf_counter() - begun]), flush=True)
"""


async def until(check: Callable[[], bool]) -> float:
    """Seconds until `check()` is true. Raises if it stays false."""
    begun = time.perf_counter()
    async with asyncio.timeout(WITHIN):
        while not check():  # noqa: ASYNC110 what is waited for is in another process
            await asyncio.sleep(0.02)
    return time.perf_counter() - begun


class Steered:
    """A running agent that executes each line of its pipe."""

    def __init__(self, session: Session, run: AgentRun) -> None:
        self.session, self.run = session, run
        self.home = Path(run._home.path)
        if not (self.home / "pipe").exists():
            os.mkfifo(self.home / "pipe")
        with open(os.devnull, "wb") as nowhere:
            run.start_command([run.profile.program], nowhere.fileno())

    async def does(self, line: str) -> None:
        def written() -> bool:
            try:
                pipe = os.open(self.home / "pipe", os.O_WRONLY | os.O_NONBLOCK)
            except OSError:
                return False
            with os.fdopen(pipe, "wb") as file:
                file.write(line.encode() + b"\n")
            return True

        await until(written)

    async def done(self, line: str) -> None:
        (self.home / "done").unlink(missing_ok=True)
        await self.does(f'{line}; : > "$HOME/done"')
        await until((self.home / "done").exists)

    def reviewed(self, path: str) -> bool:
        return any(one.path == path and one.waits for one in self.session.state.review.changes)


def descendants() -> set[int]:
    """Processes below this one."""
    parents: dict[int, int] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                parents[int(name)] = int(Path(f"/proc/{name}/stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
    found, grown = {os.getpid()}, 0
    while grown != len(found):
        grown = len(found)
        found |= {one for one, parent in parents.items() if parent in found}
    return found - {os.getpid()}


def memory(processes: set[int]) -> float:
    """Megabytes, shared pages by their share."""
    total = 0
    for one in processes:
        try:
            lines = Path(f"/proc/{one}/smaps_rollup").read_text().splitlines()
        except OSError:
            continue
        total += sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    return total / 1000


async def renamed(agent: Steered, root: Path) -> Figure:
    await agent.done('cat f*.txt > "$HOME/all"')
    for number in range(RENAMED):
        (root / "saved").write_text("new\n")
        (root / "saved").rename(root / f"f{number}.txt")
    await asyncio.sleep(0.5)
    await agent.done('cat f*.txt > "$HOME/all"')
    stale = (agent.home / "all").read_text().count("old")
    return Figure(f"stale files 0.5 s after {RENAMED} renames outside", stale, 0)


async def reviewed(agent: Steered) -> list[Figure]:
    taken = []
    for number in range(TIMES):
        await agent.does(f"echo more >> f{number}.txt")
        path = f"f{number}.txt"
        taken.append(await until(lambda path=path: agent.reviewed(path)))
    longest, last = 0.0, time.perf_counter()

    async def look() -> None:
        nonlocal longest, last
        while True:
            await asyncio.sleep(0.001)
            now = time.perf_counter()
            longest, last = max(longest, now - last), now

    looking = asyncio.create_task(look())
    many = f"seq {FOLDERS} | while read n; do mkdir -p build/$n; (cd build/$n; seq 100 | xargs touch); done"
    await agent.done(f"{many}; echo late > late.txt")
    late = await until(lambda: agent.reviewed("late.txt"))
    looking.cancel()
    return [
        Figure("a write until it is in the review, slowest of five", max(taken) * 1000, 1000, "ms"),
        Figure(f"the same, after {FOLDERS * 100:,} ignored files", late * 1000, 2000, "ms"),
        Figure("longest stall of the loop meanwhile", longest * 1000, 50, "ms"),
    ]


async def echoed(session: Session, programs: Path) -> Figure:
    """A key until it is sent back, in a view through our terminal, over a bare terminal; in turns."""
    loop = asyncio.get_running_loop()
    run = await session.outside_agents.open(["echoing"])
    terminal = AgentTerminal(80, 24)
    run.start([], terminal.program)
    os.close(terminal.program)
    ended = asyncio.ensure_future(run.ended())
    ours, shown = os.openpty()
    showing = asyncio.create_task(terminal.show(shown, shown, ended))
    bare, slave = os.openpty()
    process = await asyncio.create_subprocess_exec(programs / "echoing", stdin=slave, stdout=slave)
    heard = {ours: bytearray(), bare: bytearray()}
    for one in heard:
        loop.add_reader(one, lambda one=one: heard[one].extend(os.read(one, 4096)))
    taken: dict[int, list[float]] = {ours: [], bare: []}
    for one in heard:
        await until(lambda one=one: b"ready" in heard[one])
    for _ in range(KEYS):
        for one, seen in heard.items():
            seen.clear()
            arrived = loop.create_future()
            loop.remove_reader(one)
            loop.add_reader(one, lambda one=one, arrived=arrived: arrived.done() or arrived.set_result(None))
            begun = time.perf_counter()
            os.write(one, b"k")
            await arrived
            taken[one].append(time.perf_counter() - begun)
            os.read(one, 4096)
    process.kill()
    await process.wait()
    run.stop()
    await showing
    for one in (ours, bare):
        loop.remove_reader(one)
    terminal.close()
    await session.outside_agents.end(run)
    more = (statistics.median(taken[ours]) - statistics.median(taken[bare])) * 1000
    return Figure("a key's echo, over a bare terminal", more, 5, "ms")


async def started(session: Session) -> list[Figure]:
    """The start of each installed agent, or of a shell without one."""
    figures = []
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for program in (*REAL, ""):
        path = INSTALLED / program if program else Path("/bin/true")
        if not path.exists():
            print(f"left out: {path.name} is not installed; `make agents` installs it", flush=True)
            continue
        bare, inside = [], []
        for _ in range(TIMES):
            begun = time.perf_counter()
            process = await asyncio.create_subprocess_exec(
                path, "--version", stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL
            )
            await process.wait()
            bare.append(time.perf_counter() - begun)
            begun = time.perf_counter()
            run = await session.outside_agents.open([str(path)])
            run.start_command([str(path), "--version"], nowhere)
            status = await run.ended()
            inside.append(time.perf_counter() - begun)
            await session.outside_agents.end(run)
            if status:
                raise RuntimeError(f"{path.name} ended with {status} in a view")
        # Other work on the machine only adds: opencode and aider take 3 to 4 s on a loaded one.
        more = (min(inside) - min(bare)) * 1000
        figures.append(Figure(f"start of {path.name} in a view, over bare, fastest", more, 300, "ms"))
    os.close(nowhere)
    return figures


async def proxied() -> list[Figure]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", CLIENT, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert process.stdin is not None and process.stdout is not None
        proxy = HostProxy([Target(HERE, int(await process.stdout.readline()))])
        await proxy.serve(listener.fileno())
        process.stdin.write(f"{listener.getsockname()[1]}\n".encode())
        connect, seconds = json.loads(await process.stdout.readline())
        await process.wait()
        await proxy.close()
    return [
        Figure("the proxy connects, median of 50", connect, 5, "ms"),
        Figure("100 MB through the proxy", seconds, 2, "s"),
    ]


async def ended(session: Session) -> list[Figure]:
    before, resident = descendants(), memory({os.getpid()})
    agents = [Steered(session, await session.outside_agents.open(["steered"])) for _ in range(4)]
    for agent in agents:
        await agent.done("setsid sleep 1000 & true")
    each = (memory(descendants() - before) + memory({os.getpid()}) - resident) / len(agents)
    taken = []
    for agent in agents:
        begun = time.perf_counter()
        await session.outside_agents.end(agent.run)
        taken.append(time.perf_counter() - begun)
    left = len(descendants() - before)
    return [
        Figure("memory of each of four views, without the agent", each, 150, "MB"),
        Figure("an agent's end, slowest of four", max(taken) * 1000, 1000, "ms"),
        Figure("processes of ended views that are left", left, 0),
    ]


async def measured(folder: Path) -> list[Figure]:
    files = {f"f{number}.txt": "old\n" for number in range(RENAMED)}
    root = repository(folder / "work", {**files, ".gitignore": "build/\n"})
    programs, home = folder / "programs", folder / "home"
    programs.mkdir()
    home.mkdir()
    for name, script in PROGRAMS.items():
        (programs / name).write_text(script)
        (programs / name).chmod(0o755)
    os.environ["PATH"], os.environ["HOME"] = f"{programs}:{os.environ['PATH']}", str(home)
    async with open_session(root, []) as session:
        await session.workspace.ready()
        await until(lambda: session.state.workspace.watching == "watching")
        figures = await started(session)
        figures.append(await echoed(session, programs))
        figures += await ended(session)
        agent = Steered(session, await session.outside_agents.open(["steered"]))
        figures.append(await renamed(agent, root))
        figures += await reviewed(agent)
        await session.outside_agents.end(agent.run)
    return [*figures, *await proxied()]


def main() -> None:
    if shutil.which("stty") is None:
        print("left out: the echo needs stty")
        return
    with TemporaryDirectory(prefix="tui-agent-bench-", ignore_cleanup_errors=True) as folder:
        show(asyncio.run(measured(Path(os.path.realpath(folder)))))


if __name__ == "__main__":
    main()
