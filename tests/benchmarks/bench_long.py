"""Long work: a batch of 300 files, files beside a small window, a file of 50 MB, a turn of sixty steps.

The model is scripted and the folders are real; memory is that of this process, with the session in it.
"""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections import Counter
from collections.abc import AsyncGenerator, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

from figures import Figure, show
from support.provider import Provider
from support.sessions import Reply, ScriptedModel, calls, in_pieces, model_of, open_session, reply
from support.trees import make_tree

from tui_agent.files.blobs import Blobs
from tui_agent.log.transfer import write
from tui_agent.model.child_model import ChildModel
from tui_agent.model.client import Chunk, ModelRequest
from tui_agent.model.parts import text_of
from tui_agent.session.session import Session
from tui_agent.settings.folders import user_folders
from tui_agent.store import events as e
from tui_agent.store.conversation import SentMessage
from tui_agent.store.event import Event
from tui_agent.store.events import RequestSent
from tui_agent.store.state import State

FILES, WINDOW = 300, 32_000
STEPS, WARM = 60, 10
LARGE, MOST_MEMORY = 50_000_000, 700
#: Turns of a resumed session, and seconds in which its next message is written.
TURNS, WRITTEN_IN = 2_000, 6.0
MOST_GROWTH = 15
QUIET = ("outline_tokens=0", "planner_model=none", "limits.ask_at_cost=0")


class Worker(ScriptedModel):
    """Changes every file whose text comes with a request."""

    def __init__(self) -> None:
        super().__init__([])
        self.seen: Counter[str] = Counter()

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Chunk, None]:
        self.requests.append(request)
        paths = [file["path"] for file in shown(request) if "content" in file]
        self.seen.update(paths)
        changes = [{"path": path, "edits": [{"search": "first", "replace": "first\nmore"}]} for path in paths]
        for chunk in in_pieces(json.dumps({"summary": "Added.", "fileChanges": changes})):
            yield chunk


def main() -> None:
    show(asyncio.run(figures()))


async def figures() -> list[Figure]:
    return [
        *await a_batch(),
        await a_large_part(),
        *await a_huge_file(),
        *await sixty_steps(),
        await after_a_resume(),
        await after_a_paste(),
    ]


async def after_a_resume() -> Figure:
    """From Enter to the first request, in a session that the program has written before."""
    with folder({"a.py": "a = 1\n"}) as work:
        data = user_folders().data
        blobs = Blobs(data / "blobs")

        def message(role: Literal["user", "assistant"], words: str) -> SentMessage:
            text = json.dumps({"role": role, "content": words})
            return SentMessage(role, blobs.put_unsynced(text.encode()), 12)

        said: list[e.Lasting] = [e.SessionStarted("long", str(work))]
        for turn in range(1, TURNS + 1):
            asked, answer = f"request {turn} of many", f"answer {turn} of many"
            said += [
                e.TurnStarted(turn, asked),
                e.RequestSent(turn, "main", (message("user", asked),), tokens=100, model="m"),
                e.ReplyRead(turn, "Done.", answer, sent=message("assistant", answer)),
                e.TurnEnded(turn, True),
            ]
        write(data, "long", said, workspace=str(work), turns=TURNS)
        options: dict[str, Any] = {"session": "long", "interactive": True, "overrides": QUIET}
        async with open_session(work, [reply("Yes.")], **options) as session:
            await send(session, "hello")
        async with open_session(work, [reply("Yes.")], **options) as session:
            left: list[float] = []
            session.subscribe(
                lambda event, _: left.append(time.perf_counter()) if isinstance(event, RequestSent) else None
            )
            session.chat.set_draft("hello again")
            await asyncio.sleep(WRITTEN_IN)
            begin = time.perf_counter()
            await send(session, "hello again")
    taken = (left[0] - begin) * 1000
    return Figure(f"first message after a resume of {TURNS:,} turns: to its request", taken, 200, " ms")


async def after_a_paste() -> Figure:
    """Memory of the model's process after a message of 10 MB and a short one."""
    with Provider() as provider:
        provider.answer("seen", "seen")
        model = ChildModel(environment=provider.environment, retries=0)
        await model.start()
        for words in ("word " * 2_000_000, "hello"):
            async for _ in model.stream(ModelRequest("openai/m", ({"role": "user", "content": words},))):
                pass
        await asyncio.sleep(2)
        kept = await asyncio.to_thread(proportional, model.pid)
        await model.close()
    return Figure("model process after a paste of 10 MB", kept, 60, " MB")


def proportional(pid: int | None) -> float:
    """Megabytes of a process, with its share of memory in common."""
    rows = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return sum(int(row.split()[1]) for row in rows if row.startswith("Pss:")) / 1000


async def a_batch() -> list[Figure]:
    """Every batch in a session of its own, as after a kill."""
    text = "first\n" + "some words that take room\n" * 30
    with folder({f"docs/f{n:03}.md": f"{text}file {n}\n" for n in range(FILES)}) as work:
        worker, turns = Worker(), 0
        left = FILES
        while left and turns < FILES:
            async with open_session(
                work,
                session="last" if turns else "",
                prepare=lambda session: setattr(session.models, "model", worker),
                overrides=(f"context.window={WINDOW}", *QUIET),
            ) as session:
                await send(session, "continue" if turns else "Add a line to all files in docs/")
                await session.review.apply()
                left = sum(len(batch.left) for batch in session.state.batches)
                turns += 1
        undone = sum("\nmore\n" not in path.read_text() for path in (work / "docs").iterdir())
    twice = sum(count > 1 for count in worker.seen.values())
    return [
        Figure(f"batch of {FILES} files: done twice", twice, 0),
        Figure(f"batch of {FILES} files: not done", undone, 0, note=f"{turns} turns, one for each batch"),
    ]


async def a_large_part() -> Figure:
    """A file that takes nine tenths of what is free."""
    with folder({"a.py": "x = 1\n"}) as work:
        over = (f"context.window={WINDOW}", *QUIET)
        async with open_session(work, [reply()], overrides=over) as session:
            await send(session, "Look at a.py")
            free = WINDOW - session.state.usage.counted
        line = "value_000000 = 000000\n"
        count = int(0.9 * free / ((len(line) + 8) / 4))
        (work / "big.py").write_text("".join(f"value_{n:06} = {n:06}\n" for n in range(count)))
        async with open_session(work, [reply()], overrides=over) as session:
            await send(session, "Look at big.py")
            (file,) = shown(model_of(session).requests[-1])
            missing = count - len(file["content"].splitlines())
    return Figure("file of 90 % of the free window: lines not shown", missing, 0, note=f"{count:,} lines")


async def a_huge_file() -> list[Figure]:
    """Looked at by its words, by a search and by lines, then edited."""
    line = "2026-01-02T03:04:05 INFO handler_{0} served request {0} in 12 ms for user u{0}\n"
    with folder({}) as work:
        with (work / "big.log").open("w") as file:
            number = 0
            while file.tell() < LARGE:
                file.writelines(line.format(n) for n in range(number, number + 10_000))
                number += 10_000
        look = {
            "actions": [{"type": "file", "name": "it", "patterns": ["big.log"], "lines": ["20000-20010"]}]
        }
        edit = {"search": "INFO handler_400000 ", "replace": "WARN handler_400000 "}
        replies: Sequence[Reply] = [
            calls(("search_text", {"pattern": "handler_300000 "})),
            calls(("read_files", look)),
            calls(("propose_changes", {"changes": [{"path": "big.log", "edits": [edit]}]})),
        ]
        before = memory("VmRSS")
        async with open_session(
            work, replies, protocol="tools", overrides=(f"context.window={WINDOW}", *QUIET)
        ) as session:
            await send(session, "Make handler_400000 in big.log say WARN")
            first = shown(model_of(session).requests[0])[0]["content"]
            await session.review.apply()
        peak = memory("VmHWM") - before
        wrong = "handler_400000 " not in first
        with (work / "big.log").open() as file:
            for n, there in enumerate(file):
                expected = line.format(n)
                wrong += there != (expected.replace("INFO", "WARN") if n == 400_000 else expected)
    return [
        Figure("file of 50 MB: lines that are wrong after an edit", wrong, 0),
        Figure("file of 50 MB: memory at the most", peak, MOST_MEMORY, " MB"),
    ]


async def sixty_steps() -> list[Figure]:
    """Each step edits a file, searches, and runs a command."""

    def step(number: int) -> Reply:
        change = {"path": "a.py", "edits": [{"search": "x = 0", "replace": f"x = {number + 1}"}]}
        return calls(
            ("propose_changes", {"changes": [change]}),
            ("run_command", {"command": f"echo {number}; cat a.py"}),
            ("search_text", {"pattern": f"x = {number}"}),
        )

    used: list[float] = []
    shares: list[float] = []

    def note(event: Event, state: State) -> None:
        if state.turn.step > len(used):
            used.append(memory("VmRSS"))
        if isinstance(event, RequestSent):
            shares.append(event.prefix_share)

    with folder({"a.py": "x = 0\n" + "# words\n" * 50}) as work:
        replies = [*(step(number) for number in range(STEPS - 1)), calls(text="Done.")]
        async with open_session(work, replies, protocol="tools", overrides=QUIET) as session:
            session.subscribe(note)
            await send(session, "Look at a.py")
            steps = session.state.turn.step
    kept = min(shares[1:])
    return [
        Figure(f"turn of {STEPS} steps: steps that are missing", STEPS - steps, 0),
        Figure(f"turn of {STEPS} steps: beginning that changes, at the most", 100 * (1 - kept), 1, " %"),
        Figure(
            f"turn of {STEPS} steps: memory from step {WARM} on", used[-1] - used[WARM], MOST_GROWTH, " MB"
        ),
    ]


async def send(session: Session, request: str) -> None:
    await session.chat.submit(request)
    await session.chat.finished()
    assert session.state.turn.ok, session.state.turn.error


def shown(request: ModelRequest) -> list[dict[str, str]]:
    """The files that go with the newest message of a request."""
    lines = text_of(request.messages[-1]).splitlines()
    return [
        file
        for line in lines
        if line.startswith('{"type": "read_files"')
        for file in json.loads(line)["files"]
    ]


@contextmanager
def folder(files: dict[str, str]) -> Generator[Path]:
    """A workspace, and a home of its own."""
    with TemporaryDirectory(prefix="tui-agent-long-") as place:
        os.environ["TUI_AGENT_HOME"] = f"{place}/home"
        yield make_tree(Path(place) / "work", files)


def memory(kind: str) -> float:
    """What this process has in memory now (`VmRSS`) or had at the most (`VmHWM`), in megabytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith(kind))) / 1024


if __name__ == "__main__":
    main()
