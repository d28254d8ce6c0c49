"""What the model is sent: how much of each request the last one began, what is sent twice, and how long it takes."""

from __future__ import annotations

import asyncio
import os
import statistics
import time
from collections.abc import Awaitable, Callable, Sequence
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

from figures import Figure, show
from programs import big_workspace
from support.logs import load as load_log
from support.sessions import ScriptedModel, calls, model_of, open_session, reply
from support.trees import until

from tui_agent.context.known_files import KnownFile
from tui_agent.context.prompt import as_sent
from tui_agent.model import worker
from tui_agent.model.client import TokenCount
from tui_agent.model.parts import text_of
from tui_agent.session.session import Session
from tui_agent.store import events as e
from tui_agent.turn.compaction import EarlierMessages, fit_to_window
from tui_agent.turn.context import shared_beginning
from tui_agent.turn.load import companions, load
from tui_agent.turn.request import Draft, compose

MODULES = 24
LONG, SHORT = 50, 30
#: Seconds until what follows the first listing is over, such as getting the file picker ready.
QUIET = 3.0


class CountingModel(ScriptedModel):
    """Counts as the model's child does, with the vocabulary itself."""

    async def count(self, model: str, texts: Sequence[str], *, wait: bool = False) -> TokenCount:
        return worker.count_tokens("gpt-4o", texts)


def tokens(texts: Sequence[str]) -> int:
    return sum(worker.count_tokens("gpt-4o", list(texts)).counts)


def source(number: int, lines: int = 60) -> str:
    body = "".join(f"    total += step_{line}(value, {number})\n" for line in range(lines))
    head = f"from project.m{(number + 1) % MODULES} import run as other\n\n\n"
    return f"{head}def run(value):\n    total = 0\n{body}    return total\n"


def project(folder: Path) -> Path:
    (folder / "project").mkdir(parents=True)
    for number in range(MODULES):
        (folder / f"project/m{number}.py").write_text(source(number))
    (folder / "AGENTS.md").write_text("Keep functions short.\n")
    return folder


def replies(turns: int) -> list:
    """Every third turn changes its file, the others answer."""
    made = []
    for number in range(turns):
        path = f"project/m{number % 9}.py"
        edit = {"search": "    total = 0\n", "replace": f"    total = 0  # turn {number}\n"}
        if number % 3 == 0 and number < 9:
            made.append(reply(f"Marks {path}.", fileChanges=[{"path": path, "edits": [edit]}]))
        else:
            made.append(reply(f"Answer {number}.", message="It depends on the value that is passed. " * 6))
    return made


async def play(session: Session, root: Path, turns: int) -> None:
    """Loads, edits, files that go stale, instructions that arrive."""
    for number in range(turns):
        path = f"project/m{number % 9 if number < 27 else number % MODULES}.py"
        if number % 6 == 4:
            with (root / path).open("a") as file:
                file.write(f"# changed by hand in turn {number}\n")
        if number == 10:
            (root / "project/AGENTS.md").write_text("Names are English words.\n")
        if number == 20:
            (root / "AGENTS.md").write_text("Keep functions very short.\n")
        await session.chat.submit(
            "continue" if number % 11 == 10 else f"What does {path} do, and why? ({number})"
        )
        await session.chat.finished()
        assert session.state.turn.ok, session.state.turn.error
        if session.state.review.open:
            await session.review.apply()


async def session_over(
    root: Path, turns: int, work: Callable[[Session], Awaitable[None]], *overrides: str
) -> None:
    def prepare(session: Session) -> None:
        session.models.model = CountingModel(replies(turns + 5))

    async with open_session(root, [], prepare=prepare, overrides=overrides) as session:
        await work(session)


def unchanged(session: Session) -> list[Figure]:
    """The requests of a session against each other, in bytes; those that began anew are left out and counted."""
    requests = [[as_sent(message) for message in request.messages] for request in model_of(session).requests]
    shares = [shared_beginning(before, after) for before, after in pairwise(requests)]
    appended = [share for share in shares if share > 0.5]
    resets = len(shares) - len(appended)
    return [
        Figure(
            f"bytes of a request that do not begin the next, {LONG} turns",
            100 * (1 - min(appended)),
            1.0,
            " %",
            f"the worst of {len(appended)}",
        ),
        Figure("resets in every ten turns", 10 * resets / LONG, 1.0, "", f"{resets} in {LONG} turns"),
    ]


def sent_twice(session: Session) -> Figure:
    """Contents that a request carries although an earlier message of the same conversation does."""
    conversation = model_of(session).requests[-1].messages
    bodies = [
        line
        for message in conversation
        for line in text_of(message).split('"content": "')[1:]
        if message["role"] == "user"
    ]
    texts = [body.split('"}')[0] for body in bodies]
    return Figure(
        "contents that were sent twice, unchanged", len(texts) - len(set(texts)), 0.0, "", f"of {len(texts)}"
    )


def fresh_tokens(session: Session, root: Path) -> Figure:
    """Uncached input of our requests against a design with the current text of every file in use in each request.

    That one gets the kindest layout: the talk first, which stays cached, and all that changes at the end.
    """
    ours_fresh = ours_cached = theirs_fresh = theirs_cached = 0
    before_ours: list[str] = []
    before_theirs: list[str] = []
    talk: list[str] = []
    used: dict[str, str] = {}
    for request, files, query, answer in exchanges(session):
        now = [as_sent(message) for message in request.messages]
        fresh, cached = split(before_ours, now)
        ours_fresh, ours_cached, before_ours = ours_fresh + fresh, ours_cached + cached, now
        used.update(files)
        theirs = [now[0], *talk, *used.values(), query]
        fresh, cached = split(before_theirs, theirs)
        theirs_fresh, theirs_cached, before_theirs = theirs_fresh + fresh, theirs_cached + cached, theirs
        talk += [query, answer]
    note = f"{ours_fresh:,} fresh and {ours_cached:,} cached against {theirs_fresh:,} and {theirs_cached:,}"
    return Figure(
        f"uncached input, {SHORT} turns, every file in each request = 1",
        ours_fresh / theirs_fresh,
        0.5,
        "",
        note,
    )


def split(before: Sequence[str], now: Sequence[str]) -> tuple[int, int]:
    """Tokens of a request that are fresh, and those that its beginning shares with the one before."""
    same = 0
    while same < min(len(before), len(now)) and before[same] == now[same]:
        same += 1
    return tokens(now[same:]), tokens(now[:same])


def exchanges(session: Session):
    """(request, texts of files in use by path, query, answer) of each turn, from the log."""
    assert session.storage.log is not None
    requests = iter(model_of(session).requests)
    files: dict[str, str] = {}
    query = ""
    for event in load_log(session.storage.log).events:
        match event:
            case e.TurnStarted(request=query):
                pass
            case e.FileLoaded(file=entry) if session.storage.blobs.has(entry.md5):
                files[entry.path] = session.storage.blobs.get_text(entry.md5)
            case e.KnownFileEdited(file=entry):
                files[entry.path] = session.storage.blobs.get_text(entry.written)
            case e.ReplyRead(sent=sent) if sent is not None:
                yield next(requests), dict(files), query, session.storage.blobs.get_text(sent.blob)


async def long_session() -> list[Figure]:
    found: list[Figure] = []

    async def work(session: Session) -> None:
        await play(session, session.workspace.root, LONG)
        found.extend([*unchanged(session), sent_twice(session)])

    with TemporaryDirectory(prefix="tui-agent-bench-") as folder:
        await session_over(
            project(Path(folder) / "work"), LONG, work, "context.window=32000", "outline_tokens=200"
        )
    return found


async def short_session() -> list[Figure]:
    found: list[Figure] = []

    async def work(session: Session) -> None:
        await play(session, session.workspace.root, SHORT)
        found.append(fresh_tokens(session, session.workspace.root))

    with TemporaryDirectory(prefix="tui-agent-bench-") as folder:
        await session_over(project(Path(folder) / "work"), SHORT, work, "context.window=200000")
    return found


async def first_words() -> list[Figure]:
    """All that is sent before the person's first word, functions or schema included, in an empty workspace."""
    found = []
    for protocol, answer in (
        ("tools", calls(("set_todos", {"todos": []}), text="Hello.")),
        ("structured", reply()),
    ):
        with TemporaryDirectory(prefix="tui-agent-bench-") as folder:

            def prepare(session: Session, answer=answer, protocol=protocol) -> None:
                session.models.model = CountingModel([answer], protocol)

            async with open_session(Path(folder), [], protocol=protocol, prepare=prepare) as session:
                await session.chat.submit("x")
                await session.chat.finished()
                parts = session.state.usage.parts
                beside = session.state.conversation.head_tokens
                name = f"tokens before the first word, {protocol}"
                found.append(Figure(name, parts["system"], 2500.0, "", f"{beside} of them functions"))
    return found


async def building() -> list[Figure]:
    """From a request's material to the request, 100,000 files in the index and 500 that are known."""
    times: list[float] = []
    with big_workspace() as root:
        async with open_session(root, [reply()] * 3) as session:
            paths = [path for path in session.files.paths() if path.endswith(".py")][::200][:500]
            for path in paths:
                session.journal.publish(
                    e.FileLoaded(KnownFile(path, "d41d8cd98f00b204e9800998ecf8427e", 1, 0))
                )
            await session.chat.submit("Hello")
            await session.chat.finished()
            await until(lambda: not session.workspace.busy, "git")
            await asyncio.sleep(QUIET)
            for number in range(15):
                context, emit = session._turn_context(), session.journal.record
                begin = time.perf_counter()
                draft = await load(context, Draft(f"And now? {number}"), emit)
                composed = await fit_to_window(context, draft, EarlierMessages(), 100_000, emit)
                await compose(context, composed.draft)
                times.append((time.perf_counter() - begin) * 1000)
    note = f"of {len(times)}, slowest {max(times):.0f} ms"
    return [
        Figure("building a request, 100,000 files, 500 known", statistics.median(times), 20.0, " ms", note)
    ]


async def bundling() -> list[Figure]:
    times = []
    with TemporaryDirectory(prefix="tui-agent-bench-") as folder:
        root = project(Path(folder) / "work")
        lines = "".join(
            f"from project.m{n % MODULES} import run as r{n}\n\n\ndef g{n}(x):\n    return r{n}(x)\n"
            for n in range(400)
        )
        (root / "project/large.py").write_text(lines)
        async with open_session(root) as session:
            for _ in range(12):
                begin = time.perf_counter()
                found = await companions(session._turn_context(), ["project/large.py"])
                times.append((time.perf_counter() - begin) * 1000)
            assert len(found) == MODULES
    note = f"{lines.count(chr(10))} lines, slowest {max(times[1:]):.0f} ms, the first {times[0]:.0f} ms"
    return [Figure("bundling", statistics.median(times), 50.0, " ms", note)]


async def main() -> None:
    with TemporaryDirectory(prefix="tui-agent-bench-home-") as home:
        os.environ["TUI_AGENT_HOME"] = home
        for measure in (first_words, long_session, short_session, bundling, building):
            show(await measure())


if __name__ == "__main__":
    asyncio.run(main())
