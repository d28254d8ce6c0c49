"""A child that is a copy of its parent: it has nothing of it that another child would not have."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
SECRET = "sk-of-the-parent-alone"
pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="copies are made on Linux")

#: Asks the copy, ends it, and asks the child that takes its place, which is none.
PROGRAM = """
import asyncio, json, logging, os, signal, sys, threading
from pathlib import Path
from tui_agent import debug_log
from tui_agent.errors import ChildFailed
from tui_agent.processes.child import ChildProcess

kept = open(sys.argv[1] + "/kept", "w")
debug_log.start(Path(sys.argv[1]))
debug_log.show(print)
if "thread" in sys.argv:
    threading.Thread(target=threading.Event().wait, daemon=True).start()
sys.stdout.write("not flushed yet")
spawned = ChildProcess("support.child_program", env={"PYTHONPATH": os.environ["TESTS"]})
spawned.fork()
child = ChildProcess("support.child_program", env={"PYTHONPATH": os.environ["TESTS"]})
child.fork()
own = child._forked and child._forked.pid

async def main():
    await spawned.start()
    first = [await child.ask("insides"), (await child.ask("facts"))["pid"], child.pid]
    first.append([item async for item in child.stream("numbers", {"up_to": 3})])
    first.append(await child.ask("prints"))
    asking = asyncio.create_task(child.ask("forever", {"name": "x"}))
    await child.ask("echo")
    os.kill(first[1], signal.SIGKILL)
    try:
        await asking
    except ChildFailed as error:
        first.append(error.what)
    then = [await child.ask("insides"), (await child.ask("facts"))["pid"]]
    stderr = child.stderr
    await child.close()
    await spawned.close()
    Path(sys.argv[1], "told").write_text(json.dumps([own, first, then, stderr]))

asyncio.run(main())
"""


def ran(folder: Path, *words: str) -> Any:
    """The id of the copy, what it told, what its successor told, and what both wrote to standard error."""
    tests = os.pathsep.join((str(ROOT), str(ROOT / "tests")))
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(folder), *words],
        env={**os.environ, "TESTS": tests, "PYTHONPATH": tests, "OPENAI_API_KEY": SECRET},
        cwd=folder,
        check=True,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.stdout.count("not flushed yet") == 1
    return json.loads((folder / "told").read_text())


def test_a_copy_is_what_another_child_would_be(tmp_path: Path) -> None:
    own, (copy, pid, known, numbers, printed, end), (other, its_pid), stderr = ran(tmp_path)
    assert own == pid == known != its_pid, "the first was the copy, the second was not"
    assert numbers == [0, 1, 2]
    assert printed == "printed"
    assert end == "The support.child_program process was ended by signal 9"
    assert {"to standard output", "to descriptor 1", "to descriptor 2"} <= set(stderr)
    assert stderr.count("tui_agent.test: to the log") == 2, "once from each"
    assert SECRET not in copy.pop("started with")
    assert "PYTHONPATH" in other.pop("started with")
    assert copy == other


def test_a_process_with_threads_is_not_copied(tmp_path: Path) -> None:
    own, (_, _, _, numbers, *_), _, _ = ran(tmp_path, "thread")
    assert own is None
    assert numbers == [0, 1, 2]
