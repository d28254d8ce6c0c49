"""Storage that fails in the middle of a session, below SQLite and the files: read-only, lost handles, single errors,
slow calls, and other programs that hold the log's lock in turn. Nothing that the screen shows as kept is lost."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import subprocess
import sys
import threading
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from support import power
from support.sessions import open_session, reply
from support.trees import until

from tui_agent.errors import TuiAgentError
from tui_agent.log import catalog

ROOT = Path(__file__).parents[2]
PATIENCE = 60.0
CHANGE = reply("One.", fileChanges=[{"path": "a.txt", "edits": [{"search": "one", "replace": "two"}]}])
#: Another program that holds the lock of the log, some seconds at a time.
HOLDER = """
import sqlite3, sys, time
log = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=30)
for _ in range(3):
    log.execute("BEGIN IMMEDIATE")
    print("held", flush=True)
    time.sleep(0.4)
    log.execute("ROLLBACK")
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = power.built(tmp_path_factory.mktemp("power"))
    if found is None:
        raise pytest.skip.Exception("there is no C compiler to make the disk with")
    return found


class Program:
    """A session in a process of its own, on a disk of ours; it does one thing at a time and answers."""

    def __init__(self, process: subprocess.Popen[str], control: Path) -> None:
        self._process = process
        self._control = control

    def does(self, what: str, words: str = "") -> Any:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps([what, words]) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def disk(self, code: int = 0, kind: str = "any", times: str = "always", slow: int = 0) -> None:
        aside = self._control.with_suffix(".new")
        aside.write_text(f"{code} {kind} {times} {slow}")
        aside.replace(self._control)

    def works_again(self) -> None:
        self._control.unlink(missing_ok=True)

    def killed(self) -> None:
        self._process.kill()
        self._process.wait(PATIENCE)

    def until_kept(self) -> None:
        assert self.does("wait") == "", "it is not kept after the disk works again"


@contextmanager
def program(folder: Path, library: Path, below: Path) -> Generator[Program]:
    work, control = folder / "work", folder / "control"
    work.mkdir(exist_ok=True)
    (work / "a.txt").write_text("one\n")
    variables = {"LD_PRELOAD": str(library), "POWER_REFUSES": str(control), "POWER_REFUSED": str(below)}
    words = [sys.executable, "-m", "tests.faults.test_failing_storage", str(work)]
    environment = {**os.environ, **variables, "PYTHONPATH": str(ROOT / "tests")}
    pipe = subprocess.PIPE
    with subprocess.Popen(words, cwd=ROOT, env=environment, stdin=pipe, stdout=pipe, text=True) as process:
        late = threading.Timer(PATIENCE, process.kill)
        late.start()
        try:
            yield Program(process, control)
        finally:
            process.kill()
            late.cancel()


async def found(work: Path) -> tuple[str, str, Sequence[str]]:
    """Of a later start: the draft, the unsaved text of the editor, the states of the changes."""
    async with open_session(work, services=False, session="last") as session:
        buffer = session.state.buffers.get("a.txt")
        states = [change.state for change in session.state.review.changes]
        return session.state.input.draft, buffer.text if buffer else "", states


READ_ONLY, LOST, BAD = errno.EROFS, errno.ESTALE, errno.EIO
WORDS = {READ_ONLY: "read-only", LOST: "network disk was disconnected", BAD: "disk reported an error"}


@pytest.mark.parametrize("code", [READ_ONLY, LOST, BAD], ids=["read-only", "lost handle", "errors"])
async def test_a_home_that_fails_in_the_middle_of_a_session(
    tmp_path: Path, home: Path, library: Path, code: int
) -> None:
    with program(tmp_path, library, home) as it:
        it.does("say")
        it.does("draft", "before")
        it.until_kept()
        it.disk(code)
        it.does("draft", "while it fails")
        it.does("edit", "edited\n")
        said = it.does("refused")
        assert WORDS[code] in said, said
        it.works_again()
        it.until_kept()
        it.killed()
    assert await found(tmp_path / "work") == ("while it fails", "edited\n", ["pending"])


@pytest.mark.parametrize("code", [READ_ONLY, LOST, BAD], ids=["read-only", "lost handle", "errors"])
async def test_a_folder_that_fails_in_the_middle_of_a_session(
    tmp_path: Path, home: Path, library: Path, code: int
) -> None:
    work = tmp_path / "work"
    with program(tmp_path, library, work) as it:
        it.does("say")
        it.disk(code)
        said = it.does("apply")
        assert "could not be" in said and WORDS[code] in said and ": " in said, said
        assert (work / "a.txt").read_text() == "one\n"
        it.works_again()
        assert it.does("apply") == ""
        assert (work / "a.txt").read_text() == "two\n"
        it.until_kept()
        it.killed()
    assert (await found(work))[2] == ["applied"]


@pytest.mark.parametrize("kind", ["write", "sync", "open"])
@pytest.mark.parametrize("code", [BAD, LOST], ids=["error", "lost handle"])
async def test_one_call_that_fails_once(
    tmp_path: Path, home: Path, library: Path, kind: str, code: int
) -> None:
    """In the home: an apply succeeds or is taken back, and the typed text is kept."""
    work = tmp_path / "work"
    with program(tmp_path, library, home) as it:
        it.does("say")
        it.disk(code, kind, "once")
        it.does("draft", "typed")
        said = it.does("apply")
        assert (work / "a.txt").read_text() == ("one\n" if said else "two\n"), said
        if said:
            assert it.does("apply") == ""
        it.until_kept()
        it.killed()
    assert await found(work) == ("typed", "", ["applied"])


async def test_a_slow_disk_for_the_whole_life_of_a_session(tmp_path: Path, home: Path, library: Path) -> None:
    """Each call that changes the home takes a fiftieth of a second."""
    with program(tmp_path, library, home) as it:
        it.disk(slow=20)
        it.does("say")
        it.does("edit", "edited\n")
        it.does("draft", "typed")
        assert "typed in" in it.does("apply") or it.does("state") == ""
        it.until_kept()
        it.does("close")
    assert (await found(tmp_path / "work"))[:1] == ("typed",)


async def test_a_home_that_stays_read_only_until_the_end(tmp_path: Path, home: Path, library: Path) -> None:
    """It ends, and all that was kept before is there."""
    with program(tmp_path, library, home) as it:
        it.does("say")
        it.does("draft", "before")
        it.until_kept()
        it.disk(READ_ONLY)
        it.does("draft", "lost, as the screen says")
        assert it.does("refused")
        it.does("close")
    draft, _, states = await found(tmp_path / "work")
    assert (draft, states) == ("before", ["pending"])
    assert not any("damaged" in str(entry) for entry in catalog.list_sessions(home / "data"))


def holder(log: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", HOLDER, log])


async def test_two_programs_that_hold_the_lock_of_the_log_in_turn(
    tmp_path: Path, home: Path, library: Path
) -> None:
    with program(tmp_path, library, home) as it:
        it.does("say")
        log = it.does("log")
        holders = [holder(log), holder(log)]
        for number in range(40):
            it.does("draft", f"typed {number}")
            it.does("edit", f"edited {number}\n")
            if number == 20:
                assert it.does("apply")  # The buffer has the text of the person.
        assert [holder.wait(PATIENCE) for holder in holders] == [0, 0]
        it.until_kept()
        it.killed()
    assert (await found(tmp_path / "work"))[:2] == ("typed 39", "edited 39\n")


async def _main(work: Path) -> None:
    """Follow the lines of standard input."""
    async with open_session(work, [CHANGE] * 9) as session:

        async def does(what: str, words: str) -> str:
            match what:
                case "say":
                    await session.chat.submit("Change a.txt")
                    await session.chat.finished()
                case "draft":
                    session.chat.set_draft(words)
                    await asyncio.sleep(0.1)
                case "edit":
                    await session.files.open("a.txt")
                    session.files.edit("a.txt", words, (0, 0), (0, 0))
                case "apply":
                    try:
                        await session.review.apply()
                    except TuiAgentError as error:
                        return str(error)
                case "refused":
                    await until(lambda: session.state.session.not_kept)
                case "wait":
                    kept = session.journal
                    await until(
                        lambda: not (session.state.session.not_kept or kept._growing or kept._unwritten)
                    )
                case "log":
                    return str(session.log_path)
                case "close":
                    await session.close()
                    sys.stdout.write('""\n')
                    sys.stdout.flush()
                    os._exit(0)
            return session.state.session.not_kept

        while line := await asyncio.to_thread(sys.stdin.readline):
            sys.stdout.write(json.dumps(await does(*json.loads(line))) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(_main(Path(sys.argv[1])))
