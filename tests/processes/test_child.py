"""A real child process, asked, cancelled, killed and restarted."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncGenerator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from tui_agent.errors import ChildFailed, PathRefused
from tui_agent.processes.child import MOST_STARTS, ChildProcess, ChildState

ROOT = Path(__file__).parents[2]
#: Where the program of these children is, which is none of ours.
PATH = {"PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / "tests")))}
MODULE = "support.child_program"


@pytest.fixture
async def child(monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[ChildProcess, None]:
    child = ChildProcess(MODULE, name="test", env=PATH)
    yield child
    await child.close()


async def test_an_answer_comes_back(child: ChildProcess) -> None:
    assert await child.ask("echo", {"α": [1, None, "two\n"]}) == {"α": [1, None, "two\n"]}


async def test_a_line_may_be_longer_than_any_buffer(child: ChildProcess) -> None:
    text = "long " * 1_000_000
    assert await child.ask("echo", {"text": text}) == {"text": text}


async def test_a_stream_yields_each_item_in_order(child: ChildProcess) -> None:
    assert [item async for item in child.stream("numbers", {"up_to": 500})] == list(range(500))


async def test_many_calls_at_once_each_get_their_own(child: ChildProcess) -> None:
    answers = await asyncio.gather(*(child.ask("echo", {"n": n}) for n in range(100)))
    assert [answer["n"] for answer in answers] == list(range(100))


async def test_closing_a_stream_cancels_it_in_the_child(child: ChildProcess) -> None:
    async with aclosing(child.stream("forever", {"name": "first"})) as stream:
        assert await anext(stream) == "begun"
    assert await child.ask("was_cancelled") == ["first"]


async def test_cancelling_an_ask_cancels_it_in_the_child(child: ChildProcess) -> None:
    await child.start()
    asking = asyncio.create_task(child.ask("forever", {"name": "second"}))
    await child.ask("echo")
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert await child.ask("was_cancelled") == ["second"]


async def test_an_answer_that_takes_too_long_is_an_error_and_is_cancelled(child: ChildProcess) -> None:
    await child.ask("echo")
    with pytest.raises(ChildFailed, match="test process did not answer 'forever' within"):
        await child.ask("forever", {"name": "third"}, timeout=0.01)
    assert await child.ask("was_cancelled") == ["third"]


async def test_what_a_child_prints_does_not_break_the_protocol(child: ChildProcess) -> None:
    assert await child.ask("prints") == "printed"
    assert await child.ask("echo", {"n": 1}) == {"n": 1}
    assert {"to standard output", "to descriptor 1"} <= set(child.stderr)


async def test_an_error_of_ours_comes_back_as_itself(child: ChildProcess) -> None:
    with pytest.raises(PathRefused) as caught:
        await child.ask("refuses")
    assert str(caught.value) == "a/../b leads outside: name a path inside the workspace"


async def test_any_other_error_is_told_and_the_child_goes_on(child: ChildProcess) -> None:
    pid = (await child.ask("facts"))["pid"]
    with pytest.raises(ChildFailed, match="breaks failed: ZeroDivisionError: nothing to divide by"):
        await child.ask("breaks")
    assert (await child.ask("facts"))["pid"] == pid


async def test_an_unknown_method_is_named(child: ChildProcess) -> None:
    with pytest.raises(ChildFailed, match="no method 'nonsense'"):
        await child.ask("nonsense")


async def test_events_come_unasked(monkeypatch: pytest.MonkeyPatch) -> None:
    events: list[dict[str, Any]] = []
    child = ChildProcess(MODULE, env=PATH, on_event=events.append)
    await child.ask("announces", {"type": "changed"})
    await child.close()
    assert events == [{"type": "changed"}]


async def test_when_it_is_killed_open_calls_fail_and_the_next_one_restarts_it(child: ChildProcess) -> None:
    pid = (await child.ask("facts"))["pid"]
    asking = asyncio.create_task(child.ask("forever", {"name": "x"}))
    async with aclosing(child.stream("forever", {"name": "y"})) as stream:
        assert await anext(stream) == "begun"
        os.kill(pid, signal.SIGKILL)
        with pytest.raises(ChildFailed, match="test process was ended by signal 9"):
            await anext(stream)
    with pytest.raises(ChildFailed, match="signal 9"):
        await asking
    assert (await child.ask("facts"))["pid"] != pid


async def test_a_child_that_cannot_start_says_why_and_is_not_started_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    child = ChildProcess(MODULE, name="test", env={**PATH, "BROKEN": "1"})
    for _ in range(MOST_STARTS):
        with pytest.raises(ChildFailed, match="test process ended with status 1"):
            await child.ask("echo")
    with pytest.raises(ChildFailed, match=r"times within a minute .*this child cannot start"):
        await child.ask("echo")
    await child.close()


async def test_its_states_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    states: list[ChildState] = []
    failed = asyncio.Event()

    def heard(state: ChildState) -> None:
        states.append(state)
        if state == "failed":
            failed.set()

    child = ChildProcess(MODULE, env=PATH)
    child.listen(heard)
    pid = (await child.ask("facts"))["pid"]
    os.kill(pid, signal.SIGKILL)
    await asyncio.wait_for(failed.wait(), 20)
    await child.ask("echo")
    await child.close()
    assert states == ["starting", "ready", "failed", "starting", "ready", "closed"]


async def test_after_close_it_has_ended_and_does_not_come_back(child: ChildProcess) -> None:
    pid = (await child.ask("facts"))["pid"]
    asking = asyncio.create_task(child.ask("forever", {"name": "z"}))
    await child.ask("echo")
    await child.close()
    with pytest.raises(ChildFailed):
        await asking
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    with pytest.raises(ChildFailed, match="was closed"):
        await child.ask("echo")


async def test_priority_variables_and_a_session_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    child = ChildProcess(MODULE, env={**PATH, "EXTRA": "given"})
    facts = await child.ask("facts")
    await child.close()
    assert facts["nice"] == os.nice(0), "an ordinary user could not raise it again"
    assert facts["extra"] == "given"
    assert facts["session"] == facts["pid"], "Ctrl+C in the terminal must not reach it"


async def test_the_working_folder_is_not_imported_from(
    child: ChildProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "msgspec.py").write_text("raise SystemExit('imported from the workspace')")
    monkeypatch.chdir(tmp_path)
    assert await child.ask("echo", {"n": 1}) == {"n": 1}


PARENT = """
import asyncio, os, sys
from tui_agent.processes.child import ChildProcess

async def main():
    child = ChildProcess("support.child_program", env={"PYTHONPATH": os.environ["PYTHONPATH"]})
    print((await child.ask("facts"))["pid"], flush=True)
    await asyncio.Event().wait()

asyncio.run(main())
"""


async def test_it_dies_with_a_parent_that_was_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    parent = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", PARENT), stdout=asyncio.subprocess.PIPE, cwd=ROOT, env={**os.environ, **PATH}
    )
    assert parent.stdout is not None
    pid = int(await parent.stdout.readline())
    parent.kill()
    await parent.wait()
    async with asyncio.timeout(20):
        while _runs(pid):  # noqa: ASYNC110 (nobody tells us of the end of a grandchild)
            await asyncio.sleep(0.01)


def _runs(pid: int) -> bool:
    """Whether the process still does anything; one that nobody has waited for does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
