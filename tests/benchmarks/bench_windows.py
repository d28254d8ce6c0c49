"""Requests against the model's window: none is over it, and a content reset lands where the settings say.

python tests/benchmarks/bench_windows.py [SESSIONS]
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import sys
import sysconfig
from collections import Counter
from collections.abc import AsyncGenerator, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from bench_context import CountingModel
from figures import Figure, show
from support.sessions import Reply, calls, open_session, reply

from tui_agent.context.file_contents import numbered
from tui_agent.model import worker
from tui_agent.model.client import Chunk, ModelRequest, TokenCount
from tui_agent.model.parts import calls_of, text_of
from tui_agent.session.session import Session
from tui_agent.store import events as e
from tui_agent.store.state import State
from tui_agent.turn.request import AROUND_A_MESSAGE

SESSIONS = 25
TURNS = 15
WINDOWS = (16_000, 32_000, 64_000, 64_000, 128_000)
#: The larger the window, the more often all files of a folder are asked for: in every turn at so many tokens.
FOLDERS = 200_000
TARGET, NEAR = 0.5, 0.05
#: So many sessions wait for their disks and children beside each other.
AT_ONCE = 3
LARGEST = 40_000
#: Where a folder in memory is, if there is one: disks are not what is measured here.
MEMORY = next((folder for folder in ("/dev/shm",) if os.access(folder, os.W_OK)), None)
#: Why a reset could not land at its target.
FULL = "the talk and what this turn reads are more"
ALL_IN = "all that is known is in, and is less"
TOO_LARGE = "each file that is left is larger than the gap"


@dataclass
class Seen:
    """What was measured over all sessions: shares of the window."""

    requests: int = 0
    over: int = 0
    largest: float = 0.0
    #: Where each reset landed, why it could not at the target, and in which window.
    resets: list[tuple[float, str, int]] = field(default_factory=list)
    #: Sessions, by their seeds, with a request over the window or a reset beside its target.
    odd: set[int] = field(default_factory=set)

    def add(self, other: Seen) -> None:
        self.requests += other.requests
        self.over += other.over
        self.largest = max(self.largest, other.largest)
        self.resets += other.resets
        self.odd |= other.odd


@cache
def tokens_of(text: str) -> int:
    vocabulary = worker.load_vocabulary("o200k_base")
    assert vocabulary is not None
    return len(vocabulary.encode_ordinary(text))


class Answering(CountingModel):
    """Answers from a list, and where that is empty in a sentence; every text is counted once."""

    async def count(self, model: str, texts: Sequence[str], *, wait: bool = False) -> TokenCount:
        return TokenCount(tuple(map(tokens_of, texts)), exact=True)

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Chunk, None]:
        if request.purpose == "condense":
            self.replies.insert(0, "They looked at files and talked about what these do. " * 20)
        elif not self.replies:
            self.replies.append(reply("It does what its name says."))
        async for chunk in super().stream(request):
            yield chunk


@cache
def library() -> dict[str, list[Path]]:
    """Python's own sources, by folder: what people's files are like in size and words."""
    root = Path(sysconfig.get_paths()["stdlib"])
    folders: dict[str, list[Path]] = {}
    for folder, below, names in os.walk(root):
        below[:] = sorted(set(below) - {"site-packages", "test", "tests", "lib2to3", "__pycache__"})
        paths = [Path(folder, name) for name in sorted(names) if name.endswith(".py")]
        fitting = [path for path in paths if 200 < path.stat().st_size < LARGEST]
        if len(fitting) > 2:
            folders[Path(folder).relative_to(root).as_posix()] = fitting
    return folders


def project(root: Path, chance: random.Random) -> dict[str, list[str]]:
    """A project of some folders with some of the library's files; its paths by folder."""
    made: dict[str, list[str]] = {}
    for folder in chance.sample(sorted(library()), 6):
        name = "src" if folder == "." else f"src/{folder}"
        (root / name).mkdir(parents=True, exist_ok=True)
        files = library()[folder]
        for path in chance.sample(files, min(len(files), chance.randrange(3, 10))):
            (root / name / path.name).write_text(path.read_text(errors="replace"))
            made.setdefault(name, []).append(f"{name}/{path.name}")
    return made


def prose(chance: random.Random, words: int) -> str:
    said = (
        "the",
        "value",
        "is",
        "read",
        "from",
        "a",
        "file",
        "and",
        "kept",
        "where",
        "it",
        "belongs",
        "request",
    )
    return " ".join(chance.choices(said, k=words))


@dataclass(frozen=True)
class Play:
    """One session and the person in it, who does what `chance` says."""

    session: Session
    model: Answering
    chance: random.Random
    folders: dict[str, list[str]]
    window: int

    async def turn(self) -> None:
        """What a person does between two answers, and the request."""
        chance, root = self.chance, self.session.workspace.root
        paths = [path for files in self.folders.values() for path in files]
        known = list(self.session.state.known.files)
        if known and chance.random() < 0.25:
            with (root / chance.choice(known)).open("a") as file:
                file.write(f"# {prose(chance, chance.randrange(3, 200))}\n")
        if chance.random() < 0.15:
            await self.session.files.open(chance.choice(paths))
        wanted = chance.sample(paths, chance.choice((0, 1, 1, 2, 2, 3)))
        words = f"What do {' and '.join(wanted)} do?" if wanted else prose(chance, chance.randrange(4, 60))
        if chance.random() < self.window / FOLDERS:
            words = f"Look at all files in {chance.choice(sorted(self.folders))}/"
        match chance.randrange(10):
            case 0:
                words = "continue"
            case 1:
                words += "\n\n" + prose(chance, chance.randrange(100, 2000))
            case 2:
                self.model.replies.append(self.asks(chance.choice(paths)))
        self.model.replies.append(self.answers([*wanted, *known[-3:]]))
        await self.session.chat.submit(words)
        await self.session.chat.finished()
        assert self.session.state.turn.ok, self.session.state.turn.error
        if self.session.state.review.open:
            await self.session.review.apply()

    def asks(self, path: str) -> Reply:
        """The model asks for one more file."""
        action = {"type": "file", "name": "One more", "patterns": [path]}
        if self.model.tools:
            return calls(("read_files", {"actions": [action]}))
        return reply("Needs one more.", fileRequests=[action])

    def answers(self, paths: Iterable[str]) -> Reply:
        """Words, and now and then a change to one of the files."""
        chance, root = self.chance, self.session.workspace.root
        long = prose(chance, int(chance.lognormvariate(4.5, 0.9)))
        there = [path for path in paths if (root / path).is_file()]
        if not there or chance.random() > 0.35:
            return long if self.model.tools else reply("Answers it.", message=long)
        path = chance.choice(there)
        lines = (root / path).read_text(errors="replace").splitlines()
        line = chance.choice([line for line in lines if lines.count(line) == 1 and line.strip()])
        edit = {"search": line, "replace": f"{line}\n# {prose(chance, chance.randrange(3, 60))}"}
        change = {"path": path, "edits": [edit]}
        if self.model.tools:
            return calls(("propose_changes", {"changes": [change]}), text=long)
        return reply("Changes it.", message=long, fileChanges=[change])


async def one(seed: int, seen: Seen) -> None:
    chance = random.Random(seed)
    window = chance.choice(WINDOWS)
    protocol = chance.choice(("structured", "tools"))
    model = Answering([], protocol)
    with TemporaryDirectory(prefix="tui-agent-bench-", dir=MEMORY) as folder:
        root = Path(folder)
        folders = project(root, chance)

        def prepare(session: Session) -> None:
            session.models.model = model

        settings = (f"context.window={window}", "planner_model=none")
        async with open_session(root, [], protocol=protocol, prepare=prepare, overrides=settings) as session:

            def watch(event: e.Event, state: State) -> None:
                reset = isinstance(event, e.RequestSent) and event.purpose == "main" and event.reset
                if reset and state.conversation.why != "first":
                    size = event.tokens + AROUND_A_MESSAGE * len(state.conversation.messages)
                    system = session.storage.blobs.get_text(state.conversation.messages[0].blob)
                    why = why_not(state, root, system, size, window)
                    seen.resets.append((size / window, why, window))
                    seen.odd |= {seed} if not why and abs(size / window - TARGET) > NEAR else set()

            session.subscribe(watch)
            play = Play(session, model, chance, folders, window)
            for _ in range(TURNS):
                await play.turn()
    for request in model.requests:
        size = size_of(request) / window
        seen.requests += 1
        seen.over += size > 1
        seen.odd |= {seed} if size > 1 else set()
        seen.largest = max(seen.largest, size)


def size_of(request: ModelRequest) -> int:
    """All that is sent, in tokens, counted from outside."""
    texts = [json.dumps([request.tools, request.schema])] if request.tools or request.schema else []
    for message in request.messages:
        texts += [text_of(message), *(call.name + call.arguments for call in calls_of(message))]
    return sum(map(tokens_of, texts)) + AROUND_A_MESSAGE * len(request.messages)


def why_not(state: State, root: Path, system: str, size: int, window: int) -> str:
    """Why a reset could not land where it should; "" where it did, or could have."""
    if abs(size / window - TARGET) <= NEAR:
        return ""
    if size / window > TARGET:
        text = json.loads(system)["content"].partition("# Working files\n")[2]
        working = {file["path"] for file in json.loads(text)["files"]} if text else set()
        known, turn = state.known.files, state.turn.number
        return "" if any(known[path].seen_turn < turn for path in working) else FULL
    left = [
        entry.path
        for entry in state.known.files.values()
        if entry.path not in state.conversation.files and entry.whole and (root / entry.path).is_file()
    ]
    if not left:
        return ALL_IN
    smallest = min(tokens_of(entry(path, (root / path).read_text(errors="replace"))) for path in left)
    return "" if size + smallest < (TARGET + NEAR) * window else TOO_LARGE


def entry(path: str, text: str) -> str:
    """A file as it stands in a prompt, where it is the only one."""
    file = {"path": path, "md5": "0" * 32, "lines": 1000, "content": numbered(text)}
    result = json.dumps({"type": "read_files", "files": [file]}, ensure_ascii=False)
    return f"# Working files\n{result}\n\n"


async def several(seeds: Sequence[int]) -> Seen:
    seen, waiting = Seen(), list(seeds)

    async def work() -> None:
        while waiting:
            await one(waiting.pop(), seen)

    await asyncio.gather(*(work() for _ in range(AT_ONCE)))
    return seen


def share(seeds: Sequence[int]) -> Seen:
    with TemporaryDirectory(prefix="tui-agent-bench-home-", dir=MEMORY) as home:
        os.environ["TUI_AGENT_HOME"] = home
        return asyncio.run(several(seeds))


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else SESSIONS
    seen = Seen()
    workers = os.cpu_count() or 1
    with ProcessPoolExecutor(workers) as pool:
        for part in pool.map(share, [range(first, count, workers) for first in range(workers)]):
            seen.add(part)
    landed = [share for share, why, _ in seen.resets if not why]
    off = max((abs(share - TARGET) for share in landed), default=0.0)
    ends = f"{len(landed)} resets, from {min(landed, default=0):.2f} to {max(landed, default=0):.2f} of the window"
    show(
        [
            Figure(
                f"requests over the window, {count} random sessions", seen.over, 0, "", f"of {seen.requests}"
            ),
            Figure("largest request, as a share of the window", seen.largest, 1.0, ""),
            Figure("a content reset misses its target by", off, NEAR, " of the window", ends),
            *(left_out(why, seen) for why in (FULL, ALL_IN, TOO_LARGE)),
        ]
    )
    if seen.odd:
        print("sessions to look at:", *sorted(seen.odd))


def left_out(why: str, seen: Seen) -> Figure:
    """Resets that are not in the figure above, and the reason; how many of those in each window."""
    shares = [share for share, reason, _ in seen.resets if reason == why]
    if not shares:
        return Figure(f"resets not counted there: {why}", 0)
    ends = f"from {min(shares):.2f} to {max(shares):.2f} of the window"
    all_in = Counter(window for _, _, window in seen.resets)
    here = Counter(window for _, reason, window in seen.resets if reason == why)
    parts = ", ".join(f"{here[window]} of {all_in[window]} at {window:,}" for window in sorted(all_in))
    return Figure(f"resets not counted there: {why}", len(shares), None, "", f"{ends}; {parts}")


if __name__ == "__main__":
    main()
