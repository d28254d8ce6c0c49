"""Every attack of `support.hostile` on every operation that reads, or writes to, the repository of a folder.

The operations go through `Workspace` and its child process, as the program's own do, and through `tui-agent run`. One
holds if no canary was left, nothing of a private repository came out, and it ended in time, with a result or an error.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from pathlib import Path

import msgspec
from msgspec import Struct

sys.path.insert(0, str(Path(__file__).parents[1]))

from support.hostile import ATTACKS, IDLE, KEY, PRIVATE, Ground, armed, fires
from support.recordings import recorded

from tests.proofs.tally import Tally
from tui_agent.edits.merge import merge
from tui_agent.errors import TuiAgentError
from tui_agent.model.client import CallChunk, Chunk, EndChunk, TextChunk, UsageChunk
from tui_agent.model.recording import RecordedExchange
from tui_agent.workspace.workspace import Workspace

#: No operation may keep anybody waiting for longer, in seconds.
PATIENCE = 45.0
GOAL = "Write the other file"
ASK = "Import a in src/c.py"
CHANGE = {"path": "src/c.py", "edits": [{"search": "import os", "replace": "import os\nimport a"}]}
REPLY = json.dumps({"summary": "Imports a.", "fileChanges": [CHANGE]})


class Attempt(Struct):
    """One attack on its way: the workspace, and what earlier operations made."""

    ground: Ground
    workspace: Workspace
    changed: asyncio.Event
    snapshot: str = ""


async def _open(attempt: Attempt) -> object:
    attempt.workspace.start()
    await attempt.workspace.ready()
    return attempt.workspace.index.paths


async def _listing(attempt: Attempt) -> object:
    await attempt.workspace.refresh()
    return attempt.workspace.index.paths


async def _status(attempt: Attempt) -> object:
    return await attempt.workspace.git_status()


async def _diff(attempt: Attempt) -> object:
    names = ("a.txt", "src/b.txt", "sub/m.txt", "notes.txt", "b.txt")
    return [await attempt.workspace.repository.file_at("HEAD", name) for name in names]


async def _ignored(attempt: Attempt) -> object:
    return await attempt.workspace.ignored(["a.txt", "x.log", "sub/x.log"])


async def _watch(attempt: Attempt) -> object:
    """A new file is told of, unless nothing can be watched."""
    attempt.changed.clear()
    (attempt.ground.root / "watched.txt").write_text("x")
    async with asyncio.timeout(PATIENCE):
        await attempt.changed.wait()
    return None


async def _checkpoint(attempt: Attempt) -> object:
    repository = attempt.workspace.repository
    made = await repository.checkpoint("s1", "k1", ["a.txt", "src/b.txt", "sub/m.txt"])
    return made and [await repository.file_at(made, "a.txt"), await repository.forget_checkpoints("s1")]


async def _snapshot(attempt: Attempt) -> object:
    attempt.snapshot = await attempt.workspace.copies.snapshot()
    return None


async def _worktree(attempt: Attempt) -> object:
    folder = attempt.ground.place / "copies" / "one"
    made = await attempt.workspace.copies.make(folder, attempt.snapshot)
    told = await asyncio.to_thread(_texts, Path(made.root))
    inner = Workspace(Path(made.root), child=attempt.workspace.child, watched=False)
    told.append(repr(await inner.git_status()).encode())
    await attempt.workspace.copies.remove(made)
    return told


def _texts(folder: Path) -> list[bytes]:
    return [path.read_bytes() for path in folder.rglob("*.txt") if path.is_file()]


async def _plan(attempt: Attempt) -> object:
    return await attempt.workspace.repository.commit_plan(["a.txt", "src/b.txt", "b.txt", "notes.txt"])


async def _commit(attempt: Attempt) -> object:
    repository = attempt.workspace.repository
    wanted = ["a.txt", "src/b.txt", "b.txt"]
    plan = (await repository.commit_plan(wanted)).of(wanted)
    done = await repository.commit("A change", plan)
    again = await repository.commit("Nothing", plan)
    return [done, again]


async def _merge(attempt: Attempt) -> object:
    return await asyncio.to_thread(merge, "a\nb\nc\n", "x\nb\nc\n", "a\nb\ny\n")


async def _run(attempt: Attempt) -> object:
    """The whole program: index, status, watcher, plan, change, checkpoint, bundle of what the file imports."""
    return await _program(attempt, (ASK, REPLY))


async def _search(attempt: Attempt) -> object:
    """The whole program again, in function calls, with a search through all files and a listing of the folder."""
    calls = (
        CallChunk(0, "c1", "search_text", '{"pattern": "."}'),
        CallChunk(1, "c2", "list_directory", '{"path": "."}'),
    )
    looks = (TextChunk("Looks."), *calls, UsageChunk(1, 1), EndChunk("stop"))
    return await _program(attempt, (ASK, looks), (ASK, "Seen."), protocol="tools")


async def _sub_task(attempt: Attempt) -> object:
    """A part of the work in a copy of the folder, joined with what is there."""
    tasks = [{"id": "p", "goal": GOAL, "files": ["src/b.txt"], "autoExecute": True}]
    edit = {"path": "src/b.txt", "content": "by a part\n"}
    return await _program(
        attempt,
        (ASK, json.dumps({"summary": "Splits.", "subTasks": tasks})),
        part=json.dumps({"summary": "Done.", "fileChanges": [edit]}),
    )


async def _program(
    attempt: Attempt,
    *exchanges: tuple[str, str | tuple[Chunk, ...]],
    part: str = "",
    protocol: str = "structured",
) -> object:
    replay = recorded(attempt.ground.place / "replay.jsonl", *exchanges, protocol=protocol)
    if part:
        chunks = ((0.0, TextChunk(part)), (0.0, UsageChunk(1, 1)), (0.0, EndChunk("stop")))
        with replay.open("ab") as file:
            file.write(msgspec.json.encode(RecordedExchange(GOAL, chunks, purpose="subtask")) + b"\n")
    options = ["--apply", "all", "--planner-model", "none", "--set", "subtasks.begin=auto"]
    done = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tui_agent", "run", "--json", *options, "--replay", str(replay), ASK),
        cwd=attempt.ground.root,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        told, errors = await asyncio.wait_for(done.communicate(), PATIENCE)
    except TimeoutError:
        done.kill()
        raise
    if b"Traceback" in errors:
        raise AssertionError(errors[-300:])
    return told + errors


OPERATIONS: dict[str, Callable[[Attempt], Awaitable[object]]] = {
    "open": _open,
    "status": _status,
    "listing": _listing,
    "HEAD diff": _diff,
    "ignored": _ignored,
    "watch": _watch,
    "checkpoint": _checkpoint,
    "snapshot": _snapshot,
    "worktree": _worktree,
    "commit plan": _plan,
    "merge": _merge,
    "run, bundle": _run,
    "search": _search,
    "sub-task": _sub_task,
    "commit": _commit,
}


def prove(tally: Tally, scale: float) -> None:
    """`scale` below 1 takes every so many attacks."""
    step = max(1, round(1 / scale))
    for attack in list(ATTACKS)[::step]:
        with tempfile.TemporaryDirectory(prefix="tui-agent-attack-") as place, _home(Path(place)):
            if attack not in IDLE:
                with tempfile.TemporaryDirectory(prefix="tui-agent-attack-") as other:
                    assert fires(armed(attack, Path(other))), f"{attack} does nothing to git itself"
            ground = armed(attack, Path(place))
            with _variables(ground.environment):
                asyncio.run(_try(tally, attack, ground))


async def _try(tally: Tally, attack: str, ground: Ground) -> None:
    changed = asyncio.Event()
    workspace = Workspace(ground.root)
    workspace.listen(on_batch=lambda _: changed.set())
    attempt = Attempt(ground, workspace, changed)
    try:
        for column, operation in OPERATIONS.items():
            what = ""
            try:
                told = await asyncio.wait_for(operation(attempt), PATIENCE)
                what = "private text" if PRIVATE in repr(told) or "notes.txt" in repr(told) else ""
            except TuiAgentError as error:  # a refusal in words is an answer too
                what = str(error) if "ended with status" in str(error) else ""
            except TimeoutError:
                what = "no answer in time"
            except (OSError, AssertionError) as error:
                what = f"{type(error).__name__}: {error}"
            if ground.ran:
                key = " with a key" if KEY in ground.canary.read_text(errors="replace") else ""
                what = f"a command ran{key}"
                ground.canary.unlink()
            tally.case(attack, not what, column=column, what=what)
    finally:
        await workspace.close()


@contextmanager
def _home(place: Path) -> Generator[None]:
    home = place / "home"
    home.mkdir()
    settings = {"TUI_AGENT_HOME": str(home), "GIT_CONFIG_NOSYSTEM": "1", "OPENAI_API_KEY": KEY}
    with _variables({**settings, "GIT_CONFIG_GLOBAL": str(home / "gitconfig")}):
        (home / "gitconfig").write_text("[user]\n\tname = A\n\temail = a@example.com\n")
        yield


@contextmanager
def _variables(variables: dict[str, str]) -> Generator[None]:
    before = dict(os.environ)
    os.environ.update(variables)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)
