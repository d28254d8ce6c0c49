from __future__ import annotations

from support.panes import HOSTILE, NotedSession, PaneApp

from tui_agent.errors import SessionError
from tui_agent.store.graph import SubTask
from tui_agent.store.state import State, SubTasksSlice
from tui_agent.ui.panes.subtasks import SubTasksPane

TASKS = (
    SubTask("api", "Give the client timeouts", ("api.py", "net.py"), state="ready"),
    SubTask("ui", "Show them", dependencies=("api",)),
)


def drawn(*tasks: SubTask) -> PaneApp:
    return PaneApp(SubTasksPane, NotedSession(State(subtasks=SubTasksSlice(tasks))))


def refused(app: PaneApp, call: str) -> None:
    """The session says no to this call from now on."""

    def no(*_: object) -> None:
        raise SessionError(f"No {HOSTILE}", "do it otherwise")

    app.noted.answers[call] = no


async def test_a_task_is_added_and_a_refusal_leaves_what_was_written():
    app = drawn()
    refused(app, "subtasks.add")
    async with app.run_test(size=(100, 30)) as pilot:
        await pilot.press("a", "d", "tab", *"Go on", "tab", *"a, b", "ctrl+g")
        await pilot.pause()
        assert "No [red]x" in app.text and "do it otherwise" in app.text and "Go on" in app.text
        app.noted.answers.clear()
        await pilot.press("ctrl+g")
        await pilot.pause()
        assert app.noted.named("subtasks.add")[-1] == ("d", "Go on", ("a", "b"))
        assert len(app.screen_stack) == 1


async def test_goal_and_files_are_edited_or_left():
    app = drawn(*TASKS)
    async with app.run_test(size=(100, 30)) as pilot:
        await pilot.press("e", "A", "escape")
        await pilot.pause()
        assert app.noted.named("subtasks.edit") == []
        await pilot.press("e", "end", "!", "tab", "ctrl+u", "x", "enter")
        await pilot.pause()
        ((name, goal, files),) = app.noted.named("subtasks.edit")
        assert (name, sorted(goal), files) == ("api", sorted("!Give the client timeouts"), ("x",))


async def test_what_a_task_waits_for_is_ticked_in_a_list():
    app = drawn(*TASKS, SubTask("docs", HOSTILE))
    refused(app, "subtasks.connect")
    async with app.run_test(size=(100, 30)) as pilot:
        await pilot.press("w", "space", "down", "space", "enter")
        await pilot.pause()
        assert "No [red]x" in app.text
        await pilot.press("up", "space")
        app.noted.answers.clear()
        await pilot.press("enter")
        await pilot.pause()
        assert app.noted.named("subtasks.connect") == [("api", ("ui", "docs")), ("api", ("docs",))]


async def test_a_task_is_taken_out_after_a_question():
    app = drawn(*TASKS)
    async with app.run_test(size=(100, 30)) as pilot:
        await pilot.press("d", "enter")
        await pilot.pause()
        assert app.noted.named("subtasks.remove") == []
        await pilot.press("d")
        await pilot.pause()
        assert "ui no longer waits for it" in app.text
        await pilot.press("down", "enter")
        await pilot.pause()
        assert app.noted.named("subtasks.remove") == [("api",)]
