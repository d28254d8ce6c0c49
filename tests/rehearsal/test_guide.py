"""The guide of the rehearsal, walked by keys on a small screen: fifteen jobs, each noticed when it was done."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest
import support.idle  # noqa: F401 (what the pilot waits with)
from msgspec.structs import replace
from textual.pilot import Pilot

from tui_agent.edits.change import Change, Checkpoint
from tui_agent.model.recording import RecordedModel
from tui_agent.rehearsal import copy_project, demo
from tui_agent.rehearsal.demo import rehearsal
from tui_agent.session.session import Session
from tui_agent.settings.folders import user_folders
from tui_agent.store.state import ReviewSlice, State, TurnSlice
from tui_agent.ui.app import WorkspaceApp
from tui_agent.ui.host import Choice
from tui_agent.ui.keys.keymap import load_keys
from tui_agent.ui.widgets.guide import JOBS, Guide

PATIENCE = 60.0


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

    @property
    def text(self) -> str:
        return "\n".join(strip.text for strip in self.app.screen._compositor.render_strips())


async def _never(choice: Choice) -> Session:
    raise AssertionError(choice)


#: A key as the words of a job spell it.
KEY = re.compile(r"(?:(?:Ctrl|Shift|Alt)\+)?(?:F\d+|Enter|Esc|\S)\Z")
NAMES = {"Enter": "enter", "Esc": "escape", "/": "slash"}


def keys_of(part: str) -> list[str] | None:
    """The keys that a part of the words consists of; None where it says something else."""
    found = part.split()
    if not found or not all(map(KEY.match, found)):
        return None
    return [NAMES.get(it, it.lower() if "+" in it or len(it) > 1 else it) for it in found]


async def do(walk: Walk, words: str) -> None:
    """Press what the words of a job say, and nothing else; wait for what they say is waited for."""
    session = walk.app.session
    assert session is not None
    job, _, told = words.partition(": ")
    if "After the answer" in job:
        await walk.until(lambda: session.state.review.open and not session.state.turn.running, "the answer")
    left, pressed = len(walk.guide.left), [""]

    def applied_or_asked_again() -> bool:
        asked = any("again applies anyway" in notice.text for notice in session.state.notices.items)
        return asked or len(walk.guide.left) < left

    for part in re.split(r"[,;:] (?:then |and )?| then ", told):
        keys = keys_of(part.removesuffix(" while it comes"))
        if part.endswith("while it comes"):
            await walk.until(lambda: session.state.turn.phase == "streaming", "the answer")
        if part == "answer it":
            await walk.until(lambda: session.state.turn.phase == "waiting", "the question")
        elif part == "twice if a check failed":
            await walk.until(applied_or_asked_again, "applied, or asked again")
            await walk.pilot.press(*(pressed if len(walk.guide.left) == left else []))
        else:
            letters = {"some letters": "pa", "write a message": "Timeouts"}.get(part, part)
            pressed = keys or list(letters)
            await walk.pilot.press(*pressed)
            await walk.pilot.pause()


async def test_all_fifteen_jobs_by_the_words_that_are_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HOME", "XDG_CONFIG_HOME"):  # in which git knows nobody
        monkeypatch.setenv(name, str(tmp_path / "home"))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    for role in ("AUTHOR", "COMMITTER"):
        for part in ("NAME", "EMAIL"):
            monkeypatch.delenv(f"GIT_{role}_{part}", raising=False)
    walk = Walk(copy_project(tmp_path / "shop"))
    session, sessions = "", []
    while len(sessions) < 3:
        async with walk.screen(session).run_test(size=(80, 24)) as walk.pilot:
            await walk.ready()
            now = walk.app.session
            assert now is not None and isinstance(now.models.model, RecordedModel)
            sessions.append(now.state.session.id)
            while walk.guide.left and not walk.app.next:
                words = walk.guide.words(walk.app.keys)
                await walk.until(lambda w=words: w[:60] in walk.text, words)
                now.models.model._speed = 1.0 if "while it comes" in words else 50.0
                left = len(walk.guide.left)
                await do(walk, words.partition("  ")[2])
                await walk.until(
                    lambda left=left: len(walk.guide.left) < left or walk.app.next, f"done: {words}"
                )
            if walk.app.next:
                session = walk.app.next.session
            else:
                await walk.until(lambda: "All 15 are done" in walk.text, "the end")
            await now.close()
    assert sessions[0] == sessions[2] != sessions[1]


def test_what_cannot_be_done_any_more_is_passed_over() -> None:
    """Apply all as the first key leaves nothing to skip."""
    guide = Guide()
    change = Change("c", 1, "a.py", "edit", "applied", hunks=("applied",))
    review = ReviewSlice((change,), (Checkpoint("k1", 1, (), ()),))
    guide.show(State(turn=TurnSlice(number=1), review=review))
    assert guide.left[0].words.startswith("Undo the apply")


def test_without_git_nothing_is_to_be_committed() -> None:
    guide = Guide()
    change = Change("c", 1, "a.py", "edit", "applied", hunks=("applied",))
    state = State(turn=TurnSlice(1), review=ReviewSlice((change,), (Checkpoint("k1", 1, (), ()),)))
    guide.show(state)
    assert [job.words.split(":")[0] for job in guide.left[:2]] == ["Undo the apply", "Commit"]
    undone = replace(state.review, checkpoints=(Checkpoint("k1", 1, (), (), undone=True),))
    guide.show(replace(state, review=undone, workspace=replace(state.workspace, is_repository=True)))
    assert guide.left[0].words.startswith("Commit")
    guide.show(replace(state, review=undone))
    assert guide.left[0].words.startswith("Stop an answer")


def test_every_job_is_told_on_two_rows_of_a_small_screen() -> None:
    guide, keys = Guide(), load_keys()
    assert len(JOBS) == 15
    while guide.left:
        words = guide.words(keys)
        assert "{" not in words and len(words) <= 2 * 76, words
        guide.left.pop(0)


@pytest.mark.parametrize("written", ["", 'theme = "contrast"'])
def test_it_follows_the_background_unless_a_theme_is_set(
    monkeypatch: pytest.MonkeyPatch, written: str
) -> None:
    config = user_folders().config
    config.mkdir(parents=True, exist_ok=True)
    (config / "settings.toml").write_text(written)
    found: dict[str, object] = {}
    monkeypatch.setattr(demo, "run_app", lambda session, **options: found.update(options) or 0)
    assert demo.run_demo() == 0 and found["follows_background"] is not bool(written)
