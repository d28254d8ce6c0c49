from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import cast

import pytest
from support.logs import load

from tui_agent.errors import RecordRefused
from tui_agent.log.journal import Journal
from tui_agent.log.log import Log
from tui_agent.store import events as e
from tui_agent.store.events import Store
from tui_agent.store.state import State


async def test_a_fault_while_folding_is_told_to_whoever_wrote_and_nothing_waits(tmp_path: Path) -> None:
    journal = Journal(Store(State()), Log.create(tmp_path / "log.sqlite3"))

    def broken(event: e.Event, state: State) -> None:
        raise ValueError("a pane of ours")

    stop = journal.store.subscribe(broken)
    with pytest.raises(ValueError, match="a pane of ours"):
        await journal.record(e.NoticeGiven("info", "one"))
    stop()
    await journal.record(e.NoticeGiven("info", "two"))
    assert [notice.text for notice in journal.store.state.notices.items] == ["one", "two"]
    await journal.close()
    written = load(tmp_path / "log.sqlite3").events
    assert [event.text for event in written if isinstance(event, e.NoticeGiven)] == ["one", "two"]


async def test_calls_that_wait_share_one_write_in_their_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cancelled call is not written, and an invalid event fails only its own call."""
    log = Log.create(tmp_path / "log.sqlite3")
    log.count()
    going, commits, commit = threading.Event(), [], log._writer.commit

    def wait() -> None:
        going.wait(20)
        commits.append(1)
        commit()

    monkeypatch.setattr(log._writer, "commit", wait)
    journal = Journal(Store(State()), log)

    def told(text: str) -> e.NoticeGiven:
        return e.NoticeGiven("info", text)

    calls = [asyncio.create_task(journal.record(told(str(number)))) for number in range(20)]
    calls.append(asyncio.create_task(journal.record_soon(told("soon"))))
    calls.append(asyncio.create_task(journal.record_then(lambda: [told("then")])))
    cancelled = asyncio.create_task(journal.record(told("cancelled")))
    for _ in range(3):
        await asyncio.sleep(0)
    cancelled.cancel()
    going.set()
    await asyncio.gather(*calls)
    assert len(commits) == 3, "the first call, those that waited for it, and the one that is made last"
    wrong = told(cast("str", object()))
    said = await asyncio.gather(
        *(journal.record(one) for one in (told("a"), told("b"), wrong, told("c"))), return_exceptions=True
    )
    assert [type(one) for one in said] == [type(None), type(None), RecordRefused, type(None)]
    texts = [notice.text for notice in journal.store.state.notices.items]
    assert [text for text in texts if text != "then"] == [*map(str, range(20)), "soon", "a", "b", "c"]
    assert texts.count("then") == 1
    await journal.close()
    written = load(tmp_path / "log.sqlite3").events
    assert [event.text for event in written if isinstance(event, e.NoticeGiven)] == texts
