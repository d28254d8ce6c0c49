"""Changes: edits located and merged in a long file, differences of long files, 300 files written at once."""

from __future__ import annotations

import asyncio
import random
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from figures import Figure, show
from support.sessions import open_session, reply

from tui_agent.answers.values import ChangeRequest, EditHunk
from tui_agent.edits import forms
from tui_agent.edits.change import compose, hunks
from tui_agent.edits.merge import merge

LINES, EDITS = 5_000, 50
LONG = 20_000
FILES = 300
ROUNDS = 7


def text_of(lines: int) -> str:
    return "".join(f"    value_{n} = compute(argument_{n}, other={n % 7})\n" for n in range(lines))


def request(near: int = 0) -> ChangeRequest:
    """Fifty edits, each of four lines; the first `near` of them have other blanks in one that stays."""
    base = text_of(LINES).splitlines(keepends=True)
    edits = []
    for number in range(EDITS):
        at = number * (LINES // EDITS) + 3
        search = "".join(base[at : at + 4])
        written = search.replace(", other", ",  other", 1) if number < near else search
        edits.append(EditHunk(written, written.replace("other=", "another=")))
    return ChangeRequest("long.py", edits=tuple(edits))


def left_out(count: int) -> ChangeRequest:
    """So many edits of thirty lines, which leave out the one in the middle and change the first."""
    base = text_of(LINES).splitlines(keepends=True)
    edits = []
    for number in range(count):
        block = base[number * 200 + 3 : number * 200 + 33]
        search = "".join(block[:15] + block[16:])
        edits.append(EditHunk(search, search.replace("other=", "another=", 1)))
    return ChangeRequest("long.py", edits=tuple(edits))


def changes() -> list[Figure]:
    base = text_of(LINES)
    newer = "# mine\n" + base
    wanted = forms.propose(request(), base).new_text or ""
    merged = median(lambda: merge(base, newer, wanted), time.perf_counter)
    located = median(lambda: forms.propose(request(), base))
    one, six = (median(lambda near=near: forms.propose(request(near), base)) for near in (1, 6))
    shorter, short = (median(lambda count=count: forms.propose(left_out(count), base)) for count in (1, 6))
    assert merge(base, newer, wanted).text.count("another=") == EDITS * 4
    return [
        Figure(
            "50 edits of 5,000 lines: located and merged",
            (located + merged) * 1000,
            100,
            " ms",
            f"located in {located * 1000:.0f}",
        ),
        Figure(
            "each near match more",
            max(six - one, 0) * 200,
            30,
            " ms",
            f"the first {(one - located) * 1000:.0f}",
        ),
        Figure(
            "each that leaves a line out",
            max(short - shorter, 0) * 200,
            30,
            " ms",
            f"the first {shorter * 1000:.0f}",
        ),
    ]


def differences() -> list[Figure]:
    scattered = text_of(LONG)
    changed = "".join(
        line.replace("other", "another") if n % 10 == 0 else line
        for n, line in enumerate(scattered.splitlines(keepends=True))
    )
    draw = random.Random(7)
    unrelated = {
        kinds: tuple("".join(f"{draw.randrange(kinds)}\n" for _ in range(LONG)) for _ in range(2))
        for kinds in (10, 300, 3_000, 1_000_000)
    }
    for one, two in unrelated.values():
        parts = hunks(one, two)
        assert compose(one, parts, range(len(parts))) == two
    taken = {kinds: median(lambda pair=pair: hunks(*pair)) * 1000 for kinds, pair in unrelated.items()}
    return [
        Figure(
            "difference of 20,000 lines, every tenth",
            median(lambda: hunks(scattered, changed)) * 1000,
            100,
            " ms",
        ),
        Figure(
            "difference of 20,000 lines, unrelated",
            max(taken.values()),
            100,
            " ms",
            ", ".join(f"{one:.0f} of {kinds:,} kinds" for kinds, one in taken.items()),
        ),
    ]


async def applied() -> Figure:
    """Apply a change to each of 300 files, synced, with its checkpoint in the log."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "work"
        root.mkdir()
        for number in range(FILES):
            (root / f"file_{number}.py").write_text(text_of(200))
        edit = [{"search": "argument_5,", "replace": "other_5,"}]
        made = reply("All.", fileChanges=[{"path": f"file_{n}.py", "edits": edit} for n in range(FILES)])
        async with open_session(root, [made]) as session:
            await session.chat.submit("Change all")
            await session.chat.finished()
            begin, computed = time.perf_counter(), time.process_time()
            await session.review.apply()
            taken, computed = time.perf_counter() - begin, time.process_time() - computed
            begin = time.perf_counter()
            await session.review.undo()
            undone = time.perf_counter() - begin
    note = f"{computed * 1000:.0f} of processor, undone in {undone * 1000:.0f}"
    return Figure(f"{FILES} files applied, synced", taken * 1000, 400, " ms", note)


def median(work: Callable[[], object], clock: Callable[[], float] = time.thread_time) -> float:
    """Seconds of this thread, which a busy machine does not lengthen much; what others do needs another clock."""
    taken = []
    for _ in range(ROUNDS):
        begin = clock()
        work()
        taken.append(clock() - begin)
    return statistics.median(taken)


def main() -> None:
    show([*changes(), *differences(), asyncio.run(applied())])


if __name__ == "__main__":
    main()
