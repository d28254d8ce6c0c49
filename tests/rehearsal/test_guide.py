"""The guide of the rehearsal, walked by keys on a small screen: fifteen jobs, each noticed when it was done."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path

import pytest
import support.idle  # noqa: F401 (what the pilot waits with)
from textual.pilot import Pilot

from tui_agent.edits.change import Change, Checkpoint
from tui_agent.model.recording import RecordedModel
from tui_agent.rehearsal import copy_project
from tui_agent.rehearsal.demo import rehearsal
from tui_agent.session.session import Session
from tui_agent.store.state import ReviewSlice, State, TurnSlice
from tui_agent.ui.app import WorkspaceApp
from tui_agent.ui.host import Choice
from tui_agent.ui.keys.keymap import load_keys
from tui_agent.ui.widgets.guide import JOBS, Guide

PATIENCE = 30.0


class Walk:
    """One screen after another, as the program opens them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.guide = Guide()
        self.app: WorkspaceApp
        self.pilot: Pilot[int]

    def screen(self, session: str = "") -> WorkspaceApp:
        self.app = WorkspaceApp(
            lambda: rehearsal(folder=self.folder, session=session), reopen=_never, guide=self.guide
        )
        return self.app

    async def until(self, holds: Callable[[], object], what: str) -> None:
        deadline = asyncio.get_running_loop().time() + PATIENCE
        while not holds():
            assert asyncio.get_running_loop().time() < deadline, f"never: {what}\n{self.text}"
            await self.pilot.pause(0.02)

    async def ready(self) -> None:
        await self.until(lambda: self.app.session and self.app.workspace_screen.ready, "the panes")
        assert self.app.session
        await self.app.session.files.ready()

    async def done(self, left: int) -> None:
        """So many jobs are left."""
        await self.until(lambda: len(self.guide.left) == left, f"{left} left, not {self.guide.left[:1]}")

    @property
    def text(self) -> str:
        return "\n".join(strip.text for strip in self.app.screen._compositor.render_strips())


async def _never(choice: Choice) -> Session:
    raise AssertionError(choice)


async def test_all_fifteen_jobs_by_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TUI_AGENT_REPLAY_SPEED", "8")
    for name in ("HOME", "XDG_CONFIG_HOME"):  # in which git knows nobody
        monkeypatch.setenv(name, str(tmp_path / "home"))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    for role in ("AUTHOR", "COMMITTER"):
        for part in ("NAME", "EMAIL"):
            monkeypatch.delenv(f"GIT_{role}_{part}", raising=False)
    walk = Walk(copy_project(tmp_path / "shop"))
    async with walk.screen().run_test(size=(80, 24)) as walk.pilot:
        press = walk.pilot.press
        await walk.ready()
        session = walk.app.session
        assert session is not None
        await walk.until(lambda: "1 of 15  Send the message: Enter" in walk.text, "the first job")
        await press("enter")
        await walk.until(lambda: len(session.state.review.open) == 2, "the changes")
        await session.chat.finished()
        await walk.done(14)
        await press("f5", "a")
        await walk.done(13)
        await press("s")
        await walk.done(12)
        await press("f8")
        await walk.until(
            lambda: len(walk.guide.left) == 11 or "Press again" in session.state.notices.items[-1].text, "F8"
        )
        await press(*(["f8"] if len(walk.guide.left) == 12 else []))
        await walk.done(11)
        await press("shift+f8")
        await walk.done(10)
        await press("shift+f2")
        await walk.until(lambda: "Commit" in type(walk.app.screen).__name__, "the dialog")
        await walk.until(lambda: "clients/orders_v2.py" in walk.text, "its files")
        await press(*"Timeouts")
        await press("f2")
        await walk.done(9)
        await walk.until(lambda: walk.app.screen is walk.app.workspace_screen, "the dialog closed")
        assert isinstance(session.models.model, RecordedModel)
        session.models.model._speed = 1.0
        await press("f7", "1", "enter")
        await walk.until(lambda: session.state.turn.running, "the answer")
        await press("escape")
        await walk.done(8)
        session.models.model._speed = 8.0
        await press("f3", "slash", *"retry", "enter")
        await walk.done(7)
        await press("ctrl+f", *"pause", "escape")
        await walk.done(6)
        await press(
            "f7", *([] if not session.state.input.draft else ["ctrl+a", "delete"]), *"!git status", "enter"
        )
        await walk.done(5)
        await press("f7", "ctrl+f", *"both", "escape")
        await walk.done(4)
        await press("shift+f12", "escape")
        await walk.done(3)
        await press("f7", *"Explain shop/invoices.py", "enter")
        await walk.until(lambda: session.state.turn.phase == "waiting", "the question")
        await press("ctrl+o", "p", "enter")
        await walk.done(2)
        await session.chat.finished()
        await press("ctrl+o", "B")
        await walk.until(lambda: walk.app.next, "another session")
        await session.close()
    first = session.state.session.id
    for named, left in (("", 1), (first, 0)):
        async with walk.screen(named).run_test(size=(80, 24)) as walk.pilot:
            await walk.ready()
            await walk.done(left)
            assert walk.app.session
            if left:
                words = walk.guide.words(walk.app.keys)
                assert words == "15 of 15  Resume the one before: Ctrl+O g, Enter"
                await walk.pilot.press("ctrl+o", "g")
                await walk.until(lambda: "of this workspace" in walk.text, "the sessions")
                await walk.pilot.press("enter")
                await walk.until(lambda: walk.app.next, "the one before")
                assert walk.app.next and walk.app.next.session == first
            else:
                await walk.until(lambda: "All 15 are done" in walk.text, "the end")
            await walk.app.session.close()


def test_what_cannot_be_done_any_more_is_passed_over() -> None:
    """Apply all as the first key leaves nothing to skip."""
    guide = Guide()
    change = Change("c", 1, "a.py", "edit", "applied", hunks=("applied",))
    review = ReviewSlice((change,), (Checkpoint("k1", 1, (), ()),))
    guide.show(State(turn=TurnSlice(number=1), review=review))
    assert guide.left[0].words.startswith("Undo that")


def test_every_job_is_told_on_two_rows_of_a_small_screen() -> None:
    guide, keys = Guide(), load_keys()
    assert len(JOBS) == 15
    while guide.left:
        words = guide.words(keys)
        assert "{" not in words and len(words) <= 2 * 76, words
        guide.left.pop(0)
