from __future__ import annotations

from typing import cast

from msgspec.structs import replace
from support.panes import NotedSession, ThemedApp
from textual.app import ComposeResult

from tui_agent.session.session import Session
from tui_agent.settings.loading import LoadedSettings
from tui_agent.settings.schema import Settings
from tui_agent.store.graph import SubTask
from tui_agent.store.state import State, SubTasksSlice
from tui_agent.ui.keys.keymap import load_keys
from tui_agent.ui.widgets.prompt_lines import ApprovalLine

TICKED = SubTask("api", "Do it", auto_execute=True, state="ready")
OTHER = SubTask("ui", "Do it", dependencies=("api",))


CASES = (
    (Settings(), (TICKED, OTHER), "2 sub-tasks wait · Ctrl+O R run 1 ticked · Ctrl+O s look"),
    (Settings(), (OTHER,), "1 sub-task waits for you · Ctrl+O s look, then r run"),
    (Settings(autonomy="manual"), (TICKED,), "1 sub-task waits for you · Ctrl+O s look, then r run"),
    (Settings(autonomy="auto"), (TICKED, OTHER), ""),
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


async def test_what_waits_for_a_word_is_told_with_the_keys_that_give_it():
    app = OneLine()
    async with app.run_test(size=(90, 3)) as pilot:
        for settings, tasks, said in CASES:
            app.noted.loaded = LoadedSettings(settings)
            app.query_one(ApprovalLine).show(State(subtasks=SubTasksSlice(tasks)))
            await pilot.pause()
            assert app.text.split("\n")[0].strip() == said
