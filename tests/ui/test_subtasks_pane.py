from __future__ import annotations

from support.panes import HOSTILE, NotedSession, PaneApp

from tui_agent.store.state import State, SubTasksSlice
from tui_agent.subtasks.graph import SubTask
from tui_agent.ui.panes.subtasks import SubTasksPane
from tui_agent.ui.widgets.graph_view import GraphView

TASKS = (
    SubTask("api", "Give the client timeouts", ("api.py", "net.py"), state="running"),
    SubTask("ui", "Show them", state="completed", summary="It shows them."),
    SubTask("tests", "Test both", dependencies=("api", "ui"), auto_execute=True),
)
WIDE = (*TASKS, SubTask("a-much-longer-name", "", dependencies=("tests",)))


def drawn(*tasks: SubTask) -> PaneApp:
    return PaneApp(SubTasksPane, NotedSession(State(subtasks=SubTasksSlice(tasks))))


async def test_the_graph_stands_from_left_to_right():
    app = drawn(*TASKS)
    async with app.run_test(size=(28, 5)) as pilot:
        await pilot.pause()
        lines = [line.strip("▎ ") for line in app.text.split("\n")]
        assert lines[:2] == ["api ● ──┐", "ui  ✓ ──┴─▶ tests ○"]
        assert str(app.pane.title_text) == "Sub-tasks 1/3"


async def test_a_narrow_pane_lists_the_tasks_by_layer():
    app = drawn(*WIDE)
    async with app.run_test(size=(24, 6)) as pilot:
        assert not app.query_one(GraphView).display
        assert [line[2:].rstrip() for line in app.text.split("\n")[:3]] == [
            "● api",
            "✓ ui",
            "  ○ tests ← api, ui",
        ]
        await pilot.resize_terminal(80, 6)
        await pilot.pause()
        assert app.query_one(GraphView).display and app.query_one(GraphView).has_focus


async def test_the_first_that_runs_is_chosen_and_its_details_are_told():
    app = drawn(*TASKS)
    async with app.run_test(size=(60, 16)) as pilot:
        await pilot.pause()
        assert "Give the client timeouts" in app.text and "files: api.py, net.py" in app.text
        await pilot.press("right")
        await pilot.pause()
        assert "waits for: api, ui" in app.text and "starts by itself" in app.text
        await pilot.press("p")
        await pilot.pause()
        assert "It shows them." in app.text


async def test_keys_walk_and_skip_in_either_view():
    for size in ((60, 16), (20, 16)):
        app = drawn(*WIDE)
        async with app.run_test(size=size) as pilot:
            await pilot.press("down", "s")
            await pilot.pause()
            assert app.noted.named("skip_subtask") == [("ui",)]


async def test_states_are_seen_as_they_change():
    app = drawn(*TASKS)
    async with app.run_test(size=(60, 5)) as pilot:
        app.show(State(subtasks=SubTasksSlice((SubTask("api", "", state="failed"), *TASKS[1:]))))
        await pilot.pause()
        assert "api ✗" in app.text


async def test_no_tasks_are_one_sentence():
    app = drawn()
    async with app.run_test(size=(40, 6)) as pilot:
        await pilot.press("s", "n", "p", "down")
        assert "Work that the model splits" in app.text and app.noted.calls == []


async def test_hostile_text_stays_text():
    task = SubTask(HOSTILE, HOSTILE, (HOSTILE,), ("gone",), summary=HOSTILE)
    for size in ((20, 20), (100, 30)):
        app = drawn(task)
        async with app.run_test(size=size) as pilot:
            await pilot.pause()
            assert "[red]" in app.text and "\x1b" not in app.text
