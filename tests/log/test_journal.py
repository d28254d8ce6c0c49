from __future__ import annotations

from pathlib import Path

import pytest

from tui_agent.log.journal import Journal
from tui_agent.log.log import Log, load
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
