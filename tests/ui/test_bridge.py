"""From the store to the panes: only what changed, at most thirty times a second, nothing after the end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import cast

import pytest
from support.sessions import open_session, reply

from tui_agent.store import events as e
from tui_agent.store.state import State
from tui_agent.ui import bridge as bridges
from tui_agent.ui.bridge import INTERVAL, Bridge
from tui_agent.ui.widgets.pane import Pane


class Shown:
    """Stands where a pane would, and keeps what it was shown."""

    def __init__(self, *slices: str) -> None:
        self.SLICES = slices
        self.states: list[State] = []

    def show(self, state: State) -> None:
        self.states.append(state)


def run_now(callback: Callable[[], object]) -> None:
    callback()


async def test_a_pane_is_shown_the_state_at_once_and_then_its_own_changes(tmp_path: Path) -> None:
    async with open_session(tmp_path, services=False) as session:
        bridge = Bridge(session, run_now)
        notices, todos = Shown("notices"), Shown("todos")
        for pane in (notices, todos):
            bridge.attach(cast(Pane, pane))
        await session.notice("one")
        await asyncio.sleep(2 * INTERVAL)
        assert (len(notices.states), len(todos.states)) == (2, 1)
        bridge.close()


async def test_what_is_typed_is_shown_to_those_alone_that_look_at_the_text(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\n")
    async with open_session(tmp_path, services=False) as session:
        bridge = Bridge(session, run_now)
        text, tabs, checked = Shown("buffers"), Shown("buffers.tabs"), Shown("checked_buffers")
        for pane in (text, tabs, checked):
            bridge.attach(cast(Pane, pane))
        seen = []
        await session.files.open("a.txt")
        bridge.flush()
        for typed in ("one!\n", "one!!\n", "one!\n", "one\n"):
            session.files.edit("a.txt", typed, (0, 0), (0, 0))
            bridge.flush()
            seen.append([len(shown.states) for shown in (text, tabs, checked)])
        steps = [[now - before for before, now in zip(seen[0], row, strict=True)] for row in seen[1:]]
        assert steps == [[1, 0, 0], [2, 0, 0], [3, 1, 0]], "it is unsaved until the last"
        bridge.close()


async def test_a_flood_is_one_drawing(tmp_path: Path) -> None:
    async with open_session(tmp_path, services=False) as session:
        bridge = Bridge(session, run_now)
        pane = Shown("input")
        bridge.attach(cast(Pane, pane))
        bridge.flush()
        for n in range(1000):
            session.chat.set_draft(f"draft {n}")
        assert len(pane.states) == 1
        await asyncio.sleep(2 * INTERVAL)
        assert len(pane.states) == 2
        assert pane.states[-1].input.draft == "draft 999"
        bridge.close()


async def test_nothing_is_due_while_nothing_happens(tmp_path: Path) -> None:
    async with open_session(tmp_path, services=False) as session:
        bridge = Bridge(session, run_now)
        session.chat.set_draft("x")
        await asyncio.sleep(2 * INTERVAL)
        assert bridge._timer is None
        bridge.close()


async def test_after_closing_nothing_is_shown(tmp_path: Path) -> None:
    async with open_session(tmp_path, services=False) as session:
        bridge = Bridge(session, run_now)
        pane = Shown("input")
        bridge.attach(cast(Pane, pane))
        session.chat.set_draft("x")
        bridge.close()
        session.chat.set_draft("y")
        await asyncio.sleep(2 * INTERVAL)
        assert len(pane.states) == 1


@pytest.mark.parametrize("keys", ["", "wait", "come"])
async def test_a_request_is_composed_before_its_message_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, keys: str
) -> None:
    """Where keys wait, or one comes meanwhile, what they depend on is shown at once."""
    monkeypatch.setattr(bridges, "REQUEST_FIRST", 30.0)
    monkeypatch.setattr(bridges, "INTERVAL", 0.0)
    async with open_session(tmp_path, [reply(message="Done.")]) as session:
        bridge = Bridge(session, run_now, lambda: keys == "wait")
        pane, before = Shown("chat"), dict[str, int]()
        bridge.attach(cast(Pane, pane))

        def happened(event: e.Event, _: State) -> None:
            before.setdefault(type(event).__name__, len(pane.states))
            if isinstance(event, e.PlanMade) and keys == "come":
                bridge.hurry()

        session.subscribe(happened)
        await session.chat.submit("Say that it is done")
        freed = asyncio.create_task(bridge.free())
        await session.chat.finished()
        await freed
        bridge.flush()
        assert (before["RequestSent"] > before["TurnStarted"]) == bool(keys)
        assert pane.states[-1].chat.messages[0].text == "Say that it is done"
        bridge.close()


async def test_what_takes_long_before_its_request_is_shown_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bridges, "REQUEST_FIRST", 0.0)
    async with open_session(tmp_path, services=False) as session:
        bridge = Bridge(session, run_now)
        pane = Shown("turn")
        bridge.attach(cast(Pane, pane))
        await session.journal.record(e.TurnStarted(1, "go"))
        await bridge.free()
        assert pane.states[-1].turn.phase == "planning"
        bridge.close()
