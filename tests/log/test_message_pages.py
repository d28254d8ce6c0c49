"""Earlier messages by number, and the page of a session, from events alone."""

from __future__ import annotations

import re
import sqlite3
from pathlib import Path

import pytest

from tui_agent.answers.plans import FileAction
from tui_agent.files.blobs import Blobs
from tui_agent.files.secret_values import SecretValues
from tui_agent.log.log import Log
from tui_agent.log.snapshot import PAGES, messages_before, pages_before
from tui_agent.log.web_page import as_web_page
from tui_agent.store import events as e
from tui_agent.store.graph import SubTask
from tui_agent.store.state import Todo

TURNS = 6


def turns(count: int = TURNS) -> list[e.Lasting]:
    events: list[e.Lasting] = [e.SessionStarted("20261127-000000-0000", "/work")]
    for turn in range(1, count + 1):
        events += [e.TurnStarted(turn, f"question {turn}"), e.ReplyRead(turn, "", f"answer {turn}")]
    return events


@pytest.fixture
def path(tmp_path: Path) -> Path:
    log = Log.create(tmp_path / "session" / "log.sqlite3")
    failures: list[Exception] = []
    log.append(turns(), lambda _: None, failures.append)
    log.close()
    assert not failures
    return log.path


@pytest.mark.parametrize(
    ("before", "count", "numbers"),
    [(5, 2, [3, 4]), (3, 2, [1, 2]), (3, 9, [1, 2]), (1, 2, []), (13, 3, [10, 11, 12]), (2, 1, [1])],
)
def test_messages_before_a_number_are_the_same_from_log_and_cache(
    path: Path, before: int, count: int, numbers: list[int]
) -> None:
    plain = messages_before(path, before, count, keep=False)
    assert [message.number for message in plain] == numbers
    assert not (path.parent / PAGES).exists(), "without `keep` nothing is cached"
    assert messages_before(path, before, count) == plain
    assert pages_before(path.parent, before, count) == plain, "cached by the reading before"
    assert messages_before(path, before, count) == plain


@pytest.mark.parametrize(
    "damage", ["UPDATE messages SET checksum = 1", "DELETE FROM messages WHERE number = 3"]
)
def test_a_damaged_cache_is_not_used(path: Path, damage: str) -> None:
    plain = messages_before(path, 5, 3)
    with sqlite3.connect(path.parent / PAGES) as connection:
        connection.execute(damage)
    assert pages_before(path.parent, 5, 3) is None
    assert messages_before(path, 5, 3) == plain
    assert pages_before(path.parent, 5, 3) == plain, "made again"


def page(*events: e.Event, secrets: SecretValues | None = None) -> str:
    first = e.SessionStarted("20261127-000000-0000", "/work")
    return as_web_page("s", [first, *events], Blobs(Path("/nonexistent")), secrets or SecretValues())


def test_a_page_has_the_parts_of_each_message() -> None:
    shown = page(
        e.TurnStarted(1, "Change **it**"),
        e.PlanMade(1, "model", (FileAction("Code", ("a.py",)), FileAction("Tests", ("t.py",)))),
        e.ReplyRead(1, "", "First `part`", reasoning="A thought", cut=True, why="the limit"),
        e.TurnStarted(2, "Go on"),
        e.ReplyRead(2, "", "Done", cut=True),
        e.TodosAdded((Todo("t1", "Write"), Todo("t2", "Read", done=True))),
    )
    assert "<p>Change <strong>it</strong></p>" in shown and "You · turn 1" in shown
    assert "<code>part</code>" in shown and "<p>A thought</p>" in shown and "<summary>Thinking<" in shown
    assert re.findall(r'<p class="bad">(Cut off[^<]*)<', shown) == ["Cut off: the limit", "Cut off"]
    assert "<summary>Plan: 2 files<" in shown and "Code" in shown and "Tests" in shown
    assert "<li>○ Write</li>" in shown and "<li>✓ Read</li>" in shown
    assert '<p class="facts">2 turns</p>' in shown
    assert page(e.TurnStarted(1, "x"), e.SessionRenamed("My name")).count("My name") == 2


def test_a_page_draws_sub_tasks_from_left_to_right() -> None:
    long = "Do something that takes very many words"
    tasks = (SubTask("a", long), SubTask("b", "short"), SubTask("c", "both", dependencies=("a", "b")))
    shown = page(
        e.TurnStarted(1, "x"), e.SubTasksProposed(tasks), e.SubTaskMoved("a", "failed", reason="why")
    )
    boxes = re.findall(r'<rect class="(\w*)" x="(\d+)" y="(\d+)" width="(\d+)" height="(\d+)"', shown)
    assert [one[0] for one in boxes] == ["bad", "", ""]
    (ax, ay, width, height), (bx, by, *_), (cx, cy, *_) = (list(map(int, one[1:])) for one in boxes)
    assert ax == bx and by >= ay + height and cx >= ax + width and cy == ay
    size = re.search(r'viewBox="-1 -1 (\d+) (\d+)"', shown)
    assert size and int(size[1]) >= cx + width and int(size[2]) >= by + height
    lines = [list(map(int, numbers)) for numbers in re.findall(r"M(\d+) (\d+) C.*?(\d+) (\d+)\"", shown)]
    assert lines == [
        [ax + width, ay + height // 2, cx, cy + height // 2],
        [bx + width, by + height // 2, cx, cy + height // 2],
    ]
    assert f">{long[:33]}…<" in shown and ">short<" in shown and "(failed) why" in shown
