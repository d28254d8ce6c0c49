"""Logs that earlier versions wrote are read in full, and go on. A sample of each lies in `samples/`."""

from __future__ import annotations

import shutil
import threading
from pathlib import Path

from support.logs import load

from tui_agent.log import directory
from tui_agent.log.log import Log
from tui_agent.log.snapshot import messages_of, read_state
from tui_agent.store import events as e

SAMPLES = Path(__file__).parent / "samples"


def test_the_first_version(tmp_path: Path) -> None:
    path = directory.folder_of(tmp_path, "one") / directory.LOG
    path.parent.mkdir(parents=True)
    shutil.copy(SAMPLES / "log-1.sqlite3", path)
    read = read_state(path)
    state = read.state
    assert (read.lost, read.number) == ((), 37)
    assert state.session.workspace == "/home/someone/sample"
    assert [(message.kind, message.turn) for message in state.chat.messages] == [
        ("person", 1),
        ("agent", 1),
        ("person", 2),
        ("agent", 2),
    ]
    assert state.chat.messages[1].changes == ("c1.1",)
    assert [todo.text for todo in state.todos] == ["Add it"]
    assert state.review.changes[0].state == "undone" and state.review.checkpoints[0].undone
    assert [task.id for task in state.subtasks.tasks] == ["t"]
    assert (state.input.draft, state.input.queue) == ("half typed", ("later",))
    assert set(state.known.files) == {"api.py"}
    assert state.buffers.active == "api.py" and state.layout.focus == "review"
    kept = state.buffers.get("b.py")
    assert kept is not None and (kept.text, kept.unsaved) == ("b = 2\n", True)
    log = Log.open(path)
    done = threading.Event()
    log.append([e.NoticeGiven("info", "on")], lambda _: done.set())
    assert done.wait(30)
    assert len(messages_of(load(log).events)) == 4
    log.close()
    assert read_state(path).state.notices.items[-1].text == "on"
