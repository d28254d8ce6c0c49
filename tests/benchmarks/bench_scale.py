"""10, 100 and 1,000 sub-tasks by simulated workers, beside a graph that is drawn: bytes, requests, time, memory.

One sub-task runs through a real worker; the others repeat its frames with another path. The model answers at once, so
the time is that of the parent alone: requests, events, logs, the graph and the merge into the review.
"""

from __future__ import annotations

import asyncio
import os
import pickle
import resource
import subprocess
import sys
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest import mock

import msgspec
from figures import Figure, show
from support.cluster import cluster
from support.panes import NotedSession, PaneApp
from support.sessions import ScriptedModel, reply
from support.subtasks import GoalModel
from support.trees import make_tree
from support.workers import in_place, install

from tui_agent import __version__
from tui_agent.errors import PlaceLost
from tui_agent.model.client import ModelRequest
from tui_agent.places.contents import contents_of
from tui_agent.places.link import PROTOCOL, EventHappened, Hello, Link, TextStored
from tui_agent.processes.serve import Send
from tui_agent.session.places import SessionPlaces
from tui_agent.store.graph import SubTask
from tui_agent.store.state import State
from tui_agent.subtasks.placed import Growth, PlacedSession
from tui_agent.ui.panes.subtasks import SubTasksPane

COUNTS, AT_ONCE, FILES, LIMIT = (10, 100, 1_000), 32, 200, 10.0
#: Sub-tasks on a cluster, its workers, and the seconds of each answer.
WAITING, MACHINES, WAITS = 16, 4, 2.0
NAME = "made-by-one"
ANSWER = reply("Made it.", fileChanges=[{"path": f"{NAME}.txt", "content": "line\n" * 40}])


class Recorded:
    """The frames of one real worker, by the call in which they came, and the request that it made."""

    def __init__(self) -> None:
        self.frames: dict[str, list[EventHappened | TextStored]] = {"begin": []}
        self.request: ModelRequest | None = None
        self._now = "begin"

    async def capture(self, root: Path) -> None:
        taken, turn, applied, stream = (
            PlacedSession._taken, PlacedSession.run_turn, PlacedSession.apply, ScriptedModel.stream,
        )  # fmt: skip

        async def take(placed: PlacedSession, frame: EventHappened | TextStored) -> None:
            self.frames[self._now].append(frame)
            await taken(placed, frame)

        async def run_turn(placed: PlacedSession, text: str, attachments: Sequence[str] = ()) -> None:
            self.enter("turn")
            await turn(placed, text, attachments)

        async def apply(placed: PlacedSession, picks: Sequence[object]) -> None:
            self.enter("apply")
            await applied(placed, picks)  # ty: ignore[invalid-argument-type]

        async def ask(model: ScriptedModel, request: ModelRequest):
            self.request = request
            async for chunk in stream(model, request):
                yield chunk

        model = GoalModel({f"Do {NAME}": [ANSWER]})
        with (
            mock.patch.object(PlacedSession, "_taken", take),
            mock.patch.object(PlacedSession, "run_turn", run_turn),
            mock.patch.object(PlacedSession, "apply", apply),
            mock.patch.object(ScriptedModel, "stream", ask),
        ):
            task = SubTask(NAME, f"Do {NAME}")
            async with in_place(root, model, [task], {"run": "sh -c {command}"}) as session:
                await session.subtasks.run(NAME)
                await session.subtasks.settled()
                assert session.state.subtasks.tasks[0].state == "completed", session.state.subtasks.tasks

    def enter(self, call: str) -> None:
        self._now = call
        self.frames[call] = []

    def frames_of(self, call: str, name: str) -> list[EventHappened | TextStored]:
        return [
            EventHappened(
                msgspec.json.decode(msgspec.json.encode(frame.event).replace(NAME.encode(), name.encode()))
            )
            if isinstance(frame, EventHappened)
            else frame
            for frame in self.frames[call]
        ]


class Stream:
    """A connection to the process of the simulated workers, as a `Channel`."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self.sent = self.received = 0

    async def send(self, data: bytes) -> None:
        self.sent += len(data)
        self._writer.write(data)
        await self._writer.drain()

    async def receive(self) -> bytes:
        data = await self._reader.read(1 << 18)
        self.received += len(data)
        return data

    async def close(self) -> None:
        self._writer.close()

    def reason(self) -> PlaceLost:
        return PlaceLost("ended", "run it again")


class SimulatedWorker:
    def __init__(self, channel: Stream, recorded: Recorded) -> None:
        self._recorded, self._growth = recorded, Growth()
        self.link = Link(channel, {"begin": self.begin, "turn": self.turn, "apply": self.apply})
        self.link.post(Hello(PROTOCOL, __version__))

    async def begin(self, params: dict, send: Send) -> None:
        self._name = params["task"]["id"]
        self._repeat("begin")

    async def turn(self, params: dict, send: Send) -> None:
        assert self._recorded.request is not None
        async for _ in self.link.stream("stream", self._growth.shortened(self._recorded.request)):
            pass
        self._repeat("turn")

    async def apply(self, params: dict, send: Send) -> None:
        self._repeat("apply")

    def _repeat(self, call: str) -> None:
        for frame in self._recorded.frames_of(call, self._name):
            self.link.post(frame)


async def serve(recorded: Recorded, socket: Path) -> None:
    """Runs the simulated workers of a recording, each for one connection."""
    workers = set()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        worker = SimulatedWorker(Stream(reader, writer), recorded)
        workers.add(worker)
        await worker.link.ended()
        workers.discard(worker)

    server = await asyncio.start_unix_server(connected, socket)
    print("ready", flush=True)
    async with server:
        await asyncio.to_thread(sys.stdin.read)


@contextmanager
def simulated_workers(recorded: Recorded, folder: Path) -> Generator[Path]:
    """The socket of a process with the workers, which are on other machines in use."""
    path = folder / "recorded"
    path.write_bytes(pickle.dumps(recorded))
    words = (sys.executable, __file__, "workers", str(path))
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stdin is not None
        assert process.stdout.readline() == b"ready\n"
        yield path.with_suffix(".socket")
        process.stdin.close()


class InstantModel(ScriptedModel):
    """The same answer to everything; `most` is the most requests that were open at one time."""

    def __init__(self) -> None:
        super().__init__([])
        self.count_of_requests = self.open = self.most = 0

    async def stream(self, request: ModelRequest):
        self.count_of_requests += 1
        self.open += 1
        self.most = max(self.most, self.open)
        try:
            self.replies = [ANSWER]
            async for chunk in super().stream(request):
                yield chunk
            self.requests.clear()
        finally:
            self.open -= 1


async def measured(root: Path, workers: Path, count: int, *, draws: bool) -> list[Figure]:
    """One size, in a process of its own."""
    model, channels, drawn = InstantModel(), [], 0
    tasks = [SubTask(f"part-{number}", f"Do part {number}") for number in range(count)]

    async def simulated(places: SessionPlaces, name: str, replaced: Mapping, more: Sequence[str]):
        channels.append(Stream(*await asyncio.open_unix_connection(workers)))
        return channels[-1], contents, True

    contents = contents_of(str(root), [f"d{n // 20}/f{n}.txt" for n in range(FILES)], ())
    settings = (f"subtasks.max_parallel={min(count, AT_ONCE)}", "limits.requests=0")
    app = PaneApp(SubTasksPane, NotedSession(State()))
    with mock.patch.object(SessionPlaces, "open_worker", simulated):
        async with in_place(root, GoalModel({}), tasks, {"run": "sh -c {command}"}, *settings) as session:
            session.models.model = model
            before = memory()
            async with app.run_test(size=(160, 46)):
                done = asyncio.Event()

                async def draw() -> None:
                    nonlocal drawn
                    seen = None
                    while not done.is_set():
                        if draws and session.state is not seen:
                            seen = session.state
                            app.show(seen)
                            drawn += 1
                        await asyncio.sleep(0.1)

                drawing = asyncio.create_task(draw())
                wall, work = time.perf_counter(), time.process_time()
                for task in tasks:
                    await session.subtasks.run(task.id)
                await session.subtasks.settled()
                wall, work = time.perf_counter() - wall, time.process_time() - work
                done.set()
                await drawing
            states = [task.state for task in session.state.subtasks.tasks]
            assert states == ["completed"] * count, session.state.subtasks.tasks[0]
            assert len(session.state.review.changes) == count
            sent, got = sum(one.sent for one in channels), sum(one.received for one in channels)
    return [
        Figure(f"{count:,}: to join all", wall, LIMIT if count == COUNTS[-1] else None, " s", f"{drawn} frames"),
        Figure(f"{count:,}: processor time of each", work / count * 1000, None, " ms"),
        Figure(f"{count:,}: sent to each worker", sent / count / 1000, None, " kB"),
        Figure(f"{count:,}: received from each worker", got / count / 1000, None, " kB"),
        Figure(f"{count:,}: requests a second", model.count_of_requests / wall, None, "", f"at most {model.most} open"),
        Figure(f"{count:,}: memory of the parent for each", (memory() - before) / count, None, " kB"),
    ]  # fmt: skip


class SlowModel(GoalModel):
    async def stream(self, request: ModelRequest):
        await asyncio.sleep(WAITS)
        async for chunk in super().stream(request):
            yield chunk


async def on_cluster(folder: Path, root: Path) -> list[Figure]:
    """Sub-tasks that wait for the model, on real workers of Dask."""
    names = [f"part-{number}" for number in range(WAITING)]
    answers = {
        f"Do {one}.": [reply("Made it.", fileChanges=[{"path": one, "content": "x"}])] for one in names
    }
    tasks = [SubTask(one, f"Do {one}.") for one in names]
    with cluster(folder, MACHINES) as machines:
        place = {"kind": "dask", "run": machines.address}
        async with in_place(
            root, SlowModel(answers), tasks, place, f"subtasks.max_parallel={MACHINES}"
        ) as session:
            wall = time.perf_counter()
            for one in names:
                await session.subtasks.run(one)
            await session.subtasks.settled()
            wall = time.perf_counter() - wall
            assert {task.state for task in session.state.subtasks.tasks} == {"completed"}
    ideal = WAITING / MACHINES * WAITS
    name = f"{WAITING} that wait {WAITS:g} s on {MACHINES} workers of Dask, of the ideal"
    return [Figure(name, wall / ideal, 1.25, " x", f"{wall:.1f} s")]


def memory() -> int:
    """The highest so far, in kB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


async def one(count: int, *, draws: bool) -> None:
    with TemporaryDirectory(prefix="tui-agent-bench-", ignore_cleanup_errors=True) as folder:
        os.environ["TUI_AGENT_HOME"] = f"{folder}/home"
        os.environ["PATH"] = f"{install(Path(folder, 'bin'))}:{os.environ['PATH']}"
        root = make_tree(Path(folder, "work"), {f"d{n // 20}/f{n}.txt": f"{n}\n" * 20 for n in range(FILES)})
        if not count:
            show(await on_cluster(Path(folder), root))
            return
        recorded = Recorded()
        await recorded.capture(root)
        with simulated_workers(recorded, Path(folder)) as workers:
            show(await measured(root, workers, count, draws=draws))


def main() -> None:
    for count in COUNTS:
        subprocess.run([sys.executable, __file__, str(count)], check=True)
    subprocess.run([sys.executable, __file__, str(COUNTS[-1]), "without the graph"], check=True)
    subprocess.run([sys.executable, __file__, "0"], check=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["workers"]:
        saved = Path(sys.argv[2])
        asyncio.run(serve(pickle.loads(saved.read_bytes()), saved.with_suffix(".socket")))
    elif len(sys.argv) > 1:
        asyncio.run(one(int(sys.argv[1]), draws=len(sys.argv) == 2))
    else:
        main()
