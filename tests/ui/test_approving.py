from __future__ import annotations

import re
import time
from typing import cast

from msgspec.structs import replace
from support.panes import NotedSession, ThemedApp
from textual.app import ComposeResult

from tui_agent.answers.plans import FileAction
from tui_agent.edits.change import Change
from tui_agent.session.session import Session
from tui_agent.settings.loading import LoadedSettings
from tui_agent.settings.schema import Settings, SubTaskSettings
from tui_agent.store.graph import SubTask
from tui_agent.store.state import (
    ActionSlice,
    PlanSlice,
    ReviewSlice,
    State,
    SubTaskProgress,
    SubTasksSlice,
    TurnSlice,
)
from tui_agent.ui.keys.keymap import load_keys
from tui_agent.ui.panes.status import facts_line
from tui_agent.ui.widgets.pane import Pane
from tui_agent.ui.widgets.prompt_lines import ApprovalLine, WaitingLines, stalled

TICKED = SubTask("api", "Do it", auto_execute=True, state="ready")
OTHER = SubTask("ui", "Do it", dependencies=("api",))


CASES = (
    (Settings(), (TICKED, OTHER), "2 sub-tasks wait · Ctrl+O R runs 1 ticked · Ctrl+O s shows them"),
    (Settings(), (OTHER,), "1 sub-task waits for you · Ctrl+O s shows it, then r runs it"),
    (
        Settings(subtasks=SubTaskSettings("manual")),
        (TICKED,),
        "1 sub-task waits for you · Ctrl+O s shows it, then r runs it",
    ),
    (Settings(subtasks=SubTaskSettings("auto")), (TICKED, OTHER), ""),
    (Settings(), (replace(TICKED, wanted=True), OTHER), ""),
    (Settings(), (replace(TICKED, state="completed"),), ""),
    (Settings(), (), ""),
)


class OneLine(ThemedApp):
    def __init__(self) -> None:
        super().__init__()
        self.keys = load_keys()
        self.noted = NotedSession()

    def compose(self) -> ComposeResult:
        yield ApprovalLine(cast(Session, self.noted))
        yield WaitingLines(cast(Session, self.noted))


async def test_what_waits_for_a_word_is_told_with_the_keys_that_give_it():
    app = OneLine()
    async with app.run_test(size=(90, 3)) as pilot:
        for settings, tasks, said in CASES:
            app.noted.loaded = LoadedSettings(settings)
            app.query_one(ApprovalLine).show(State(subtasks=SubTasksSlice(tasks)))
            await pilot.pause()
            assert app.text.split("\n")[0].strip() == said


SCHEMA = ActionSlice(FileAction("Schema", ("a",)), state="asking")
ASKS = State(turn=TurnSlice(1, "waiting", waiting_for="Schema"), plan=PlanSlice(1, "model", (SCHEMA,)))
CHANGED = [Change(f"c{n}", 1, f"{n}.py", "edit", "conflict") for n in range(3)]
OPEN = Change("c8", 1, "c.py", "edit", "pending")
FAILED = Change("c9", 1, "b.py", "edit", "failed")
QUIET = {"api": SubTaskProgress("streaming", started=0, heard=time.time() - 65.5)}
RUNS = replace(TICKED, state="running")
#: A state, the line over the prompt with the key that leads there, and the mark in the status line.
WAITING = (
    (ASKS, "? Which file is “Schema”? · Ctrl+O p answers it", "? 1 question"),
    (
        State(review=ReviewSlice(tuple(CHANGED[:1]))),
        "⚠ Conflict in 0.py · F5 shows it",
        "⚠ 1 conflict · no model",
    ),
    (
        State(review=ReviewSlice((CHANGED[0], OPEN))),
        "⚠ Conflict in 0.py · F5 shows it",
        "⚠ 1 conflict · ● 1 change · ",
    ),
    (
        State(review=ReviewSlice(tuple(CHANGED))),
        "⚠ Conflict in 0.py and 2 more files · F5 shows it",
        "⚠ 3 conflicts",
    ),
    (
        State(review=ReviewSlice((FAILED,)), turn=TurnSlice(1)),
        "✗ Could not place the change to b.py · F5 shows it",
        "✗ 1 failed",
    ),
    (State(review=ReviewSlice((FAILED,)), turn=TurnSlice(2)), "", "no model"),
    (
        State(subtasks=SubTasksSlice((RUNS,), running=QUIET)),
        "◌ Sub-task api has been silent for TIME · Ctrl+O s shows it",
        "◌ 1 sub-task silent",
    ),
)


async def test_what_waits_elsewhere_is_a_line_with_its_key_and_a_mark_and_a_click_leads_there():
    app = OneLine()
    gone: list[str] = []
    async with app.run_test(size=(90, 3), message_hook=lambda it: _note(it, gone)) as pilot:
        for state, said, mark in WAITING:
            app.query_one(WaitingLines).show(state)
            await pilot.pause()
            assert re.sub(r"\d+:\d\d", "TIME", app.text.split("\n")[0].strip()) == said
            assert facts_line(state, 60, quiet=len(stalled(state, time.time(), 30))).plain.startswith(mark)
        await pilot.click(WaitingLines)
        await pilot.pause()
        assert gone == ["pane.subtasks"]


def _note(message: object, gone: list[str]) -> None:
    if isinstance(message, Pane.ActionAsked) and message.action not in gone:
        gone.append(message.action)
